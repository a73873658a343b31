/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A trace of the step that a record repeats.  It is known which op touches which tensor, and not
   which of them it writes: every touched tensor is read and written. */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "executor/watch/steps.h"
#include "trace/build.h"

typedef struct maker {
  const steps *steps;
  const steps_options *options;
  steps_map *map;
  trace_builder *build;
  arena *arena;
  int32_t *tensor_of;      /* of a life; -1 */
  bool *used;              /* of a life: by an op of the step */
  bool crosses;            /* a whole record, of steps whose results outlive them */
  int64_t n_uses, n_known; /* of tensors by ops; with a direction */
} maker;

/* The record of one step: from behind the lives that were there to the end. */
static bool find_in_step (const steps *s, int64_t *first, int64_t *end, error *err) {
  *first = s->beats.n - s->cut_beats;
  *end = s->beats.n;
  return (*first >= 0 && *first < *end) ||
         error_set (err, ERR_input, "the record of the step is broken");
}

/* In a whole record nothing is carried over the host: results are there until they are freed. */
static void mark_crossings (maker *m) {
  const beats *b = &m->steps->beats;
  int64_t from = beats_oldest_life (b);
  m->crosses = true;
  for (int64_t n = from; n < b->n_lives; n++) {
    life *l = beats_life (b, n);
    l->crossing = (uint8_t)life_crossing (l, m->map->first, m->map->end);
  }
}

static bool find_step (maker *m, error *err) {
  const steps *s = m->steps;
  const beats *b = &s->beats;
  int64_t *first = &m->map->first, *end = &m->map->end;
  beats_answer a = beats_step (b, first, end);
  if (a == BEATS_CUT)
    return true;
  if (a == BEATS_WRAP && (beats_crossing_step (b, &b->near, first, end) ||
                          beats_crossing_step (b, &b->far, first, end))) {
    mark_crossings (m);
    return true;
  }
  if (a == BEATS_WRAP && 2 * (b->near.run + b->near.period) > b->all)
    return error_set (
        err, ERR_infeasible,
        "the program repeats itself every %lld beats, but at every moment of a step some tensor is "
        "alive that neither lasts nor is replaced in the next step; free it before",
        (long long)b->near.period);
  return error_set (
      err, ERR_infeasible,
      "no step is repeated: the program made %lld ops, and for most of them none before does the "
      "same with the same tensors; let it run for more steps",
      (long long)s->n_ops);
}

static int64_t told_bytes (const maker *m, int64_t bytes) {
  int64_t to = m->options->round_bytes;
  return to > 0 ? (bytes + to - 1) / to * to : bytes;
}

/* One that the step before has made is called by what replaces it. */
static const life *named_by (const maker *m, const life *l) {
  const steps *s = m->steps;
  for (int64_t i = 0; i < s->n_crossings; i++)
    if (s->crossings[i].carried_in == l->number)
      return beats_life (&s->beats, s->crossings[i].carried_out);
  return l;
}

static const char *name_of (maker *m, const life *l, error *err) {
  bool there = l->born < m->map->first, lasts = l->crossing == CROSSING_NONE;
  const char *form = !there ? "step.%lld" : lasts ? "lasting.%lld" : "before.%lld";
  int64_t at = there && lasts        ? l->number
               : there && m->crosses ? l->born + m->map->end - 2 * m->map->first
                                     : named_by (m, l)->born - m->map->first;
  return arena_format (m->arena, err, form, (long long)at);
}

static bool add_tensor (maker *m, const life *l, bool lasts, error *err) {
  const char *name = name_of (m, l, err);
  if (name == NULL)
    return false;
  int32_t x = build_tensor (m->build, name, told_bytes (m, l->bytes),
                            lasts ? TENSOR_PARAMETER : TENSOR_ACTIVATION);
  tensor *t = build_tensor_at (m->build, x);
  if (t == NULL)
    return false;
  t->pinned = l->pinned || l->crossing == CROSSING_STAYS;
  m->tensor_of[l->number] = x;
  m->map->number[x] = l->number;
  m->map->leaves[x] = l->crossing == CROSSING_OUT && !m->crosses;
  return true;
}

static bool is_used (const maker *m, int64_t number) {
  return m->used[number];
}

static void mark_used (maker *m) {
  const beats *b = &m->steps->beats;
  for (int64_t i = m->map->first; i < m->map->end; i++)
    for (int32_t k = 0; k < beats_at (b, i)->n_refs; k++) {
      int64_t number = beats_ref (b, beats_at (b, i), k);
      if (number >= 0 && number < b->n_lives)
        m->used[number] = true;
    }
}

