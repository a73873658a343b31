/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Steps whose results are kept until the next ones are made: where they are cut, what is told of
   them, and what the launcher makes of it. */
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "executor/shim/step/answer.h"
#include "executor/shim/step/block.h"
#include "executor/watch/steps.h"
#include "tests/suite.h"

enum { RESULT = 60, MOST_AGES = 2 };

static beats b;

static void make (void) {
  ck_assert (beats_new (&b, 1024, 4096, 1024));
}

static void drop (void) {
  beats_free (&b);
}

static void launch (uint64_t token, int64_t x, int64_t y) {
  static int64_t number;
  const int64_t refs[] = { x, y };
  beat e = { .token = beat_token (2 * token, false), .op = number++, .n_refs = y < 0 ? 1 : 2 };
  ck_assert (beats_op (&b, e, refs));
}

static int64_t allocate (int64_t bytes) {
  beats_allocate (&b, bytes);
  return b.n_lives - 1;
}

/* A step makes a result in its middle, and frees that of `ages` steps before; it keeps another one
   for ever with `grows`. */
static void run_steps (int count, int ages, bool reads, bool grows) {
  int64_t w = allocate (50), olds[MOST_AGES] = { -1, -1 };
  for (int i = 0; i < 12; i++)
    launch (9, w, -1);
  for (int i = 0; i < count; i++) {
    int64_t before = allocate (100), *old = &olds[i % ages];
    launch (1, w, before);
    int64_t next = allocate (RESULT);
    launch (2, reads && *old >= 0 ? *old : before, next);
    if (*old >= 0)
      beats_release (&b, *old);
    *old = next;
    if (grows)
      (void)allocate (10);
    launch (3, next, before);
    beats_release (&b, before);
    launch (4, w, -1);
    launch (5, w, -1);
  }
}

CLAIM (a_cut_is_where_results_cross_and_are_not_used_again) {
  int64_t first, end;
  run_steps (6, 1, false, false);
  ck_assert_int_eq (beats_step (&b, &first, &end), BEATS_WRAP);
  ck_assert (beats_crossing_step (&b, &b.near, &first, &end));
  ck_assert_int_eq (end - first, 7);
  step *s = step_take (&b, first, end);
  ck_assert_ptr_nonnull (s);
  ck_assert_int_eq (s->n_lasting, 1);
  ck_assert_int_eq (s->n_pairs, 1);
  const step_pair *c = s->pairs;
  ck_assert_int_eq (s->tensors[c->carried_in].bytes, RESULT);
  ck_assert_int_eq (s->tensors[c->carried_out].bytes, RESULT);
  ck_assert (!s->tensors[c->carried_in].lasts && !s->tensors[c->carried_out].lasts);
  ck_assert_int_eq (beats_at (&b, first - c->age)->allocation, s->tensors[c->carried_in].number);
  bool made = false;
  for (int32_t i = 0; i < s->n_beats; i++) {
    made = made || s->beats[i].tensor == c->carried_out;
    for (int32_t k = 0; k < s->beats[i].n_refs; k++) {
      int32_t t = s->refs[s->beats[i].first_ref + k];
      ck_assert (t >= 0 && t != c->carried_in && (t != c->carried_out || made));
    }
  }
  ck_assert (made);
  step_free (s);
}

CLAIM (one_that_the_next_step_reads_crosses_too) {
  int64_t first, end;
  run_steps (6, 1, true, false);
  ck_assert (beats_crossing_step (&b, &b.near, &first, &end));
  step *s = step_take (&b, first, end);
  bool read = false;
  for (int32_t i = 0; i < s->n_beats; i++)
    for (int32_t k = 0; k < s->beats[i].n_refs; k++)
      read = read || s->refs[s->beats[i].first_ref + k] == s->pairs[0].carried_in;
  ck_assert (read);
  step_free (s);
}

CLAIM_EACH (what_has_no_heir_does_not_cross, 0, 3) {
  static const struct {
    int count, ages;
    bool grows;
  } rows[] = { { 6, 2, false }, { 6, 1, true }, { 2, 1, false } };
  int64_t first, end;
  run_steps (rows[_i].count, rows[_i].ages, false, rows[_i].grows);
  ck_assert (!beats_crossing_step (&b, &b.near, &first, &end));
}

