/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The bytes of a replay that verifies: what each op finds and leaves, what lies where before the
   first step and after the last. */
#include <string.h>

#include "executor/replay/run.h"

typedef struct collecting {
  replay_state *s;
  kernel_operand *at; /* NULL: only counting */
  int64_t count;
  int64_t version, per_step;
  uint32_t mode;
} collecting;

static bool collect (void *context, int32_t tensor, const stretch *x, error *err) {
  (void)err;
  collecting *c = context;
  if (c->at != NULL)
    c->at[c->count] = (kernel_operand){ .at = (uint64_t)x->at,
                                        .bytes = x->bytes,
                                        .offset = x->offset,
                                        .version = c->version,
                                        .per_step = c->per_step,
                                        .tensor = (uint32_t)tensor,
                                        .mode = c->mode };
  c->count++;
  return true;
}

/* How often a tensor is written in a step. One that dies has one version more: what its first op
   finds if it reads first, which that op makes up. */
static int64_t versions (const replay_state *s, int32_t tensor, int32_t uses_before) {
  const uses *u = &s->room.uses;
  int64_t n = 0;
  for (int32_t i = u->offset[tensor]; i < u->offset[tensor] + uses_before; i++)
    n += u->at[i].writes;
  return n;
}

static int64_t per_step (const replay_state *s, int32_t tensor) {
  return versions (s, tensor, uses_count (&s->room.uses, tensor)) +
         (s->rewritten->trace->tensors[tensor].persistent ? 0 : 1);
}

/* The op with which a group's first stay begins; -1: it is there when the step begins. */
static int32_t group_birth (const replay_state *s, int32_t group) {
  const uses *u = &s->room.uses;
  const index_list *g = &s->plan->groups[group];
  int32_t first = INT32_MAX;
  for (int32_t i = 0; i < g->count; i++) {
    if (s->rewritten->trace->tensors[g->at[i]].persistent)
      return -1;
    if (uses_count (u, g->at[i]) > 0 && u->at[u->offset[g->at[i]]].op < first)
      first = u->at[u->offset[g->at[i]]].op;
  }
  return first;
}

/* For the race checker a group is used as one: granules of members that this op leaves alone must
   not be anybody else's either. An operand that neither reads nor writes is told and not touched.
 */
static bool collect_group (replay_state *s, collecting *c, int32_t tensor, int32_t op, error *err) {
  const room *r = &s->room;
  int32_t group = r->units.group_of[tensor];
  if (group < 0 || !s->options->races)
    return true;
  int32_t unit = s->rewritten->trace->n_tensors + group;
  c->mode = group_birth (s, group) == op ? OPERAND_BEGIN : 0;
  for (int32_t p = 0; p < r->stays.of[unit]; p++) {
    stretch x = { .at = (int64_t)r->stay_at[stays_at (&r->stays, unit, p, op)],
                  .bytes = unit_part_bytes (&r->units.at[unit], s->plan->placement.granule_bytes, p,
                                            r->stays.of[unit]) };
    if (!collect (c, tensor, &x, err))
      return false;
  }
  return true;
}

static bool collect_use (replay_state *s, collecting *c, int32_t tensor, int32_t number, int32_t op,
                         error *err) {
  const use *x = &s->room.uses.at[s->room.uses.offset[tensor] + number];
  bool fresh = number == 0 && !s->rewritten->trace->tensors[tensor].persistent;
  c->version = versions (s, tensor, number);
  c->per_step = per_step (s, tensor);
  c->mode = x->writes ? OPERAND_WRITE : 0;
  if (x->reads || !x->writes)
    c->mode |= fresh ? OPERAND_FILL : OPERAND_READ;
  if (fresh && s->room.units.group_of[tensor] < 0)
    c->mode |= OPERAND_BEGIN;
  uint32_t mode = c->mode;
  if (!collect_group (s, c, tensor, op, err))
    return false;
  c->mode = mode;
  return room_find (&s->room, tensor, op, collect, c, err);
}

/* A stay may end with an op that does not look at it: it is that op's to the end all the same. */
static bool collect_ends (replay_state *s, collecting *c, int32_t op, error *err) {
  const room *r = &s->room;
  c->mode = 0;
  for (int32_t i = 0; i < s->plan->n_moves && s->options->races; i++) {
    const move *m = &s->plan->moves[i];
    if (m->out_after != op && m->in_before != op)
      continue;
    stretch x = { .at = (int64_t)r->stay_at[stays_at (&r->stays, m->unit, m->part, op)],
                  .bytes = unit_part_bytes (&r->units.at[m->unit], s->plan->placement.granule_bytes,
                                            m->part, m->of) };
    if (!collect (c, m->unit, &x, err))
      return false;
  }
  return true;
}

static bool collect_workspace (replay_state *s, collecting *c, int32_t op, error *err) {
  int32_t stay = s->room.stays.work_stay[op];
  if (stay < 0)
    return true;
  stretch x = { .at = (int64_t)s->room.stay_at[stay],
                .bytes = s->rewritten->trace->ops[op].workspace_bytes };
  c->version = 0;
  c->per_step = 1;
  c->mode = OPERAND_WRITE | OPERAND_BEGIN;
  return collect (c, s->rewritten->trace->n_tensors, &x, err);
}

/* The k-th use of a tensor by op: rows of (tensor, k) by op. */
typedef struct use_row {
  int32_t tensor, number;
} use_row;

