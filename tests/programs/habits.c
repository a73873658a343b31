/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Programs of other habits, by name: habits MODULE STEPS NAME.
   streams     two streams that hand tensors to each other, and copies of input on a third
   workspaces  a tensor of one stream that two others fill by halves, side by side
   branches    five streams use what one has made, and it uses what they make
   churn       allocations and frees of changing sizes, many alive at once
   pointers    an array of addresses, copied to the device
   unified     the same by a copy that names the host as if it were the device
   unaligned   the same from an address of the host that is no multiple of eight
   weights     an array of the addresses of tensors that last, as an optimizer of all has it
   shapes      every seventh step has another batch
   lengths     tensors are of another length in each step, as sentences are
   accumulate  the weights change in every third step only
   workers     forks children that do no GPU work, in the middle of it
   hidden      a kernel uses a tensor whose address an earlier one has left on the device
   phases      turns of training and evaluation, of any length
   perturbed   now and then an extra op, a missing op, another shape
   leaving     no wait in a step, and tensors are freed right behind the last one
   turns       a kernel writes from the twelfth step on what it only read before
   parts       a step of three parts, which begin alike and end alike
   wide        one tensor takes the room of six others
   waiting     the host waits for the device at each free
   results     two results are kept until the next ones are made, as a loop in Python does
   carried     a result of another stream is kept, and the next step reads it
   gradients   what one step made is freed in the middle of the next, before it is made again
   python      input, result and gradients are kept until a loop binds their names again
   ages        a result is kept for two steps
   unsteady    as results, with an op more, a result freed early or late now and then
   unused      a large tensor is made and freed in each step, and no op uses it
   asks        asks for the memory that is free before and after many small tensors
   launches    a thousand launches a step that do next to nothing
   threads     threads that each have a stream of their own, and end it while the others go on
   snapshots   another thread copies a weight to the host while the next steps are made
   races       two streams fill the same bytes, and nothing says which comes first
   leaves      ends by _exit, with status 5
   handled     ends by exit, status 6, in a signal's handler while it waits for the device
   counts      asks for an interrupt in each step, and counts those that come
   busy        ends by exit, status 7, while other threads go on
   aborts      ends by a signal */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/gpu.h"

enum { N = 32768, TENSORS = 12 }; /* floats; 128 KiB */

typedef struct habits {
  gpu g;
  CUdeviceptr kept[TENSORS], loss;
  uint64_t random;
} habits;

static uint64_t draw (habits *h) {
  uint64_t z = h->random += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  return z ^ z >> 27;
}

/* Up a chain of `length` tensors and down again, so that the first are used last. */
static void chain (habits *h, int length, long floats, CUstream s) {
  CUdeviceptr t[32];
  t[0] = h->kept[0];
  for (int i = 1; i < length; i++) {
    t[i] = gpu_alloc (&h->g, floats, s);
    LAUNCH (&h->g, "add", s, floats, &t[i], &t[i - 1], &h->kept[i % TENSORS]);
  }
  for (int i = length - 2; i > 0; i--) {
    LAUNCH (&h->g, "relu_back", s, floats, &t[i], &t[i + 1], &t[i]);
    gpu_free (&h->g, t[i + 1], s);
  }
  float rate = 0.001f;
  LAUNCH (&h->g, "update", s, floats, &h->kept[0], &h->kept[1], &t[1], &rate);
  gpu_free (&h->g, t[1], s);
}

static void say (habits *h, int step, CUstream s) {
  long n = N;
  LAUNCH (&h->g, "sum_squares", s, 1, &h->loss, &h->kept[0], &n);
  gpu_say_scalar (&h->g, "value", step, h->loss, s);
}

static void streams (habits *h) {
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
    say (h, i, a);
  }
  gpu_must (g, g->ctx_synchronize (), "cuCtxSynchronize");
  gpu_must (g, g->mem_free_host (input), "cuMemFreeHost");
}

/* As convolutions do it: a workspace of one stream that others fill by halves, side by side. */
static void workspaces (habits *h) {
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
    say (h, i, a);
  }
  gpu_must (g, g->ctx_synchronize (), "cuCtxSynchronize");
}

