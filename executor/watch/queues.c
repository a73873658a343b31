/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/watch/queues.h"

#include "executor/emu/link.h"

enum { OUT, IN };

typedef struct clock_state {
  queues *q;
  link_state link;
  int64_t now_ns, tickets;
  int32_t carried[2]; /* -1: none */
} clock_state;

void queues_start (queues *q) {
  *q = (queues){ 0 };
  for (int i = 0; i < QUEUES_STREAMS; i++)
    q->first[i] = q->last[i] = -1;
}

void queues_free (queues *q) {
  bytes_free (&q->rows);
  bytes_free (&q->waits);
}

int32_t queues_count (const queues *q) {
  return (int32_t)(q->rows.size / (int64_t)sizeof (queued));
}

queued *queues_at (const queues *q, int32_t i) {
  return (queued *)(void *)q->rows.data + i;
}

bool queues_add (queues *q, int32_t stream, int64_t ns, int64_t bytes, error *err) {
  int32_t i = queues_count (q);
  queued row = { .stream = stream,
                 .ns = ns,
                 .bytes = bytes,
                 .first_wait = q->waits.size / (int64_t)sizeof (int32_t),
                 .next = -1 };
  if (i == INT32_MAX)
    return error_set (err, ERR_input, "the step has too many ops to be foreseen");
  if (!bytes_append (&q->rows, &row, sizeof row, err))
    return false;
  if (q->last[stream] >= 0)
    queues_at (q, q->last[stream])->next = i;
  else
    q->first[stream] = i;
  q->last[stream] = i;
  return true;
}

bool queues_wait (queues *q, int32_t behind, error *err) {
  queued *row = queues_at (q, queues_count (q) - 1);
  if (behind < 0 || behind == queues_count (q) - 1)
    return true;
  row->n_waits++;
  return bytes_append (&q->waits, &behind, sizeof behind, err);
}

/* ---- on the clock ---- */

static bool may_begin (const queues *q, const queued *row) {
  const int32_t *waits = (const int32_t *)(const void *)q->waits.data;
  for (int64_t i = row->first_wait; i < row->first_wait + row->n_waits; i++)
    if (!queues_at (q, waits[i])->done)
      return false;
  return true;
}

static void end (clock_state *c, queued *row) {
  row->done = true;
  row->end_ns = c->now_ns;
  c->q->first[row->stream] = row->next;
}

/* Copies of a direction take turns in the order in which they became ready.  Of two that become
   ready at once, one of the program's is first: it follows its own stream's op, and the shim's an
   event that this op's stream has to record. */
static void note_ready (clock_state *c) {
  for (int i = 0; i < QUEUES_STREAMS; i++) {
    int s = (i + QUEUES_OWN) % QUEUES_STREAMS;
    queued *row = c->q->first[s] < 0 ? NULL : queues_at (c->q, c->q->first[s]);
    if (row != NULL && row->bytes != 0 && row->ticket == 0 && may_begin (c->q, row))
      row->ticket = ++c->tickets;
  }
}

static bool begin_copies (clock_state *c) {
  bool any = false;
  for (int d = OUT; d <= IN; d++) {
    int32_t best = -1;
    for (int s = 0; s < QUEUES_STREAMS && c->carried[d] < 0; s++) {
      int32_t i = c->q->first[s];
      const queued *row = i < 0 ? NULL : queues_at (c->q, i);
      if (row != NULL && row->ticket > 0 && (row->bytes > 0) == (d == IN) &&
          (best < 0 || row->ticket < queues_at (c->q, best)->ticket))
        best = i;
    }
    if (best < 0)
      continue;
    int64_t bytes = queues_at (c->q, best)->bytes;
    link_begin (&c->link, d, c->now_ns, bytes < 0 ? -bytes : bytes);
    c->carried[d] = best;
    any = true;
  }
  return any;
}

/* All that begins now; what takes no time is over at once. */
static void settle (clock_state *c) {
  for (bool changed = true; changed;) {
    changed = false;
    note_ready (c);
    for (int s = 0; s < QUEUES_STREAMS; s++) {
      queued *row = c->q->first[s] < 0 ? NULL : queues_at (c->q, c->q->first[s]);
      if (row == NULL || row->bytes != 0 || row->begun || !may_begin (c->q, row))
        continue;
      row->begun = changed = true;
      row->end_ns = c->now_ns + row->ns;
      if (row->ns == 0)
        end (c, row);
    }
    changed = begin_copies (c) || changed;
  }
}

static int64_t next_moment (const clock_state *c) {
  int64_t next = link_next (&c->link);
  for (int s = 0; s < QUEUES_STREAMS; s++) {
    const queued *row = c->q->first[s] < 0 ? NULL : queues_at (c->q, c->q->first[s]);
    if (row != NULL && row->begun && row->end_ns < next)
      next = row->end_ns;
  }
  return next;
}

bool queues_run (queues *q, const device *d, error *err) {
  emu_config config = { .d2h_bytes_per_s = d->link.d2h_bytes_per_s,
                        .h2d_bytes_per_s = d->link.h2d_bytes_per_s,
                        .both_bytes_per_s = d->link.both_bytes_per_s,
                        .copy_ns = d->link.copy_ns,
                        .share_ppm = d->share_ppm };
  clock_state c = { .q = q, .carried = { -1, -1 } };
  link_start (&c.link, &config);
  for (;;) {
    settle (&c);
    int64_t next = next_moment (&c);
    if (next == INT64_MAX)
      break;
    link_carry (&c.link, next);
    c.now_ns = next;
    for (int i = OUT; i <= IN; i++)
      if (c.carried[i] >= 0 && link_ended (&c.link, i)) {
        end (&c, queues_at (q, c.carried[i]));
        c.carried[i] = -1;
      }
    for (int s = 0; s < QUEUES_STREAMS; s++) {
      queued *row = q->first[s] < 0 ? NULL : queues_at (q, q->first[s]);
      if (row != NULL && row->begun && row->end_ns == next)
        end (&c, row);
    }
  }
  for (int s = 0; s < QUEUES_STREAMS; s++)
    if (q->first[s] >= 0)
      return error_set (err, ERR_input, "the step's waits are for each other");
  return true;
}
