/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A program's record, as the shim wrote it: its beats, the names of its kernels, the time of each
   op, and where a step begins. */
#pragma once

#include "base/arena.h"
#include "executor/shim/step/block.h"
#include "executor/shim/step/period.h"
#include "trace/trace.h"

typedef struct steps_time {
  int64_t ns, gap_ns; /* ns -1: not known */
} steps_time;

/* A wait between beats of one step, counted from its first. */
typedef struct steps_order {
  int64_t beat, behind; /* less than 0: of the step before */
  bool host;            /* whatever is issued from there on waits too */
  bool device;          /* for the shim's copies as well */
} steps_order;
typedef struct steps_link {
  int64_t beat, bytes; /* less than 0: to the host */
} steps_link;

typedef struct steps_crossing { /* numbers of allocations */
  int64_t carried_in, carried_out;
} steps_crossing;

typedef struct steps {
  beats beats;
  steps_time *times; /* by the number of the op, from the first of the file */
  int64_t first_op, n_times;
  int64_t *beat_of;  /* by the number of the op, likewise; -1: there is none */
  uint8_t *facts;    /* of each tensor of an op, where `beats` has its number: a shim_fact */
  int64_t n_learned; /* ops that have facts */
  bool *again;       /* by the number of the op: it may be launched again */
  const char **names;
  int32_t n_names;
  int64_t n_ops;
  bool cut; /* the file is one step, its last beats */
  int64_t cut_beats;
  steps_order *orders;
  steps_link *links;
  steps_crossing *crossings;
  int64_t n_orders, n_links, n_crossings;
} steps;

/* The fact that digests, or the call, told of the op's tensor. */
shim_fact steps_fact (const steps *s, const beat *e, int32_t ref);

/* The record of a whole program, or of one step. All that it holds beside the arena goes with
 * steps_close. */
bool steps_read (const char *path, arena *a, steps *out, error *err) MUST_CHECK;
void steps_close (steps *s);

typedef struct steps_options {
  const char *name, *detail;
  int64_t most;        /* steps that are read for their times; 0: all there are */
  int64_t round_bytes; /* tensors are told as so large or a multiple; 0: as they are */
  /* Those of the step before that this one uses stay on the device, and so do those that replace
     them, where all of these take no more. */
  int64_t most_staying_bytes;
  bool touched; /* leaves out all that was learned */
} steps_options;

/* The trace's tensors and ops as they stand in the record. */
typedef struct steps_map {
  int64_t first, end; /* the step's beats */
  int64_t *number;    /* of each tensor, its allocation; ascending */
  bool *leaves;       /* of each tensor: it goes to the host behind its last use, and lives on */
  int32_t n_tensors;
  int64_t *beat; /* of each op, counted from `first` */
  int32_t found; /* equal steps that were there, and count */
  int32_t alike; /* equal steps that were there */
} steps_map;

/* The step that the program repeats. */
trace *steps_trace (const steps *s, const steps_options *o, arena *a, steps_map *map,
                    error *err) MUST_CHECK;