static void behind (const gpu *g, CUstream next, CUstream before) {
  CUevent e = gpu_event (g, CU_EVENT_DISABLE_TIMING);
  gpu_must (g, g->event_record (e, before), "cuEventRecord");
  gpu_must (g, g->stream_wait_event (next, e, 0), "cuStreamWaitEvent");
  gpu_must (g, g->event_destroy (e), "cuEventDestroy");
}

static void branches (habits *h) {
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
    say (h, i, all);
  }
}

static void let_go (gpu *g, CUdeviceptr *at) {
  if (*at != 0)
    gpu_free (g, *at, NULL);
  *at = 0;
}

static void churn (habits *h) {
  CUdeviceptr at[24] = { 0 };
  long size[24] = { 0 };
  gpu *g = &h->g;
  for (int i = 0; i < g->steps * 40; i++) {
    int k = (int)(draw (h) % 24);
    if (at[k] != 0) {
      long n = size[k] < N ? size[k] : N;
      LAUNCH (g, "add", NULL, n, &h->kept[0], &h->kept[0], &at[k]);
      gpu_free (g, at[k], NULL);
      at[k] = 0;
    } else {
      size[k] = 1000 + (long)(draw (h) % 40000);
      at[k] = gpu_alloc (g, size[k], NULL);
      gpu_fill (g, at[k], size[k], i, NULL);
    }
    if (i % 40 == 39)
      say (h, i / 40, NULL);
  }
  for (int k = 0; k < 24; k++)
    if (at[k] != 0)
      gpu_free (g, at[k], NULL);
}

typedef enum list_copy { BY_KIND, UNIFIED, UNALIGNED } list_copy;

static void copy_list (gpu *g, CUdeviceptr to, const CUdeviceptr *list, size_t bytes,
                       list_copy how) {
  static char odd[64];
  memcpy (odd + 4, list, bytes);
  if (how == UNIFIED)
    gpu_must (g, g->copy_async (to, (CUdeviceptr)(uintptr_t)list, bytes, NULL), "copy");
  else
    gpu_must (g, g->copy_in_async (to, how == UNALIGNED ? (void *)(odd + 4) : list, bytes, NULL),
              "copy");
}

static void lists (habits *h, list_copy how) {
  gpu *g = &h->g;
  CUdeviceptr list[4], array = gpu_alloc (g, 8, NULL);
  long n = 4;
  for (int i = 0; i < g->steps; i++) {
    for (int k = 0; k < 4; k++) {
      list[k] = gpu_alloc (g, N, NULL);
      gpu_fill (g, list[k], N, 10 * i + k, NULL);
    }
    copy_list (g, array, list, sizeof list, how);
    chain (h, 8, N, NULL);
    LAUNCH (g, "add_all", NULL, N, &h->kept[0], &array, &n);
    for (int k = 0; k < 4; k++)
      gpu_free (g, list[k], NULL);
    say (h, i, NULL);
  }
  gpu_free (g, array, NULL);
}

static void pointers (habits *h) {
  lists (h, BY_KIND);
}

static void unified (habits *h) {
  lists (h, UNIFIED);
}

static void unaligned (habits *h) {
  lists (h, UNALIGNED);
}

static void weights (habits *h) {
  gpu *g = &h->g;
  CUdeviceptr list[2] = { h->kept[9], h->kept[11] }, array = gpu_alloc (g, 8, NULL);
  long n = 2;
  for (int i = 0; i < g->steps; i++) {
    copy_list (g, array, list, sizeof list, BY_KIND);
    chain (h, 9, N, NULL);
    LAUNCH (g, "add_all", NULL, N, &h->kept[0], &array, &n);
    say (h, i, NULL);
  }
}

static void shapes (habits *h) {
  for (int i = 0; i < h->g.steps; i++) {
    chain (h, i % 7 == 6 ? 9 : 12, i % 7 == 6 ? N / 2 : N, NULL);
    say (h, i, NULL);
  }
}

