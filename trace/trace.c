/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rules that a trace must keep, whoever made it, and its small questions. */
#include "trace/trace.h"

#include <stdio.h>
#include <string.h>

#include "trace/streams.h"

const char *const tensor_kind_names[TENSOR_KINDS + 1] = { "parameter",  "optimizer", "input",
                                                          "activation", "gradient",  "workspace",
                                                          "temporary",  NULL };
const char *const tensor_again_names[AGAIN_KINDS + 1] = { "freely", "stays", "passes", "never",
                                                          NULL };
const char *const op_phase_names[OP_PHASES + 1] = { "forward", "backward", "update", "other",
                                                    NULL };
const char *const collective_names[COLLECTIVE_KINDS + 1] = {
  "", "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send", "recv", NULL
};

static bool in_range (int64_t value, int64_t low, int64_t high, const char *table, int64_t row,
                      const char *field, error *err) {
  if (value >= low && value <= high)
    return true;
  char where[64];
  snprintf (where, sizeof where, "/%s/%lld/%s", table, (long long)row, field);
  return error_at (err, ERR_input, where, "%lld is not between %lld and %lld", (long long)value,
                   (long long)low, (long long)high);
}

static bool tensor_in_range (const trace *t, int32_t i, error *err) {
  const tensor *x = &t->tensors[i];
  int64_t least = x->split ? t->batch : 1;
  return in_range (x->bytes, least, MOST_TENSOR_BYTES, "tensors", i, "bytes", err) &&
         in_range (x->born_before, NO_OP, t->n_ops - 1, "tensors", i, "born_before", err) &&
         in_range (x->dies_after, NO_OP, t->n_ops - 1, "tensors", i, "dies_after", err) &&
         in_range (x->kind, 0, TENSOR_KINDS - 1, "tensors", i, "kind", err);
}

static bool op_in_range (int32_t i, const op *o, error *err) {
  return in_range (o->ns, 0, MOST_NS, "ops", i, "ns", err) &&
         in_range (o->gap_ns, 0, MOST_NS, "ops", i, "gap_ns", err) &&
         in_range (o->workspace_bytes, 0, MOST_TENSOR_BYTES, "ops", i, "workspace_bytes", err) &&
         in_range (o->parts, 1, MOST_PARTS, "ops", i, "parts", err) &&
         in_range (o->phase, 0, OP_PHASES - 1, "ops", i, "phase", err) &&
         in_range (o->stream, 0, MOST_STREAMS - 1, "ops", i, "stream", err) &&
         in_range (o->collective, 0, COLLECTIVE_KINDS - 1, "ops", i, "collective", err) &&
         in_range (o->group_bytes, 0, o->collective ? MOST_TENSOR_BYTES : 0, "ops", i,
                   "group_bytes", err);
}

/* `seen` holds, per tensor, the last list that named it: 3 x op + which list, plus 1. */
static bool list_is_sound (const trace *t, int32_t i, const char *name, int which,
                           const index_list *list, int64_t *seen, error *err) {
  char where[64];
  for (int32_t j = 0; j < list->count; j++) {
    int32_t x = list->at[j];
    snprintf (where, sizeof where, "/ops/%d/%s/%d", i, name, j);
    if (x < 0 || x >= t->n_tensors)
      return error_at (err, ERR_input, where, "there is no tensor %d; the last is %d", x,
                       t->n_tensors - 1);
    /* side is a part of writes: `seen` still says "written by this op" when side is read */
    int64_t mark = (int64_t)i * 3 + which + 1;
    if (which == 2 && seen[x] != mark - 1 && seen[x] != mark)
      return error_at (err, ERR_input, where, "tensor %d is in `side` but not in `writes`", x);
    if (seen[x] == mark)
      return error_at (err, ERR_input, where, "tensor %d is named twice", x);
    seen[x] = mark;
  }
  return true;
}

/* A tensor of such a list is one that the op touches. */
static bool origins_are_sound (const trace *t, int32_t i, const char *name, const index_list *list,
                               error *err) {
  char where[64];
  for (int32_t j = 0; j < list->count; j++) {
    snprintf (where, sizeof where, "/ops/%d/%s/%d", i, name, j);
    if (list->at[j] < 0 || list->at[j] >= t->n_tensors || !op_touches (&t->ops[i], list->at[j]))
      return error_at (err, ERR_input, where, "the op touches no tensor %d", list->at[j]);
  }
  return true;
}

