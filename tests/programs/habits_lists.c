/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Addresses as data: arrays of them, and one that an earlier kernel has left. */
#include <string.h>

#include "tests/programs/habits.h"

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
    habits_chain (h, 8, N, NULL);
    LAUNCH (g, "add_all", NULL, N, &h->kept[0], &array, &n);
    for (int k = 0; k < 4; k++)
      gpu_free (g, list[k], NULL);
    habits_say (h, i, NULL);
  }
  gpu_free (g, array, NULL);
}

void habit_pointers (habits *h) {
  lists (h, BY_KIND);
}

void habit_unified (habits *h) {
  lists (h, UNIFIED);
}

void habit_unaligned (habits *h) {
  lists (h, UNALIGNED);
}

void habit_weights (habits *h) {
  gpu *g = &h->g;
  CUdeviceptr list[2] = { h->kept[9], h->kept[11] }, array = gpu_alloc (g, 8, NULL);
  long n = 2;
  for (int i = 0; i < g->steps; i++) {
    copy_list (g, array, list, sizeof list, BY_KIND);
    habits_chain (h, 9, N, NULL);
    LAUNCH (g, "add_all", NULL, N, &h->kept[0], &array, &n);
    habits_say (h, i, NULL);
  }
}

void habit_hidden (habits *h) {
  gpu *g = &h->g;
  CUdeviceptr where = gpu_alloc (g, 8, NULL), secret = gpu_alloc (g, N, NULL), out;
  gpu_fill (g, secret, N, 99, NULL);
  LAUNCH (g, "remember", NULL, 1, &where, &secret);
  for (int i = 0; i < g->steps; i++) {
    habits_chain (h, 12, N, NULL);
    out = gpu_alloc (g, N, NULL);
    LAUNCH (g, "use_remembered", NULL, N, &out, &where);
    LAUNCH (g, "add", NULL, N, &h->kept[0], &h->kept[0], &out);
    gpu_free (g, out, NULL);
    habits_say (h, i, NULL);
  }
}
