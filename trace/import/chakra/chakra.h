/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The nodes of a Chakra .et file as tables. */
#pragma once

#include "trace/import/chakra/wire.h"
#include "trace/import/et/et.h"

enum { CHAKRA_COMPUTE = 4, CHAKRA_SEND = 5, CHAKRA_RECEIVE = 6, CHAKRA_COLLECTIVE = 7 };

/* Streams of GPU nodes whose file tells none: compute, and collectives apart from it. */
enum { STREAM_COMPUTE = -1, STREAM_COLLECTIVE = -2 };

typedef struct chakra_tensor {
  int64_t storage, bytes, own_bytes;
  int argument;
  bool output, written;
} chakra_tensor;

typedef struct chakra_dep {
  int64_t id;
  bool data; /* else of control */
} chakra_dep;

typedef struct chakra_node {
  int64_t id, type, us, record_id, thread, forward_thread;
  int64_t stream;         /* by its attribute; -1: not given */
  int64_t first_data_dep; /* of a GPU node: its owner; -1: none */
  int64_t first_tensor, n_tensors;
  slice name;
  int32_t group; /* filled in by chakra_group; -1: none */
  bool is_cpu, has_duration, has_start;
} chakra_node;

/* CPU nodes of one record function id, and the GPU nodes that they own. */
typedef struct chakra_group {
  int64_t record_id;
  int32_t first_node; /* a CPU node */
  int32_t n_gpu;
} chakra_group;

typedef struct chakra {
  chakra_node *nodes;
  chakra_tensor *tensors;
  chakra_dep *deps;
  chakra_group *groups; /* in order of record_id */
  walk_node *walk;      /* one a group */
  mention *mentions;
  int32_t n_nodes, n_groups;
  int64_t n_tensors, n_deps, n_mentions;
  int64_t empty_tensors, unowned, absent_control, absent_data;
  int64_t device;       /* of the first tensor that says it; -1: none does */
  bool several_devices; /* others are on another */
  bool threads; /* `tid` of GPU nodes is the thread that launched them, not their stream */
  generations generations;
} chakra;

bool chakra_read (import_job *job, const import_text *file, chakra *out) MUST_CHECK;
/* Groups, phases and generations. */
bool chakra_group_nodes (import_job *job, chakra *c) MUST_CHECK;

/* The stream of a GPU node, or one of the two above. */
int64_t chakra_stream (const chakra *c, const chakra_node *n);
/* The compute stream; the report names all.  NULL: failed. */
const char *chakra_choose_stream (import_job *job, const chakra *c, int64_t *stream);
/* The compute stream's share of the GPU's time, and the place of the rest. */
bool chakra_count_time (import_job *job, const chakra *c, int64_t stream) MUST_CHECK;