/* ---- the launcher ---- */

typedef struct text {
  int64_t words[256];
  int64_t n;
} text;

static void put (text *t, int64_t kind, int64_t count, const int64_t *words) {
  t->words[t->n++] = kind;
  t->words[t->n++] = count;
  memcpy (t->words + t->n, words, (size_t)count * sizeof *words);
  t->n += count;
}
#define PUT(t, kind, ...) \
  put (t, kind, sizeof (int64_t[]){ __VA_ARGS__ } / 8, (int64_t[]){ __VA_ARGS__ })

/* Of four ops the first uses `old`, the first two the heir; the old one is freed behind the third.
 */
static bool read_step (int64_t old, int64_t replaced, arena *a, steps *out, error *err) {
  text t = { .n = 0 };
  char path[] = "/tmp/ferry-crossing-XXXXXX";
  PUT (&t, RECORD_CUT, 0, 5);
  PUT (&t, RECORD_NAME, 0, 1, 'k');
  PUT (&t, RECORD_ALLOC, 0, 50);
  PUT (&t, RECORD_ALLOC, 3, RESULT);
  PUT (&t, RECORD_ALLOC, 5, RESULT);
  PUT (&t, RECORD_OP, 2, 0, 2, 0, old, 5);
  PUT (&t, RECORD_OP, 4, 0, 2, 1, 5);
  PUT (&t, RECORD_OP, 6, 0, 2, 2, 0);
  PUT (&t, RECORD_FREE, 3);
  PUT (&t, RECORD_OP, 8, 0, 2, 3, 0);
  PUT (&t, RECORD_CROSSING, replaced, 5);
  int file = mkstemp (path);
  ck_assert_int_ge (file, 0);
  close (file);
  ck_assert (file_write (path, t.words, t.n * (int64_t)sizeof *t.words, FILE_PLAIN, err));
  bool good = steps_read (path, a, out, err);
  unlink (path);
  return good;
}

static trace *seen (int64_t old, arena *a, steps *s, steps_map *map) {
  error err = { 0 };
  ck_assert_msg (read_step (old, 3, a, s, &err), "%s", err.text);
  trace *t = steps_trace (s, &(steps_options){ .name = "p", .detail = "" }, a, map, &err);
  ck_assert_msg (t != NULL, "%s", err.text);
  return t;
}

CLAIM_IN_ARENA (the_heir_takes_room_until_its_last_use_and_the_old_one_from_its_first) {
  steps s;
  steps_map map;
  const trace *t = seen (3, a, &s, &map);
  ck_assert_int_eq (t->n_tensors, 3);
  ck_assert_str_eq (t->tensors[1].name, "before.0");
  ck_assert (t->tensors[0].persistent && !t->tensors[1].persistent && !t->tensors[2].persistent);
  ck_assert_int_eq (t->tensors[1].dies_after, 2); /* freed behind that op */
  ck_assert_int_eq (t->tensors[2].dies_after, NO_OP);
  ck_assert (!map.leaves[0] && !map.leaves[1] && map.leaves[2]);
  steps_close (&s);
}

CLAIM_IN_ARENA (an_old_one_that_is_not_used_takes_no_room) {
  steps s;
  steps_map map;
  ck_assert_int_eq (seen (0, a, &s, &map)->n_tensors, 2);
  ck_assert (map.leaves[1]);
  steps_close (&s);
}

CLAIM_EACH (a_record_without_the_one_that_is_replaced_is_broken, 0, 3) {
  static const int64_t replaced[] = { 0, 4, 5 }; /* not freed, not there, itself */
  steps s;
  error err = { 0 };
  arena *a = arena_new (0);
  ck_assert (!read_step (3, replaced[_i], a, &s, &err));
  ck_assert_str_eq (err.text, "the record of the program is broken");
  arena_free (a);
}

int main (void) {
  return suite_run_with ("crossing", make, drop, 20);
}
