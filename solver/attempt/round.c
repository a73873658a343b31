/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/attempt/round.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dear.h"

const char *const round_names[ROUND_STARTS + 1] = {
  "nearest", "up", "clean", "longest", "doa", NULL
};

bool round_is_guided (round_start start) {
  return start == ROUND_NEAREST || start == ROUND_UP || start == ROUND_CLEAN;
}

int64_t round_away (const gaps *g, const int32_t *of, int32_t unit, int32_t n) {
  assert (n >= 0 && n <= of[unit]);
  const unit_info *u = &g->units->at[unit];
  return (u->granules - unit_part_first (u, of[unit] - n, of[unit])) * g->granule_bytes;
}

void round_add (peaks *level, const gap *at, int64_t bytes) {
  bool wraps = at->before <= at->after;
  peaks_add (level, at->after + 1, wraps ? level->count : at->before, bytes);
  if (wraps)
    peaks_add (level, 0, at->before, bytes);
}

int64_t round_most (const peaks *level, const gap *at) {
  if (at->before > at->after)
    return peaks_most (level, at->after + 1, at->before);
  int64_t x = peaks_most (level, at->after + 1, level->count);
  int64_t y = peaks_most (level, 0, at->before);
  return x > y ? x : y;
}

int32_t round_fullest (const peaks *level, const gap *at) {
  int32_t first = at->after + 1, n = level->count;
  if (at->before > at->after)
    return first < at->before ? peaks_at (level, first, at->before) : at->before;
  if (first == n && at->before == 0)
    return 0;
  return peaks_most (level, first, n) > peaks_most (level, 0, at->before)
             ? peaks_at (level, first, n)
             : peaks_at (level, 0, at->before);
}

typedef struct rounder {
  rounding *r;
  const gaps *g;
  const device *device;
  const double *shares;
  round_start start;
  int64_t room_bytes;
  int64_t *start_ns; /* n_ops + 1: of each op if nothing stalls */
  int32_t *before;   /* parts that each gap keeps away; NULL: none */
  peaks level;
} rounder;

static int64_t away (const rounder *w, int32_t gap, int32_t n) {
  return round_away (w->g, w->r->of, w->g->at[gap].unit, n);
}

static void set_parts (rounder *w, int32_t gap, int32_t parts) {
  round_add (&w->level, &w->g->at[gap], away (w, gap, w->r->parts[gap]) - away (w, gap, parts));
  w->r->parts[gap] = parts;
}

/* ---- orders ---- */

typedef struct ranked {
  int64_t key;
  int32_t gap;
} ranked;

static int by_key (const void *x, const void *y) {
  const ranked *a = x, *b = y;
  if (a->key != b->key)
    return a->key < b->key ? -1 : 1;
  return a->gap < b->gap ? -1 : a->gap > b->gap;
}

/* Time between the two uses if nothing stalls. */
static int64_t idle_ns (const rounder *w, const gap *at) {
  const op *ops = w->g->units->trace->ops;
  int64_t ns = w->start_ns[at->before] - w->start_ns[at->after] - ops[at->after].ns;
  return at->before <= at->after ? ns + w->start_ns[w->g->n_ops] : ns;
}

static int64_t copies_ns (const rounder *w, int32_t unit) {
  const device *dev = w->device;
  link_rates r = device_rates (&dev->link, dev->share_ppm);
  __int128 bytes = w->g->units->at[unit].bytes;
  __int128 ns =
      bytes * 1000000000 / r.out_alone + bytes * 1000000000 / r.in_alone + 2 * dev->link.copy_ns;
  return ns < INT64_MAX / 2 ? (int64_t)ns : INT64_MAX / 2;
}

static int64_t shortest_first (const rounder *w, int32_t gap) {
  return idle_ns (w, &w->g->at[gap]);
}

static int64_t longest_first (const rounder *w, int32_t gap) {
  return -idle_ns (w, &w->g->at[gap]);
}

static int64_t doa_first (const rounder *w, int32_t gap) {
  return copies_ns (w, w->g->at[gap].unit) - idle_ns (w, &w->g->at[gap]);
}

static int64_t by_release (const rounder *w, int32_t gap) {
  return w->g->at[gap].release;
}

typedef struct ranking {
  ranked *at;
  int32_t count;
} ranking;

/* Sorting all of them would be most of a rounding, so it is done with those that come into question
   only. */
static bool rank (const rounder *w, int64_t (*key) (const rounder *w, int32_t gap),
                  bool (*counts) (const rounder *w, int32_t gap), arena *a, ranking *out,
                  error *err) {
  *out = (ranking){ .at = NEW (a, w->g->count, ranked, err) };
  if (!out->at)
    return false;
  for (int32_t i = 0; i < w->g->count; i++)
    if (counts (w, i))
      out->at[out->count++] = (ranked){ key (w, i), i };
  qsort (out->at, (size_t)out->count, sizeof *out->at, by_key);
  return true;
}

/* ---- the steps ---- */

static int64_t over (const rounder *w, int32_t gap) {
  return round_most (&w->level, &w->g->at[gap]) - w->room_bytes;
}

