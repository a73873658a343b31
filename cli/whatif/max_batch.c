/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry max-batch`: the largest batch of a network that fits, by what is allowed. */
#include <string.h>

#include "base/units.h"
#include "cli/inputs/devices.h"
#include "cli/whatif/offline.h"
#include "cli/whatif/offline_figures.h"
#include "cli/figures/columns.h"
#include "cli/figures/picture_files.h"
#include "cli/inputs/policies.h"
#include "cli/inputs/stopping.h"
#include "cli/inputs/zoo_options.h"
#include "solver/fleet/needs.h"

enum { MOST_TIMES = 8 };

typedef struct way {
  const char *name, *says;
  allowed allowed;
} way;

/* From less to more, as far as the user allows it. */
static const way all_ways[] = {
  { "unswapped", "everything on the device", SWAPS_ALONE },
  { "swapped", "copies to the host", SWAPS_ALONE },
  { "sections", "and ops in parts", { .sections = SECTIONS_AUTO } },
  { "recompute", "or drops, made again", { .recompute = RECOMPUTE_AUTO } },
  { "all", "all that is allowed", ALL_ALLOWED },
};
enum { WAYS = sizeof all_ways / sizeof *all_ways };

/* In the order of search_level. */
static const int64_t level_ticks[] = { 500000, 50000, 8000000 };

typedef struct largest {
  int64_t batch;   /* with a plan; 0: not even one item */
  int64_t none_at; /* a larger batch for which none was found; -1: no limit */
  bool proved;     /* that there is none */
  int64_t baseline_ns, step_ns, floor_bytes, peak_bytes, host_bytes;
} largest;

typedef struct asking {
  call *c;
  zoo_request request;
  device device;
  curve_options options;
  int64_t memory_bytes, slowdown_ppm, fine;
  int64_t most; /* no batch above this is asked for; 0: not known before the first way ends */
  int32_t tried;
  allowed allowed;
  way ways[WAYS]; /* the first moves nothing */
  int32_t n_ways;
} asking;

/* ---- one batch ---- */

typedef struct attempt {
  const trace *trace;
  int64_t baseline_ns, most_ns, peak_bytes;
} attempt;

static bool begin_batch (asking *a, int64_t batch, arena *scratch, attempt *t, error *err) {
  a->request.batch = batch;
  needs n;
  t->trace = zoo_trace (&a->request, scratch, err);
  if (!t->trace || !needs_of (t->trace, &a->device, scratch, &n, err))
    return false;
  t->peak_bytes = n.bytes;
  t->baseline_ns = trace_total_ns (t->trace);
  t->most_ns = t->baseline_ns + units_scale (t->baseline_ns, a->slowdown_ppm, 1000000);
  return true;
}

static curve_options options_of (const asking *a, const way *how) {
  curve_options o = a->options;
  o.allowed = how->allowed;
  return o;
}

/* Everything stays on the device. */
static bool is_plain (const asking *a, const way *how) {
  return how == a->ways;
}

/* Is no plan of such a batch fast enough, by the bound? */
static bool is_refuted (asking *a, const way *how, int64_t batch, bool *refuted, error *err) {
  arena *scratch = arena_new (0);
  attempt t;
  int64_t bound_ns = 0;
  curve_options o = options_of (a, how);
  a->tried++;
  bool ok = scratch || error_memory (err);
  ok = ok && begin_batch (a, batch, scratch, &t, err);
  bool plain = ok && t.peak_bytes <= a->memory_bytes;
  *refuted = ok && is_plain (a, how) && !plain;
  if (ok && !plain && !is_plain (a, how)) {
    ok = curve_bound (t.trace, &o, a->memory_bytes, &bound_ns, err);
    *refuted = ok && (bound_ns < 0 || bound_ns > t.most_ns);
  }
  arena_free (scratch);
  return ok;
}

/* Sets out's figures where it has a plan. */
static bool try_batch (asking *a, const way *how, int64_t batch, bool *fits, largest *out,
                       error *err) {
  arena *scratch = arena_new (0);
  attempt t;
  const plan *p = NULL;
  int64_t bound_ns;
  curve_options o = options_of (a, how);
  a->tried++;
  bool ok = scratch || error_memory (err);
  ok = ok && begin_batch (a, batch, scratch, &t, err);
  bool plain = ok && t.peak_bytes <= a->memory_bytes;
  if (ok && !plain && !is_plain (a, how))
    ok = curve_solve (t.trace, &o, a->memory_bytes, t.most_ns, scratch, &p, &bound_ns, err);
  *fits = ok && (plain || (p && p->predicted.step_ns <= t.most_ns));
  ok = ok && (!*fits || curve_floor (t.trace, &o, scratch, &out->floor_bytes, err));
  if (*fits) {
    out->batch = batch;
    out->baseline_ns = t.baseline_ns;
    out->peak_bytes = t.peak_bytes;
    out->step_ns = plain ? t.baseline_ns : p->predicted.step_ns;
    out->host_bytes = plain ? 0 : p->predicted.host_peak_bytes;
  }
  arena_free (scratch);
  if (ok)
    offline_progress (a->c, a->tried, 0, *fits ? out->step_ns : -1);
  return ok;
}

/* ---- the largest ---- */

static int64_t fine_of (const asking *a, int64_t batch) {
  return a->fine ? a->fine : batch / 32 + 1;
}

/* A batch that the bound refutes, as small as that is known to be; -1: none up to the most that is
   asked for. From what fits upward, by doubling and then by halving. */
static bool find_refuted (asking *a, const way *how, int64_t fits_at, int64_t *out, error *err) {
  int64_t low = fits_at, high = -1, step = fits_at > 8 ? fits_at / 2 : 1, most = a->most;
  while (!stopping_due (a->c) && (high < 0 || high - low > fine_of (a, low))) {
    bool refuted;
    int64_t at = high >= 0 ? low + (high - low) / 2 : low + step < most ? low + step : most;
    if (high < 0 && at <= low)
      break;
    if (!is_refuted (a, how, at, &refuted, err))
      return false;
    offline_progress (a->c, a->tried, 0, -1);
    if (refuted)
      high = at;
    else
      low = at;
    step *= 2;
  }
  *out = high;
  return true;
}

/* Not even its bytes fit, however they are rounded. */
static bool lives_over (asking *a, int64_t batch, bool *over, error *err) {
  arena *scratch = arena_new (0);
  attempt t;
  units u;
  gaps g;
  bool ok = scratch || error_memory (err);
  ok = ok && begin_batch (a, batch, scratch, &t, err) &&
       units_of (t.trace, NULL, 0, 1, 0, scratch, &u, err) &&
       gaps_of (&u, 1, a->memory_bytes, scratch, &g, err);
  *over = ok && g.peak_bytes > a->memory_bytes;
  arena_free (scratch);
  return ok;
}

/* Everything on the device: what fits is known at once, so upward by doubling, then by halving. */
static bool find_unswapped (asking *a, largest *out) {
  int64_t most = a->most ? a->most : ZOO_MOST_BATCH, step = 1, fine = a->fine ? a->fine : 1;
  while (!stopping_due (a->c) && out->batch < most &&
         !(out->none_at >= 0 && out->none_at - out->batch <= fine)) {
    bool fits;
    int64_t high = out->none_at;
    int64_t at = high >= 0                  ? out->batch + (high - out->batch) / 2
                 : out->batch + step < most ? out->batch + step
                                            : most;
    if (!try_batch (a, &a->ways[0], at, &fits, out, &a->c->err))
      return false;
    step *= 2;
    if (!fits)
      out->none_at = at;
  }
  return out->none_at < 0 || lives_over (a, out->none_at, &out->proved, &a->c->err);
}

/* The batches that are tried first are these rungs, whatever is allowed, and then halves between
   two of them: with the same ones asked, more that is allowed never gives less. */
static int64_t rung_above (int64_t rung) {
  return rung + rung / 4 + 1;
}

static int64_t rung_below (int64_t batch) {
  int64_t at = 0;
  while (rung_above (at) < batch)
    at = rung_above (at);
  return at;
}

/* From `none`, at which there is no plan, down the rungs to the first with one; then between that
   and the rung above it by halving. A batch up to that of `from` fits. */
static bool find_below (asking *a, int32_t way, const largest *from, int64_t none, largest *out) {
  int64_t low = rung_below (none);
  bool fits = false;
  for (; low > from->batch && !fits; low = fits ? low : rung_below (low)) {
    if (!try_batch (a, &a->ways[way], low, &fits, out, &a->c->err))
      return false;
    if (stopping_due (a->c))
      return true;
    if (!fits) {
      out->none_at = low;
      out->proved = false;
    }
  }
  for (int64_t high = rung_above (low); high - low > fine_of (a, low);) {
    int64_t at = low + (high - low) / 2;
    bool known = at >= none || at <= from->batch;
    fits = at <= from->batch;
    if (!known && !try_batch (a, &a->ways[way], at, &fits, out, &a->c->err))
      return false;
    if (stopping_due (a->c))
      return true;
    if (!fits && !known) {
      out->none_at = at;
      out->proved = false;
    }
    *(fits ? &low : &high) = at;
  }
  return true;
}

/* Below the smallest batch that the bound refutes, or below the most that is asked for. */
static bool find_planned (asking *a, int32_t way, const largest *from, int64_t refuted,
                          largest *out) {
  int64_t most = a->most;
  bool fits = most <= from->batch;
  if (stopping_due (a->c))
    return true;
  if (refuted >= 0)
    return find_below (a, way, from, refuted, out);
  if (!fits && !try_batch (a, &a->ways[way], most, &fits, out, &a->c->err))
    return false;
  if (fits || stopping_due (a->c))
    return true;
  out->none_at = most;
  return find_below (a, way, from, most, out);
}

static bool find_largest (asking *a, int32_t way, const largest *from, largest *out) {
  int64_t refuted;
  *out = *from;
  out->none_at = -1;
  out->proved = false;
  if (way == 0)
    return find_unswapped (a, out);
  if (!find_refuted (a, &a->ways[way], from->batch, &refuted, &a->c->err))
    return false;
  if (refuted >= 0) {
    out->none_at = refuted;
    out->proved = true;
  }
  return find_planned (a, way, from, refuted, out);
}

/* The largest so far of a way that allows no more. */
static const largest *least_of (const asking *a, int32_t way, const largest *found) {
  const largest *best = &found[0];
  for (int32_t i = 1; i < way; i++)
    if (allowed_is_within (&a->ways[i].allowed, &a->ways[way].allowed) &&
        found[i].batch > best->batch)
      best = &found[i];
  return best;
}

static bool find_all (asking *a, largest out[WAYS]) {
  largest nothing = { 0 };
  for (int32_t i = 0; i < a->n_ways; i++) {
    if (!find_largest (a, i, i ? least_of (a, i, out) : &nothing, &out[i]))
      return false;
    int64_t most = out[0].batch ? out[0].batch * MOST_TIMES : ZOO_MOST_BATCH;
    if (!a->most)
      a->most = most < ZOO_MOST_BATCH ? most : ZOO_MOST_BATCH;
  }
  offline_progress (a->c, a->tried, a->tried, -1);
  return true;
}

/* ---- answers ---- */

static bool print_json (call *c, const asking *a, const largest *all) {
  json_writer w;
  json_begin_object (&w, 2);
  allowed_write (&w, &a->allowed);
  json_add_text (&w, "device", a->device.name);
  json_add_int (&w, "memory_bytes", a->memory_bytes);
  json_add_text (&w, "network", a->request.name);
  json_add_share (&w, "slowdown", a->slowdown_ppm);
  json_add_array (&w, "ways");
  for (int i = 0; i < a->n_ways; i++) {
    const largest *l = &all[i];
    json_open_object (&w);
    json_add_int (&w, "baseline_ns", l->baseline_ns);
    json_add_int (&w, "batch", l->batch);
    json_add_int (&w, "floor_bytes", l->floor_bytes);
    json_add_int (&w, "host_bytes", l->host_bytes);
    json_add_int (&w, "needs_bytes", l->peak_bytes);
    json_add_int (&w, "none_at", l->none_at);
    json_add_bool (&w, "none_proved", l->proved);
    json_add_int (&w, "step_ns", l->step_ns);
    json_add_text (&w, "way", a->ways[i].name);
    json_close_object (&w);
  }
  json_close_array (&w);
  json_close_object (&w);
  return call_print_json (c, &w);
}

static const column heads[] = {
  { "way", 0, true, 0 },    { "allowed", 5, true, 0 }, { "batch", 0, false, 0 },
  { "step", 0, false, 0 },  { "slower", 0, false, 0 }, { "a second", 4, false, 0 },
  { "needs", 3, false, 0 }, { "host", 2, false, 0 },   { "above", 0, true, 0 },
};

static bool add_way (columns *to, const way *how, const largest *l, bool stopped) {
  columns_put (to, "%s", how->name);
  columns_put (to, "%s", how->says);
  if (!l->batch)
    return columns_end_with (to, stopped ? "none was found yet" : "none");
  columns_put (to, "%lld", (long long)l->batch);
  columns_time (to, l->step_ns);
  columns_put (to, "%+.1f %%", offline_slower (l->step_ns, l->baseline_ns));
  columns_put (to, "%.1f", l->step_ns > 0 ? 1e9 * (double)l->batch / (double)l->step_ns : 0);
  columns_bytes (to, l->peak_bytes);
  columns_bytes (to, l->host_bytes);
  if (l->none_at > 0)
    columns_put (to, "%lld: %s", (long long)l->none_at,
                 l->proved ? "no plan, proved" : "none found");
  else
    columns_put (to, "not asked for more");
  return columns_end (to);
}

static bool print_text (const asking *a, const largest *all) {
  char memory[UNITS_TEXT];
  columns *to = COLUMNS (a->c, heads);
  printf ("%s on %s, in %s, at most %.4g %% slower\n", a->request.name, a->device.name,
          units_bytes (memory, a->memory_bytes), (double)a->slowdown_ppm / 10000);
  if (!rewriting_print (stdout, a->c, &a->allowed))
    return false;
  puts ("");
  for (int i = 0; to && i < a->n_ways; i++)
    if (!add_way (to, &a->ways[i], &all[i], stopping_asked (a->c)))
      return false;
  if (!columns_print (to))
    return false;
  offline_tell_beyond (stdout, &a->device, a->memory_bytes);
  return true;
}

/* Each way, cut down; left out where that leaves nothing, or an earlier one. */
static bool read_ways (call *c, asking *a) {
  if (!rewriting_read (c, NULL, &a->allowed))
    return false;
  a->ways[a->n_ways++] = all_ways[0];
  for (int i = 1; i < WAYS; i++) {
    way left = all_ways[i];
    bool any = allowed_cut (&all_ways[i].allowed, &a->allowed, &left.allowed);
    for (int32_t k = 1; any && k < a->n_ways; k++)
      any = !allowed_is_same (&left.allowed, &a->ways[k].allowed);
    if (any)
      a->ways[a->n_ways++] = left;
  }
  return true;
}

static bool read_asking (call *c, asking *a) {
  *a = (asking){ .c = c, .slowdown_ppm = 100000 };
  if (strchr (c->operands[0], '/') || strstr (c->operands[0], ".json"))
    return call_usage (
        c,
        "%s is a trace of one batch, and max-batch builds networks of the zoo; for a "
        "PyTorch model, ferry_torch.max_batch () of docs/pytorch.md records other "
        "batches",
        c->operands[0]);
  if (!zoo_options_read (c, &a->request))
    return false;
  bool named;
  if (!device_for (c, NULL, &a->device, &named))
    return false;
  if (!named)
    return call_usage (c, "for which device? give --device NAME; `ferry devices` lists them");
  a->request.device = &a->device;
  a->memory_bytes = a->device.memory_bytes - a->device.reserved_bytes;
  a->options =
      (curve_options){ .device = &a->device, .seed = 1, .stop = offline_stop, .stop_context = c };
  stopping_begin (c);
  return call_quantity (c, "budget", &a->memory_bytes) &&
         device_host (c, &a->device, &a->options.host_bytes) &&
         effort_read_ticks (c, level_ticks, &a->options.limit_ticks) &&
         call_quantity (c, "fine", &a->fine) && call_quantity (c, "most", &a->most) &&
         call_quantity (c, "slowdown", &a->slowdown_ppm) && read_ways (c, a) &&
         placement_read (c, &a->options.placement) && offline_threads (c, &a->options);
}

static int run (call *c) {
  asking a;
  largest all[WAYS];
  figure_page page;
  bool any;
  const char *names[WAYS];
  int64_t batches[WAYS];
  if (!read_asking (c, &a) || !find_all (&a, all))
    return call_failed (c);
  for (int i = 0; i < a.n_ways; i++) {
    names[i] = a.ways[i].name;
    batches[i] = all[i].batch;
  }
  const char *about = arena_format (c->arena, &c->err, "on %s, at most %.4g %% slower",
                                    a.device.name, (double)a.slowdown_ppm / 10000);
  if (!about ||
      !batch_figure (a.request.name, about, names, batches, a.n_ways, c->arena, &page, &c->err) ||
      !picture_files (c, &page, &any) || (c->json && !print_json (c, &a, all)))
    return call_failed (c);
  if (!c->json && !print_text (&a, all))
    return call_failed (c);
  return all[a.n_ways - 1].batch || stopping_asked (c) ? EXIT_YES : EXIT_NO;
}

/* clang-format off */
static const cli_option options[] = {
  { 'b', "budget", "SIZE", "device memory; default: all that the device has to give", RANGE_SIZE },
  { 's', "slowdown", "SHARE",
    "how much longer a step may take than without limits; default: 10%", RANGE_SHARE },
  { 0, "fine", "N",
    "stop when the batch is known to within N items; default: a 32nd of it, and one unswapped",
    { UNITS_COUNT, 1, ZOO_MOST_BATCH } },
  { 0, "most", "N",
    "largest batch to try; default: 8 times the one that fits unswapped",
    { UNITS_COUNT, 1, ZOO_MOST_BATCH } },
  OPTIONS_OF_ZOO,
  OPTION_CARD,
  OPTION_HOST_OR_MEMORY,
  OPTION_RANKS,
  OPTIONS_OF_EFFORT ("quick"),
  OPTIONS_OF_REWRITING,
  OPTION_PLACEMENT,
  OPTION_THREADS,
  OPTION_WIDE,
  OPTIONS_OF_PICTURES,
  OPTIONS_END,
};
/* clang-format on */

const cli_command command_max_batch = {
  .name = "max-batch",
  .says = "the largest batch of a network that fits",
  .operands = "NETWORK",
  .least = 1,
  .most = 1,
  .about =
      "Builds the network with larger and larger batches and looks for the largest whose step is "
      "at most a slowdown above the same step in unlimited memory: with everything on the device, "
      "with copies to the host, with ops in parts as well, and with tensors dropped and made "
      "again instead, and with all of it in any order. Options that allow less leave rows out. "
      "The bound comes first, then plans below it. `above` is a larger batch for which there is "
      "no such plan, or none was found.\n"
      "A trace is of one batch: for a PyTorch model, ferry_torch.max_batch () records others "
      "(docs/pytorch.md).\n",
  .options = options,
  .json = true,
  .run = run,
};