static bool has_op_before (const maker *m, int64_t beat) {
  for (int64_t i = m->map->first; i < m->map->end && i < beat; i++)
    if (beats_at (&m->steps->beats, i)->op >= 0)
      return true;
  return false;
}

/* A result of the step before that is on the host needs no room where no op uses it. */
static bool is_in_step (const maker *m, const life *l) {
  if (l->crossing == CROSSING_IN)
    return m->crosses ? has_op_before (m, l->freed) : is_used (m, l->number);
  bool there = life_at (l, m->map->first) && l->born >= 0;
  return there || (l->born >= m->map->first && l->born < m->map->end);
}

/* Both generations of what the step reads of the one before. */
static int64_t handed_bytes (const maker *m) {
  const steps *s = m->steps;
  int64_t bytes = 0;
  for (int64_t i = 0; i < s->n_crossings; i++)
    if (is_used (m, s->crossings[i].carried_in))
      bytes += 2 * told_bytes (m, beats_life (&s->beats, s->crossings[i].carried_in)->bytes);
  return bytes;
}

/* Coming back costs time and other places, so that little had better stay. */
static void let_stay (const maker *m) {
  const steps *s = m->steps;
  if (handed_bytes (m) > m->options->most_staying_bytes)
    return;
  for (int64_t i = 0; i < s->n_crossings; i++)
    if (is_used (m, s->crossings[i].carried_in)) {
      beats_life (&s->beats, s->crossings[i].carried_in)->crossing = CROSSING_STAYS;
      beats_life (&s->beats, s->crossings[i].carried_out)->crossing = CROSSING_STAYS;
    }
}

static bool add_tensors (maker *m, error *err) {
  const beats *b = &m->steps->beats;
  int64_t n = b->n_lives;
  if (!ALLOC (m->arena, m->tensor_of, n + 1, err) || !ALLOC (m->arena, m->used, n + 1, err) ||
      !ALLOC (m->arena, m->map->number, n + 1, err) ||
      !ALLOC (m->arena, m->map->leaves, n + 1, err))
    return false;
  mark_used (m);
  let_stay (m);
  for (int64_t k = 0; k < n; k++) {
    const life *l = beats_life (b, k);
    bool lasts =
        (l->born < m->map->first && l->crossing != CROSSING_IN) || l->crossing == CROSSING_STAYS;
    m->tensor_of[k] = -1;
    if (is_in_step (m, l) && !add_tensor (m, l, lasts, err))
      return false;
  }
  return true;
}

static steps_time time_of (const steps *s, int64_t op) {
  steps_time t = s->times[op - s->first_op];
  return (steps_time){ t.ns > 0 ? t.ns : 0, t.gap_ns > 0 ? t.gap_ns : 0 };
}

/* The median over the steps that were found, of gaps over those in which it is known. */
static int64_t median (const maker *m, int64_t beat, bool gap, int64_t *scratch) {
  int64_t period = m->map->end - m->map->first;
  int32_t n = 0;
  for (int32_t i = 0; i < m->map->found; i++) {
    int64_t op = beats_at (&m->steps->beats, beat - i * period)->op;
    steps_time t = time_of (m->steps, op);
    if (!gap || m->steps->times[op - m->steps->first_op].gap_ns >= 0)
      scratch[n++] = gap ? t.gap_ns : t.ns;
  }
  qsort (scratch, (size_t)n, sizeof *scratch, order_int64);
  return n > 0 ? scratch[n / 2] : 0;
}

static void count_steps (maker *m) {
  const beats *b = &m->steps->beats;
  int64_t period = m->map->end - m->map->first, most = m->options->most;
  for (int64_t back = 1; m->map->first - back * period >= 0; back++) {
    int64_t i = m->map->first;
    while (i < m->map->end && beats_same (b, i - (back - 1) * period, i - back * period))
      i++;
    if (i < m->map->end)
      break;
    m->map->alike++;
  }
  m->map->found = most > 0 && most < m->map->alike ? (int32_t)most : m->map->alike;
}

/* Results in the way of a step's begin, though nobody looks at them. */
static void add_unused (maker *m) {
  const beats *b = &m->steps->beats;
  for (int64_t n = 0; m->crosses && n < b->n_lives; n++)
    if (m->tensor_of[n] >= 0 && beats_life (b, n)->crossing == CROSSING_IN && !is_used (m, n))
      build_read (m->build, m->tensor_of[n]);
}

