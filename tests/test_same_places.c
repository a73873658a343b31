/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Parts that keep their granules: who meets whom is the same by bits as pair by pair, and parts
   that have one place in turn no longer meet once their copies in wait. */
#include <stdlib.h>

#include "base/order.h"
#include "base/random.h"
#include "solver/place/same_inner.h"
#include "tests/suite.h"

enum { CASES = 1000, KEYS = 40, STAYS = 3, OPS = 50, RANK_NS = 10 };

typedef struct made {
  arena *arena;
  trace trace;
  stays stays;
  wish moves[KEYS * STAYS];
  int64_t start_ns[OPS];
  places places;
  same same;
  error err;
} made;

/* Ranks in random order, and of each part its own few in turn: birth, end, birth, end. */
static void draw_circle (made *m, random_state *r, const int32_t *first) {
  same *s = &m->same;
  int32_t n = m->stays.count, *all = NEW (m->arena, 2 * (int64_t)n, int32_t, &m->err);
  s->circle = (circle){ .ranks = 2 * (int64_t)n,
                        .birth = NEW (m->arena, n, int64_t, &m->err),
                        .end = NEW (m->arena, n, int64_t, &m->err),
                        .at = NEW (m->arena, 2 * (int64_t)n, int32_t, &m->err) };
  for (int32_t i = 0; i < 2 * n; i++) {
    int32_t j = (int32_t)random_between (r, 0, i);
    all[i] = all[j];
    all[j] = i;
  }
  for (int32_t k = 0; k < s->n_keys; k++) {
    int32_t *mine = all + 2 * (int64_t)first[k], count = 2 * (first[k + 1] - first[k]);
    qsort (mine, (size_t)count, sizeof *mine, order_int32);
    int32_t turn = (int32_t)random_between (r, 0, 1); /* the last stay may cross the step's end */
    for (int32_t i = 0; i < count / 2; i++) {
      int32_t stay = first[k] + i;
      s->circle.birth[stay] = mine[2 * i + turn];
      s->circle.end[stay] = mine[(2 * i + 1 + turn) % count];
      s->circle.at[s->circle.birth[stay]] = stay;
      s->circle.at[s->circle.end[stay]] = -1 - stay;
    }
  }
}

static moment moment_of (int64_t rank) {
  return (moment){ rank * RANK_NS, rank };
}

/* Ops that start while the stay is there. */
static int32_t ops_within (const made *m, int32_t stay, int32_t *ops) {
  const circle *c = &m->same.circle;
  int64_t birth = c->birth[stay], length = circle_ahead (c, c->end[stay], birth);
  int32_t n = 0;
  for (int32_t k = 0; k < OPS; k++)
    if (circle_ahead (c, m->start_ns[k] / RANK_NS, birth) < length)
      ops[n++] = k;
  return n;
}

static void draw_stays (made *m, random_state *r) {
  same *s = &m->same;
  for (int32_t k = 0; k < OPS; k++)
    m->start_ns[k] = s->circle.ranks * k / OPS * RANK_NS;
  for (int32_t i = 0; i < m->stays.count; i++) {
    int32_t ops[OPS], n = ops_within (m, i, ops);
    m->stays.at[i] = (timed_stay){ .kind = n && random_chance (r, 800000) ? STAY_MOVE : STAY_TENSOR,
                                   .index = i,
                                   .op = n ? ops[random_between (r, 0, n - 1)] : 0,
                                   .granules = 1,
                                   .from = moment_of (s->circle.birth[i]),
                                   .to = moment_of (s->circle.end[i]) };
    m->places.wait_ops[i] = NO_WAIT;
  }
}

