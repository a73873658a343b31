/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Programs of other habits, by the names of habits.def: habits MODULE STEPS NAME [SEED]. Here are
   those of one stream. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/programs/habits.h"

uint64_t habits_draw (habits *h) {
  uint64_t z = h->random += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  return z ^ z >> 27;
}

/* Up a chain of `length` tensors and down again, so that the first are used last. */
void habits_chain (habits *h, int length, long floats, CUstream s) {
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

void habits_say (habits *h, int step, CUstream s) {
  long n = N;
  LAUNCH (&h->g, "sum_squares", s, 1, &h->loss, &h->kept[0], &n);
  gpu_say_scalar (&h->g, "value", step, h->loss, s);
}

void habits_let_go (gpu *g, CUdeviceptr *at) {
  if (*at != 0)
    gpu_free (g, *at, NULL);
  *at = 0;
}

void habit_churn (habits *h) {
  CUdeviceptr at[24] = { 0 };
  long size[24] = { 0 };
  gpu *g = &h->g;
  for (int i = 0; i < g->steps * 40; i++) {
    int k = (int)(habits_draw (h) % 24);
    if (at[k] != 0) {
      long n = size[k] < N ? size[k] : N;
      LAUNCH (g, "add", NULL, n, &h->kept[0], &h->kept[0], &at[k]);
      gpu_free (g, at[k], NULL);
      at[k] = 0;
    } else {
      size[k] = 1000 + (long)(habits_draw (h) % 40000);
      at[k] = gpu_alloc (g, size[k], NULL);
      gpu_fill (g, at[k], size[k], i, NULL);
    }
    if (i % 40 == 39)
      habits_say (h, i / 40, NULL);
  }
  for (int k = 0; k < 24; k++)
    if (at[k] != 0)
      gpu_free (g, at[k], NULL);
}

void habit_shapes (habits *h) {
  for (int i = 0; i < h->g.steps; i++) {
    habits_chain (h, i % 7 == 6 ? 9 : 12, i % 7 == 6 ? N / 2 : N, NULL);
    habits_say (h, i, NULL);
  }
}

/* Some are as long as none was before, and are freed unused. */
void habit_lengths (habits *h) {
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
      long n = N + (long)(habits_draw (h) % (4 * N));
      t[k] = gpu_alloc (&h->g, n, NULL);
      gpu_fill (&h->g, t[k], n, i + k, NULL);
      LAUNCH (&h->g, "add", NULL, N, &h->kept[k], &h->kept[k + USED], &t[k]);
    }
    for (int k = 0; k < USED; k++) {
      LAUNCH (&h->g, "add", NULL, N, &h->kept[0], &h->kept[k], &t[k]);
      gpu_free (&h->g, t[k], NULL);
    }
    habits_say (h, i, NULL);
  }
}

void habit_phases (habits *h) {
  bool trains = true;
  for (int i = 0, left = 6; i < h->g.steps; i++, left--) {
    if (left == 0) {
      trains = !trains;
      left = 4 + (int)(habits_draw (h) % 4);
    }
    habits_chain (h, trains ? 12 : 9, N, NULL);
    if (!trains)
      LAUNCH (&h->g, "relu", NULL, N, &h->kept[5], &h->kept[5]);
    habits_say (h, i, NULL);
  }
}

void habit_accumulate (habits *h) {
  for (int i = 0; i < h->g.steps; i++) {
    habits_chain (h, 12, N, NULL);
    if (i % 3 == 2)
      for (int k = 2; k < TENSORS; k++)
        LAUNCH (&h->g, "relu", NULL, N, &h->kept[k], &h->kept[k]);
    habits_say (h, i, NULL);
  }
}

void habit_perturbed (habits *h) {
  for (int i = 0; i < h->g.steps; i++) {
    uint64_t what = habits_draw (h) % 8;
    if (what == 0)
      LAUNCH (&h->g, "relu", NULL, N, &h->kept[5], &h->kept[5]);
    habits_chain (h, what == 1 ? 11 : 12, what == 2 ? N - 4096 : N, NULL);
    if (what == 3)
      LAUNCH (&h->g, "add", NULL, N, &h->kept[6], &h->kept[6], &h->kept[7]);
    if (what != 4)
      LAUNCH (&h->g, "relu", NULL, N, &h->kept[8], &h->kept[8]);
    if (i % 10 == 9)
      habits_say (h, i, NULL);
  }
}

void habit_leaving (habits *h) {
  for (int i = 0; i < h->g.steps; i++)
    habits_chain (h, 12, N, NULL);
  for (int i = 1; i < TENSORS; i++)
    habits_let_go (&h->g, &h->kept[i]);
}

void habit_turns (habits *h) {
  for (int i = 0; i < h->g.steps; i++) {
    long writes = i >= 12;
    habits_chain (h, 12, N, NULL);
    for (int k = 2; k < TENSORS; k++)
      LAUNCH (&h->g, "turn", NULL, N, &h->kept[1], &h->kept[k], &writes);
    habits_say (h, i, NULL);
  }
}

void habit_parts (habits *h) {
  for (int i = 0; i < h->g.steps; i++)
    habits_chain (h, 12 - i % 3, N, NULL);
}

void habit_wide (habits *h) {
  for (int i = 0; i < h->g.steps; i++) {
    CUdeviceptr a = gpu_alloc (&h->g, 6 * N, NULL);
    for (int k = 0; k < 6; k++)
      LAUNCH (&h->g, "add", NULL, N, &h->kept[k], &h->kept[k], &h->kept[k + 1]);
    gpu_fill (&h->g, a, 6 * N, i, NULL);
    LAUNCH (&h->g, "add", NULL, N, &h->kept[0], &h->kept[0], &a);
    gpu_free (&h->g, a, NULL);
    habits_say (h, i, NULL);
  }
}

void habit_waiting (habits *h) {
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
    habits_say (h, i, NULL);
  }
}

void habit_unused (habits *h) {
  for (int i = 0; i < h->g.steps; i++) {
    CUdeviceptr at = gpu_alloc (&h->g, 6 * N, NULL);
    habits_chain (h, 12, N, NULL);
    gpu_free (&h->g, at, NULL);
    habits_say (h, i, NULL);
  }
}

void habit_asks (habits *h) {
  enum { MANY = 64, BYTES = 4096 };
  size_t before, after, total;
  CUdeviceptr at[MANY];
  gpu_must (&h->g, h->g.mem_get_info (&before, &total), "cuMemGetInfo");
  for (int i = 0; i < MANY; i++)
    gpu_must (&h->g, h->g.mem_alloc (&at[i], BYTES), "cuMemAlloc");
  gpu_must (&h->g, h->g.mem_get_info (&after, &total), "cuMemGetInfo");
  printf ("%s\n", after + MANY * BYTES <= before ? "less is free" : "as much is free");
}

void habit_launches (habits *h) {
  for (int i = 0; i < h->g.steps; i++) {
    for (int k = 0; k < 1000; k++)
      LAUNCH (&h->g, "add", NULL, 1, &h->kept[0], &h->kept[k % TENSORS], &h->kept[1]);
    habits_say (h, i, NULL);
  }
}

int main (int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run) (habits *h);
  } all[] = {
#define HABIT(name) { #name, habit_##name },
#include "tests/programs/habits.def"
#undef HABIT
  };
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
