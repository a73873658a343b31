/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Kernels of NCCL and RCCL as collectives.  From 2024 on their events have the arguments of the
   call; before, the kind is in the name of the kernel or of what launched it. */
#include <string.h>
#include <strings.h>

#include "base/order.h"
#include "trace/import/kineto/kineto.h"

static bool has_word (slice text, const char *word) {
  int64_t n = (int64_t)strlen (word);
  for (int64_t i = 0; i + n <= text.size; i++)
    if (strncasecmp (text.at + i, word, (size_t)n) == 0)
      return true;
  return false;
}

static collective_kind kind_of (slice text) {
  static const struct {
    const char *word;
    collective_kind kind;
  } rows[] = {
    { "reduce_scatter", COLLECTIVE_reduce_scatter },
    { "reducescatter", COLLECTIVE_reduce_scatter },
    { "all_reduce", COLLECTIVE_all_reduce },
    { "allreduce", COLLECTIVE_all_reduce },
    { "all_gather", COLLECTIVE_all_gather },
    { "allgather", COLLECTIVE_all_gather },
    { "all_to_all", COLLECTIVE_all_to_all },
    { "alltoall", COLLECTIVE_all_to_all },
    { "broadcast", COLLECTIVE_broadcast },
    { "sendrecv", COLLECTIVE_none },
    { "send", COLLECTIVE_send },
    { "recv", COLLECTIVE_recv },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (has_word (text, rows[i].word))
      return rows[i].kind;
  return COLLECTIVE_none;
}

/* By the names of c10; 0: not known. */
static int64_t type_bytes (slice type) {
  static const struct {
    const char *name;
    int64_t bytes;
  } rows[] = {
    { "Float", 4 }, { "BFloat16", 2 }, { "Half", 2 }, { "Double", 8 }, { "Long", 8 },
    { "Int", 4 },   { "Short", 2 },    { "Byte", 1 }, { "Char", 1 },   { "Bool", 1 },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (type.size == (int64_t)strlen (rows[i].name) &&
        strncasecmp (type.at, rows[i].name, (size_t)type.size) == 0)
      return rows[i].bytes;
  return slice_starts (type, "Float8") ? 1 : 0;
}

bool kineto_keep_call (import_job *job, kineto *k, int64_t *room, const kineto_call *call) {
  if (call->name.size == 0)
    return true;
  int64_t elements = call->in > call->out ? call->in : call->out, bytes = type_bytes (call->type);
  slice group = call->group.size ? call->group : call->ranks;
  kineto_comm c = { .gpu = k->n_gpu - 1, .kind = kind_of (call->name), .group = NONE };
  if (elements > 0 && bytes > 0 && elements <= MOST_TENSOR_BYTES / bytes)
    c.bytes = elements * bytes;
  if (group.size > 0 && (c.group = intern_add (&k->names, group, false, job->err)) < 0)
    return false;
  if (!GROW (job->scratch, k->comms, room, (int64_t)k->n_comms + 1, job->err))
    return false;
  k->comms[k->n_comms++] = c;
  return true;
}

/* Rows stand in the order of their kernels. */
static const kineto_comm *comm_of (const kineto *k, int32_t gpu) {
  int32_t low = FIRST_WHERE (i, 0, k->n_comms, k->comms[i].gpu >= gpu);
  return low < k->n_comms && k->comms[low].gpu == gpu ? &k->comms[low] : NULL;
}

static collective_kind kind_by_names (const kineto *k, const kineto_gpu *g) {
  slice name = k->names.texts[g->name];
  if (g->kind != GPU_KERNEL || (!has_word (name, "nccl") && !has_word (name, "rccl")))
    return COLLECTIVE_none;
  collective_kind kind = kind_of (name);
  for (int32_t i = g->owner; kind == COLLECTIVE_none && i != NONE; i = k->ops[i].parent)
    kind = kind_of (k->names.texts[k->ops[i].name]);
  return kind;
}

bool kineto_put_collective (import_job *job, const kineto *k, const kineto_run *run, op *o) {
  const kineto_comm *c = comm_of (k, run->gpu);
  o->collective = c && c->kind ? c->kind : kind_by_names (k, &k->gpu[run->gpu]);
  if (!o->collective || !c)
    return true;
  o->group_bytes = c->bytes;
  if (c->group != NONE)
    o->group = kineto_name (job, k, c->group);
  return c->group == NONE || o->group;
}
