/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/best_plan.h"

#include <string.h>

#include "base/units.h"
#include "tests/best_inner.h"

enum { FIRST_STEPS = 10 };

/* ---- the trace ---- */

static void read_trace (searching *s) {
  const trace *t = s->t;
  for (int32_t k = 0; k < s->n_ops; k++) {
    s->compute_ns += t->ops[k].ns + t->ops[k].gap_ns;
    for (int32_t i = 0; i < t->ops[k].reads.count; i++)
      s->used[t->ops[k].reads.at[i]][k] = true;
    for (int32_t i = 0; i < t->ops[k].writes.count; i++)
      s->used[t->ops[k].writes.at[i]][k] = s->written[t->ops[k].writes.at[i]][k] = true;
  }
  for (int32_t x = 0; x < s->n_units; x++) {
    s->granules[x] = (int32_t)((t->tensors[x].bytes + s->granule_bytes - 1) / s->granule_bytes);
    s->first[x] = -1;
    for (int32_t k = 0; k < s->n_ops; k++) {
      if (!s->used[x][k])
        continue;
      if (s->first[x] < 0)
        s->first[x] = k;
      else
        s->idle[x][s->n_idle[x]++] = (idle_time){ s->last[x], k, false };
      s->last[x] = k;
    }
    if (t->tensors[x].persistent && s->first[x] >= 0)
      s->idle[x][s->n_idle[x]++] = (idle_time){ s->last[x], s->first[x], true };
  }
}

/* ---- all choices ---- */

static bool judge (searching *s) {
  int64_t ns = best_run (s, FIRST_STEPS, s->out->step_ns);
  if (ns >= s->out->step_ns || (ns = best_run (s, BEST_STEPS, s->out->step_ns)) >= s->out->step_ns)
    return true;
  if (ns < s->out->counted_ns)
    s->out->counted_ns = ns;
  arena_mark mark = arena_here (s->arena);
  const plan *before = s->out->plan;
  if (!best_write (s, ns))
    return false;
  if (s->out->plan == before)
    arena_back (s->arena, mark);
  return true;
}

static bool over (const searching *s) {
  return s->out->tried >= s->most_tried;
}

/* Parts of one size that always move together are alike: the first goes first and comes first. */
static bool alike (const searching *s, int32_t m, int32_t other) {
  const piece *a = &s->pieces[s->movers[m].piece], *b = &s->pieces[s->movers[other].piece];
  return s->movers[m].after == s->movers[other].after && a->unit == b->unit && a->away == b->away &&
         a->bytes == b->bytes && a->granules == b->granules;
}

static bool in_turn (const searching *s, unsigned taken, int32_t m) {
  for (int32_t other = 0; other < m; other++)
    if (!(taken >> other & 1) && alike (s, m, other))
      return false;
  return true;
}

/* From this place on it is there. False: then some op has no room. */
static bool load (searching *s, const mover *x, int32_t place, int sign) {
  bool fits = true;
  for (int32_t k = place; k < x->before; k++) {
    int32_t *at = &s->load[(k + s->n_ops) % s->n_ops];
    *at += sign * x->granules;
    fits &= *at <= s->budget;
  }
  return fits;
}

/* The next copy in, and where it takes its memory; a queue is one queue from step to step. */
static bool choose_ins (searching *s, unsigned taken, int32_t i) {
  if (over (s) || (i == 0 && best_least_ns (s, s->n_outs, 0) >= s->out->step_ns))
    return true;
  if (i == s->n_movers)
    return (i > 0 && s->place[0] + s->n_ops < s->place[i - 1]) || judge (s);
  for (int32_t m = 0; m < s->n_movers; m++) {
    const mover *x = &s->movers[m];
    if (taken >> m & 1 || !in_turn (s, taken, m))
      continue;
    int32_t from = x->after + 1 - (x->wraps ? s->n_ops : 0);
    if (i > 0 && s->place[i - 1] > from)
      from = s->place[i - 1];
    s->in_order[i] = m;
    for (int32_t k = x->before; k >= from; k--) {
      s->place[i] = k;
      bool fits = load (s, x, k, 1), ok = !fits || choose_ins (s, taken | 1u << m, i + 1);
      load (s, x, k, -1);
      if (!ok)
        return false;
      if (!fits)
        break;
    }
  }
  return true;
}

