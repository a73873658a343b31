/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/watch/steps.h"

#include <string.h>

enum { MOST_LIVES = 1 << 28 };

typedef struct counts {
  int64_t beats, refs, lives, last_op, first_op, orders, links, crossings;
  int32_t names;
} counts;

typedef struct reader {
  const int64_t *at, *end;
  int64_t kind, count;
  const int64_t *words;
} reader;

/* The next record; false at the end, or where the file was cut off. */
static bool next (reader *r) {
  if (r->end - r->at < 2 || r->at[1] < 0 || r->end - r->at - 2 < r->at[1])
    return false;
  r->kind = r->at[0];
  r->count = r->at[1];
  r->words = r->at + 2;
  r->at += 2 + r->count;
  return true;
}

static bool is_sane (const reader *r) {
  switch (r->kind) {
  case RECORD_NAME:
    return r->count >= 2 && r->words[0] >= 0 && r->words[0] < 1 << 24 && r->words[1] >= 0 &&
           r->words[1] <= 8 * (r->count - 2);
  case RECORD_ALLOC:
    return r->count == 2 && r->words[1] > 0 && r->words[0] >= 0;
  case RECORD_OP:
    return r->count >= 4 && r->words[1] >= 0 && r->words[1] < 1 << 24 && r->words[3] >= 0;
  case RECORD_TIME:
    return r->count == 3 && r->words[0] >= 0;
  case RECORD_ORDER:
    return r->count == 3 && r->words[0] >= 0 && r->words[1] <= r->words[0];
  case RECORD_LINK:
    return r->count == 2 && r->words[0] >= 0;
  case RECORD_FACTS:
  case RECORD_AGAIN:
    return r->count >= 1 && r->words[0] >= 0;
  case RECORD_CROSSING:
    return r->count == 2 && r->words[0] >= 0 && r->words[1] > r->words[0];
  default:
    return r->count >= 1;
  }
}

static bool count_all (reader r, counts *c, error *err) {
  *c = (counts){ .first_op = -1 };
  while (next (&r)) {
    if (!is_sane (&r))
      return error_set (err, ERR_input, "the record of the program is broken");
    if (r.kind == RECORD_NAME && r.words[0] >= c->names)
      c->names = (int32_t)r.words[0] + 1;
    c->orders += r.kind == RECORD_ORDER;
    c->links += r.kind == RECORD_LINK;
    c->crossings += r.kind == RECORD_CROSSING;
    c->beats += r.kind == RECORD_ALLOC || r.kind == RECORD_OP;
    if (r.kind == RECORD_ALLOC && r.words[0] >= c->lives)
      c->lives = r.words[0] + 1;
    if (r.kind == RECORD_OP) {
      c->refs += r.count - 4;
      c->first_op = c->first_op < 0 ? r.words[3] : c->first_op;
      c->last_op = r.words[3];
    }
  }
  if (c->first_op < 0)
    return error_set (err, ERR_infeasible, "the program made no op on the device");
  if (c->last_op < c->first_op || c->last_op - c->first_op > c->beats)
    return error_set (err, ERR_input, "the record of the program is broken");
  return true;
}

static int64_t power_above (int64_t n) {
  int64_t p = 1024;
  while (p <= n)
    p *= 2;
  return p;
}

static bool add_op (steps *s, const reader *r) {
  beat e = { .token = (uint64_t)r->words[0],
             .op = r->words[3],
             .name = (int32_t)r->words[1],
             .stream = (int32_t)r->words[2],
             .n_refs = (int32_t)(r->count - 4) };
  s->n_ops++;
  if (e.op < s->first_op || e.op - s->first_op >= s->n_times)
    return false;
  s->beat_of[e.op - s->first_op] = s->beats.n;
  return e.name < s->n_names && beats_op (&s->beats, e, r->words + 4);
}

/* In one step, numbers begin anywhere; what lies between is nobody's. */
static void add_allocation (steps *s, int64_t number, int64_t bytes) {
  while (s->beats.n_lives < number) {
    life *l = &s->beats.lives[s->beats.n_lives & (s->beats.lives_capacity - 1)];
    *l = (life){ .number = s->beats.n_lives, .bytes = 1, .born = -1, .freed = 0 };
    s->beats.n_lives++;
  }
  beats_allocate (&s->beats, bytes);
}

static bool add_crossing (steps *s, const steps_crossing *c) {
  life *in = beats_life (&s->beats, c->carried_in), *out = beats_life (&s->beats, c->carried_out);
  if (in == NULL || out == NULL || in->born < 0 || in->freed < 0)
    return false;
  in->crossing = CROSSING_IN;
  out->crossing = CROSSING_OUT;
  s->crossings[s->n_crossings++] = *c;
  return true;
}

static uint8_t *fact_at (const steps *s, const beat *e, int32_t i) {
  return &s->facts[(e->first_ref + i) & (s->beats.refs_capacity - 1)];
}

