/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/streams.h"

#include <assert.h>
#include <string.h>

/* The last op so far of each stream. */
typedef struct newest {
  int32_t op[MOST_STREAMS];
} newest;

static newest no_ops (void) {
  newest n;
  for (int s = 0; s < MOST_STREAMS; s++)
    n.op[s] = NO_OP;
  return n;
}

/* ---- ops that have ended ---- */

static void learn (const trace *t, const streams *s, int32_t *known, int32_t op) {
  const int32_t *more = &s->known[(int64_t)op * s->count];
  for (int32_t i = 0; i < s->count; i++)
    known[i] = more[i] > known[i] ? more[i] : known[i];
  int32_t *own = &known[t->ops[op].stream];
  *own = s->place[op] >= *own ? s->place[op] + 1 : *own;
}

static void know (const trace *t, streams *s) {
  newest before = no_ops ();
  for (int32_t k = 0; k < t->n_ops; k++) {
    const op *o = &t->ops[k];
    int32_t *known = &s->known[(int64_t)k * s->count], last = before.op[o->stream];
    s->place[k] = last == NO_OP ? 0 : s->place[last] + 1;
    if (last != NO_OP)
      learn (t, s, known, last);
    for (int32_t j = 0; j < o->after.count; j++)
      learn (t, s, known, o->after.at[j]);
    before.op[o->stream] = k;
  }
}

/* by_place: the ops of all streams, one stream behind the other, each from first[s] on. */
static void count_prefix (const trace *t, streams *s, const int32_t *first,
                          const int32_t *by_place) {
  for (int32_t k = 0; k < t->n_ops; k++) {
    const int32_t *known = &s->known[(int64_t)k * s->count];
    s->prefix[k] = k;
    for (int32_t i = 0; i < s->count; i++) {
      int32_t at = first[i] + known[i];
      if (at < first[i + 1] && by_place[at] < s->prefix[k])
        s->prefix[k] = by_place[at];
    }
  }
}

/* An op that knows only c ops of a stream holds the op at place c and all behind it. */
static void hold (const trace *t, streams *s, const int32_t *first, const int32_t *by_place,
                  int32_t *last) {
  memset (last, 0xff, (size_t)(t->n_ops + s->count) * sizeof *last);
  for (int32_t k = 0; k < t->n_ops; k++)
    for (int32_t i = 0; i < s->count; i++)
      last[first[i] + i + s->known[(int64_t)k * s->count + i]] = k;
  for (int32_t i = 0; i < s->count; i++) {
    int32_t most = NO_OP;
    for (int32_t at = first[i]; at < first[i + 1]; at++) {
      most = last[at + i] > most ? last[at + i] : most;
      s->held[by_place[at]] = most;
    }
  }
}

bool streams_of (const trace *t, arena *a, streams *out, error *err) {
  assert (t && out);
  int32_t n = t->n_ops, first[MOST_STREAMS + 1] = { 0 }, filled[MOST_STREAMS] = { 0 };
  *out = (streams){ .count = t->n_streams > 1 ? t->n_streams : 1 };
  out->place = NEW (a, n, int32_t, err);
  out->known = NEW (a, (int64_t)n * out->count, int32_t, err);
  out->prefix = NEW (a, n, int32_t, err);
  out->held = NEW (a, n, int32_t, err);
  int32_t *by_place = NEW (a, n, int32_t, err);
  int32_t *last = NEW (a, (int64_t)n + out->count, int32_t, err);
  if (!out->place || !out->known || !out->prefix || !out->held || !by_place || !last)
    return false;
  know (t, out);
  for (int32_t k = 0; k < n; k++)
    first[t->ops[k].stream + 1]++;
  for (int32_t i = 0; i < out->count; i++)
    first[i + 1] += first[i];
  for (int32_t k = 0; k < n; k++)
    by_place[first[t->ops[k].stream] + filled[t->ops[k].stream]++] = k;
  count_prefix (t, out, first, by_place);
  hold (t, out, first, by_place, last);
  return true;
}

bool streams_held (const streams *s, int32_t n_ops, arena *a, held_ops *out, error *err) {
  assert (s && out);
  *out = (held_ops){ NEW (a, n_ops, int32_t, err), NEW (a, n_ops, int32_t, err) };
  if (!out->first || !out->next)
    return false;
  for (int32_t k = 0; k < n_ops; k++)
    out->first[k] = NO_OP;
  for (int32_t k = n_ops - 1; k >= 0; k--)
    if (s->held[k] > k) {
      out->next[k] = out->first[s->held[k]];
      out->first[s->held[k]] = k;
    }
  return true;
}

/* ---- times ---- */

/* The op of those that k waits for that ends last; NO_OP: none. */
static int32_t last_before (const trace *t, const int64_t *ends_ns, int32_t before, int32_t k) {
  const op *o = &t->ops[k];
  int32_t last = before;
  for (int32_t j = 0; j < o->after.count; j++)
    if (last == NO_OP || ends_ns[o->after.at[j]] > ends_ns[last])
      last = o->after.at[j];
  return last;
}

/* from: per op that which it waits for longest; may be NULL. */
static int64_t *ends_of (const trace *t, int32_t *from, arena *a, error *err) {
  int64_t *ends_ns = NEW (a, t->n_ops, int64_t, err);
  newest before = no_ops ();
  for (int32_t k = 0; ends_ns && k < t->n_ops; k++) {
    const op *o = &t->ops[k];
    int32_t last = last_before (t, ends_ns, before.op[o->stream], k);
    ends_ns[k] = (last == NO_OP ? 0 : ends_ns[last]) + o->gap_ns + o->ns;
    before.op[o->stream] = k;
    if (from)
      from[k] = last;
  }
  return ends_ns;
}

int64_t *streams_ends (const trace *t, arena *a, error *err) {
  assert (t);
  return ends_of (t, NULL, a, err);
}

bool streams_path (const trace *t, arena *a, index_list *out, error *err) {
  assert (t && t->n_ops > 0 && out);
  int32_t *from = NEW (a, t->n_ops, int32_t, err);
  const int64_t *ends_ns = from ? ends_of (t, from, a, err) : NULL;
  if (!ends_ns || !(out->at = NEW (a, t->n_ops, int32_t, err)))
    return false;
  int32_t last = 0, at = t->n_ops;
  for (int32_t k = 1; k < t->n_ops; k++)
    last = ends_ns[k] > ends_ns[last] ? k : last;
  for (int32_t k = last; k != NO_OP; k = from[k])
    out->at[--at] = k;
  out->at += at;
  out->count = t->n_ops - at;
  return true;
}

bool streams_must_be_one (const trace *t, const char *what, error *err) {
  return !trace_has_streams (t) ||
         error_set (err, ERR_usage,
                    "%s takes traces of one stream, and this one has %d: `ferry solve` plans it, "
                    "`ferry simulate` runs it",
                    what, t->n_streams);
}