static void set_up (made *m, uint64_t seed) {
  random_state r = random_seed (seed);
  *m = (made){ .arena = arena_new (0) };
  same *s = &m->same;
  int32_t first[KEYS + 1] = { 0 };
  *s = (same){ .l = &m->stays, .arena = m->arena, .err = &m->err, .out = &m->places };
  s->n_keys = (int32_t)random_between (&r, 2, KEYS);
  for (int32_t k = 0; k < s->n_keys; k++)
    first[k + 1] = first[k] + (int32_t)random_between (&r, 1, STAYS);
  m->trace.n_ops = OPS;
  m->stays = (stays){ .trace = &m->trace,
                      .moves = m->moves,
                      .start_ns = m->start_ns,
                      .count = first[s->n_keys],
                      .at = NEW (m->arena, first[s->n_keys], timed_stay, &m->err) };
  m->places.wait_ops = NEW (m->arena, m->stays.count, int32_t, &m->err);
  draw_circle (m, &r, first);
  draw_stays (m, &r);
  s->period = moment_of (s->circle.ranks);
  s->key = NEW (m->arena, m->stays.count, int32_t, &m->err);
  s->stays = NEW (m->arena, m->stays.count, int32_t, &m->err);
  s->first_stay = NEW (m->arena, (int64_t)s->n_keys + 1, int32_t, &m->err);
  s->always = NEW (m->arena, s->n_keys, bool, &m->err);
  for (int32_t k = 0; k < s->n_keys; k++)
    for (int32_t i = first[k]; i < first[k + 1]; i++) {
      s->first_stay[k + 1] = i + 1;
      s->stays[i] = i;
      s->key[i] = k;
    }
  if (random_chance (&r, 300000))
    s->always[random_between (&r, 0, s->n_keys - 1)] = true;
  ck_assert (same_find_meetings (s) && s->meet);
}

CLAIM (bits_say_who_meets_whom) {
  int met = 0, apart = 0;
  for (uint64_t seed = 0; seed < CASES; seed++) {
    made m;
    set_up (&m, seed);
    same *s = &m.same, by_pairs = *s;
    by_pairs.meet = NULL;
    for (int32_t a = 0; a < s->n_keys; a++)
      for (int32_t b = 0; b < s->n_keys; b++)
        if (a != b) {
          bool meet = same_meet (s, a, b);
          ck_assert_int_eq (meet, same_meet (&by_pairs, a, b));
          met += meet;
          apart += !meet;
        }
    arena_free (m.arena);
  }
  ck_assert_int_gt (met, CASES);
  ck_assert_int_gt (apart, CASES);
}

/* The stays of two parts, with the births that were put off. */
static bool are_there_together (const same *s, int32_t a, int32_t b) {
  same late = *s;
  late.meet = NULL;
  return same_meet (&late, a, b);
}

CLAIM (copies_in_wait_until_a_place_is_theirs) {
  int waiting = 0, none = 0;
  for (uint64_t seed = 0; seed < CASES; seed++) {
    made m;
    set_up (&m, seed);
    same *s = &m.same;
    owner first = { .key = 0, .next = -1 };
    area only = { .first = 0, .count = 1, .owners = 0 };
    int32_t wanted = 1;
    s->areas = &only;
    s->owners = &first;
    s->n_areas = s->areas_room = s->n_owners = s->owners_room = 1;
    s->most = 1;
    ck_assert (same_close (s, &s->areas[0], 0));
    bool meet = same_meet (s, 0, 1);
    ck_assert_int_eq (!meet, same_is_free (s, &s->areas[0], 1));
    ck_assert (same_take_turns (s, 1, &wanted));
    ck_assert (wanted || !are_there_together (s, 0, 1));
    ck_assert_int_eq (m.places.waits, meet && !wanted);
    for (int32_t i = 0; i < m.stays.count; i++)
      if (m.places.wait_ops[i] != NO_WAIT) {
        ck_assert_int_eq (m.stays.at[i].kind, STAY_MOVE);
        ck_assert_int_le (m.places.wait_ops[i], m.stays.at[i].op);
        ck_assert_int_ge (m.places.wait_ops[i], -OPS);
      }
    waiting += m.places.waits;
    none += wanted;
    arena_free (m.arena);
  }
  ck_assert_int_gt (waiting, CASES / 50);
  ck_assert_int_gt (none, CASES / 50);
}

int main (void) {
  return suite_run ("same_places", 60);
}
