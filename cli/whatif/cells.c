/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The trace on other cards and with other batches, and one cell of a grid. */
#include <string.h>

#include "base/units.h"
#include "cli/inputs/devices.h"
#include "cli/whatif/offline.h"
#include "cli/inputs/policies.h"
#include "cli/whatif/whatif.h"
#include "solver/fleet/floor.h"
#include "solver/fleet/needs.h"
#include "trace/cards.h"
#include "trace/scale.h"

/* ---- the question ---- */

static bool too_many (call *c, const char *option) {
  return call_usage (c, "--%s: more than %d", option, WHATIF_MOST);
}

static bool read_from (call *c, const trace *t, whatif_grid *g) {
  const char *own = card_device_of_trace (t);
  const char *from = call_text (c, "from") ? call_text (c, "from") : own;
  if (call_text (c, "from") && call_text (c, "scale"))
    return call_usage (c, "--from scales by rooflines and --scale by a share: give one of them");
  g->card = card_of_trace (t);
  g->has_from = from != NULL;
  return !c->err.code && call_quantity (c, "scale", &g->scale_ppm) &&
         (!from || device_named (c, from, &g->from));
}

static bool read_devices (call *c, const trace *t, whatif_grid *g) {
  const char *rest = call_text (c, "device"), *part;
  if (!read_from (c, t, g))
    return false;
  if (!rest && g->has_from)
    rest = call_text (c, "from") ? call_text (c, "from") : card_device_of_trace (t);
  while ((part = next_part (c, &rest))) {
    if (g->n_devices == WHATIF_MOST)
      return too_many (c, "device");
    if (!device_named (c, part, &g->devices[g->n_devices++]))
      return false;
  }
  return !c->err.code &&
         (g->n_devices > 0 || call_usage (c, "for which device? give --device NAME"));
}

static bool read_links (call *c, whatif_grid *g) {
  const char *rest = call_text (c, "link"), *part;
  while ((part = next_part (c, &rest))) {
    if (g->n_links == WHATIF_MOST)
      return too_many (c, "link");
    if (!call_part (c, "link", part, 0, &g->links[g->n_links++]))
      return false;
  }
  g->n_links += g->n_links == 0;
  return !c->err.code;
}

static bool read_budgets (call *c, whatif_grid *g) {
  const char *rest = call_text (c, "budget"), *part;
  int64_t ignored;
  while ((part = next_part (c, &rest))) {
    if (g->n_budgets == WHATIF_MOST)
      return too_many (c, "budget");
    if (!call_part (c, "budget", part, 0, &ignored))
      return false;
    g->budgets[g->n_budgets++] = part;
  }
  g->n_budgets += g->n_budgets == 0;
  return !c->err.code;
}

static bool read_batches (call *c, whatif_grid *g) {
  const char *rest = call_text (c, "batch"), *part;
  while ((part = next_part (c, &rest))) {
    if (g->n_batches == WHATIF_MOST)
      return too_many (c, "batch");
    const char *times = part + (*part == 'x' && part[1]); /* a bare x is named whole */
    if (!call_part (c, "batch", times, 0, &g->batches[g->n_batches++]))
      return false;
  }
  if (!g->n_batches)
    g->batches[g->n_batches++] = 1;
  return !c->err.code;
}

static bool read_slice (call *c, whatif_grid *g) {
  const char *text = call_text (c, "array"), *slash = text ? strchr (text, '/') : NULL;
  int64_t slice = 1, slices = 1;
  error wrong = { 0 };
  if (text) {
    char *first = slash ? arena_string_n (c->arena, text, (size_t)(slash - text), &c->err) : NULL;
    if (c->err.code)
      return false;
    if (!first || !units_parse_count (slash + 1, 1, 1 << 20, &slices, &wrong) ||
        !units_parse_count (first, 1, slices, &slice, &wrong))
      return call_usage (c, "--array: %s is not K/N with 1 <= K <= N", text);
  }
  g->slice = (int32_t)slice;
  g->slices = (int32_t)slices;
  return true;
}

bool whatif_read (call *c, const trace *t, whatif_grid *g) {
  *g = (whatif_grid){ 0 };
  return read_devices (c, t, g) && read_links (c, g) && read_budgets (c, g) &&
         read_batches (c, g) && read_slice (c, g) && trace_digest (t, g->digest, &c->err);
}