/* Some are as long as none was before, and are freed unused. */
static void lengths (habits *h) {
  enum { UNUSED = 8, USED = 4 };
  for (int i = 0; i < h->g.steps; i++) {
    CUdeviceptr t[UNUSED];
    for (int k = 1; k <= 4; k++) {
      for (int j = 0; j < UNUSED; j++)
        t[j] = gpu_alloc (&h->g, 1024 * (4 * i + k), NULL);
      for (int j = 0; j < UNUSED; j++)
        gpu_free (&h->g, t[j], NULL);
    }
    for (int k = 0; k < USED; k++) {
      long n = N + (long)(draw (h) % (4 * N));
      t[k] = gpu_alloc (&h->g, n, NULL);
      gpu_fill (&h->g, t[k], n, i + k, NULL);
      LAUNCH (&h->g, "add", NULL, N, &h->kept[k], &h->kept[k + USED], &t[k]);
    }
    for (int k = 0; k < USED; k++) {
      LAUNCH (&h->g, "add", NULL, N, &h->kept[0], &h->kept[k], &t[k]);
      gpu_free (&h->g, t[k], NULL);
    }
    say (h, i, NULL);
  }
}

static void phases (habits *h) {
  bool trains = true;
  for (int i = 0, left = 6; i < h->g.steps; i++, left--) {
    if (left == 0) {
      trains = !trains;
      left = 4 + (int)(draw (h) % 4);
    }
    chain (h, trains ? 12 : 9, N, NULL);
    if (!trains)
      LAUNCH (&h->g, "relu", NULL, N, &h->kept[5], &h->kept[5]);
    say (h, i, NULL);
  }
}

static void accumulate (habits *h) {
  for (int i = 0; i < h->g.steps; i++) {
    chain (h, 12, N, NULL);
    if (i % 3 == 2)
      for (int k = 2; k < TENSORS; k++)
        LAUNCH (&h->g, "relu", NULL, N, &h->kept[k], &h->kept[k]);
    say (h, i, NULL);
  }
}

static void workers (habits *h) {
  for (int i = 0; i < h->g.steps; i++) {
    pid_t child = i % 4 == 1 ? fork () : -1;
    if (child == 0)
      exit (7); /* with all that is done at a program's end */
    chain (h, 12, N, NULL);
    say (h, i, NULL);
    int status = 0;
    if (child > 0 && (waitpid (child, &status, 0) != child || WEXITSTATUS (status) != 7))
      exit (6);
  }
}

static void hidden (habits *h) {
  gpu *g = &h->g;
  CUdeviceptr where = gpu_alloc (g, 8, NULL), secret = gpu_alloc (g, N, NULL), out;
  gpu_fill (g, secret, N, 99, NULL);
  LAUNCH (g, "remember", NULL, 1, &where, &secret);
  for (int i = 0; i < g->steps; i++) {
    chain (h, 12, N, NULL);
    out = gpu_alloc (g, N, NULL);
    LAUNCH (g, "use_remembered", NULL, N, &out, &where);
    LAUNCH (g, "add", NULL, N, &h->kept[0], &h->kept[0], &out);
    gpu_free (g, out, NULL);
    say (h, i, NULL);
  }
}

static void perturbed (habits *h) {
  for (int i = 0; i < h->g.steps; i++) {
    uint64_t what = draw (h) % 8;
    if (what == 0)
      LAUNCH (&h->g, "relu", NULL, N, &h->kept[5], &h->kept[5]);
    chain (h, what == 1 ? 11 : 12, what == 2 ? N - 4096 : N, NULL);
    if (what == 3)
      LAUNCH (&h->g, "add", NULL, N, &h->kept[6], &h->kept[6], &h->kept[7]);
    if (what != 4)
      LAUNCH (&h->g, "relu", NULL, N, &h->kept[8], &h->kept[8]);
    if (i % 10 == 9)
      say (h, i, NULL);
  }
}

