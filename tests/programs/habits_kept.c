/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Results that outlive their step. */
#include "tests/programs/habits.h"

/* Results that outlive their step, and are freed once the next are made. */
typedef enum keeping { UNTIL_MADE, READ_AGAIN, FREED_BEFORE, UNSTEADY } keeping;

static void keep (habits *h, int count, int ages, keeping how) {
  gpu *g = &h->g;
  CUdeviceptr olds[2][2] = { { 0 } }, late = 0;
  CUstream aside = how == READ_AGAIN ? gpu_stream (g) : NULL;
  CUevent there = gpu_event (g, CU_EVENT_DISABLE_TIMING),
          back = gpu_event (g, CU_EVENT_DISABLE_TIMING);
  for (int i = 0; i < g->steps; i++) {
    uint64_t what = how == UNSTEADY ? habits_draw (h) % 16 : 16;
    habits_chain (h, 9, N, NULL);
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
    habits_chain (h, 12, N, NULL);
    for (int k = 0; k < count; k++)
      LAUNCH (g, "add", NULL, N, &h->kept[0], &h->kept[0], &olds[i % ages][k]);
    if (what == 1)
      LAUNCH (g, "relu", NULL, N, &h->kept[1], &h->kept[1]);
    else if (what == 2)
      habits_let_go (g, &olds[0][1]);
    if (what > 7 && late != 0) {
      LAUNCH (g, "add", NULL, N, &h->kept[2], &h->kept[2], &late);
      habits_let_go (g, &late);
    }
    habits_say (h, i, NULL);
  }
  for (int k = 0; k < 4; k++)
    if (olds[k / 2][k % 2] != 0)
      gpu_say_digest (g, "result", olds[k / 2][k % 2], N);
}

void habit_results (habits *h) {
  keep (h, 2, 1, UNTIL_MADE);
}

void habit_carried (habits *h) {
  keep (h, 1, 1, READ_AGAIN);
}

void habit_gradients (habits *h) {
  keep (h, 2, 1, FREED_BEFORE);
}

void habit_ages (habits *h) {
  keep (h, 1, 2, UNTIL_MADE);
}

/* A loop in Python that clears the gradients before its next step. */
void habit_python (habits *h) {
  gpu *g = &h->g;
  CUdeviceptr x = 0, out = 0, grads[3] = { 0 };
  for (int i = 0; i < g->steps; i++) {
    CUdeviceptr next = gpu_alloc (g, N, NULL);
    gpu_fill (g, next, N, i, NULL);
    habits_let_go (g, &x);
    x = next;
    for (int k = 0; k < 3; k++)
      habits_let_go (g, &grads[k]);
    habits_chain (h, 9, N, NULL);
    next = gpu_alloc (g, N, NULL);
    LAUNCH (g, "add", NULL, N, &next, &x, &h->kept[4]);
    habits_let_go (g, &out);
    out = next;
    LAUNCH (g, "add", NULL, N, &h->kept[1], &h->kept[1], &out);
    habits_chain (h, 12, N, NULL);
    for (int k = 0; k < 3; k++) {
      grads[k] = gpu_alloc (g, N, NULL);
      LAUNCH (g, "add", NULL, N, &grads[k], &x, &h->kept[k]);
      LAUNCH (g, "add", NULL, N, &h->kept[k], &h->kept[k], &grads[k]);
    }
    habits_say (h, i, NULL);
  }
}

void habit_unsteady (habits *h) {
  keep (h, 2, 1, UNSTEADY);
}