int32_t whatif_cells (const whatif_grid *g) {
  return g->n_devices * g->n_batches * g->n_links;
}

/* ---- another card, another batch ---- */

static bool scale_trace (call *c, const trace *t, const whatif_grid *g, const device *to,
                         whatif_case *out) {
  scaled made;
  bool ok = g->scale_ppm ? scale_share (t, g->scale_ppm, c->arena, &made, &c->err)
                         : scale_roofline (t, &g->from, to, c->arena, &made, &c->err);
  if (!ok)
    return false;
  out->trace = made.trace;
  out->assumed =
      g->scale_ppm
          ? arena_format (c->arena, &c->err, "all times scaled to %.4g %%",
                          (double)g->scale_ppm / 10000)
          : arena_format (
                c->arena, &c->err,
                "times of %s scaled by its roofline and that of %s; %d ops do not say what they "
                "calculate, %.1f %% of the step: those whose bytes take half of their time scale "
                "as memory, the rest as arithmetic",
                g->from.name, to->name, t->n_ops - made.ops,
                made.all_ns > 0 ? 100.0 * (double)made.guessed_ns / (double)made.all_ns : 0);
  return out->assumed;
}

/* A file of one's own may have the name of a card and other rates. */
static bool alike (const device *a, const device *b) {
  return strcmp (a->name, b->name) == 0 && a->has_roofline == b->has_roofline &&
         (!a->has_roofline || memcmp (&a->roofline, &b->roofline, sizeof a->roofline) == 0);
}

static bool carry (call *c, const whatif_grid *g, const trace *t, const device *to, int64_t times,
                   whatif_case *out) {
  bool zoo = t->source.kind && strcmp (t->source.kind, "zoo") == 0;
  bool same = !g->has_from || alike (&g->from, to);
  *out = (whatif_case){ .trace = t, .assumed = "the trace as it is" };
  if (times > 1 && !zoo)
    return call_usage (c, "--batch needs a trace of `ferry zoo`: others do not "
                          "tell how their ops grow");
  if (g->scale_ppm && times > 1)
    return call_usage (c, "--batch builds the network again, so there is nothing "
                          "for --scale; give one of them");
  if (g->scale_ppm)
    return scale_trace (c, t, g, to, out);
  if (zoo && (times > 1 || (!same && to->has_roofline))) {
    trace *again = offline_rebuild (c, t, to, times);
    if (!again)
      return false;
    out->trace = again;
    out->assumed =
        arena_format (c->arena, &c->err, "built again as %s; all times by the roofline of %s",
                      again->source.detail, to->name);
    return out->assumed;
  }
  if (!g->has_from && g->card)
    return (out->assumed = arena_format (c->arena, &c->err,
                                         "times as in the trace, those of a %s, for which there is "
                                         "no device file (--scale)",
                                         g->card));
  if (!g->has_from)
    out->assumed =
        "times as in the trace, which does not say on which card they were taken (--from)";
  else if (!same && (!to->has_roofline || !g->from.has_roofline))
    out->assumed = "times as in the trace: one of the cards tells no roofline";
  else if (!same)
    return scale_trace (c, t, g, to, out);
  return true;
}

bool whatif_carry (call *c, const trace *t, const whatif_grid *g, whatif_case **out) {
  *out = NEW (c->arena, (int64_t)g->n_devices * g->n_batches, whatif_case, &c->err);
  memory_floor f;
  needs n;
  for (int32_t i = 0; *out && i < g->n_devices * g->n_batches; i++) {
    const device *to = &g->devices[i / g->n_batches];
    whatif_case *at = &(*out)[i];
    if (!carry (c, g, t, to, g->batches[i % g->n_batches], at) ||
        !needs_of (at->trace, to, c->arena, &n, &c->err) ||
        !floor_least (at->trace, to, c->arena, &f, &c->err))
      return false;
    at->floor_bytes = reserve_onto (f.bytes, reserve_ppm (t));
    at->peak_bytes = reserve_onto (n.bytes, reserve_ppm (t));
  }
  return *out;
}

bool whatif_carry_to (call *c, const trace *t, const device *to, whatif_case *out) {
  whatif_grid *g = NEW (c->arena, 1, whatif_grid, &c->err);
  return g && read_from (c, t, g) && carry (c, g, t, to, 1, out);
}