static void leaving (habits *h) {
  for (int i = 0; i < h->g.steps; i++)
    chain (h, 12, N, NULL);
  for (int i = 1; i < TENSORS; i++)
    let_go (&h->g, &h->kept[i]);
}

static void turns (habits *h) {
  for (int i = 0; i < h->g.steps; i++) {
    long writes = i >= 12;
    chain (h, 12, N, NULL);
    for (int k = 2; k < TENSORS; k++)
      LAUNCH (&h->g, "turn", NULL, N, &h->kept[1], &h->kept[k], &writes);
    say (h, i, NULL);
  }
}

static void parts (habits *h) {
  for (int i = 0; i < h->g.steps; i++)
    chain (h, 12 - i % 3, N, NULL);
}

static void wide (habits *h) {
  for (int i = 0; i < h->g.steps; i++) {
    CUdeviceptr a = gpu_alloc (&h->g, 6 * N, NULL);
    for (int k = 0; k < 6; k++)
      LAUNCH (&h->g, "add", NULL, N, &h->kept[k], &h->kept[k], &h->kept[k + 1]);
    gpu_fill (&h->g, a, 6 * N, i, NULL);
    LAUNCH (&h->g, "add", NULL, N, &h->kept[0], &h->kept[0], &a);
    gpu_free (&h->g, a, NULL);
    say (h, i, NULL);
  }
}

static void waiting (habits *h) {
  for (int i = 0; i < h->g.steps; i++) {
    CUdeviceptr t[10];
    for (int k = 0; k < 10; k++) {
      t[k] = gpu_alloc (&h->g, N, NULL);
      LAUNCH (&h->g, "add", NULL, N, &t[k], k > 0 ? &t[k - 1] : &h->kept[0], &h->kept[k]);
    }
    for (int k = 9; k >= 0; k--) {
      LAUNCH (&h->g, "add", NULL, N, &h->kept[0], &h->kept[0], &t[k]);
      gpu_must (&h->g, h->g.mem_free (t[k]), "cuMemFree");
    }
    say (h, i, NULL);
  }
}

/* Results that outlive their step, and are freed once the next are made. */
typedef enum keeping { UNTIL_MADE, READ_AGAIN, FREED_BEFORE, UNSTEADY } keeping;

static void keep (habits *h, int count, int ages, keeping how) {
  gpu *g = &h->g;
  CUdeviceptr olds[2][2] = { { 0 } }, late = 0;
  CUstream aside = how == READ_AGAIN ? gpu_stream (g) : NULL;
  CUevent there = gpu_event (g, CU_EVENT_DISABLE_TIMING),
          back = gpu_event (g, CU_EVENT_DISABLE_TIMING);
  for (int i = 0; i < g->steps; i++) {
    uint64_t what = how == UNSTEADY ? draw (h) % 16 : 16;
    chain (h, 9, N, NULL);
    for (int k = 0; k < count; k++) {
      CUdeviceptr *old = &olds[i % ages][k], out, last = *old;
      if (how == FREED_BEFORE && last != 0)
        gpu_free (g, last, NULL);
      out = gpu_alloc (g, N, aside);
      if (aside != NULL) {
        g->event_record (there, NULL);
        g->stream_wait_event (aside, there, 0);
      }
      LAUNCH (g, "add", aside, N, &out, &h->kept[k], &h->kept[k + 4]);
      if (how == READ_AGAIN && last != 0)
        LAUNCH (g, "add", aside, N, &out, &out, &last);
      if (aside != NULL) {
        g->event_record (back, aside);
        g->stream_wait_event (NULL, back, 0);
      }
      if (what == 0 && k == 0 && late == 0)
        late = last;
      else if (how != FREED_BEFORE && last != 0)
        gpu_free (g, last, NULL);
      *old = out;
      LAUNCH (g, "add", NULL, N, &h->kept[k], &h->kept[k], &out);
    }
    chain (h, 12, N, NULL);
    for (int k = 0; k < count; k++)
      LAUNCH (g, "add", NULL, N, &h->kept[0], &h->kept[0], &olds[i % ages][k]);
    if (what == 1)
      LAUNCH (g, "relu", NULL, N, &h->kept[1], &h->kept[1]);
    else if (what == 2)
      let_go (g, &olds[0][1]);
    if (what > 7 && late != 0) {
      LAUNCH (g, "add", NULL, N, &h->kept[2], &h->kept[2], &late);
      let_go (g, &late);
    }
    say (h, i, NULL);
  }
  for (int k = 0; k < 4; k++)
    if (olds[k / 2][k % 2] != 0)
      gpu_say_digest (g, "result", olds[k / 2][k % 2], N);
}

