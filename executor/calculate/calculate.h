/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The ops of a replay, calculated: what lies where for which op, what each step is shown, and what
   came of it.  How an op is calculated on a device is the business of a calculator, of which there
   is one for the emulator. */
#pragma once

#include "executor/ops/feed.h"
#include "executor/libraries/libraries.h"
#include "executor/ops/bind.h"
#include "executor/room/views.h"

enum { CALCULATE_AHEAD = 4 }; /* steps that are issued before the first of them has ended */

typedef struct calculation calculation;

/* Items of an input of the step: the launch of the op with which their tensor is born brings them
   there before anything else. */
typedef struct calculate_input {
  int32_t tensor; /* of the original trace */
  int64_t first_item, end_item;
  void *at; /* on the device */
  int64_t bytes;
} calculate_input;

/* An op of the rewritten trace; the pieces of its binding know their addresses on the device. */
typedef struct calculate_op {
  ops_binding binding;
  calculate_input *inputs;
  int32_t n_inputs, index;
  int64_t ns; /* that the trace says it takes */
} calculate_op;

/* Its functions on one kind of device. A launch is put on the stream and takes effect in its turn:
   the inputs, the op with random numbers of step `counter`, and where the op is a loss,
   c->losses[step] grows by it. What goes wrong then is left in c->failed, and the step's loss is
   NaN. */
typedef struct calculator {
  const char *name;
  bool (*open) (calculation *c, bool declare, error *err); /* declare: to the race checker */
  bool (*launch) (calculation *c, CUstream s, const calculate_op *o, int64_t step, int64_t counter,
                  error *err);
  void (*close) (calculation *c);
} calculator;

extern const calculator calculator_emulated;

struct calculation {
  /* The caller's wishes. */
  const calculator *by;
  const trace *trace; /* the original one */
  feed_options input;
  libraries_options libraries; /* for a GPU */
  int64_t spoiled_copy; /* the n-th call of a copy that draws random numbers draws those of the next
                           step (a planted fault); 0: none does */
  /* Each step's loss, in order, a few steps later; an error ends the run. NULL: nobody listens. */
  bool (*on_step) (void *context, int32_t step, double loss, error *err);
  void *context;

  /* The results, in the arena: the sum of all losses by step, and the value of each persistent
     tensor of the rewritten trace is after the last one (NULL: it is not persistent). */
  double *losses;
  void **values;
  char how[LIBRARIES_TEXT]; /* the libraries that did a part of it; empty: none */

  /* Its own. */
  const driver *driver;
  const room *room;
  arena *arena;
  feed *feed;
  views views;
  calculate_op *ops;
  CUevent ended[CALCULATE_AHEAD];
  int32_t steps, told;
  int64_t copies;
  error failed;
  void *own; /* the calculator's */
};

/* The room is open and `steps` steps will follow. Persistent tensors get their first values. What
   was taken goes with calculate_close, also after an error. */
bool calculate_open (calculation *c, const driver *d, const room *r, bool declare, int32_t steps,
                     arena *a, error *err) MUST_CHECK;
bool calculate_launch (calculation *c, CUstream s, int32_t op, int32_t step, error *err) MUST_CHECK;
/* All of a step is issued; s is the stream of its ops. Waits where too much is under way. */
bool calculate_pace (calculation *c, CUstream s, int32_t step, error *err) MUST_CHECK;
/* All steps have ended: tells the last ones and reads the values. */
bool calculate_end (calculation *c, error *err) MUST_CHECK;
void calculate_close (calculation *c);