/* ---- a cell ---- */

/* The sum of both ways keeps its ratio to the link's. */
static void set_link (device *d, int64_t rate) {
  if (rate == 0)
    return;
  device_link *l = &d->link;
  int64_t sum = l->d2h_bytes_per_s + l->h2d_bytes_per_s;
  if (l->both_bytes_per_s > sum) /* more than the two can use says no more than their sum */
    l->both_bytes_per_s = sum;
  l->both_bytes_per_s = units_scale (l->both_bytes_per_s, 2 * rate, sum);
  l->d2h_bytes_per_s = l->h2d_bytes_per_s = rate;
}

static bool budget_of (const char *text, const device *d, int64_t peak_bytes, int64_t *out,
                       error *err) {
  static const units_range amount = RANGE_AMOUNT;
  *out = d->memory_bytes - d->reserved_bytes;
  return !text || units_parse_within (text, &amount, peak_bytes, out, err);
}

static void fill_row (const curve *v, whatif_row *r) {
  for (int32_t i = 0; i < v->count; i++) {
    const curve_point *p = &v->points[i];
    if (p->budget_bytes != r->budget_bytes)
      continue;
    r->answer = p->plan                 ? WHATIF_PLAN
                : !p->asked             ? WHATIF_NOT_REACHED
                : p->lower_bound_ns < 0 ? WHATIF_NONE_FITS
                                        : WHATIF_NONE_FOUND;
    r->lower_bound_ns = p->lower_bound_ns;
    r->step_ns = r->host_bytes = r->d2h_bytes = r->h2d_bytes = -1;
    if (p->plan) {
      const predicted *q = &p->plan->predicted;
      r->step_ns = q->step_ns;
      r->host_bytes = q->host_peak_bytes;
      r->d2h_bytes = q->d2h_bytes;
      r->h2d_bytes = q->h2d_bytes;
    }
  }
}

static device device_of_cell (const whatif_grid *g, int32_t cell) {
  device d = g->devices[cell / g->n_links / g->n_batches];
  set_link (&d, g->links[cell % g->n_links]);
  return d;
}

bool whatif_unreached (const whatif_grid *g, const whatif_case *cases, int32_t cell, int32_t budget,
                       whatif_row *row, error *err) {
  int32_t which = cell / g->n_links;
  const whatif_case *at = &cases[which];
  device d = device_of_cell (g, cell);
  int64_t budget_bytes;
  if (!budget_of (g->budgets[budget], &d, at->peak_bytes, &budget_bytes, err))
    return false;
  *row = (whatif_row){ .answer = WHATIF_NOT_REACHED,
                       .device = which / g->n_batches,
                       .batch = g->batches[which % g->n_batches],
                       .link_bytes_per_s = d.link.h2d_bytes_per_s,
                       .budget_bytes = budget_bytes,
                       .floor_bytes = at->floor_bytes,
                       .peak_bytes = at->peak_bytes,
                       .baseline_ns = trace_total_ns (at->trace),
                       .step_ns = -1,
                       .lower_bound_ns = -1,
                       .host_bytes = -1,
                       .d2h_bytes = -1,
                       .h2d_bytes = -1 };
  return true;
}

bool whatif_cell (const whatif_grid *g, const whatif_case *cases, const curve_options *o,
                  int32_t cell, whatif_row *rows, error *err) {
  const whatif_case *at = &cases[cell / g->n_links];
  device d = device_of_cell (g, cell);
  curve_options mine = *o;
  curve v;
  int64_t budgets[WHATIF_MOST];
  mine.device = &d;
  mine.progress = NULL;
  if (mine.host_bytes < 0 || mine.host_bytes > d.host_bytes)
    mine.host_bytes = d.host_bytes;
  for (int32_t i = 0; i < g->n_budgets; i++) {
    if (!whatif_unreached (g, cases, cell, i, &rows[i], err))
      return false;
    budgets[i] = rows[i].budget_bytes;
  }
  arena *scratch = arena_new (0);
  bool ok = scratch || error_memory (err);
  ok = ok && curve_of (at->trace, &mine, budgets, g->n_budgets, scratch, &v, err);
  for (int32_t i = 0; ok && i < g->n_budgets; i++)
    fill_row (&v, &rows[i]);
  arena_free (scratch);
  return ok;
}
