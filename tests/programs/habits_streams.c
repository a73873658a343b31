/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Several streams, and threads that have their own. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/programs/habits.h"

void habit_streams (habits *h) {
  void *input;
  gpu *g = &h->g;
  CUstream a = gpu_stream (g), b = gpu_stream (g), c = gpu_stream (g);
  CUevent to_b = gpu_event (g, CU_EVENT_DISABLE_TIMING),
          to_a = gpu_event (g, CU_EVENT_DISABLE_TIMING),
          loaded = gpu_event (g, CU_EVENT_DISABLE_TIMING);
  gpu_must (g, g->mem_host_alloc (&input, N * sizeof (float), 0), "cuMemHostAlloc");
  for (int i = 0; i < g->steps; i++) {
    for (int k = 0; k < N; k++)
      ((float *)input)[k] = (float)((k * 7 + i) % 13) / 13;
    gpu_must (g, g->copy_in_async (h->kept[2], input, N * sizeof (float), c), "copy");
    g->event_record (loaded, c);
    CUdeviceptr x = gpu_alloc (g, N, a), y = gpu_alloc (g, N, b), z = gpu_alloc (g, N, a);
    g->stream_wait_event (a, loaded, 0);
    LAUNCH (g, "add", a, N, &x, &h->kept[2], &h->kept[3]);
    g->event_record (to_b, a);
    g->stream_wait_event (b, to_b, 0);
    LAUNCH (g, "relu", b, N, &y, &x);
    for (int k = 4; k < TENSORS; k++)
      LAUNCH (g, "add", a, N, &h->kept[k], &h->kept[k], &x);
    g->event_record (to_a, b);
    g->stream_wait_event (a, to_a, 0);
    LAUNCH (g, "add", a, N, &z, &y, &h->kept[4]);
    LAUNCH (g, "add", a, N, &h->kept[0], &h->kept[0], &z);
    gpu_free (g, x, a);
    gpu_free (g, y, a);
    gpu_free (g, z, a);
    habits_say (h, i, a);
  }
  gpu_must (g, g->ctx_synchronize (), "cuCtxSynchronize");
  gpu_must (g, g->mem_free_host (input), "cuMemFreeHost");
}

/* A workspace of one stream that others fill by halves, side by side, as convolutions do. */
void habit_workspaces (habits *h) {
  gpu *g = &h->g;
  CUstream a = gpu_stream (g), b = gpu_stream (g), c = gpu_stream (g);
  CUevent made = gpu_event (g, CU_EVENT_DISABLE_TIMING),
          first = gpu_event (g, CU_EVENT_DISABLE_TIMING),
          second = gpu_event (g, CU_EVENT_DISABLE_TIMING);
  for (int i = 0; i < g->steps; i++) {
    for (int k = 4; k < TENSORS; k++) {
      CUdeviceptr w = gpu_alloc (g, N, a), half = w + N / 2 * sizeof (float);
      CUdeviceptr from = h->kept[k] + N / 2 * sizeof (float);
      g->event_record (made, a);
      g->stream_wait_event (b, made, 0);
      g->stream_wait_event (c, made, 0);
      LAUNCH (g, "add", b, N / 2, &w, &h->kept[k], &h->kept[2]);
      LAUNCH (g, "add", c, N / 2, &half, &from, &h->kept[2]);
      g->event_record (first, b);
      g->event_record (second, c);
      g->stream_wait_event (a, first, 0);
      g->stream_wait_event (a, second, 0);
      LAUNCH (g, "add", a, N, &h->kept[k], &h->kept[k], &w);
      LAUNCH (g, "add", a, N, &h->kept[0], &h->kept[0], &w);
      gpu_free (g, w, a);
    }
    habits_say (h, i, a);
  }
  gpu_must (g, g->ctx_synchronize (), "cuCtxSynchronize");
}

static void behind (const gpu *g, CUstream next, CUstream before) {
  CUevent e = gpu_event (g, CU_EVENT_DISABLE_TIMING);
  gpu_must (g, g->event_record (e, before), "cuEventRecord");
  gpu_must (g, g->stream_wait_event (next, e, 0), "cuStreamWaitEvent");
  gpu_must (g, g->event_destroy (e), "cuEventDestroy");
}

