/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Works of a program beside a second implementation, written from docs/machine-model.md: every work
   of random lists starts and ends at the same nanosecond.  FERRY_CASES: how many lists. */
#include <string.h>

#include "base/random.h"
#include "tests/suite.h"
#include "trace/simulate/works.h"

enum { MOST_WORKS = 60, MOST_WAITS = 3 };

#define SECOND ((__int128)1000000000)

typedef struct item {
  int32_t stream, n_waits, waits[MOST_WAITS];
  int64_t ns, bytes;
  int64_t ready_ns, start_ns, carries_ns, end_ns; /* -1: not yet */
  __int128 left;
} item;

typedef struct clock {
  item at[MOST_WORKS];
  int32_t n;
  device_link link;
  int64_t now_ns;
} clock;

/* The work before it on its stream, and all that it names. */
static bool is_ready (const clock *c, int32_t i) {
  int32_t before = i - 1;
  while (before >= 0 && c->at[before].stream != c->at[i].stream)
    before--;
  bool ready = before < 0 || c->at[before].end_ns >= 0;
  for (int32_t k = 0; k < c->at[i].n_waits; k++)
    ready = ready && c->at[c->at[i].waits[k]].end_ns >= 0;
  return ready;
}

static int way_of (const item *x) {
  return x->bytes < 0 ? -1 : x->bytes > 0;
}

static bool is_open (const item *x) {
  return x->start_ns >= 0 && x->end_ns < 0;
}

static bool carries (const clock *c, int way) {
  for (int32_t i = 0; i < c->n; i++)
    if (way_of (&c->at[i]) == way && is_open (&c->at[i]) && c->at[i].carries_ns <= c->now_ns)
      return true;
  return false;
}

static int64_t rate (const clock *c, int way) {
  int64_t own = way < 0 ? c->link.d2h_bytes_per_s : c->link.h2d_bytes_per_s;
  int64_t other = way < 0 ? c->link.h2d_bytes_per_s : c->link.d2h_bytes_per_s;
  int64_t both = c->link.both_bytes_per_s, rest = both - other;
  if (!carries (c, -way))
    return own;
  if (2 * rest < both)
    rest = both / 2;
  return rest < own ? rest : own;
}

/* Ends what is over and starts what takes no engine, until nothing more happens. */
static void settle (clock *c) {
  for (bool any = true; any;) {
    any = false;
    for (int32_t i = 0; i < c->n; i++) {
      item *x = &c->at[i];
      bool over = way_of (x) ? x->carries_ns <= c->now_ns && x->left <= 0
                             : x->start_ns + x->ns <= c->now_ns;
      if (is_open (x) && over) {
        x->end_ns = c->now_ns;
        any = true;
      }
      if (x->ready_ns < 0 && is_ready (c, i)) {
        x->ready_ns = c->now_ns;
        x->start_ns = way_of (x) ? -1 : c->now_ns;
        any = true;
      }
    }
  }
}

static void take_engine (clock *c, int way) {
  item *best = NULL;
  for (int32_t i = 0; i < c->n; i++) {
    item *x = &c->at[i];
    if (way_of (x) != way || x->ready_ns < 0 || x->end_ns >= 0)
      continue;
    if (is_open (x))
      return;
    if (!best || x->ready_ns < best->ready_ns)
      best = x;
  }
  if (!best)
    return;
  best->start_ns = c->now_ns;
  best->carries_ns = c->now_ns + c->link.copy_ns;
  best->left = (best->bytes < 0 ? -best->bytes : best->bytes) * SECOND;
}

static int64_t next_moment (const clock *c) {
  int64_t next = INT64_MAX;
  for (int32_t i = 0; i < c->n; i++) {
    const item *x = &c->at[i];
    if (!is_open (x))
      continue;
    int64_t per_s = rate (c, way_of (x));
    int64_t at = !way_of (x)                 ? x->start_ns + x->ns
                 : x->carries_ns > c->now_ns ? x->carries_ns
                                             : c->now_ns + (int64_t)((x->left + per_s - 1) / per_s);
    next = at < next ? at : next;
  }
  return next;
}