static int32_t of (const rounder *w, int32_t gap) {
  return w->r->of[w->g->at[gap].unit];
}

static bool may_give (const rounder *w, int32_t gap) {
  return w->r->parts[gap] < of (w, gap) && over (w, gap) > 0;
}

/* Each gap in turn gives what its worst op is over by, or all it has. */
static bool give (rounder *w, int64_t (*key) (const rounder *w, int32_t gap), arena *a,
                  error *err) {
  ranking order;
  if (!rank (w, key, may_give, a, &order, err))
    return false;
  for (int32_t i = 0; i < order.count; i++) {
    int32_t gap = order.at[i].gap, n = w->r->parts[gap];
    int64_t too_much = over (w, gap), had = away (w, gap, n);
    if (too_much <= 0)
      continue;
    while (n < of (w, gap) && away (w, gap, n) - had < too_much)
      n++;
    set_parts (w, gap, n);
  }
  return true;
}

static int32_t least (const rounder *w, int32_t gap) {
  return w->before ? w->before[gap] : 0;
}

static bool may_come_back (const rounder *w, int32_t gap) {
  return w->r->parts[gap] > least (w, gap);
}

/* Each gap in turn takes back what fits, but not what it had before. */
static bool prune (rounder *w, arena *a, error *err) {
  ranking order;
  if (!rank (w, shortest_first, may_come_back, a, &order, err))
    return false;
  for (int32_t i = 0; i < order.count; i++) {
    int32_t gap = order.at[i].gap, n = w->r->parts[gap];
    int64_t air = -over (w, gap), had = away (w, gap, n);
    while (n > least (w, gap) && had - away (w, gap, n - 1) <= air)
      n--;
    if (n < w->r->parts[gap])
      set_parts (w, gap, n);
  }
  return true;
}

static bool has_share (const rounder *w, int32_t gap) {
  const struct gap *at = &w->g->at[gap];
  return w->shares[gap] > 1e-6 && (w->start == ROUND_CLEAN ? at->useful : at->tight);
}

/* The shares in sections; what one gap got too much or too little the next one makes good. */
static bool take_shares (rounder *w, arena *a, error *err) {
  double owed = 0;
  ranking order;
  if (!rank (w, by_release, has_share, a, &order, err))
    return false;
  for (int32_t i = 0; i < order.count; i++) {
    int32_t gap = order.at[i].gap, most = of (w, gap);
    double section = (double)gaps_room (w->g, w->g->at[gap].unit) / most,
           want = w->shares[gap] * most;
    double n = w->start == ROUND_UP ? ceil (want - 1e-3) : floor (want + owed / section + 0.5);
    n = n < 0 ? 0 : n > most ? most : n;
    owed += (want - n) * section;
    set_parts (w, gap, (int32_t)n);
  }
  return true;
}

/* The change by one part more or less of the gap; 0: there is none. */
static int64_t part_less (const rounder *w, int32_t gap) {
  int32_t n = w->r->parts[gap];
  return n > 0 ? away (w, gap, n) - away (w, gap, n - 1) : 0;
}

static int64_t part_more (const rounder *w, int32_t gap) {
  int32_t n = w->r->parts[gap];
  return n < of (w, gap) ? away (w, gap, n + 1) - away (w, gap, n) : 0;
}

/* The largest part that fits comes back; false where none does. */
static bool take_back (rounder *w, const int32_t *list, int32_t count) {
  int64_t most = 0;
  int32_t best = -1;
  for (int32_t i = 0; i < count; i++) {
    int64_t bytes = part_less (w, list[i]);
    if (bytes > most && bytes <= -over (w, list[i])) {
      most = bytes;
      best = list[i];
    }
  }
  if (best >= 0)
    set_parts (w, best, w->r->parts[best] - 1);
  return best >= 0;
}

/* One part more of one gap lets a larger one of another come back; false where no pair fills the
   room better. */
static bool exchange (rounder *w, const int32_t *list, int32_t count) {
  int64_t most = 0;
  int32_t less = -1, more = -1;
  for (int32_t i = 0; i < count; i++) {
    int32_t n = w->r->parts[list[i]];
    int64_t sent = part_more (w, list[i]);
    if (!sent || !w->r->parts[list[i]])
      continue;
    set_parts (w, list[i], n + 1);
    for (int32_t j = 0; j < count; j++) {
      int64_t bytes = i == j ? 0 : part_less (w, list[j]);
      if (bytes - sent > most && bytes <= -over (w, list[j])) {
        most = bytes - sent;
        less = list[j];
        more = list[i];
      }
    }
    set_parts (w, list[i], n);
  }
  if (most == 0)
    return false;
  set_parts (w, more, w->r->parts[more] + 1);
  set_parts (w, less, w->r->parts[less] - 1);
  return true;
}