static bool is_learned (const maker *m) {
  return m->steps->n_learned > 0 && !m->options->touched;
}

/* A run under a budget cannot tell which tensors of an op with lists are its own. */
static bool is_told (const maker *m, int64_t beat) {
  return is_learned (m) &&
         !(m->steps->cut && beat_is_loose (beats_at (&m->steps->beats, beat)->token));
}

/* In all of the steps that are alike: one that writes it once is one that writes. */
static shim_fact fact_of (const maker *m, int64_t beat, int32_t ref) {
  const beats *b = &m->steps->beats;
  int64_t period = m->map->end - m->map->first;
  shim_fact most = FACT_NONE;
  for (int32_t k = 0; k < m->map->alike && is_told (m, beat); k++) {
    shim_fact f = steps_fact (m->steps, beats_at (b, beat - k * period), ref);
    most = f > most ? f : most;
  }
  return most;
}

static bool is_first_use (const maker *m, int64_t beat, int64_t number) {
  const beats *b = &m->steps->beats;
  const life *l = beats_life (b, number);
  if (l->born < m->map->first || l->crossing == CROSSING_IN || l->crossing == CROSSING_STAYS)
    return false;
  for (int64_t i = l->born; i < beat; i++)
    for (int32_t r = 0; r < beats_at (b, i)->n_refs; r++)
      if (beats_ref (b, beats_at (b, i), r) == number)
        return false;
  return true;
}

/* A tensor's bytes before its first use are nobody's result, so its first user writes it and reads
   nothing. Where no fact is known, the op reads and writes. */
static void add_use (maker *m, int64_t beat, int32_t ref, int32_t tensor) {
  int64_t number = beats_ref (&m->steps->beats, beats_at (&m->steps->beats, beat), ref);
  shim_fact f = fact_of (m, beat, ref);
  bool pure =
      f == FACT_WHOLE || (f != FACT_NONE && f != FACT_READ && is_first_use (m, beat, number));
  m->n_uses++;
  m->n_known += f != FACT_NONE;
  if (!pure)
    build_read (m->build, tensor);
  if (pure || f == FACT_NONE || f == FACT_CHANGED || f == FACT_PART)
    build_write (m->build, tensor);
  if (is_learned (m) && f <= FACT_CHANGED && !(pure && f != FACT_NONE))
    build_origin (m->build, tensor, f != FACT_NONE);
}

static bool add_ops (maker *m, error *err) {
  const beats *b = &m->steps->beats;
  int64_t *scratch = NEW (m->arena, m->map->found + 1, int64_t, err);
  if (!ALLOC (m->arena, m->map->beat, m->map->end - m->map->first + 1, err) || scratch == NULL)
    return false;
  for (int64_t i = m->map->first; i < m->map->end; i++) {
    const beat *e = beats_at (b, i);
    if (e->op < 0)
      continue;
    int32_t k =
        build_op (m->build, m->steps->names[e->name] != NULL ? m->steps->names[e->name] : "",
                  OP_OTHER, median (m, i, false, scratch));
    m->map->beat[k] = i - m->map->first;
    op *o = build_op_at (m->build, k);
    if (o != NULL)
      o->gap_ns = median (m, i, true, scratch);
    if (k == 0)
      add_unused (m);
    for (int32_t r = 0; r < e->n_refs; r++) {
      int64_t number = beats_ref (b, e, r);
      int32_t x = number >= 0 && number < b->n_lives ? m->tensor_of[number] : -1;
      if (x < 0)
        return error_set (err, ERR_input,
                          "the record of the program is broken: op %d uses a tensor "
                          "that is not there",
                          k);
      add_use (m, i, r, x);
    }
  }
  return true;
}

/* A tensor takes its memory until it is freed, which may be after its last use; one that leaves
   takes it no longer than that. */
static void add_ends (maker *m, trace *t) {
  const beats *b = &m->steps->beats;
  for (int32_t x = 0; x < t->n_tensors; x++) {
    const life *l = beats_life (b, m->map->number[x]);
    int32_t last = NO_OP, before_free = NO_OP;
    if (t->tensors[x].persistent || m->map->leaves[x])
      continue;
    for (int32_t k = 0; k < t->n_ops; k++) {
      if (op_touches (&t->ops[k], x))
        last = k;
      if (l->freed < 0 || m->map->first + m->map->beat[k] < l->freed)
        before_free = k;
    }
    if (last != NO_OP && before_free > last)
      t->tensors[x].dies_after = before_free;
    if (l->crossing == CROSSING_IN && m->crosses)
      t->tensors[x].born_before = 0;
  }
}

