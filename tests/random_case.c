/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/random_case.h"

#include <string.h>

#include "tests/random_maker.h"
#include "trace/rewrite/order.h"

enum { MOST_LIST = 3, MOST_BATCH = 6 };

static int64_t batch_of (maker *m) {
  return m->features & CASE_SECTIONS ? random_between (&m->r, 2, MOST_BATCH)
                                     : random_between (&m->r, 1, 2);
}

static void random_tensor (maker *m, tensor *x) {
  *x = (tensor){ .name = "", .born_before = NO_OP, .dies_after = NO_OP };
  x->kind = (uint8_t)maker_pick (m, 0, TENSOR_KINDS - 1);
  x->bytes = random_between (&m->r, 1, random_chance (&m->r, 300000) ? 400 : 5000);
  x->bytes = x->bytes * maker_factor (m) - maker_factor (m) / 3;
  x->persistent = x->kind == TENSOR_PARAMETER || x->kind == TENSOR_OPTIMIZER;
  if (random_chance (&m->r, 200000))
    x->persistent = !x->persistent;
  if (!(m->features & CASE_WRAP))
    x->persistent = false;
  x->pinned = maker_may (m, CASE_PINNED, 150000);
  x->split = maker_may (m, CASE_SECTIONS, 600000) && x->bytes >= m->original->batch;
}

/* Up to `most` different tensors, in random order. */
static bool random_list (maker *m, int32_t most, index_list *out, error *err) {
  int32_t n = m->original->n_tensors;
  int32_t count = maker_pick (m, 0, most < n ? most : n);
  if (!(out->at = NEW (m->a, count, int32_t, err)))
    return false;
  for (out->count = 0; out->count < count;) {
    int32_t x = maker_pick (m, 0, n - 1), i = 0;
    while (i < out->count && out->at[i] != x)
      i++;
    if (i == out->count)
      out->at[out->count++] = x;
  }
  return true;
}

static bool random_op (maker *m, op *x, error *err) {
  bool sections = m->features & CASE_SECTIONS;
  *x = (op){ .name = "", .parts = 1, .phase = (op_phase)maker_pick (m, 0, OP_PHASES - 1) };
  x->ns = maker_may (m, CASE_ZERO_NS, 250000) ? 0 : random_between (&m->r, 1, 5000);
  x->gap_ns = maker_may (m, CASE_GAPS, 400000) ? random_between (&m->r, 1, 2000) : 0;
  x->workspace_bytes = maker_may (m, CASE_WORKSPACE, 400000) ? random_between (&m->r, 1, 3000) : 0;
  x->workspace_bytes *= maker_factor (m);
  if (sections && random_chance (&m->r, 850000))
    x->parts = random_between (&m->r, 2, m->original->batch);
  if (!random_list (m, MOST_LIST, &x->reads, err) || !random_list (m, 2, &x->writes, err))
    return false;
  if (!(x->side.at = NEW (m->a, x->writes.count, int32_t, err)))
    return false;
  for (int32_t i = 0; i < x->writes.count; i++)
    if (maker_may (m, CASE_RECOMPUTE, 100000))
      x->side.at[x->side.count++] = x->writes.at[i];
  return true;
}

static void widen_life (maker *m, int32_t index) {
  tensor *x = &m->original->tensors[index];
  int32_t first = NO_OP, last = NO_OP;
  for (int32_t k = 0; k < m->original->n_ops; k++)
    if (op_touches (&m->original->ops[k], index)) {
      first = first == NO_OP ? k : first;
      last = k;
    }
  if (x->persistent || first == NO_OP)
    return;
  if (maker_may (m, CASE_LIVES, 250000))
    x->born_before = maker_pick (m, 0, first);
  if (maker_may (m, CASE_LIVES, 250000))
    x->dies_after = maker_pick (m, last, m->original->n_ops - 1);
}