static bool choose_outs (searching *s, unsigned taken, int32_t i) {
  if (i == s->n_outs)
    return choose_ins (s, 0, 0);
  for (int32_t m = 0; m < s->n_movers; m++)
    if (!s->movers[m].clean && !(taken >> m & 1) && in_turn (s, taken, m)) {
      s->out_order[i] = m;
      if (!choose_outs (s, taken | 1u << m, i + 1))
        return false;
    }
  return true;
}

/* No write between the copy out behind op a and op b's end. */
static bool holds (const searching *s, int32_t unit, int32_t a, int32_t b) {
  for (int32_t k = (a + 1) % s->n_ops; a != b; k = (k + 1) % s->n_ops) {
    if (s->written[unit][k])
      return false;
    if (k == b)
      return true;
  }
  return true;
}

static bool never_written (const searching *s, int32_t unit) {
  for (int32_t k = 0; k < s->n_ops; k++)
    if (s->written[unit][k])
      return false;
  return true;
}

/* Where the host still has the bytes no copy out is needed. */
static void find_clean (searching *s, int32_t first, int32_t end) {
  const piece *p = &s->pieces[s->movers[first].piece];
  bool persistent = s->t->tensors[p->unit].persistent;
  bool always = persistent && never_written (s, p->unit);
  for (int32_t m = first; m < end; m++) {
    int32_t before = m > first ? m - 1 : end - 1;
    s->movers[m].clean =
        always || ((m > first || (persistent && end - first > 1)) &&
                   holds (s, p->unit, s->movers[before].after, s->movers[m].after));
    s->movers[m].source = always ? -1 : m;
  }
  for (int32_t turn = 0; turn < 2 && !always; turn++)
    for (int32_t m = first; m < end; m++)
      if (s->movers[m].clean)
        s->movers[m].source = s->movers[m > first ? m - 1 : end - 1].source;
}

static int64_t copy_ns (const searching *s, int64_t bytes, int64_t rate) {
  return s->c->device.link.copy_ns + (bytes * 1000000000 + rate - 1) / rate;
}

/* Of the first n pieces. False: too many. */
static bool make_movers (searching *s, int32_t n) {
  const device_link *l = &s->c->device.link;
  s->n_movers = s->n_outs = 0;
  for (int32_t i = 0; i < n; i++) {
    const piece *p = &s->pieces[i];
    int32_t first = s->n_movers;
    for (int32_t g = 0; g < s->n_idle[p->unit]; g++) {
      const idle_time *x = &s->idle[p->unit][g];
      if (!(p->away >> g & 1))
        continue;
      if (s->n_movers == BEST_MOVES)
        return false;
      s->movers[s->n_movers++] = (mover){ .piece = i,
                                          .after = x->after,
                                          .before = x->before,
                                          .wraps = x->wraps,
                                          .granules = p->granules,
                                          .out_ns = copy_ns (s, p->bytes, l->d2h_bytes_per_s),
                                          .in_ns = copy_ns (s, p->bytes, l->h2d_bytes_per_s) };
    }
    if (s->n_movers > first)
      find_clean (s, first, s->n_movers);
  }
  for (int32_t m = 0; m < s->n_movers; m++)
    s->n_outs += !s->movers[m].clean;
  return true;
}

/* What begins and ends with ops, and what is there at first. */
static void count_granules (searching *s) {
  memset (s->begins, 0, sizeof s->begins);
  memset (s->ends, 0, sizeof s->ends);
  s->at_first = 0;
  for (int32_t k = 0; k < s->n_ops; k++)
    s->begins[k] = s->ends[k] =
        (int32_t)units_div_up (s->t->ops[k].workspace_bytes, s->granule_bytes);
  for (int32_t i = 0; i < s->n_pieces; i++) {
    const piece *p = &s->pieces[i];
    if (!s->t->tensors[p->unit].persistent) {
      s->begins[s->first[p->unit]] += p->granules;
      s->ends[s->last[p->unit]] += p->granules;
    } else if (!(p->away >> (s->n_idle[p->unit] - 1) & 1)) /* the last one wraps */
      s->at_first += p->granules;
  }
  for (int32_t m = 0; m < s->n_movers; m++)
    if (s->movers[m].clean)
      s->ends[s->movers[m].after] += s->movers[m].granules;
}