static void results (habits *h) {
  keep (h, 2, 1, UNTIL_MADE);
}

static void carried (habits *h) {
  keep (h, 1, 1, READ_AGAIN);
}

static void gradients (habits *h) {
  keep (h, 2, 1, FREED_BEFORE);
}

static void ages (habits *h) {
  keep (h, 1, 2, UNTIL_MADE);
}

/* As a loop in Python does it that clears the gradients before its next step. */
static void python (habits *h) {
  gpu *g = &h->g;
  CUdeviceptr x = 0, out = 0, grads[3] = { 0 };
  for (int i = 0; i < g->steps; i++) {
    CUdeviceptr next = gpu_alloc (g, N, NULL);
    gpu_fill (g, next, N, i, NULL);
    let_go (g, &x);
    x = next;
    for (int k = 0; k < 3; k++)
      let_go (g, &grads[k]);
    chain (h, 9, N, NULL);
    next = gpu_alloc (g, N, NULL);
    LAUNCH (g, "add", NULL, N, &next, &x, &h->kept[4]);
    let_go (g, &out);
    out = next;
    LAUNCH (g, "add", NULL, N, &h->kept[1], &h->kept[1], &out);
    chain (h, 12, N, NULL);
    for (int k = 0; k < 3; k++) {
      grads[k] = gpu_alloc (g, N, NULL);
      LAUNCH (g, "add", NULL, N, &grads[k], &x, &h->kept[k]);
      LAUNCH (g, "add", NULL, N, &h->kept[k], &h->kept[k], &grads[k]);
    }
    say (h, i, NULL);
  }
}

static void unsteady (habits *h) {
  keep (h, 2, 1, UNSTEADY);
}

static void unused (habits *h) {
  for (int i = 0; i < h->g.steps; i++) {
    CUdeviceptr at = gpu_alloc (&h->g, 6 * N, NULL);
    chain (h, 12, N, NULL);
    gpu_free (&h->g, at, NULL);
    say (h, i, NULL);
  }
}

static void asks (habits *h) {
  enum { MANY = 64, BYTES = 4096 };
  size_t before, after, total;
  CUdeviceptr at[MANY];
  gpu_must (&h->g, h->g.mem_get_info (&before, &total), "cuMemGetInfo");
  for (int i = 0; i < MANY; i++)
    gpu_must (&h->g, h->g.mem_alloc (&at[i], BYTES), "cuMemAlloc");
  gpu_must (&h->g, h->g.mem_get_info (&after, &total), "cuMemGetInfo");
  printf ("%s\n", after + MANY * BYTES <= before ? "less is free" : "as much is free");
}