bool maker_trace (maker *m, error *err) {
  trace *t = m->original = NEW (m->a, 1, trace, err);
  if (!t)
    return false;
  t->name = "random";
  t->source =
      (trace_source){ .kind = "test", .detail = "", .device = "", .made_for = "", .doubt = "" };
  t->n_ops = maker_pick (m, 1, m->o->most_ops ? m->o->most_ops : 9);
  t->n_tensors = maker_pick (m, 1, m->o->most_tensors ? m->o->most_tensors : 7);
  t->batch = batch_of (m);
  t->tensors = NEW (m->a, t->n_tensors, tensor, err);
  t->ops = NEW (m->a, t->n_ops, op, err);
  if (!t->tensors || !t->ops)
    return false;
  for (int32_t i = 0; i < t->n_tensors; i++)
    random_tensor (m, &t->tensors[i]);
  for (int32_t i = 0; i < t->n_ops; i++)
    if (!random_op (m, &t->ops[i], err))
      return false;
  for (int32_t i = 0; i < t->n_tensors; i++)
    widen_life (m, i);
  return true;
}

/* Whether the rewriter takes the lists as they are; a failure that is not a refusal shows later. */
static bool accepted (maker *m, rewritten *out) {
  error refused = { 0 };
  return plan_rewrite (m->original, m->plan, m->a, out, &refused);
}

/* Neighbours change places, as often as chance has it and the rewriter takes it. */
static bool random_order (maker *m, error *err) {
  enum { SWAPS = 12 };
  plan *p = m->plan;
  int32_t n = m->original->n_ops, *order = NEW (m->a, n, int32_t, err), *same;
  rewritten tried;
  for (int32_t i = 0; order && i < n; i++)
    order[i] = i;
  for (int swap = 0; order && m->features & CASE_ORDER && n > 1 && swap < SWAPS; swap++) {
    int32_t i = maker_pick (m, 0, n - 2), x = order[i];
    order[i] = order[i + 1];
    order[i + 1] = x;
    if (!order_runs (order, n, m->a, &p->order, &p->n_order, err))
      return false;
    if (accepted (m, &tried))
      continue;
    order[i + 1] = order[i];
    order[i] = x;
  }
  return order && order_runs (order, n, m->a, &p->order, &p->n_order, err) &&
         trace_reorder (m->original, p->order, p->n_order, m->a, &m->ordered, &same, err);
}

static void add_section (maker *m, int32_t first, rewritten *out) {
  int64_t parts = m->original->batch;
  int32_t end = first, longest = maker_pick (m, 1, 4);
  for (; end < m->ordered->n_ops && end - first < longest; end++) {
    int64_t next = m->ordered->ops[end].parts;
    if (next < 2)
      break;
    parts = next < parts ? next : parts;
  }
  if (end == first)
    return;
  section *s = &m->plan->sections[m->plan->n_sections++];
  *s = (section){ first, end, random_between (&m->r, 2, parts), SECTION_LEVEL };
  if (random_chance (&m->r, 600000))
    s->order = SECTION_DEPTH;
  if (accepted (m, out))
    return;
  s->order = SECTION_LEVEL;
  if (!accepted (m, out))
    m->plan->n_sections--;
}

static bool add_recompute (maker *m, const trace *sectioned, error *err) {
  plan *p = m->plan;
  int32_t latest = p->n_recomputes ? p->recomputes[p->n_recomputes - 1].before : 1;
  if (sectioned->n_ops < 2 || latest >= sectioned->n_ops)
    return true;
  recompute *r = &p->recomputes[p->n_recomputes];
  r->before = maker_pick (m, latest, sectioned->n_ops - 1);
  int32_t count = 0, wanted = maker_pick (m, 1, 3), most = 0;
  if (!(r->ops.at = NEW (m->a, wanted, int32_t, err)))
    return false;
  for (int32_t k = 0; k < r->before && count < wanted; k++)
    if (random_chance (&m->r, 1000000 / r->before))
      r->ops.at[count++] = k;
  r->ops.count = count;
  for (int32_t i = 0; i < count; i++)
    most += sectioned->ops[r->ops.at[i]].writes.count;
  r->replaces.count = 0;
  if (!(r->replaces.at = NEW (m->a, most, int32_t, err)))
    return false;
  for (int32_t i = 0; i < count; i++) {
    const op *x = &sectioned->ops[r->ops.at[i]];
    for (int32_t j = 0; j < x->writes.count; j++)
      if (random_chance (&m->r, 600000) && !list_has (&r->replaces, x->writes.at[j]))
        r->replaces.at[r->replaces.count++] = x->writes.at[j];
  }
  rewritten tried;
  p->n_recomputes += count > 0;
  if (count > 0 && !accepted (m, &tried))
    p->n_recomputes--;
  return true;
}

