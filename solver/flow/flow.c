/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/flow/flow.h"

#include <assert.h>

#include "solver/flow/builder.h"

/* ---- sums per slot ---- */

/* twice: it may be away as given up and as carried. */
static void add_open (flow *f, const flow_gap *g, int class, int64_t room, bool twice) {
  int32_t C = f->n_classes, S = f->n_slots;
  f->released[g->release * C + class] += room;
  f->seams.due[g->due] += room;
  if (g->first)
    f->due_first[g->due * C + class] += room;
  /* differences; wraps: open from the release on and up to the return */
  f->open[g->release * C + class] += twice ? 2 * room : room;
  f->open[g->due * C + class] -= twice ? 2 * room : room;
  if (g->wraps)
    f->open[class] += room;
  assert (g->release < S && g->due < S);
}

static bool slot_sums (flow *f, arena *a, error *err) {
  int32_t C = f->n_classes, S = f->n_slots;
  int64_t cells = (int64_t)S * C;
  const gaps *g = f->source;
  const op *ops = g->units->trace->ops;
  f->open = NEW (a, cells, int64_t, err);
  f->released = NEW (a, cells, int64_t, err);
  f->due_first = NEW (a, cells, int64_t, err);
  f->need = NEW (a, S, int64_t, err);
  f->idle_out = NEW (a, S, int64_t, err);
  f->idle_in = NEW (a, S, int64_t, err);
  f->work_out = NEW (a, S, int64_t, err);
  f->work_in = NEW (a, S, int64_t, err);
  if (!f->open || !f->released || !f->due_first || !f->need || !f->idle_out || !f->idle_in ||
      !f->work_out || !f->work_in)
    return false;
  for (int32_t i = 0; i < f->n_chains; i++)
    for (int32_t k = 0; k < f->chains[i].count; k++) {
      const flow_gap *at = &f->gaps[f->chains[i].first + k];
      bool twice = f->drops == DROPS_ALLOWED && at->drops && flow_serves (&f->chains[i], k);
      if (f->drops != DROPS_ONLY || at->drops)
        add_open (f, at, f->chains[i].class, f->chains[i].room, twice);
    }
  for (int64_t i = C; i < cells; i++)
    f->open[i] += f->open[i - C];
  for (int32_t j = 0; j < S; j++) {
    int32_t first = f->slots->first[j];
    int64_t idle_ns = ops[first].gap_ns, work_ns = ops[first].ns;
    for (int32_t k = first + 1; k < f->slots->first[j + 1]; k++)
      work_ns += ops[k].ns + ops[k].gap_ns;
    f->idle_out[j] = flow_time (&f->link, idle_ns, f->link.rates.out_alone);
    f->idle_in[j] = flow_time (&f->link, idle_ns, f->link.rates.in_alone);
    f->work_out[j] = flow_time (&f->link, work_ns, f->link.rates.out_alone);
    f->work_in[j] = flow_time (&f->link, work_ns, f->link.rates.in_alone);
    f->need[j] = flow_need_of (f, j, g->room_bytes);
  }
  return true;
}

int64_t flow_need_of (const flow *f, int32_t slot, int64_t room_bytes) {
  assert (slot >= 0 && slot < f->n_slots);
  const gaps *g = f->source;
  if (flow_ends_at_seam (f, slot)) {
    int64_t across = g->across_bytes[f->slots->first[slot + 1]] - g->unused_bytes - room_bytes;
    return across <= 0 ? 0 : flow_grains_down (&f->link, across);
  }
  int64_t over = g->base_bytes[f->slots->first[slot]] - g->unused_bytes - room_bytes;
  int64_t need = over - (f->drops ? f->free_bytes[slot] : 0);
  return slots_is_run (f->slots, slot) || need <= 0 ? 0 : flow_grains_down (&f->link, need);
}

/* Memory alone decides: whatever the link, no more can be away than is open. */
static bool needs_are_met (const flow *f, error *err) {
  const gaps *g = f->source;
  for (int32_t j = 0; j < f->n_slots; j++) {
    int64_t open = 0;
    for (int c = 0; c < f->n_classes; c++)
      open += f->open[(int64_t)j * f->n_classes + c];
    if (f->need[j] > open && !flow_ends_at_seam (f, j))
      return gaps_too_small (g, g->room_bytes + g->pool_bytes, err);
  }
  return true;
}

/* ---- the whole ---- */

int64_t flow_most (int64_t time, int64_t weight, int64_t room) {
  if (weight <= 0)
    return room;
  __int128 most = ((((__int128)time << COEF_BITS) + weight - 1) / weight);
  return most < room ? (int64_t)most : room;
}

static void number_links (flow *f) {
  for (int32_t i = 0; i < f->n_chains; i++) {
    f->chains[i].link = f->n_links;
    f->n_links += f->chains[i].count;
  }
}

bool flow_build (const gaps *g, const slots *s, const flow_options *o, arena *a, flow *out,
                 error *err) {
  assert (g->units && s->count > 0 && o->dev);
  assert (o->classes > 0 && o->classes <= FLOW_CLASSES);
  const trace *t = g->units->trace;
  int64_t largest = 0;
  *out = (flow){ .source = g, .slots = s, .n_slots = s->count };
  for (int32_t k = 0; k < g->n_ops; k++)
    if (g->movable_bytes[k] > largest)
      largest = g->movable_bytes[k];
  out->link = flow_link_of (o->dev, largest, trace_total_ns (t));
  out->drops = o->drops;
  out->peak_slot = o->peak ? s->of_op[o->peak] : -1;
  if (o->peak && slots_is_run (s, out->peak_slot))
    out->peak_slot = -1;
  out->host_limited = !o->drops && o->host_bytes < largest;
  out->host_grains = flow_grains_up (&out->link, o->host_bytes);
  if (!flow_find_seams (out, o, a, err) || !flow_chains (g, o, a, out, err) ||
      !slot_sums (out, a, err) || !flow_sum_seams (out, a, err) || !needs_are_met (out, err))
    return false;
  assert (!out->seams.any || (out->n_classes == 1 && !out->host_limited && out->peak_slot < 0));
  flow_builder b = { .f = out, .o = o };
  number_links (out);
  return flow_add_rows (&b, a, err) && flow_add_columns (&b, a, err) &&
         flow_drop_empty_rows (out, a, err);
}