static bool uses_by_op (replay_state *s, arena *a, int32_t **offset, use_row **rows, error *err) {
  const trace *t = s->rewritten->trace;
  const uses *u = &s->room.uses;
  int32_t *fill = NEW (a, (int64_t)t->n_ops + 1, int32_t, err);
  if (!ALLOC (a, *offset, (int64_t)t->n_ops + 1, err) ||
      !ALLOC (a, *rows, u->offset[t->n_tensors], err) || fill == NULL)
    return false;
  for (int32_t i = 0; i < u->offset[t->n_tensors]; i++)
    (*offset)[u->at[i].op + 1]++;
  for (int32_t k = 0; k < t->n_ops; k++) {
    (*offset)[k + 1] += (*offset)[k];
    fill[k] = (*offset)[k];
  }
  for (int32_t x = 0; x < t->n_tensors; x++)
    for (int32_t i = 0; i < uses_count (u, x); i++)
      (*rows)[fill[u->at[u->offset[x] + i].op]++] = (use_row){ x, i };
  return true;
}

static bool collect_all (replay_state *s, collecting *c, const int32_t *offset, const use_row *rows,
                         error *err) {
  for (int32_t k = 0; k < s->rewritten->trace->n_ops; k++) {
    s->op_offset[k] = (int32_t)c->count;
    for (int32_t i = offset[k]; i < offset[k + 1]; i++)
      if (!collect_use (s, c, rows[i].tensor, rows[i].number, k, err))
        return false;
    if (!collect_ends (s, c, k, err) || !collect_workspace (s, c, k, err))
      return false;
  }
  s->op_offset[s->rewritten->trace->n_ops] = (int32_t)c->count;
  return true;
}

/* On a GPU the operands lie in pinned memory beside the plan's arena, where its kernels can read
   them; they are verify's own and not counted as the plan's. */
bool replay_operands (replay_state *s, arena *a, error *err) {
  int32_t n_ops = s->rewritten->trace->n_ops, *offset;
  use_row *rows;
  if (!ALLOC (a, s->op_offset, (int64_t)n_ops + 1, err) || !uses_by_op (s, a, &offset, &rows, err))
    return false;
  collecting c = { .s = s };
  if (!collect_all (s, &c, offset, rows, err))
    return false;
  s->operands_bytes = c.count * (int64_t)sizeof (kernel_operand) + (int64_t)sizeof (mismatch);
  void *room;
  if (!driver_ok (&s->driver,
                  s->driver.mem_host_alloc (&room, (size_t)s->operands_bytes,
                                            CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
                  "cuMemHostAlloc", err))
    return false;
  s->found = room;
  memset (s->found, 0, sizeof *s->found);
  s->operands = (kernel_operand *)(void *)((char *)room + sizeof (mismatch));
  c.at = s->operands;
  c.count = 0;
  return collect_all (s, &c, offset, rows, err);
}

/* ---- before the first step, after the last ---- */

typedef struct checking {
  replay_state *s;
  int64_t step;
  bool fill;
} checking;

static void note (replay_state *s, int64_t bad, int64_t step, int32_t tensor, int64_t first) {
  if (bad > 0 && s->found->count == 0)
    *s->found = (mismatch){ 0, -1, step, tensor, first };
  s->found->count += (uint64_t)bad;
}

static bool on_host (void *context, int32_t tensor, const stretch *x, error *err) {
  (void)err;
  checking *c = context;
  void *at = (void *)(uintptr_t)x->at;
  int64_t version = c->step * per_step (c->s, tensor), first = 0;
  if (c->fill)
    kernels_fill (at, x->bytes, x->offset, (uint32_t)tensor, version);
  else
    note (c->s, kernels_check (at, x->bytes, x->offset, (uint32_t)tensor, version, &first), c->step,
          tensor, first);
  return true;
}

/* One launch a stretch; they are few, and nothing is timed here. */
static bool on_device (void *context, int32_t tensor, const stretch *x, error *err) {
  checking *c = context;
  replay_state *s = c->s;
  kernel_operand *one;
  if (!driver_ok (&s->driver,
                  s->driver.mem_host_alloc ((void **)&one, sizeof *one,
                                            CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
                  "cuMemHostAlloc", err))
    return false;
  *one = (kernel_operand){ .at = (uint64_t)x->at,
                           .bytes = x->bytes,
                           .offset = x->offset,
                           .per_step = per_step (s, tensor),
                           .tensor = (uint32_t)tensor,
                           .mode = c->fill ? OPERAND_FILL : OPERAND_READ };
  kernel_op o = { .operands = one, .count = 1, .step = c->step, .op = -1, .found = s->found };
  bool good = kernels_touch (&s->driver, &s->kernels, s->stream[WALK_OPS], &o, err) &&
              driver_ok (&s->driver, s->driver.stream_synchronize (s->stream[WALK_OPS]),
                         "cuStreamSynchronize", err);
  s->driver.mem_free_host (one);
  return good;
}

static bool between_steps (replay_state *s, int64_t step, bool fill, error *err) {
  checking c = { s, step, fill };
  return room_between (&s->room, on_device, on_host, &c, err);
}

bool replay_first_bytes (replay_state *s, error *err) {
  return between_steps (s, 0, true, err);
}

bool replay_last_bytes (replay_state *s, error *err) {
  return between_steps (s, s->base + s->steps, false, err);
}