/* Exactly the room is used where it is fullest, if parts allow it. */
static bool fill (rounder *w, const tuning *by, arena *a, error *err) {
  const gaps *g = w->g;
  int64_t most = tuned (by, TUNE_fill_gaps), exchanges_most = tuned (by, TUNE_fill_exchanges);
  int32_t *list = NEW (a, most, int32_t, err);
  bool better = list != NULL;
  for (int exchanges = 0; better && exchanges < exchanges_most;) {
    int32_t op = peaks_at (&w->level, 0, g->n_ops), count = 0;
    for (int32_t i = 0; i < g->count && count < most; i++)
      if (w->r->parts[i] > 0 && gap_spans (&g->at[i], op))
        list[count++] = i;
    better = take_back (w, list, count);
    if (!better) {
      better = exchange (w, list, count);
      exchanges++;
    }
  }
  return list;
}

static bool start_rounder (rounder *w, arena *a, error *err) {
  const gaps *g = w->g;
  const op *ops = g->units->trace->ops;
  w->start_ns = NEW (a, (int64_t)g->n_ops + 1, int64_t, err);
  if (!w->start_ns || !peaks_build (&w->level, g->base_bytes, g->n_ops, a, err))
    return false;
  int64_t now_ns = 0;
  for (int32_t k = 0; k < g->n_ops; k++) {
    w->start_ns[k] = now_ns + ops[k].gap_ns;
    now_ns = w->start_ns[k] + ops[k].ns;
  }
  w->start_ns[g->n_ops] = now_ns;
  return true;
}

enum { MOST_WATCHED = 100000 }; /* gaps times ops, in which each rounding is counted anew */

/* At no op more is resident than there is room for, counted anew from all gaps. */
static bool is_within (const rounding *r, int64_t room_bytes) {
  const gaps *g = r->gaps;
  for (int32_t k = 0; k < g->n_ops; k++) {
    int64_t resident = g->base_bytes[k];
    for (int32_t i = 0; i < g->count; i++)
      if (r->parts[i] && gap_spans (&g->at[i], k))
        resident -= round_away (g, r->of, g->at[i].unit, r->parts[i]);
    if (resident > room_bytes)
      return false;
  }
  return true;
}

/* The program knows why its gaps leave, by time too, so they stay away; what greedy rules take is
   judged by bytes. */
static bool keep_away (rounder *w, arena *a, error *err) {
  size_t count = (size_t)w->g->count;
  if (!round_is_guided (w->start))
    return true;
  w->before = NEW (a, count, int32_t, err);
  if (w->before)
    memcpy (w->before, w->r->parts, count * sizeof *w->before);
  return w->before;
}

static bool run (rounder *w, const tuning *by, arena *a, error *err) {
  bool guided = round_is_guided (w->start);
  return start_rounder (w, a, err) && (!guided || take_shares (w, a, err)) &&
         keep_away (w, a, err) && (w->start != ROUND_DOA || give (w, doa_first, a, err)) &&
         give (w, longest_first, a, err) && prune (w, a, err) &&
         (w->start != ROUND_UP || fill (w, by, a, err));
}

bool round_gaps (const round_request *q, arena *a, rounding *out, error *err) {
  assert (q->gaps && q->of && q->device);
  const gaps *g = q->gaps;
  int64_t room_bytes = q->room_bytes;
  *out = (rounding){ .gaps = g, .of = q->of, .parts = NEW (a, g->count, int32_t, err) };
  rounder w = { .r = out,
                .g = g,
                .device = q->device,
                .shares = q->shares,
                .start = q->start,
                .room_bytes = room_bytes };
  /* If the room is below nothing, which the pool of small tensors may leave, a share is more. */
  assert (room_bytes <= g->room_bytes || g->room_bytes < 0);
  assert (q->shares || !round_is_guided (q->start));
  arena *scratch = out->parts ? arena_made (err) : NULL;
  bool ok = scratch && run (&w, q->tuning, scratch, err);
  if (ok)
    out->most_bytes = peaks_most (&w.level, 0, g->n_ops);
  if (ok && out->most_bytes > room_bytes)
    ok = gaps_too_small (g, room_bytes + g->pool_bytes, err);
  ASSERT_DEAR (!ok || (int64_t)g->n_ops * g->count > MOST_WATCHED || is_within (out, room_bytes));
  arena_free (scratch);
  return ok;
}

bool round_wishes (const rounding *r, arena *a, wish **out, int32_t *count, error *err) {
  assert (r->gaps && r->of && r->parts);
  const gaps *g = r->gaps;
  int64_t n = 0;
  for (int32_t i = 0; i < g->count; i++)
    n += r->parts[i];
  *count = 0;
  *out = n > INT32_MAX / 4 ? NULL : NEW (a, n, wish, err);
  if (!*out)
    return error_set (err, ERR_limit, "%lld moves are more than a plan can hold", (long long)n);
  for (int32_t i = 0; i < g->count; i++)
    for (int32_t part = 0; part < r->parts[i]; part++)
      (*out)[(*count)++] = (wish){ .unit = g->at[i].unit,
                                   .part = r->of[g->at[i].unit] - 1 - part,
                                   .of = r->of[g->at[i].unit],
                                   .out_after = g->at[i].after,
                                   .in_before = g->at[i].before,
                                   .in_not_before = NO_WAIT };
  return true;
}
