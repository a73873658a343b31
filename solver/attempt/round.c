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
  int64_t room_bytes;
  int64_t *start_ns; /* n_ops + 1: of each op if nothing stalls */
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

static int64_t copies_ns (const rounder *w, const device *dev, int32_t unit) {
  link_rates r = device_rates (&dev->link, dev->share_ppm);
  __int128 bytes = w->g->units->at[unit].bytes;
  __int128 ns =
      bytes * 1000000000 / r.out_alone + bytes * 1000000000 / r.in_alone + 2 * dev->link.copy_ns;
  return ns < INT64_MAX / 2 ? (int64_t)ns : INT64_MAX / 2;
}

typedef enum ranking { SHORTEST_FIRST, LONGEST_FIRST, DOA_FIRST, BY_RELEASE } ranking;

static ranked *rank (const rounder *w, const device *dev, ranking how, arena *a, error *err) {
  const gaps *g = w->g;
  ranked *list = NEW (a, g->count, ranked, err);
  for (int32_t i = 0; list && i < g->count; i++) {
    int64_t idle = idle_ns (w, &g->at[i]);
    list[i].gap = i;
    switch (how) {
    case SHORTEST_FIRST:
      list[i].key = idle;
      break;
    case LONGEST_FIRST:
      list[i].key = -idle;
      break;
    case DOA_FIRST:
      list[i].key = copies_ns (w, dev, g->at[i].unit) - idle;
      break;
    case BY_RELEASE:
      list[i].key = g->at[i].release;
      break;
    }
  }
  if (list)
    qsort (list, (size_t)g->count, sizeof *list, by_key);
  return list;
}

/* ---- the steps ---- */

/* Each gap in turn gives what its worst op is over by, or all it has. */
static void give (rounder *w, const ranked *order) {
  for (int32_t i = 0; i < w->g->count; i++) {
    int32_t gap = order[i].gap, of = w->r->of[w->g->at[gap].unit], n = w->r->parts[gap];
    if (n == of)
      continue;
    int64_t over = round_most (&w->level, &w->g->at[gap]) - w->room_bytes;
    int64_t had = away (w, gap, n);
    if (over <= 0)
      continue;
    while (n < of && away (w, gap, n) - had < over)
      n++;
    set_parts (w, gap, n);
  }
}

/* Each gap in turn takes back what fits, but not what it had `before`. */
static void prune (rounder *w, const ranked *order, const int32_t *before) {
  for (int32_t i = 0; i < w->g->count; i++) {
    int32_t gap = order[i].gap, n = w->r->parts[gap], least = before ? before[gap] : 0;
    if (n <= least)
      continue;
    int64_t air = w->room_bytes - round_most (&w->level, &w->g->at[gap]), had = away (w, gap, n);
    while (n > least && had - away (w, gap, n - 1) <= air)
      n--;
    if (n < w->r->parts[gap])
      set_parts (w, gap, n);
  }
}

/* The shares in sections; what one gap got too much or too little the next one makes good. */
static void take_shares (rounder *w, const double *shares, const ranked *order, round_start start) {
  double owed = 0;
  for (int32_t i = 0; i < w->g->count; i++) {
    int32_t gap = order[i].gap, unit = w->g->at[gap].unit, of = w->r->of[unit];
    double section = (double)gaps_room (w->g, unit) / of, want = shares[gap] * of;
    const struct gap *at = &w->g->at[gap];
    if (shares[gap] <= 1e-6 || !(start == ROUND_CLEAN ? at->useful : at->tight))
      continue;
    double n = start == ROUND_UP ? ceil (want - 1e-3) : floor (want + owed / section + 0.5);
    n = n < 0 ? 0 : n > of ? of : n;
    owed += (want - n) * section;
    set_parts (w, gap, (int32_t)n);
  }
}

/* The change by one part more or less of the gap; 0: there is none. */
static int64_t part_less (const rounder *w, int32_t gap) {
  int32_t n = w->r->parts[gap];
  return n > 0 ? away (w, gap, n) - away (w, gap, n - 1) : 0;
}

static int64_t part_more (const rounder *w, int32_t gap) {
  int32_t n = w->r->parts[gap];
  return n < w->r->of[w->g->at[gap].unit] ? away (w, gap, n + 1) - away (w, gap, n) : 0;
}

static int64_t air (const rounder *w, int32_t gap) {
  return w->room_bytes - round_most (&w->level, &w->g->at[gap]);
}

/* The largest part that fits comes back; false where none does. */
static bool take_back (rounder *w, const int32_t *list, int32_t count) {
  int64_t most = 0;
  int32_t best = -1;
  for (int32_t i = 0; i < count; i++) {
    int64_t bytes = part_less (w, list[i]);
    if (bytes > most && bytes <= air (w, list[i])) {
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
      if (bytes - sent > most && bytes <= air (w, list[j])) {
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

static bool begin (rounder *w, arena *a, error *err) {
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

bool round_gaps (const round_request *q, arena *a, rounding *out, error *err) {
  assert (q->gaps && q->of && q->device);
  const gaps *g = q->gaps;
  const device *dev = q->device;
  const double *shares = q->shares;
  int64_t room_bytes = q->room_bytes;
  round_start start = q->start;
  *out = (rounding){ .gaps = g, .of = q->of, .parts = NEW (a, g->count, int32_t, err) };
  rounder w = { .r = out, .g = g, .room_bytes = room_bytes };
  /* If the room is below nothing, which the pool of small tensors may leave, a share is more. */
  assert (room_bytes <= g->room_bytes || g->room_bytes < 0);
  assert (shares || !round_is_guided (start));
  if (!out->parts)
    return false;
  arena *scratch = arena_made (err);
  if (!scratch)
    return false;
  bool ok = begin (&w, scratch, err);
  ranked *first = NULL, *repair = NULL, *back = NULL;
  int32_t *before = NULL;
  if (ok) {
    first = rank (&w, dev, start == ROUND_DOA ? DOA_FIRST : BY_RELEASE, scratch, err);
    repair = rank (&w, dev, LONGEST_FIRST, scratch, err);
    back = rank (&w, dev, SHORTEST_FIRST, scratch, err);
    before = NEW (scratch, g->count, int32_t, err);
    ok = first && repair && back && before;
  }
  if (ok) {
    if (round_is_guided (start))
      take_shares (&w, shares, first, start);
    if (start == ROUND_DOA)
      give (&w, first);
    memcpy (before, out->parts, (size_t)g->count * sizeof *before);
    give (&w, repair);
    /* The program knows why its gaps leave, by time too; what greedy rules take is judged by bytes.
     */
    prune (&w, back, round_is_guided (start) ? before : NULL);
    if (start == ROUND_UP)
      ok = fill (&w, q->tuning, scratch, err);
    out->most_bytes = peaks_most (&w.level, 0, g->n_ops);
    if (out->most_bytes > room_bytes)
      ok = gaps_too_small (g, room_bytes + g->pool_bytes, err);
  }
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
