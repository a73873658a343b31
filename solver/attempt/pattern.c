/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/attempt/pattern.h"

#include <assert.h>

bool pattern_clock_of (const trace *t, const tuning *by, arena *a, pattern_clock *out, error *err) {
  *out = (pattern_clock){ .trace = t, .ends_ns = trace_ends (t, a, err) };
  out->short_part = tuned (by, TUNE_group_short_part);
  return out->ends_ns && uses_of (t, a, &out->uses, err);
}

static int64_t rest_between (const pattern_clock *c, int32_t after, int32_t before) {
  return trace_rest_ns (c->ends_ns, c->trace->n_ops, after, before);
}

void pattern_longest (const pattern_clock *c, int32_t tensor, int32_t *after, int32_t *before) {
  assert (tensor >= 0 && tensor < c->trace->n_tensors);
  const use *u = c->uses.at + c->uses.offset[tensor];
  int32_t n = uses_count (&c->uses, tensor),
          rests = c->trace->tensors[tensor].persistent ? n : n - 1;
  int64_t longest = -1;
  *after = *before = u[0].op;
  for (int32_t i = 0; i < rests; i++) {
    int64_t ns = rest_between (c, u[i].op, u[(i + 1) % n].op);
    if (ns > longest) {
      longest = ns;
      *after = u[i].op;
      *before = u[(i + 1) % n].op;
    }
  }
}

/* Short rests are good for nothing, so a rest counts for what it has more than that. */
static void weigh (const pattern_clock *c, bool persistent, pattern *p) {
  int64_t step_ns = c->ends_ns[c->trace->n_ops], short_ns = step_ns / c->short_part;
  int32_t rests = persistent ? p->count : p->count - 1;
  p->rest_ns = 0;
  for (int32_t i = 0; i < rests; i++) {
    int64_t ns = rest_between (c, p->ops[i], p->ops[(i + 1) % p->count]);
    p->rest_ns += ns > short_ns ? ns - short_ns : 0;
  }
  p->life_ns = persistent ? step_ns : c->ends_ns[p->ops[p->count - 1] + 1] - c->ends_ns[p->ops[0]];
}

void pattern_merge (const pattern_clock *c, const pattern *with, int32_t tensor, bool ends_only,
                    pattern *out) {
  assert (tensor >= 0 && tensor < c->trace->n_tensors && out->ops);
  const use *u = c->uses.at + c->uses.offset[tensor];
  int32_t n = uses_count (&c->uses, tensor), m = with ? with->count : 0, i = 0, j = 0;
  out->count = 0;
  if (ends_only) {
    int32_t first = u[0].op, last = u[n - 1].op;
    first = with && with->ops[0] < first ? with->ops[0] : first;
    last = with && with->ops[m - 1] > last ? with->ops[m - 1] : last;
    out->ops[out->count++] = first;
    if (last > first)
      out->ops[out->count++] = last;
    i = n;
    j = m;
  }
  while (i < n || j < m) {
    int32_t op = j == m || (i < n && u[i].op < with->ops[j]) ? u[i].op : with->ops[j];
    i += i < n && u[i].op == op;
    j += j < m && with->ops[j] == op;
    out->ops[out->count++] = op;
  }
  weigh (c, c->trace->tensors[tensor].persistent, out);
}
