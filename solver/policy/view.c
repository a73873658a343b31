/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/policy/view.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/units.h"
#include "solver/place/schedule.h"

/* ---- time and memory ---- */

static bool fill_times (policy_view *v, error *err) {
  if (!ALLOC (v->arena, v->start_ns, v->n_ops, err) || !ALLOC (v->arena, v->end_ns, v->n_ops, err))
    return false;
  int64_t now = 0;
  for (int32_t k = 0; k < v->n_ops; k++) {
    v->start_ns[k] = now + v->trace->ops[k].gap_ns;
    v->end_ns[k] = now = v->start_ns[k] + v->trace->ops[k].ns;
  }
  v->step_ns = now;
  return true;
}

/* Granules at every op with everything resident, the pool's included. */
static void count_granules (const trace *t, const units *u, int64_t granule, int64_t *at) {
  int64_t held = units_div_up (u->pool_bytes, granule);
  memset (at, 0, ((size_t)t->n_ops + 1) * sizeof *at);
  for (int32_t i = 0; i < u->count; i++) {
    const unit_info *x = &u->at[i];
    if (x->bytes == 0)
      continue;
    at[x->persistent ? 0 : x->first] += x->granules;
    at[x->persistent ? t->n_ops : x->last + 1] -= x->granules;
  }
  for (int32_t k = 0; k < t->n_ops; k++) {
    held += at[k];
    at[k] = held + units_div_up (t->ops[k].workspace_bytes, granule);
  }
}

/* The pool that schedule would choose if nothing moved. */
static bool fill_memory (policy_view *v, error *err) {
  int64_t granule = v->device->granule_bytes;
  if (!ALLOC (v->arena, v->res, (int64_t)v->n_ops + 1, err) ||
      !schedule_pool (v->trace, NULL, 0, granule, v->arena, &v->pool_below_bytes, NULL, err) ||
      !units_of (v->trace, NULL, 0, granule, v->pool_below_bytes, v->arena, &v->units, err))
    return false;
  count_granules (v->trace, &v->units, granule, v->res);
  for (int32_t k = 0; k < v->n_ops; k++)
    if (__builtin_mul_overflow (v->res[k], granule, &v->res[k]))
      return error_set (err, ERR_input, "op %d: more than 2^63 bytes live", k);
  v->pool_bytes = units_div_up (v->units.pool_bytes, granule) * granule;
  return true;
}

static bool fill_tensors (policy_view *v, error *err) {
  if (!ALLOC (v->arena, v->held, v->n_tensors, err) ||
      !ALLOC (v->arena, v->movable, v->n_tensors, err) ||
      !ALLOC (v->arena, v->producer, v->n_tensors, err))
    return false;
  for (int32_t x = 0; x < v->n_tensors; x++) {
    const unit_info *u = &v->units.at[x];
    v->held[x] = u->granules * v->device->granule_bytes;
    v->movable[x] = u->bytes > 0 && !u->pinned && u->first != NO_OP;
    v->producer[x] = NO_OP;
  }
  for (int32_t k = v->n_ops - 1; k >= 0; k--)
    for (int32_t j = 0; j < v->trace->ops[k].writes.count; j++)
      v->producer[v->trace->ops[k].writes.at[j]] = k;
  return true;
}

/* The loss ends the forward pass. Without phases, the op of greatest memory is taken for it. */
static void find_backward (policy_view *v) {
  v->first_backward = view_peak (v, v->res) + 1;
  for (int32_t k = 0; k < v->n_ops; k++)
    if (v->trace->ops[k].phase == OP_BACKWARD) {
      v->first_backward = k;
      return;
    }
}

/* ---- gaps ---- */

static int64_t idle_ns (const policy_view *v, int32_t a, int32_t b) {
  return v->start_ns[b] - v->end_ns[a] + (b <= a ? v->step_ns : 0);
}

static void list_gaps_of (policy_view *v, int32_t x) {
  const use *first = v->units.uses + v->units.use_offset[x];
  const use *end = v->units.uses + v->units.use_offset[x + 1];
  bool persistent = v->trace->tensors[x].persistent;
  for (const use *u = first; u < end; u++) {
    bool last = u + 1 == end;
    if (last && !persistent)
      break;
    int32_t a = u->op, b = last ? first->op : u[1].op;
    if ((last ? b + v->n_ops : b) - a < 2)
      continue;
    if (!persistent && a < v->first_backward && v->first_backward <= b)
      v->fb[x] = v->n_gaps;
    v->gaps[v->n_gaps++] = (view_gap){ x, a, b, idle_ns (v, a, b) };
  }
}

static bool fill_gaps (policy_view *v, error *err) {
  if (!ALLOC (v->arena, v->gaps, v->units.use_offset[v->units.count], err) ||
      !ALLOC (v->arena, v->gap_offset, (int64_t)v->n_tensors + 1, err) ||
      !ALLOC (v->arena, v->fb, v->n_tensors, err))
    return false;
  for (int32_t x = 0; x < v->n_tensors; x++) {
    v->fb[x] = -1;
    if (v->movable[x])
      list_gaps_of (v, x);
    v->gap_offset[x + 1] = v->n_gaps;
  }
  return true;
}

bool policy_view_build (const trace *t, const device *d, int64_t budget_bytes, int64_t host_bytes,
                        arena *a, policy_view *out, error *err) {
  assert (t && d && out);
  *out = (policy_view){ .trace = t,
                        .device = d,
                        .arena = a,
                        .budget_bytes = budget_bytes,
                        .host_bytes = host_bytes,
                        .n_ops = t->n_ops,
                        .n_tensors = t->n_tensors,
                        .rates = device_rates (&d->link, d->share_ppm) };
  if (!fill_times (out, err) || !fill_memory (out, err) || !fill_tensors (out, err))
    return false;
  find_backward (out);
  return uses_of (t, a, &out->uses, err) && view_add_graph (out, err) && fill_gaps (out, err);
}