static void launches (habits *h) {
  for (int i = 0; i < h->g.steps; i++) {
    for (int k = 0; k < 1000; k++)
      LAUNCH (&h->g, "add", NULL, 1, &h->kept[0], &h->kept[k % TENSORS], &h->kept[1]);
    say (h, i, NULL);
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

static void threads (habits *h) {
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

/* Of a weight that no op changes, so that it is known what it is. */
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

static void snapshots (habits *h) {
  trainer t = { .h = h };
  for (int i = 0; i < h->g.steps; i++) {
    chain (h, 12, N, NULL);
    say (h, i, NULL);
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

static void races (habits *h) {
  CUstream a = gpu_stream (&h->g), b = gpu_stream (&h->g);
  for (int i = 0; i < h->g.steps; i++) {
    gpu_must (&h->g, h->g.set_words_async (h->kept[0], 1, N, a), "fill");
    gpu_must (&h->g, h->g.set_words_async (h->kept[0], 2, N, b), "fill");
  }
}

static void leaves (habits *h) {
  shapes (h);
  fflush (stdout);
  _exit (5);
}

static void end_here (int signal) {
  (void)signal;
  exit (6);
}

/* On the virtual clock the device's functions run in the thread that waits. */
static void interrupt (void *unused) {
  (void)unused;
  raise (SIGUSR1);
}

static void handled (habits *h) {
  shapes (h);
  signal (SIGUSR1, end_here);
  h->g.launch_host_func (NULL, interrupt, NULL);
  gpu_must (&h->g, h->g.ctx_synchronize (), "cuCtxSynchronize");
}

static atomic_int interrupts;

static void count (int signal) {
  (void)signal;
  atomic_fetch_add (&interrupts, 1);
}

static void counts (habits *h) {
  signal (SIGINT, count);
  for (int i = 0; i < h->g.steps; i++) {
    int before = atomic_load (&interrupts);
    printf ("ready\n");
    fflush (stdout);
    while (atomic_load (&interrupts) == before)
      usleep (1000);
    for (int k = 0; k < 30; k++)
      usleep (1000);
  }
  printf ("came %d\n", atomic_load (&interrupts));
}

static atomic_int rounds;

static void *go_on (void *own) {
  habits *h = own;
  gpu_must (&h->g, h->g.ctx_set_current (h->g.context), "cuCtxSetCurrent");
  CUstream s = gpu_stream (&h->g);
  while (atomic_fetch_add (&rounds, 1) >= 0) {
    chain (h, 6, N, s);
    gpu_must (&h->g, h->g.stream_synchronize (s), "cuStreamSynchronize");
  }
  return NULL;
}

static void busy (habits *h) {
  pthread_t thread;
  for (int i = 0; i < 4; i++)
    if (pthread_create (&thread, NULL, go_on, h) != 0)
      exit (5);
  while (atomic_load (&rounds) < h->g.steps)
    sched_yield ();
  exit (7);
}

static void aborts (habits *h) {
  shapes (h);
  abort ();
}

int main (int argc, char **argv) {
#define HABIT(name) \
  { #name, name }
  static const struct {
    const char *name;
    void (*run) (habits *h);
  } all[] = { HABIT (streams),    HABIT (workspaces), HABIT (churn),   HABIT (pointers),
              HABIT (unified),    HABIT (unaligned),  HABIT (weights), HABIT (shapes),
              HABIT (accumulate), HABIT (workers),    HABIT (hidden),  HABIT (perturbed),
              HABIT (phases),     HABIT (launches),   HABIT (races),   HABIT (leaves),
              HABIT (aborts),     HABIT (leaving),    HABIT (turns),   HABIT (parts),
              HABIT (wide),       HABIT (waiting),    HABIT (results), HABIT (carried),
              HABIT (gradients),  HABIT (ages),       HABIT (python),  HABIT (unsteady),
              HABIT (lengths),    HABIT (asks),       HABIT (counts),  HABIT (unused),
              HABIT (handled),    HABIT (busy),       HABIT (threads), HABIT (snapshots),
              HABIT (branches) };
  habits h = { .random = argc > 4 ? strtoull (argv[4], NULL, 10) : 1 };
  gpu_open (&h.g, argc, argv);
  for (int i = 0; i < TENSORS; i++) {
    h.kept[i] = gpu_alloc (&h.g, N, NULL);
    gpu_fill (&h.g, h.kept[i], N, i + 1, NULL);
  }
  h.loss = gpu_alloc (&h.g, 1, NULL);
  gpu_must (&h.g, h.g.ctx_synchronize (), "cuCtxSynchronize");
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (argc > 3 && strcmp (argv[3], all[i].name) == 0)
      all[i].run (&h);
  for (int i = 0; i < TENSORS; i++)
    if (h.kept[i] != 0)
      gpu_say_digest (&h.g, "kept", h.kept[i], N);
  gpu_close (&h.g);
  return 0;
}
