/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/summary.h"

#include <assert.h>
#include <stdlib.h>

#include "base/order.h"
#include "base/units.h"
#include "trace/streams.h"
#include "trace/uses.h"

typedef struct working {
  const trace *trace;
  uses uses;
  int64_t *pinned;   /* per op, n_ops + 1: bytes of pinned tensors that live */
  int64_t *whole;    /* per op: its working set but what is pinned */
  int64_t *sections; /* the same in its most sections */
} working;

static bool is_nothing (const working *w, int32_t x) {
  return uses_count (&w->uses, x) == 0 && !w->trace->tensors[x].persistent;
}

/* Tensors may have 2^48 bytes each, and there may be many: what passes here, with the largest
   workspace on top, sums without overflow everywhere below. */
static bool count_kinds (const working *w, summary *out, error *err) {
  int64_t room = INT64_MAX - MOST_TENSOR_BYTES;
  for (int32_t x = 0; x < w->trace->n_tensors; x++) {
    const tensor *at = &w->trace->tensors[x];
    if (is_nothing (w, x))
      continue;
    if (at->bytes > room - out->tensor_bytes)
      return error_at (err, ERR_input, "/tensors", "together more than 2^63 bytes");
    out->tensor_bytes += at->bytes;
    out->kinds[at->kind].bytes += at->bytes;
    out->kinds[at->kind].count++;
    if (at->persistent)
      out->persistent_bytes += at->bytes;
  }
  return true;
}

/* Births and deaths as differences, then one running sum. */
static void fill_lives (const working *w, int64_t *all) {
  const trace *t = w->trace;
  for (int32_t x = 0; x < t->n_tensors; x++) {
    const tensor *at = &t->tensors[x];
    if (is_nothing (w, x))
      continue;
    int32_t first = at->persistent ? 0 : uses_first (&w->uses, x);
    int32_t end = at->persistent ? t->n_ops : uses_last (&w->uses, x) + 1;
    int64_t pinned_bytes = at->pinned ? at->bytes : 0;
    all[first] += at->bytes;
    all[end] -= at->bytes;
    w->pinned[first] += pinned_bytes;
    w->pinned[end] -= pinned_bytes;
  }
  for (int32_t i = 0; i < t->n_ops; i++) {
    all[i + 1] += all[i];
    w->pinned[i + 1] += w->pinned[i];
  }
  for (int32_t i = 0; i < t->n_ops; i++)
    all[i] += t->ops[i].workspace_bytes;
}

/* The most items that a section of an op in its most sections has. */
static int64_t fewest_items (const trace *t, const op *o) {
  return units_div_up (t->batch, o->parts < t->batch ? o->parts : t->batch);
}

/* Some section of that many items has at least floor (bytes x items / batch) of a cut tensor. */
static void fill_working_sets (const working *w) {
  const trace *t = w->trace;
  for (int32_t i = 0; i < t->n_ops; i++) {
    const op *o = &t->ops[i];
    w->whole[i] = o->workspace_bytes;
    w->sections[i] = units_scale (o->workspace_bytes, fewest_items (t, o), t->batch);
  }
  for (int32_t x = 0; x < t->n_tensors; x++) {
    const tensor *at = &t->tensors[x];
    for (int32_t k = w->uses.offset[x]; k < w->uses.offset[x + 1] && !at->pinned; k++) {
      int32_t i = w->uses.at[k].op;
      w->whole[i] += at->bytes;
      w->sections[i] +=
          at->split ? units_scale (at->bytes, fewest_items (t, &t->ops[i]), t->batch) : at->bytes;
    }
  }
}

static void find_largest (const working *w, summary *out) {
  const trace *t = w->trace;
  for (int32_t i = 0; i < t->n_ops; i++) {
    int64_t whole = w->whole[i] + w->pinned[i], sections = w->sections[i] + w->pinned[i];
    if (out->bytes_at[i] > out->peak_bytes || i == 0) {
      out->peak_bytes = out->bytes_at[i];
      out->peak_op = i;
    }
    if (whole > out->floor_bytes || i == 0) {
      out->floor_bytes = whole;
      out->floor_op = i;
    }
    if (sections > out->floor_sections_bytes || i == 0) {
      out->floor_sections_bytes = sections;
      out->floor_sections_op = i;
    }
    out->compute_ns += t->ops[i].ns;
    out->idle_ns += t->ops[i].gap_ns;
  }
}

/* Streams are idle side by side: only gaps on a longest path add up. */
static bool count_idle (const trace *t, arena *scratch, summary *out, error *err) {
  index_list path;
  if (!trace_has_streams (t))
    return true;
  if (!streams_path (t, scratch, &path, err))
    return false;
  out->idle_ns = 0;
  for (int32_t i = 0; i < path.count; i++)
    out->idle_ns += t->ops[path.at[i]].gap_ns;
  return true;
}

typedef struct holder {
  int64_t bytes;
  int32_t tensor;
} holder;

static int larger_first (const void *a, const void *b) {
  const holder *x = a, *y = b;
  return ORDER (y->bytes, x->bytes) ?: ORDER (x->tensor, y->tensor);
}

static bool find_holders (const working *w, arena *a, arena *scratch, summary *out, error *err) {
  const trace *t = w->trace;
  holder *held = NEW (scratch, t->n_tensors, holder, err);
  if (!ALLOC (a, out->holders, t->n_tensors, err) || !held)
    return false;
  for (int32_t x = 0; x < t->n_tensors; x++) {
    bool lives = t->tensors[x].persistent ||
                 (!is_nothing (w, x) && uses_first (&w->uses, x) <= out->peak_op &&
                  uses_last (&w->uses, x) >= out->peak_op);
    if (lives)
      held[out->n_holders++] = (holder){ t->tensors[x].bytes, x };
  }
  qsort (held, (size_t)out->n_holders, sizeof *held, larger_first);
  for (int32_t i = 0; i < out->n_holders; i++)
    out->holders[i] = held[i].tensor;
  return true;
}

bool summary_of (const trace *t, arena *a, summary *out, error *err) {
  assert (t && a && out);
  *out = (summary){ 0 };
  arena *scratch = arena_new (0);
  if (!scratch)
    return error_memory (err);
  working w = { .trace = t,
                .pinned = NEW (scratch, (int64_t)t->n_ops + 1, int64_t, err),
                .whole = NEW (scratch, t->n_ops, int64_t, err),
                .sections = NEW (scratch, t->n_ops, int64_t, err) };
  out->bytes_at = NEW (a, (int64_t)t->n_ops + 1, int64_t, err);
  bool ok = w.pinned && w.whole && w.sections && out->bytes_at &&
            uses_of (t, scratch, &w.uses, err) && count_kinds (&w, out, err);
  if (ok) {
    fill_lives (&w, out->bytes_at);
    fill_working_sets (&w);
    find_largest (&w, out);
    ok = count_idle (t, scratch, out, err) && find_holders (&w, a, scratch, out, err);
  }
  arena_free (scratch);
  return ok;
}
