/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/import/et/generations.h"

#include <assert.h>

typedef struct splitter {
  import_job *job;
  const walk_node *nodes;
  mention *mentions;
  int32_t *before; /* per mention: the one before it of the same storage, or -1 */
  id_map current;  /* per storage: the last mention */
  generations *out;
  int64_t room;
} splitter;

static bool is_descendant (const walk_node *nodes, int32_t node, int32_t of) {
  /* A descendant was entered later, so the climb ends at the first that was entered earlier.  Calls
     nest some tens deep; a file that nests them deeper than this is not worth its time. */
  for (int depth = 0; depth < 256 && node >= 0 && nodes[node].axis > nodes[of].axis; depth++)
    node = nodes[node].parent;
  return node == of;
}

/* True if a descendant of the node has named the storage since it began to live.  A descendant that
   did stands close behind in the walk: only calls of other threads come between. */
static bool named_below (const splitter *s, int32_t last, int32_t node) {
  if (last < 0)
    return false;
  int32_t generation = s->mentions[last].generation;
  for (int looked = 0; last >= 0 && looked < 64; looked++, last = s->before[last]) {
    if (s->mentions[last].generation != generation)
      return false;
    if (is_descendant (s->nodes, s->mentions[last].node, node))
      return true;
  }
  return false;
}

/* True if the node itself has named it as an input: those mentions stand right before. */
static bool is_own_input (const splitter *s, int32_t last, int32_t node) {
  for (; last >= 0 && s->mentions[last].node == node; last = s->before[last])
    if (!s->mentions[last].output)
      return true;
  return false;
}

static bool is_own_output (const splitter *s, int32_t last, int32_t node) {
  return last >= 0 && s->mentions[last].node == node && s->mentions[last].output;
}

static bool open_generation (splitter *s, const mention *m, bool defined) {
  generations *g = s->out;
  if (!GROW (s->job->scratch, g->at, &s->room, (int64_t)g->count + 1, s->job->err))
    return false;
  int64_t axis = s->nodes[m->node].axis;
  g->at[g->count++] = (generation){ .storage = m->storage,
                                    .first_axis = axis,
                                    .last_axis = axis,
                                    .first_node = m->node,
                                    .last_node = m->node,
                                    .defined = defined };
  return true;
}

static bool add (splitter *s, int32_t i) {
  mention *m = &s->mentions[i];
  int32_t *slot = id_map_at (&s->current, m->storage, s->job->err);
  if (!slot)
    return false;
  int32_t last = *slot;
  bool fresh = m->output && !is_own_input (s, last, m->node);
  bool defines = fresh && !is_own_output (s, last, m->node) && !named_below (s, last, m->node);
  if (last < 0 || defines) {
    m->generation = s->out->count;
    if (!open_generation (s, m, defines))
      return false;
  } else
    m->generation = s->mentions[last].generation;
  generation *g = &s->out->at[m->generation];
  const walk_node *node = &s->nodes[m->node];
  if (m->bytes > g->bytes)
    g->bytes = m->bytes;
  if (node->axis > g->last_axis) {
    g->last_axis = node->axis;
    g->last_node = m->node;
  }
  g->touched |= node->phase;
  /* A call hands up from its parts what was written there. */
  if (m->written && (!fresh || defines))
    g->written |= node->phase;
  s->before[i] = last;
  *slot = i;
  return true;
}

/* In its deterministic mode PyTorch fills memory as it allocates it: that is no use of an older
   tensor. */
static bool is_filled (const walk_node *nodes, int32_t node) {
  for (int depth = 0; depth < 4 && nodes[node].parent >= 0; depth++) {
    node = nodes[node].parent;
    if (nodes[node].allocates)
      return true;
  }
  return false;
}

bool generations_split (import_job *job, const walk_node *nodes, mention *mentions,
                        int64_t n_mentions, generations *out) {
  assert (n_mentions >= 0 && (mentions || n_mentions == 0));
  *out = (generations){ 0 };
  splitter s = { .job = job, .nodes = nodes, .mentions = mentions, .out = out };
  if (n_mentions >= INT32_MAX)
    return error_set (job->err, ERR_input, "more than 2^31 mentions of tensors");
  s.before = NEW (job->scratch, n_mentions, int32_t, job->err);
  s.current = id_map_new (job->scratch);
  if (!s.before)
    return false;
  for (int32_t i = 0; i < n_mentions; i++) {
    if (is_filled (nodes, mentions[i].node))
      mentions[i].output = mentions[i].written = true;
    if (!add (&s, i))
      return false;
  }
  out->n_storages = s.current.count;
  return true;
}

uint8_t generation_first_phase (const generation *g, const walk_node *nodes) {
  return nodes[g->first_node].phase;
}

uint8_t generation_last_phase (const generation *g, const walk_node *nodes) {
  return nodes[g->last_node].phase;
}

static bool is_optimizer (const generation *g) {
  return !g->defined && g->touched == PHASE_OPT && g->written;
}

bool generations_have_optimizer (const generations *g) {
  for (int32_t i = 0; i < g->count; i++)
    if (is_optimizer (&g->at[i]))
      return true;
  return false;
}

tensor_kind generation_kind (const generation *g, const walk_node *nodes, bool optimizer_seen) {
  uint8_t first = generation_first_phase (g, nodes), last = generation_last_phase (g, nodes);
  if (!g->defined) {
    if (!g->written)
      return TENSOR_INPUT;
    if (is_optimizer (g))
      return TENSOR_OPTIMIZER;
    return g->written & PHASE_BWD ? TENSOR_GRADIENT : TENSOR_PARAMETER;
  }
  if (first == PHASE_BWD && g->touched & PHASE_OPT)
    return TENSOR_GRADIENT;
  if (first == PHASE_OPT && last == PHASE_OPT && !optimizer_seen && g->kept)
    return TENSOR_OPTIMIZER;
  return first == PHASE_FWD && last == PHASE_BWD ? TENSOR_ACTIVATION : TENSOR_TEMPORARY;
}
