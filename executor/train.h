/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A network trained under a plan on a device, and beside it in plain memory the same step with
   nothing moved and nothing made again: its losses and what it learned must be the same bits. Where
   the plan cuts ops, the whole step is done as well, from the same parameters in every step: what
   differs then is the order of sums, within a stated tolerance. */
#pragma once

#include "base/sha256.h"
#include "executor/replay/replay.h"

/* A step in sections against the whole step, in millionths: of its loss, and of the length of what
   it changes all parameters by.  Adam moves an element whose gradient is nothing but rounding as
   far as any other, so there the order of sums decides which way. */
enum { TRAIN_LOSS_PPM = 100, TRAIN_UPDATE_PPM = 1000, TRAIN_ADAM_PPM = 50000, TRAIN_STEPS = 20 };

typedef struct train_step {
  int32_t step;
  double loss;
  /* Only when they are compared: */
  double unswapped;
  bool same;
  /* Only when the plan cuts: */
  double whole, update_ppm;
} train_step;

typedef struct train_options {
  replay_options replay; /* iterations: 0: TRAIN_STEPS */
  feed_options input;
  int64_t spoiled_copy; /* see calculation */
  bool compare;
  bool
      kernels; /* of a GPU, also on the emulated device, where they are its functions; so is bf16 */
  libraries_options libraries;
  /* For want of a CPU to compare with: a plan of the same sections that moves nothing and makes
     nothing again, which the same device then runs beforehand. NULL: none. */
  const plan *unswapped;
  void (*on_step) (void *context, const train_step *s); /* NULL: nobody listens */
  void *context;
} train_options;

typedef struct train_result {
  replay_result replay;
  const double *losses;     /* one a step */
  char digest[SHA256_TEXT]; /* of all that outlives a step */
  int64_t values_bytes;
  char how[LIBRARIES_TEXT]; /* the libraries that did a part of it */
  bool by_kernels;          /* and kernels the rest; else the CPU did it all */

  bool compared;
  int32_t first_step; /* the first whose loss differs; -1: none */
  int32_t n_tensors;  /* that differ at the end, and the first of them: */
  int32_t tensor;     /* of the original trace */
  int64_t element;
  float value, unswapped;

  bool sectioned;              /* and compared with the whole step: */
  double loss_ppm, update_ppm; /* the largest of all steps */
  int32_t loss_step, update_step;
  int32_t allowed_ppm; /* of update_ppm */
} train_result;

/* A difference is no error here: the result says so. Refuses what replay_run refuses, and a trace
   that does not say what it calculates. */
bool train_run (const trace *t, const plan *p, const train_options *o, arena *a, train_result *out,
                error *err) MUST_CHECK;

bool train_same (const train_result *r);   /* bit for bit, as far as was compared */
bool train_within (const train_result *r); /* the tolerance against the whole step */

/* The report as JSON. */
bool train_json (const train_result *r, bytes *out, error *err) MUST_CHECK;