/* Waits go backwards in the list, so that they have no circles. `seen` holds, per op, the last one
   that named it, plus 1. */
static bool waits_are_sound (const trace *t, int32_t *seen, error *err) {
  char where[64];
  for (int32_t i = 0; i < t->n_ops; i++)
    for (int32_t j = 0; j < t->ops[i].after.count; j++) {
      int32_t k = t->ops[i].after.at[j];
      snprintf (where, sizeof where, "/ops/%d/after/%d", i, j);
      if (k < 0 || k >= i)
        return error_at (err, ERR_input, where, "an op waits for ops before it only, not for op %d",
                         k);
      if (seen[k] == i + 1)
        return error_at (err, ERR_input, where, "op %d is named twice", k);
      seen[k] = i + 1;
    }
  return true;
}

/* A life that is given must hold all uses. */
static bool lives_are_sound (const trace *t, const int32_t *first, const int32_t *last,
                             error *err) {
  for (int32_t i = 0; i < t->n_tensors; i++) {
    const tensor *x = &t->tensors[i];
    char where[64];
    if (x->born_before == NO_OP && x->dies_after == NO_OP)
      continue;
    const char *field = x->born_before != NO_OP ? "born_before" : "dies_after";
    snprintf (where, sizeof where, "/tensors/%d/%s", i, field);
    if (x->persistent)
      return error_at (err, ERR_input, where, "a persistent tensor is neither born nor dies");
    if (first[i] == NO_OP)
      continue; /* a tensor that no op touches is nothing, whatever else it says */
    if (x->born_before != NO_OP && x->born_before > first[i])
      return error_at (err, ERR_input, where, "op %d uses the tensor before op %d", first[i],
                       x->born_before);
    snprintf (where, sizeof where, "/tensors/%d/dies_after", i);
    if (x->dies_after != NO_OP && x->dies_after < last[i])
      return error_at (err, ERR_input, where, "op %d uses the tensor after op %d", last[i],
                       x->dies_after);
  }
  return true;
}

static bool ops_are_sound (const trace *t, int64_t *seen, int32_t *first, int32_t *last,
                           error *err) {
  int64_t total = 0;
  for (int32_t i = 0; i < t->n_ops; i++) {
    const op *o = &t->ops[i];
    if (!op_in_range (i, o, err) || !list_is_sound (t, i, "reads", 0, &o->reads, seen, err) ||
        !list_is_sound (t, i, "writes", 1, &o->writes, seen, err) ||
        !list_is_sound (t, i, "side", 2, &o->side, seen, err) ||
        !origins_are_sound (t, i, "digested", &o->digested, err) ||
        !origins_are_sound (t, i, "unknown", &o->unknown, err))
      return false;
    total += o->ns + o->gap_ns; /* each below 2^53, and checked every time */
    if (total > MOST_NS)
      return error_at (err, ERR_input, "/ops", "durations and gaps sum to more than 2^53 ns");
    for (int which = 0; which < 2; which++) {
      const index_list *list = which ? &o->writes : &o->reads;
      for (int32_t j = 0; j < list->count; j++) {
        int32_t x = list->at[j];
        if (first[x] == NO_OP)
          first[x] = i;
        last[x] = i;
      }
    }
  }
  return true;
}

bool trace_validate (const trace *t, error *err) {
  if (t->n_ops < 1)
    return error_at (err, ERR_input, "/ops", "a trace needs at least one op");
  if (t->batch < 1 || t->batch > MOST_PARTS)
    return error_at (err, ERR_input, "/batch", "%lld is not between 1 and 2^53",
                     (long long)t->batch);
  for (int32_t i = 0; i < t->n_tensors; i++)
    if (!tensor_in_range (t, i, err))
      return false;
  arena *scratch = arena_new (0);
  if (!scratch)
    return error_memory (err);
  int64_t *seen = NEW (scratch, t->n_tensors, int64_t, err);
  int32_t *first = NEW (scratch, t->n_tensors, int32_t, err);
  int32_t *last = NEW (scratch, t->n_tensors, int32_t, err);
  int32_t *waited = NEW (scratch, t->n_ops, int32_t, err);
  bool ok = seen && first && last && waited && waits_are_sound (t, waited, err);
  if (ok) {
    memset (first, 0xff, (size_t)t->n_tensors * sizeof *first);
    memset (last, 0xff, (size_t)t->n_tensors * sizeof *last);
    ok = ops_are_sound (t, seen, first, last, err) && lives_are_sound (t, first, last, err);
  }
  for (int64_t i = 0; ok && i < (int64_t)t->n_samples * t->n_ops; i++)
    ok = in_range (t->ns_samples[i], 0, MOST_NS, "ns_samples", i / t->n_ops, "", err);
  arena_free (scratch);
  return ok;
}