static void run (clock *c) {
  for (;;) {
    settle (c);
    take_engine (c, -1);
    take_engine (c, 1);
    int64_t next = next_moment (c), rates[2] = { rate (c, -1), rate (c, 1) };
    if (next == INT64_MAX)
      return;
    for (int32_t i = 0; i < c->n; i++)
      if (way_of (&c->at[i]) && is_open (&c->at[i]) && c->at[i].carries_ns <= c->now_ns)
        c->at[i].left -= rates[way_of (&c->at[i]) > 0] * (__int128)(next - c->now_ns);
    c->now_ns = next;
  }
}

/* Few lengths, so that much happens at one moment. */
static void random_item (random_state *r, item *x, int32_t i) {
  bool copies = random_chance (r, 400000);
  int64_t bytes = 512 * random_between (r, 1, 8);
  *x = (item){ .stream = (int32_t)random_between (r, 0, 4), .ready_ns = -1 };
  x->start_ns = x->carries_ns = x->end_ns = -1;
  x->ns = copies ? 0 : 50 * random_between (r, 0, 6);
  x->bytes = !copies ? 0 : random_chance (r, 500000) ? bytes : -bytes;
  for (int32_t k = 0; i > 0 && k < MOST_WAITS && random_chance (r, 400000); k++)
    x->waits[x->n_waits++] = (int32_t)random_between (r, i > 9 ? i - 9 : 0, i - 1);
}

static bool put (works *w, const item *x, error *err) {
  bool ok = works_add (w, x->stream, x->ns, x->bytes, err);
  for (int32_t k = 0; ok && k < x->n_waits; k++)
    ok = works_wait (w, x->waits[k], err);
  return ok && works_wait (w, -1, err);
}

CLAIM (works_are_timed_as_a_second_implementation_times_them) {
  int64_t shared = 0;
  for (int seed = 1; seed <= suite_cases (500); seed++) {
    random_state r = random_seed ((uint64_t)seed);
    device d = { .share_ppm = 1000000, .link = { 5120000000, 2560000000, 6000000000, 10 } };
    clock c = { .n = (int32_t)random_between (&r, 1, MOST_WORKS), .link = d.link };
    arena *a = arena_new (0);
    error err = { 0 };
    works w;
    span *at;
    works_start (&w);
    for (int32_t i = 0; i < c.n; i++) {
      random_item (&r, &c.at[i], i);
      ck_assert_msg (put (&w, &c.at[i], &err), "%s", err.text);
    }
    run (&c);
    ck_assert_msg (works_simulate (&w, &d, a, &at, &err), "%s", err.text);
    for (int32_t i = 0; i < c.n; i++) {
      ck_assert_msg (at[i].start_ns == c.at[i].start_ns && at[i].end_ns == c.at[i].end_ns,
                     "seed %d: work %d of %d from %lld to %lld, not %lld to %lld", seed, i, c.n,
                     (long long)at[i].start_ns, (long long)at[i].end_ns,
                     (long long)c.at[i].start_ns, (long long)c.at[i].end_ns);
      shared += way_of (&c.at[i]) && c.at[i].start_ns > c.at[i].ready_ns;
    }
    works_free (&w);
    arena_free (a);
  }
  ck_assert_int_gt (shared, suite_cases (500)); /* copies waited for an engine */
}

/* Nobody is ahead of itself: what waits for a later work of its own stream never starts. */
CLAIM_IN_ARENA (works_that_wait_for_each_other_are_refused) {
  device d = { .share_ppm = 1000000, .link = { 5120000000, 2560000000, 6000000000, 10 } };
  works w;
  span *at;
  works_start (&w);
  ck_assert (works_add (&w, 0, 5, 0, &err) && works_wait (&w, 1, &err) &&
             works_add (&w, 1, 5, 0, &err) && works_wait (&w, 0, &err));
  ck_assert (!works_simulate (&w, &d, a, &at, &err));
  ck_assert_int_eq (err.code, ERR_infeasible);
  works_free (&w);
}

int main (void) {
  return suite_run ("works", 60);
}