bool maker_lists (maker *m, rewritten *out, error *err) {
  enum { MOST_SECTIONS = 2, MOST_RECOMPUTES = 3, TRIES = 12 };
  plan *p = m->plan;
  p->sections = NEW (m->a, MOST_SECTIONS, section, err);
  p->recomputes = NEW (m->a, MOST_RECOMPUTES, recompute, err);
  if (!p->sections || !p->recomputes || !random_order (m, err))
    return false;
  while (maker_may (m, CASE_SECTIONS, 700000) && p->n_sections < MOST_SECTIONS) {
    int32_t from = p->n_sections ? p->sections[p->n_sections - 1].end : 0;
    if (from >= m->original->n_ops)
      break;
    int32_t before = p->n_sections;
    add_section (m, maker_pick (m, from, m->original->n_ops - 1), out);
    if (p->n_sections == before && random_chance (&m->r, 200000))
      break;
  }
  if (!plan_rewrite (m->original, p, m->a, out, err))
    return false;
  const trace *sectioned = out->trace;
  for (int i = 0; m->features & CASE_RECOMPUTE && i < TRIES; i++)
    if (p->n_recomputes < MOST_RECOMPUTES && !add_recompute (m, sectioned, err))
      return false;
  return plan_rewrite (m->original, p, m->a, out, err);
}

static void random_device (maker *m) {
  device *d = &m->plan->device;
  device_link *l = &d->link;
  *d = (device){ .name = "random", .share_ppm = 1000000 };
  d->granule_bytes = 512 * maker_factor (m);
  d->section_ns = m->features & CASE_SECTIONS ? random_between (&m->r, 0, 300) : 0;
  l->d2h_bytes_per_s = random_between (&m->r, 100000000, 4000000000);
  l->h2d_bytes_per_s = random_between (&m->r, 100000000, 4000000000);
  l->both_bytes_per_s = l->d2h_bytes_per_s + l->h2d_bytes_per_s;
  if (m->features & CASE_SHARED_RATE)
    l->both_bytes_per_s = random_between (&m->r, l->both_bytes_per_s / 4, l->both_bytes_per_s);
  l->copy_ns = m->features & CASE_COPY_NS ? random_between (&m->r, 1, 1000) : 0;
  if (m->features & CASE_SHARE_PPM)
    d->share_ppm = random_between (&m->r, 200000, 1000000);
  d->reserved_bytes = random_between (&m->r, 0, 4096);
}

bool random_case_make (const case_options *o, arena *a, random_case *out, error *err) {
  maker m = { .o = o, .r = random_seed (o->seed * 0x9e3779b97f4a7c15u + 1), .a = a };
  char digest[TRACE_DIGEST];
  for (unsigned bit = 1; bit <= CASE_ORDER; bit <<= 1)
    if (o->features & bit && random_chance (&m.r, 700000))
      m.features |= bit;
  if (!(m.plan = NEW (a, 1, plan, err)))
    return false;
  random_device (&m);
  if (!maker_trace (&m, err) || !trace_validate (m.original, err))
    return false;
  if (!trace_digest (m.original, digest, err) ||
      !(m.plan->trace_digest = arena_string (a, digest, err)))
    return false;
  if (!maker_lists (&m, &out->rewritten, err))
    return false;
  m.t = out->rewritten.trace;
  m.period = (int64_t)m.t->n_ops * SLOT;
  if (!maker_units (&m, err) || !maker_moves (&m, err) || !maker_orders (&m, err) ||
      !maker_places (&m, err))
    return false;
  out->trace = m.original;
  out->plan = m.plan;
  return true;
}

bool random_case_of (uint64_t seed, unsigned features, int32_t ops, arena *a, random_case *out) {
  case_options o = {
    .seed = seed, .features = features, .places = CASE_SHARED, .most_ops = ops, .drop_ppm = 300000
  };
  error err = { 0 };
  return random_case_make (&o, a, out, &err);
}