static bool add_samples (maker *m, trace *t, error *err) {
  const beats *b = &m->steps->beats;
  int64_t period = m->map->end - m->map->first;
  if (m->map->found < 2)
    return true;
  if (!ALLOC (m->arena, t->ns_samples, (int64_t)m->map->found * t->n_ops, err))
    return false;
  t->n_samples = m->map->found;
  for (int32_t i = 0; i < m->map->found; i++)
    for (int32_t k = 0; k < t->n_ops; k++)
      t->ns_samples[(int64_t)i * t->n_ops + k] =
          time_of (
              m->steps,
              beats_at (b, m->map->first + m->map->beat[k] - (m->map->found - 1 - i) * period)->op)
              .ns;
  return true;
}

/* An earlier version of it is of use to somebody: at its place that would not be there any more. */
static bool has_versions (const trace *t, int32_t x) {
  int32_t last = NO_OP;
  for (int32_t k = 0; k < t->n_ops; k++)
    if (list_has (&t->ops[k].writes, x))
      last = k;
  bool begun = false;
  for (int32_t k = 0; k < last; k++) {
    bool writes = list_has (&t->ops[k].writes, x);
    begun = begun || writes;
    if (writes ? t->ops[k].writes.count > 1 : begun && list_has (&t->ops[k].reads, x))
      return true;
  }
  return false;
}

static bool is_launched_again (const maker *m, const trace *t, int32_t k) {
  const steps *s = m->steps;
  int64_t op = beats_at (&s->beats, m->map->first + m->map->beat[k])->op;
  int32_t n = t->ops[k].reads.count + t->ops[k].writes.count;
  bool good = s->again[op - s->first_op] && t->ops[k].unknown.count == 0 && n <= AGAIN_REFS;
  for (int32_t i = 0; good && i < t->ops[k].writes.count; i++) {
    const tensor *x = &t->tensors[t->ops[k].writes.at[i]];
    good = !x->persistent && !x->pinned && x->again != AGAIN_NEVER;
  }
  return good;
}

/* Results of kernels that can be launched again, where they were, may be dropped. */
static void add_again (const maker *m, trace *t) {
  for (int32_t x = 0; x < t->n_tensors; x++) {
    t->tensors[x].placed = true;
    t->tensors[x].again = m->map->leaves[x] || has_versions (t, x) ? AGAIN_NEVER : AGAIN_FREELY;
  }
  for (int32_t k = 0; k < t->n_ops; k++)
    for (int32_t i = 0; i < t->ops[k].writes.count && !is_launched_again (m, t, k); i++)
      t->tensors[t->ops[k].writes.at[i]].again = AGAIN_NEVER;
}

static bool say_learned (maker *m, error *err) {
  const char *says =
      arena_format (m->arena, err, "digests and calls told of %lld of %lld uses whether they write",
                    (long long)m->n_known, (long long)m->n_uses);
  if (says != NULL)
    build_confidence (m->build, CONFIDENCE_LEARNED, says);
  return says != NULL;
}

trace *steps_trace (const steps *s, const steps_options *o, arena *a, steps_map *map, error *err) {
  maker m = { .steps = s, .options = o, .map = map, .arena = a };
  *map = (steps_map){ 0 };
  if (s->cut ? !find_in_step (s, &map->first, &map->end, err) : !find_step (&m, err))
    return NULL;
  m.build = build_new (a, o->name, 1, err);
  if (m.build == NULL)
    return NULL;
  build_source (m.build, "profile", o->detail);
  build_confidence (m.build, CONFIDENCE_TOUCHED, NULL);
  map->found = map->alike = 1;
  if (!s->cut)
    count_steps (&m);
  if (!add_tensors (&m, err) || !add_ops (&m, err))
    return NULL;
  if (is_learned (&m) && !say_learned (&m, err))
    return NULL;
  trace *t = build_finish (m.build, err);
  map->n_tensors = t == NULL ? 0 : t->n_tensors;
  if (t == NULL || !add_samples (&m, t, err))
    return NULL;
  add_ends (&m, t);
  if (is_learned (&m))
    add_again (&m, t);
  return trace_validate (t, err) ? t : NULL;
}
