/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How long check takes: a step of many ops whose first activations go out and come back over a ring
   of places, so that nearly every stay takes over from another; with a slip, the places of each lap
   lie a little beside those of the last, so that stretches are cut at ever new bounds. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "trace/check/check.h"

enum { RING = 64, GRANULE = 2097152 };

typedef struct big {
  trace t;
  plan p;
  char digest[TRACE_DIGEST];
  int32_t pairs, moves;
  int32_t wide; /* granules of a moved activation */
} big;

static void must (bool ok, const error *err) {
  if (ok)
    return;
  fprintf (stderr, "%s %s\n", err->where, err->text);
  exit (1);
}

static void *need (arena *a, int64_t count, size_t size) {
  error err = { 0 };
  void *room = arena_alloc (a, count, size, &err);
  must (room != NULL, &err);
  return room;
}

/* Op i < pairs writes tensor i and reads tensor i - 1; op 2 pairs - 1 - i reads tensor i again. */
static void make_trace (big *b, arena *a) {
  int32_t n = b->pairs;
  int32_t *lists = need (a, 4 * (int64_t)n, sizeof *lists);
  b->t = (trace){
    .name = "big",
    .source = { .kind = "bench", .detail = "", .device = "", .made_for = "", .doubt = "" },
    .batch = 1,
    .n_tensors = n,
    .n_ops = 2 * n
  };
  b->t.tensors = need (a, n, sizeof (tensor));
  b->t.ops = need (a, 2 * (int64_t)n, sizeof (op));
  for (int32_t i = 0; i < n; i++) {
    op *forward = &b->t.ops[i], *backward = &b->t.ops[2 * n - 1 - i];
    b->t.tensors[i] = (tensor){ .name = "",
                                .bytes = (int64_t)(i < b->moves ? b->wide : 1) * GRANULE,
                                .born_before = NO_OP,
                                .dies_after = NO_OP,
                                .kind = TENSOR_ACTIVATION };
    *forward = (op){ .name = "", .ns = 1000, .parts = 1, .workspace_bytes = GRANULE };
    *backward = *forward;
    lists[4 * i] = i > 0 ? i - 1 : 0;
    lists[4 * i + 1] = lists[4 * i + 2] = i;
    forward->reads = (index_list){ lists + 4 * i, i > 0 };
    forward->writes = (index_list){ lists + 4 * i + 1, 1 };
    backward->reads = (index_list){ lists + 4 * i + 2, 1 };
  }
}

static void add_stay (placement *s, stay_kind kind, int32_t index, int32_t first, int32_t count) {
  s->stays[s->n_stays++] = (stay){ kind, index, 0, s->n_runs, 1 };
  s->runs[s->n_runs++] = (granule_run){ first, count };
}

static void make_plan (big *b, arena *a, int32_t slip) {
  int32_t n = b->pairs, m = b->moves, ops = 2 * n;
  int32_t apart = RING - 1; /* so many tensors in a row never meet */
  int32_t lap = RING * b->wide + slip, ring = lap + b->wide;
  plan *p = &b->p;
  placement *s = &p->placement;
  p->trace_digest = b->digest;
  p->device = (device){ .name = "",
                        .memory_bytes = MOST_BYTES,
                        .granule_bytes = GRANULE,
                        .link = { 1000000000, 1000000000, 2000000000, 0 },
                        .host_bytes = MOST_BYTES,
                        .share_ppm = 1000000 };
  p->budget_bytes = p->host_bytes = MOST_BYTES;
  p->moves = need (a, m, sizeof (move));
  p->out_order = need (a, m, sizeof (int32_t));
  p->in_order = need (a, m, sizeof (int32_t));
  p->op_waits = need (a, m, sizeof (op_wait));
  p->n_moves = p->n_outs = p->n_ins = m;
  s->stays = need (a, (int64_t)n + m + ops, sizeof (stay));
  s->runs = need (a, (int64_t)n + m + ops, sizeof (granule_run));
  s->granule_bytes = GRANULE;
  s->granules = ring + n + 1;
  for (int32_t i = 0; i < m; i++) {
    int32_t back = ops - 1 - i, room = i + apart;
    p->moves[i] = (move){ i, 0, 1, i + 1, back, NO_WAIT, m, false, (int64_t)i * b->wide * GRANULE };
    if (room < m)
      p->moves[i].in_ops = ops - room;
    p->out_order[i] = i;
    p->in_order[m - 1 - i] = i;
    if (i >= apart)
      p->op_waits[p->n_op_waits++] = (op_wait){ i, i - apart + 1 };
    int32_t first = (int32_t)((int64_t)i * b->wide % lap);
    add_stay (s, STAY_TENSOR, i, first, b->wide);
    add_stay (s, STAY_MOVE, i, first, b->wide);
  }
  for (int32_t i = m; i < n; i++)
    add_stay (s, STAY_TENSOR, i, ring + i, 1);
  for (int32_t k = 0; k < ops; k++)
    add_stay (s, STAY_WORKSPACE, k, ring + n, 1);
}

static double now (void) {
  struct timespec t;
  clock_gettime (CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void measure (const char *name, int32_t ops, int32_t moves, int32_t wide, int32_t slip) {
  arena *a = arena_new (0), *scratch = arena_new (0);
  error err = { 0 };
  big b = { .pairs = ops / 2, .moves = moves, .wide = wide };
  make_trace (&b, a);
  must (trace_digest (&b.t, b.digest, &err), &err);
  make_plan (&b, a, slip);
  double begin = now ();
  must (check_plan (&b.t, &b.p, scratch, NULL, &err), &err);
  double all = now () - begin;
  begin = now ();
  must (trace_digest (&b.t, b.digest, &err), &err);
  printf (
      "{\"bench\": \"check\", \"digest_s\": %.3f, \"moves\": %d, \"ops\": %d, \"places\": \"%s\", "
      "\"scratch_bytes\": %lld, \"seconds\": %.3f}\n",
      now () - begin, moves, ops, name, (long long)arena_peak_bytes (scratch), all);
  arena_free (scratch);
  arena_free (a);
}

int main (void) {
  for (int32_t ops = 1000; ops <= 1000000; ops *= 10)
    measure ("ring", ops, ops / 5, 4, 0);
  measure ("slipping ring", 100000, 20000, 512, 7);
  return 0;
}