void habit_branches (habits *h) {
  enum { MANY = 5 };
  gpu *g = &h->g;
  CUstream all = gpu_stream (g), s[MANY];
  CUdeviceptr y[MANY];
  for (int k = 0; k < MANY; k++)
    s[k] = gpu_stream (g);
  for (int i = 0; i < g->steps; i++) {
    CUdeviceptr x = gpu_alloc (g, N, all);
    gpu_fill (g, x, N, i, all);
    for (int k = 0; k < MANY; k++) {
      behind (g, s[k], all);
      y[k] = gpu_alloc (g, N, s[k]);
      LAUNCH (g, "add", s[k], N, &y[k], &x, &h->kept[k]);
      LAUNCH (g, "add", s[k], N, &y[k], &y[k], &h->kept[k + MANY]);
    }
    for (int k = 0; k < MANY; k++)
      behind (g, all, s[k]);
    for (int k = 0; k < MANY; k++) {
      LAUNCH (g, "add", all, N, &h->kept[0], &h->kept[0], &y[k]);
      gpu_free (g, y[k], all);
    }
    gpu_free (g, x, all);
    habits_say (h, i, all);
  }
}

typedef struct trainer {
  habits *h;
  int number;
  uint64_t digest;
  pthread_t thread;
} trainer;

static uint64_t digest_of (const unsigned char *bytes, size_t n, uint64_t digest) {
  for (size_t i = 0; i < n; i++)
    digest = (digest ^ bytes[i]) * 1099511628211u;
  return digest;
}

static void *train (void *own) {
  enum { OWN = 4 };
  trainer *t = own;
  gpu *g = &t->h->g;
  CUdeviceptr kept[OWN], x;
  unsigned char *back = malloc (N * sizeof (float));
  gpu_must (g, g->ctx_set_current (g->context), "cuCtxSetCurrent");
  CUstream s = gpu_stream (g);
  for (int k = 0; k < OWN; k++) {
    kept[k] = gpu_alloc (g, N, s);
    gpu_fill (g, kept[k], N, 10 * t->number + k, s);
  }
  for (int i = 0; back != NULL && i < g->steps; i++) {
    x = gpu_alloc (g, N + 4096 * (i % 3), s);
    gpu_fill (g, x, N, i, s);
    for (int k = 0; k < OWN; k++)
      LAUNCH (g, "add", s, N, &kept[k], &kept[k], &x);
    gpu_free (g, x, s);
    gpu_must (g, g->copy_out_async (back, kept[i % OWN], N * sizeof (float), s), "copy");
    gpu_must (g, g->stream_synchronize (s), "cuStreamSynchronize");
    t->digest = digest_of (back, N * sizeof (float), t->digest);
  }
  for (int k = 0; k < OWN; k++)
    gpu_free (g, kept[k], s);
  gpu_must (g, g->stream_destroy (s), "cuStreamDestroy");
  free (back);
  return NULL;
}

void habit_threads (habits *h) {
  enum { MANY = 6 };
  trainer t[MANY];
  for (int i = 0; i < MANY; i++) {
    t[i] = (trainer){ .h = h, .number = i };
    if (pthread_create (&t[i].thread, NULL, train, &t[i]) != 0)
      exit (5);
  }
  for (int i = 0; i < MANY; i++) {
    pthread_join (t[i].thread, NULL);
    printf ("thread %d %016llx\n", i, (unsigned long long)t[i].digest);
  }
}

/* A weight that no op changes, so its value is known. */
static void *snapshot (void *own) {
  trainer *t = own;
  gpu *g = &t->h->g;
  unsigned char *back = malloc (N * sizeof (float));
  gpu_must (g, g->ctx_set_current (g->context), "cuCtxSetCurrent");
  if (back != NULL) {
    gpu_must (g, g->copy_out (back, t->h->kept[t->number], N * sizeof (float)), "cuMemcpyDtoH");
    t->digest = digest_of (back, N * sizeof (float), t->digest);
  }
  free (back);
  return NULL;
}

void habit_snapshots (habits *h) {
  trainer t = { .h = h };
  for (int i = 0; i < h->g.steps; i++) {
    habits_chain (h, 12, N, NULL);
    habits_say (h, i, NULL);
    if (i % 6 == 5) {
      if (i > 5)
        pthread_join (t.thread, NULL);
      printf ("snapshot %016llx\n", (unsigned long long)t.digest);
      t.number = 2 + i / 6 % 10;
      if (pthread_create (&t.thread, NULL, snapshot, &t) != 0)
        exit (5);
    }
  }
  pthread_join (t.thread, NULL);
}

void habit_races (habits *h) {
  CUstream a = gpu_stream (&h->g), b = gpu_stream (&h->g);
  for (int i = 0; i < h->g.steps; i++) {
    gpu_must (&h->g, h->g.set_words_async (h->kept[0], 1, N, a), "fill");
    gpu_must (&h->g, h->g.set_words_async (h->kept[0], 2, N, b), "fill");
  }
}
