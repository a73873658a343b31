/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/simulate/works.h"

#include "base/order.h"
#include "trace/simulate/run.h"

void works_start (works *w) {
  *w = (works){ 0 };
  for (int i = 0; i < WORKS_STREAMS; i++)
    w->last[i] = -1;
}

void works_free (works *w) {
  bytes_free (&w->rows);
  bytes_free (&w->waits);
}

static int32_t count_of (const works *w) {
  return (int32_t)(w->rows.size / (int64_t)sizeof (work));
}

static work *at (const works *w, int32_t i) {
  return (work *)(void *)w->rows.data + i;
}

static const int32_t *waits_of_work (const works *w, const work *row) {
  return (const int32_t *)(const void *)w->waits.data + row->first_wait;
}

bool works_add (works *w, int32_t stream, int64_t ns, int64_t bytes, error *err) {
  int32_t i = count_of (w);
  work row = { .stream = stream,
               .ns = ns,
               .bytes = bytes,
               .first_wait = w->waits.size / (int64_t)sizeof (int32_t) };
  if (i == INT32_MAX - 2 || row.first_wait > INT32_MAX - i)
    return error_set (err, ERR_input, "the step has too many ops to be simulated");
  w->last[stream] = i;
  return bytes_append (&w->rows, &row, sizeof row, err);
}

bool works_wait (works *w, int32_t behind, error *err) {
  work *row = at (w, count_of (w) - 1);
  if (behind < 0 || behind == count_of (w) - 1)
    return true;
  row->n_waits++;
  return bytes_append (&w->waits, &behind, sizeof behind, err);
}

/* ---- a lane of one step ---- */

/* Streams that have work: their numbers in the lane. */
static int32_t number_streams (const works *w, int32_t *number) {
  int32_t n = 0;
  for (int i = 0; i < WORKS_STREAMS; i++)
    number[i] = w->last[i] < 0 ? -1 : n++;
  return n;
}

static void put_wait (sim_beside *b, int32_t before, int32_t k, bool write) {
  if (write)
    b->next[b->first[before + 1]++] = k;
  else
    b->first[before + 2]++;
}

/* Counted first, then written. */
static void put_waits (const works *w, const int32_t *number, sim_beside *b, bool write) {
  int32_t last[WORKS_STREAMS];
  for (int i = 0; i < WORKS_STREAMS; i++)
    last[i] = -1;
  for (int32_t k = 0; k < count_of (w); k++) {
    const work *row = at (w, k);
    const int32_t *waits = waits_of_work (w, row);
    if (last[row->stream] >= 0)
      put_wait (b, last[row->stream], k, write);
    for (int64_t i = 0; i < row->n_waits; i++)
      put_wait (b, waits[i], k, write);
    b->waits_for[k] = (int32_t)row->n_waits + (last[row->stream] >= 0);
    b->stream_of[k] = number[row->stream];
    b->bytes[k] = row->bytes;
    last[row->stream] = k;
  }
}

static bool fill_beside (const works *w, const int32_t *number, arena *a, sim_beside *b,
                         error *err) {
  int64_t n = count_of (w), n_waits = w->waits.size / (int64_t)sizeof (int32_t);
  *b = (sim_beside){ .stream_of = NEW (a, n, int32_t, err),
                     .waits_for = NEW (a, n, int32_t, err),
                     .left = NEW (a, n, int32_t, err),
                     .bytes = NEW (a, n, int64_t, err),
                     .ended = NEW (a, n, bool, err),
                     .first = NEW (a, n + 2, int32_t, err),
                     .next = NEW (a, n + n_waits, int32_t, err) };
  if (!b->stream_of || !b->waits_for || !b->left || !b->bytes || !b->ended || !b->first || !b->next)
    return false;
  put_waits (w, number, b, false);
  for (int64_t k = 2; k < n + 2; k++)
    b->first[k] += b->first[k - 1];
  put_waits (w, number, b, true);
  return true;
}

static bool all_ended (const sim_run *r, void *context) {
  (void)context;
  return r->lanes->steps_done > 0;
}

bool works_simulate (const works *w, const device *d, arena *a, span **out, error *err) {
  int32_t n = count_of (w), number[WORKS_STREAMS];
  sim_beside beside;
  sim_lane lane = { .n_ops = n, .n_streams = number_streams (w, number), .beside = &beside };
  sim_record record = { .ops = *out = NEW (a, n, span, err) };
  sim_run r = { .lanes = &lane,
                .n_lanes = 1,
                .rates = device_rates (&d->link, d->share_ppm),
                .copy_ns = d->link.copy_ns,
                .record = &record };
  if (!ALLOC (a, lane.ops, n, err) || !ALLOC (a, lane.streams, lane.n_streams, err) || !*out ||
      !fill_beside (w, number, a, &beside, err))
    return false;
  for (int32_t k = 0; k < n; k++)
    lane.ops[k] = (sim_op){ at (w, k)->ns, 0, INT32_MIN, INT32_MIN };
  return n == 0 || sim_run_until (&r, all_ended, NULL, err);
}