int32_t trace_count_streams (const trace *t) {
  int32_t last = 0;
  for (int32_t i = 0; i < t->n_ops; i++)
    last = t->ops[i].stream > last ? t->ops[i].stream : last;
  return last + 1;
}

int64_t trace_sum_ns (const trace *t) {
  int64_t total = 0;
  for (int32_t i = 0; i < t->n_ops; i++)
    total += t->ops[i].ns + t->ops[i].gap_ns;
  return total;
}

int64_t trace_busiest_ns (const trace *t) {
  int64_t of[MOST_STREAMS] = { 0 }, most = 0;
  for (int32_t i = 0; i < t->n_ops; i++) {
    int64_t *sum = &of[t->ops[i].stream];
    *sum += t->ops[i].ns + t->ops[i].gap_ns;
    most = *sum > most ? *sum : most;
  }
  return most;
}

int64_t trace_total_ns (const trace *t) {
  if (!trace_has_streams (t))
    return trace_sum_ns (t);
  arena *scratch = arena_new (0);
  error ignored = { 0 };
  const int64_t *ends_ns = scratch ? trace_ends (t, scratch, &ignored) : NULL;
  /* without memory, what is certainly not too much */
  int64_t total = ends_ns ? ends_ns[t->n_ops] : trace_busiest_ns (t);
  arena_free (scratch);
  return total;
}

int64_t *trace_ends (const trace *t, arena *a, error *err) {
  int64_t *ends_ns = NEW (a, (int64_t)t->n_ops + 1, int64_t, err);
  if (ends_ns && trace_has_streams (t)) {
    int64_t *own_ns = streams_ends (t, a, err);
    for (int32_t k = 0; own_ns && k < t->n_ops; k++)
      ends_ns[k + 1] = own_ns[k] > ends_ns[k] ? own_ns[k] : ends_ns[k];
    return own_ns ? ends_ns : NULL;
  }
  for (int32_t k = 0; ends_ns && k < t->n_ops; k++)
    ends_ns[k + 1] = ends_ns[k] + t->ops[k].gap_ns + t->ops[k].ns;
  return ends_ns;
}

/* ---- how sure it is ---- */

const char *const confidence_words[] = { "exact",   "approximate",   "learned",
                                         "touched", "not plannable", NULL };

const char *confidence_text (confidence c, const char *doubt, arena *a, error *err) {
  bool says = doubt && *doubt;
  return arena_format (a, err, "%s%s%s", confidence_words[c], says ? ": " : "", says ? doubt : "");
}

void confidence_write (json_writer *w, confidence c, const char *doubt) {
  json_add_text (w, "confidence", confidence_words[c]);
  if (doubt && *doubt)
    json_add_text (w, "doubt", doubt);
}

bool trace_is_plannable (const trace *t) {
  return t->source.confidence != CONFIDENCE_NOT_PLANNABLE;
}

bool trace_knows_only_touches (const trace *t) {
  return t->source.confidence == CONFIDENCE_TOUCHED;
}

bool trace_is_of_program (const trace *t) {
  return trace_knows_only_touches (t) || t->source.confidence == CONFIDENCE_LEARNED;
}

bool trace_must_plan (const trace *t, error *err) {
  const char *doubt = t->source.doubt;
  return trace_is_plannable (t) ||
         error_set (err, ERR_input,
                    "%.80s is not plannable: %s; record the execution trace and the Kineto file of "
                    "one run (docs/record.md)",
                    t->name[0] ? t->name : "the trace",
                    doubt && *doubt ? doubt : "its source says no more");
}

const char *trace_doubt (const trace *t, arena *a, error *err) {
  const trace_source *s = &t->source;
  if (s->confidence == CONFIDENCE_EXACT && !(s->doubt && *s->doubt))
    return NULL;
  const char *text = confidence_text (s->confidence, s->doubt, a, err);
  return text ? arena_format (a, err, "the trace is %s", text) : NULL;
}