shim_fact steps_fact (const steps *s, const beat *e, int32_t ref) {
  return (shim_fact)*fact_at (s, e, ref);
}

/* The last row of an op counts. */
static bool add_facts (steps *s, const reader *r) {
  int64_t op = r->words[0] - s->first_op, beat = op >= 0 && op < s->n_times ? s->beat_of[op] : -1;
  const struct beat *e = beat >= 0 ? beats_at (&s->beats, beat) : NULL;
  if (e == NULL || e->n_refs != r->count - 1)
    return false;
  for (int32_t i = 0; i < e->n_refs; i++) {
    if (r->words[1 + i] < FACT_NONE || r->words[1 + i] > FACT_WHOLE)
      return false;
    *fact_at (s, e, i) = (uint8_t)r->words[1 + i];
  }
  s->n_learned++;
  return true;
}

static bool fill (steps *s, reader r, arena *a, error *err) {
  while (next (&r)) {
    bool good = true;
    if (r.kind == RECORD_NAME)
      good = (s->names[r.words[0]] = arena_format (a, err, "%.*s", (int)r.words[1],
                                                   (const char *)(r.words + 2))) != NULL;
    else if (r.kind == RECORD_ALLOC)
      add_allocation (s, r.words[0], r.words[1]);
    else if (r.kind == RECORD_FREE)
      beats_release (&s->beats, r.words[0]);
    else if (r.kind == RECORD_OP)
      good = add_op (s, &r);
    else if (r.kind == RECORD_TIME && r.words[0] >= s->first_op &&
             r.words[0] - s->first_op < s->n_times)
      s->times[r.words[0] - s->first_op] = (steps_time){ r.words[1], r.words[2] };
    else if (r.kind == RECORD_PIN && beats_life (&s->beats, r.words[0]) != NULL)
      beats_life (&s->beats, r.words[0])->pinned = true;
    else if (r.kind == RECORD_ORDER)
      s->orders[s->n_orders++] =
          (steps_order){ r.words[0], r.words[1], r.words[2] != 0, r.words[2] == 2 };
    else if (r.kind == RECORD_LINK)
      s->links[s->n_links++] = (steps_link){ r.words[0], r.words[1] };
    else if (r.kind == RECORD_FACTS)
      good = add_facts (s, &r);
    else if (r.kind == RECORD_AGAIN && r.words[0] >= s->first_op &&
             r.words[0] - s->first_op < s->n_times)
      s->again[r.words[0] - s->first_op] = true;
    else if (r.kind == RECORD_CROSSING)
      good = add_crossing (s, &(steps_crossing){ r.words[0], r.words[1] });
    else if (r.kind == RECORD_CUT && r.count == 2) {
      s->cut = true;
      s->cut_beats = r.words[1] - r.words[0];
    }
    if (!good)
      return error_set (err, ERR_input, "the record of the program is broken");
  }
  return true;
}

bool steps_read (const char *path, arena *a, steps *out, error *err) {
  bytes text = { 0 };
  counts c;
  *out = (steps){ 0 };
  if (!file_read_raw (path, (int64_t)1 << 36, &text, err))
    return false;
  reader r = { .at = (const int64_t *)(const void *)text.data };
  r.end = r.at + text.size / 8;
  bool good = count_all (r, &c, err);
  if (good &&
      (c.lives > MOST_LIVES || !beats_new (&out->beats, power_above (c.beats),
                                           power_above (4 * c.refs), power_above (c.lives))))
    good = error_memory (err);
  if (good) {
    out->first_op = c.first_op;
    out->n_times = c.last_op - c.first_op + 1;
    out->n_names = c.names;
    out->names = NEW (a, c.names + 1, const char *, err);
    out->times = NEW (a, out->n_times, steps_time, err);
    out->beat_of = NEW (a, out->n_times, int64_t, err);
    out->facts = NEW (a, out->beats.refs_capacity, uint8_t, err);
    out->again = NEW (a, out->n_times, bool, err);
    out->orders = NEW (a, c.orders + 1, steps_order, err);
    out->links = NEW (a, c.links + 1, steps_link, err);
    out->crossings = NEW (a, c.crossings + 1, steps_crossing, err);
    good = out->names != NULL && out->times != NULL && out->beat_of != NULL && out->facts != NULL &&
           out->again != NULL && out->orders != NULL && out->links != NULL &&
           out->crossings != NULL;
  }
  for (int64_t i = 0; good && i < out->n_times; i++)
    out->times[i].ns = out->beat_of[i] = -1;
  good = good && fill (out, r, a, err);
  bytes_free (&text);
  if (good && !out->cut && (out->beats.best_near.period > 0 || out->beats.best_far.period > 0))
    beats_rewind (&out->beats);
  if (!good)
    steps_close (out);
  return good;
}

void steps_close (steps *s) {
  beats_free (&s->beats);
  s->beats = (beats){ 0 };
}
