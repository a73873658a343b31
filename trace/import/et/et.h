/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A PyTorch execution trace: every operator call with the tensors it names, in the order in which
   the calls returned; no times. */
#pragma once

#include "trace/import/et/generations.h"

typedef struct et_node {
  int64_t id, parent_id, record_id, thread, forward_thread;
  int32_t name, parent; /* parent -1: not in the file */
  int32_t first_mention, n_mentions;
  bool structural; /* [pytorch|... */
  bool leaf;       /* nobody's parent */
  bool has_schema;
  bool annotation; /* named by a program: the name tells nothing of autograd */
} et_node;

/* An operator's schema, by place. */
typedef struct et_schema_masks {
  uint64_t written; /* arguments whose type carries a ! */
  uint64_t aliases; /* results that are views of an argument, and not written */
} et_schema_masks;

et_schema_masks et_read_schema (slice text);

typedef struct et {
  intern names;
  const char *schema;
  int64_t pid;      /* -1: not given */
  slice stranger;   /* a device that is not known, on which some tensor is; empty: none */
  uint64_t devices; /* the numbers of the devices that tensors are on, as bits */
  et_node *nodes;
  walk_node *walk; /* one a node */
  mention *mentions;
  int32_t n_nodes;
  int64_t n_mentions;
  generations generations;
} et;

/* The nodes, with their parents.  Tensors without elements, which all share the id of the null
   pointer, make generations of no bytes. */
bool et_read (import_job *job, const import_text *file, et *out) MUST_CHECK;
/* The device that is asked for, else the one that most calls name tensors of; -1: numbers are not
   said. */
bool et_choose_device (import_job *job, const et *e, int32_t *device) MUST_CHECK;
/* Leaves the tensors of one device, and if so the nodes of one step: phases told, generations split.
   Refused if no call names a tensor there: nothing would say what takes memory. */
bool et_settle (import_job *job, et *e, int32_t device, bool one_step) MUST_CHECK;
/* Leaves the nodes of one step: the last, or that which the options name. */
bool et_choose_step (import_job *job, et *e) MUST_CHECK;
/* Which of the generations that the optimizer makes it makes to keep. */
void et_mark_kept (et *e);

/* One use of a generation by an op of the trace being made. */
typedef struct et_use {
  int32_t op, generation;
  int64_t moved; /* bytes that its kernels must have read or written */
  bool read, write;
} et_use;

/* Knowledge of each generation beyond its uses. */
typedef struct et_life {
  bool before; /* there when the iteration began */
  bool after;  /* used behind it */
  bool used;
} et_life;

typedef struct et_uses {
  et_use *at;
  int64_t count, room;
} et_uses;

/* An input is read, and written too if its schema says so; an output is written, unless it is a
   view of something. makes: the call is the one that the generation begins with; works: it is the
   op itself, not one that was folded into it. */
bool et_add_use (import_job *job, et_uses *uses, int32_t op, const mention *m, bool makes,
                 bool works) MUST_CHECK;
/* Per op what its kernels must have moved, for the checks. */
bool et_sum_moved (import_job *job, const et_uses *uses, const generations *g,
                   int32_t n_ops) MUST_CHECK;
/* Tensors for what is used; tensor_of gets one index a generation, or -1. */
bool et_make_tensors (import_job *job, const generations *g, const walk_node *nodes,
                      const et_life *lives, int32_t n_ops, trace_builder *b,
                      int32_t *tensor_of) MUST_CHECK;
/* Sorted by op, one row a pair; a use before the generation's first op moves to it. */
void et_sort_uses (et_uses *uses, const int32_t *first_op);
/* Reads and writes of the op that was begun last; *at moves on. */
void et_put_uses (const et_uses *uses, int64_t *at, int32_t op, const int32_t *tensor_of,
                  trace_builder *b);
