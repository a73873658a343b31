/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sets to begin with that keep what one segment of the way forward hands to the next.  Where least
   fits, what a segment makes again on the way to a tensor must not stay, or most of the segment is
   there at once: it passes, unless it is wanted soon. */
#include <assert.h>
#include <string.h>

#include "base/units.h"
#include "solver/recompute/find.h"

static int32_t first_use (const finding *f, const drop *d) {
  return f->uses.at[f->uses.offset[d->tensor]].op;
}

static bool idles_at (const drop *d, int32_t k) {
  return d->after < k && k <= d->before;
}

static int32_t find_turn (const finding *f, int64_t *idle) {
  int32_t turn = 0;
  for (int32_t i = 0; i < f->n_drops; i++) {
    idle[f->drops[i].after + 1] += f->drops[i].bytes;
    idle[f->drops[i].before + 1] -= f->drops[i].bytes;
  }
  for (int32_t k = 1; k < f->rw.trace->n_ops; k++) {
    idle[k] += idle[k - 1];
    turn = idle[k] > idle[turn] ? k : turn;
  }
  return turn;
}

bool find_forward (finding *f, forward *w, error *err) {
  int64_t n = (int64_t)f->rw.trace->n_ops + 1;
  *w = (forward){ .f = f,
                  .crossing = NEW (f->scratch, n, int64_t, err),
                  .made = NEW (f->scratch, n, int64_t, err) };
  int64_t *idle = NEW (f->scratch, n, int64_t, err);
  if (!w->crossing || !w->made || !idle)
    return false;
  w->turn = find_turn (f, idle);
  for (int32_t i = 0; i < f->n_drops; i++) {
    const drop *d = &f->drops[i];
    if (!idles_at (d, w->turn))
      continue;
    w->crossing[first_use (f, d) + 1] += d->bytes;
    w->crossing[d->after + 1] -= d->bytes;
  }
  for (int32_t k = 1; k < n; k++)
    w->crossing[k] += w->crossing[k - 1];
  return true;
}

void find_measure (forward *w, bool by_time) {
  const finding *f = w->f;
  const trace *t = f->rw.trace;
  memset (w->made, 0, ((size_t)t->n_ops + 1) * sizeof *w->made);
  for (int32_t k = 0; by_time && k < w->turn; k++)
    w->made[k + 1] = t->ops[k].ns;
  for (int32_t i = 0; !by_time && i < f->n_drops; i++)
    if (idles_at (&f->drops[i], w->turn))
      w->made[first_use (f, &f->drops[i]) + 1] += f->drops[i].bytes;
  for (int32_t k = 0; k < t->n_ops; k++)
    w->made[k + 1] += w->made[k];
}

static void keep_crossing (const forward *w, int32_t k) {
  finding *f = w->f;
  for (int32_t i = 0; i < f->n_drops; i++)
    if (first_use (f, &f->drops[i]) < k && k <= f->drops[i].after)
      f->now.chosen[i] = DROP_NONE;
}

/* Each cut is where least crosses within half a segment. */
void find_cut_forward (const forward *w, int32_t n, uint8_t how) {
  finding *f = w->f;
  int64_t all = w->made[w->turn];
  for (int32_t i = 0; i < f->n_drops; i++)
    f->now.chosen[i] = idles_at (&f->drops[i], w->turn) ? how : DROP_NONE;
  for (int32_t i = 1, k = 0; i < n; i++) {
    int32_t at = -1;
    for (; k < w->turn && (__int128)w->made[k] * 2 * n < (__int128)all * (2 * i + 1); k++)
      if ((__int128)w->made[k] * 2 * n >= (__int128)all * (2 * i - 1) &&
          (at < 0 || w->crossing[k] < w->crossing[at]))
        at = k;
    if (at >= 0)
      keep_crossing (w, at);
  }
}

/* Tries so many segments and fewer, until all but everything runs again. */
static bool try_segments (forward *w, int64_t near_part, int64_t until, error *err) {
  finding *f = w->f;
  int32_t most = (int32_t)find_number (f, TUNE_segments_most);
  f->now.near_ns = near_part ? f->rw_ns / near_part : 0;
  for (int32_t n = most; n > 0 && f->ticks < until && !find_is_over (f); n -= 1 + n / 5) {
    find_cut_forward (w, n, near_part ? DROP_PASSES : find_drop (f));
    if (!find_price (f, err))
      return false;
    if (find_is_wild (f))
      break;
  }
  return true;
}

bool find_segments (finding *f, int64_t until, error *err) {
  assert (f->now.chosen && f->uses.offset);
  enum { PARTS = TUNE_segments_near_last - TUNE_segments_near + 1 };
  forward w;
  arena_mark mark = arena_here (f->scratch);
  bool ok = find_forward (f, &w, err);
  for (int by_time = 0; ok && by_time < 2; by_time++) {
    find_measure (&w, by_time);
    for (int i = 0; ok && i < PARTS; i++)
      ok = try_segments (&w, find_number (f, TUNE_segments_near + (tuning_id)i), until, err);
  }
  f->now.near_ns = 0;
  arena_back (f->scratch, mark);
  return ok;
}