/* ---- questions ---- */

/* No longer than an op may take, so that many can be added. */
static int64_t copy_ns (const policy_view *v, int32_t tensor, int64_t rate) {
  __int128 work = (__int128)v->trace->tensors[tensor].bytes * 1000000000;
  __int128 ns = v->device->link.copy_ns + (work + rate - 1) / rate;
  return ns < MOST_NS ? (int64_t)ns : MOST_NS;
}

int64_t view_out_ns (const policy_view *v, int32_t tensor) {
  assert (tensor >= 0 && tensor < v->n_tensors);
  return copy_ns (v, tensor, v->rates.out_alone);
}

int64_t view_in_ns (const policy_view *v, int32_t tensor) {
  assert (tensor >= 0 && tensor < v->n_tensors);
  return copy_ns (v, tensor, v->rates.in_alone);
}

int32_t view_peak (const policy_view *v, const int64_t *res) {
  int32_t best = 0;
  for (int32_t k = 1; k < v->n_ops; k++)
    if (res[k] > res[best])
      best = k;
  return best;
}

int64_t view_start_ns (const policy_view *v, int32_t i) {
  return i < 0 ? v->start_ns[i + v->n_ops] - v->step_ns : v->start_ns[i];
}

int32_t view_late (const policy_view *v, const view_gap *g, int64_t x_ns) {
  assert (g && x_ns >= 0);
  int32_t low = (gap_wraps (g) ? g->a - v->n_ops : g->a) + 1, i = g->b;
  while (i > low && v->start_ns[g->b] - view_start_ns (v, i) < x_ns)
    i--;
  return i;
}

void view_add (const policy_view *v, int64_t *res, const view_gap *g, int32_t i, int64_t bytes) {
  int32_t from = g->a + 1, end = gap_wraps (g) ? i + v->n_ops : i;
  for (int32_t k = from; k < end; k++)
    res[k < v->n_ops ? k : k - v->n_ops] += bytes;
}

void view_relieve (const policy_view *v, int64_t *res, const view_gap *g, int32_t i) {
  assert (res && g);
  view_add (v, res, g, i, -v->held[g->tensor]);
}

bool view_uses (const policy_view *v, int32_t op, int32_t tensor) {
  int32_t low = FIRST_WHERE (i, v->units.use_offset[tensor], v->units.use_offset[tensor + 1],
                             v->units.uses[i].op >= op);
  return low < v->units.use_offset[tensor + 1] && v->units.uses[low].op == op;
}

int64_t *view_residents (const policy_view *v, error *err) {
  int64_t *res = NEW (v->arena, v->n_ops, int64_t, err);
  if (res)
    memcpy (res, v->res, (size_t)v->n_ops * sizeof *res);
  return res;
}

int64_t view_persistent_bytes (const policy_view *v) {
  int64_t sum = 0;
  for (int32_t x = 0; x < v->n_tensors; x++)
    sum += v->trace->tensors[x].persistent ? v->held[x] : 0;
  return sum;
}

static bool index_fb (const policy_view *v, bool ends, view_rows *r, error *err) {
  int32_t *next = NEW (v->arena, v->n_ops, int32_t, err);
  if (!next || !view_make_rows (r, v->n_ops, v->n_tensors, v->arena, err))
    return false;
  for (int32_t x = 0; x < v->n_tensors; x++)
    if (v->fb[x] >= 0)
      r->offset[(ends ? v->gaps[v->fb[x]].b : v->gaps[v->fb[x]].a) + 1]++;
  for (int32_t k = 0; k < v->n_ops; k++) {
    r->offset[k + 1] += r->offset[k];
    next[k] = r->offset[k];
  }
  for (int32_t x = 0; x < v->n_tensors; x++)
    if (v->fb[x] >= 0)
      r->at[next[ends ? v->gaps[v->fb[x]].b : v->gaps[v->fb[x]].a]++] = v->fb[x];
  return true;
}

bool view_fb_events (const policy_view *v, view_events *out, error *err) {
  return index_fb (v, false, &out->begins, err) && index_fb (v, true, &out->ends, err);
}

typedef struct sorting {
  const policy_view *view;
  view_order *order;
  const void *context;
} sorting;

static int compare (const void *a, const void *b, void *context) {
  const sorting *s = context;
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return s->order (s->view, x, y, s->context) ?: ORDER (x, y);
}

void view_sort (const policy_view *v, int32_t *items, int32_t count, view_order *order,
                const void *context) {
  sorting s = { v, order, context };
  qsort_r (items, (size_t)count, sizeof *items, compare, &s);
}

int64_t view_workspace_bytes (const policy_view *v, int32_t k) {
  int64_t granule = v->device->granule_bytes;
  return units_div_up (v->trace->ops[k].workspace_bytes, granule) * granule;
}

int64_t view_working_set (const policy_view *v, int32_t k, bool persistent_too) {
  const op *o = &v->trace->ops[k];
  int64_t sum = view_workspace_bytes (v, k);
  for (int i = 0; i < 2; i++) {
    const index_list *list = i ? &o->writes : &o->reads;
    for (int32_t j = 0; j < list->count; j++) {
      int32_t x = list->at[j];
      bool twice = i && list_has (&o->reads, x);
      if (!twice && (persistent_too || !v->trace->tensors[x].persistent))
        sum += v->held[x];
    }
  }
  return sum;
}
