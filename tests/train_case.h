/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A small network under a plan that moves whatever can be moved, for training on the emulator: cut,
   with what can be made again made again, or both; with room to spare, half way, and in the least
   memory for which the scheduler finds a plan. */
#pragma once

#include "executor/train.h"
#include "tests/small_nets.h"
#include "trace/unit.h"

typedef enum train_mode { SWAPPED, CUT, MADE_AGAIN, MIXED, TRAIN_MODES } train_mode;
typedef enum train_room { AMPLE, HALF, FLOOR, TRAIN_ROOMS } train_room;
extern const char *const train_mode_names[TRAIN_MODES];
extern const char *const train_room_names[TRAIN_ROOMS];

typedef struct train_case {
  arena *a;
  device device;
  trace *trace;
  section *sections;
  recompute *recomputes;
  int32_t n_sections, n_recomputes;
  rewritten rewritten;
  units units;
  int64_t most_bytes, least_bytes;
} train_case;

/* These fail the test where something is wrong. */
void train_case_open (train_case *c, const small_net *s, train_mode mode);
void train_case_close (train_case *c);
plan *train_case_plan (train_case *c, train_room room);
/* On the virtual clock of the emulated device, compared. */
train_options train_case_options (int32_t steps);