/* What is there while each op runs, with all movers gone that may be, and all later pieces but
   those that it uses. False: no room for that. */
static bool count_load (searching *s, int32_t chosen) {
  for (int32_t k = 0; k < s->n_ops; k++) {
    s->load[k] = (int32_t)units_div_up (s->t->ops[k].workspace_bytes, s->granule_bytes);
    for (int32_t i = 0; i < s->n_pieces; i++) {
      int32_t x = s->pieces[i].unit;
      bool alive = s->t->tensors[x].persistent || (s->first[x] <= k && k <= s->last[x]);
      if (i < chosen ? alive : s->used[x][k])
        s->load[k] += s->pieces[i].granules;
    }
  }
  for (int32_t m = 0; m < s->n_movers; m++)
    load (s, &s->movers[m], s->movers[m].after + 1 - (s->movers[m].wraps ? s->n_ops : 0), -1);
  for (int32_t k = 0; k < s->n_ops; k++)
    if (s->load[k] > s->budget)
      return false;
  return true;
}

/* Whether the first pieces as they are leave hope, whatever the others do. */
static bool has_hope (searching *s, int32_t chosen) {
  if (!make_movers (s, chosen)) {
    s->out->complete = false;
    return false;
  }
  if (!count_load (s, chosen))
    return false;
  best_windows (s);
  s->least_ns = best_least_ns (s, 0, 0);
  return s->least_ns < s->out->step_ns;
}

static bool choose_away (searching *s, int32_t i) {
  if (over (s) || !has_hope (s, i))
    return true;
  if (i == s->n_pieces) {
    count_granules (s);
    return choose_outs (s, 0, 0);
  }
  piece *p = &s->pieces[i];
  for (p->away = 0; p->away < 1u << s->n_idle[p->unit]; p->away++) {
    bool twin =
        i > 0 && p[-1].unit == p->unit && p[-1].bytes == p->bytes && p[-1].granules == p->granules;
    if (twin && p->away > p[-1].away) /* the same with names exchanged */
      break;
    if (!choose_away (s, i + 1))
      return false;
  }
  return true;
}

static bool choose_sections (searching *s, int32_t unit) {
  if (unit < s->n_units) {
    /* without latency the finest cut can do what any other can */
    int32_t most = s->n_idle[unit] ? s->granules[unit] : 1;
    for (int32_t of = s->c->device.link.copy_ns ? 1 : most; of <= most; of++) {
      s->of[unit] = of;
      if (!choose_sections (s, unit + 1))
        return false;
    }
    return true;
  }
  s->n_pieces = 0;
  for (int32_t x = 0; x < s->n_units; x++)
    for (int32_t part = 0; s->first[x] >= 0 && part < s->of[x]; part++) {
      int32_t from = part * s->granules[x] / s->of[x];
      int32_t to = (part + 1) * s->granules[x] / s->of[x];
      int64_t end = to * s->granule_bytes, all = s->t->tensors[x].bytes;
      s->pieces[s->n_pieces++] =
          (piece){ .unit = x,
                   .part = part,
                   .of = s->of[x],
                   .granules = to - from,
                   .bytes = (end < all ? end : all) - from * s->granule_bytes };
    }
  return choose_away (s, 0);
}

bool best_search (const tiny_case *c, int64_t below_ns, int64_t most_tried, arena *a,
                  best_plan *out, error *err) {
  searching s = { .c = c,
                  .t = c->trace,
                  .arena = a,
                  .err = err,
                  .out = out,
                  .most_tried = most_tried,
                  .n_ops = c->trace->n_ops,
                  .n_units = c->trace->n_tensors,
                  .granule_bytes = c->device.granule_bytes };
  s.budget = (int32_t)(c->budget_bytes / s.granule_bytes);
  *out = (best_plan){ .counted_ns = below_ns, .step_ns = below_ns, .complete = true };
  if (s.n_ops > BEST_OPS || s.n_units > BEST_UNITS || s.budget > BEST_GRANULES)
    return error_set (err, ERR_internal, "the trace is not tiny");
  s.seen = NEW (a, 1, times, err);
  if (!s.seen)
    return false;
  read_trace (&s);
  bool ok = choose_sections (&s, 0);
  out->complete &= !over (&s);
  return ok;
}
