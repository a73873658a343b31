/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From the nodes of a Chakra file to a trace. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "trace/import/common/calls.h"
#include "trace/import/chakra/chakra.h"

/* ---- groups ---- */

static int by_record (const void *a, const void *b) {
  const chakra_group *x = a, *y = b;
  return ORDER (x->record_id, y->record_id) ?: ORDER (x->first_node, y->first_node);
}

static bool map_ids (import_job *job, const chakra *c, id_map *ids) {
  *ids = id_map_new (job->scratch);
  for (int32_t i = 0; i < c->n_nodes; i++) {
    int32_t *at = id_map_at (ids, c->nodes[i].id, job->err);
    if (!at)
      return false;
    if (*at >= 0)
      return error_set (job->err, ERR_input,
                        "node %lld is there twice: are these two files in one?",
                        (long long)c->nodes[i].id);
    *at = i;
  }
  return true;
}

static bool make_groups (import_job *job, chakra *c) {
  c->groups = NEW (job->scratch, c->n_nodes, chakra_group, job->err);
  id_map records = id_map_new (job->scratch);
  if (!c->groups)
    return false;
  for (int32_t i = 0; i < c->n_nodes; i++) {
    chakra_node *n = &c->nodes[i];
    n->group = -1;
    if (!n->is_cpu)
      continue;
    /* a node without a record function id is a group of its own, in the order of its id */
    int64_t record = n->record_id >= 0 ? n->record_id : n->id;
    int32_t *at = id_map_at (&records, record, job->err);
    if (!at)
      return false;
    if (*at < 0) {
      *at = c->n_groups;
      c->groups[c->n_groups++] = (chakra_group){ record, i, 0 };
    }
  }
  if (c->n_groups)
    qsort (c->groups, (size_t)c->n_groups, sizeof *c->groups, by_record);
  for (int32_t g = 0; g < c->n_groups; g++) {
    int32_t *at = id_map_at (&records, c->groups[g].record_id, job->err);
    if (!at)
      return false;
    *at = g;
  }
  for (int32_t i = 0; i < c->n_nodes; i++) {
    chakra_node *n = &c->nodes[i];
    if (n->is_cpu)
      n->group = id_map_find (&records, n->record_id >= 0 ? n->record_id : n->id);
  }
  return true;
}

/* Some linkers write the thread of the launch where others write the stream: then most GPU nodes
   have the number of their owner's thread. */
static void tell_threads (chakra *c, const id_map *ids) {
  int64_t owned = 0, same = 0;
  for (int32_t i = 0; i < c->n_nodes; i++) {
    const chakra_node *n = &c->nodes[i];
    int32_t owner =
        !n->is_cpu && n->first_data_dep >= 0 ? id_map_find (ids, n->first_data_dep) : -1;
    if (owner < 0)
      continue;
    owned++;
    same += c->nodes[owner].thread == n->thread;
  }
  c->threads = 2 * same > owned;
}

static void own_gpu_nodes (chakra *c, const id_map *ids) {
  for (int32_t i = 0; i < c->n_nodes; i++) {
    chakra_node *n = &c->nodes[i];
    if (n->is_cpu)
      continue;
    int32_t owner = n->first_data_dep >= 0 ? id_map_find (ids, n->first_data_dep) : -1;
    if (owner >= 0 && c->nodes[owner].is_cpu) {
      n->group = c->nodes[owner].group;
      c->groups[n->group].n_gpu++;
    } else
      c->unowned++;
  }
  for (int64_t i = 0; i < c->n_deps; i++)
    if (id_map_find (ids, c->deps[i].id) < 0)
      *(c->deps[i].data ? &c->absent_data : &c->absent_control) += 1;
}

static bool is_backward (const chakra_node *n) {
  return n->forward_thread != 0 || slice_holds (n->name, "_backward") || call_is_backward (n->name);
}

/* The file keeps few of the calls that are around others, so phases are told by thread: one that
   runs a backward call, and is not the first thread of all, is autograd's; what the others do
   behind its last call is the optimizer's. */
static bool tell_phases (import_job *job, chakra *c) {
  c->walk = NEW (job->scratch, c->n_groups, walk_node, job->err);
  id_map threads = id_map_new (job->scratch);
  if (!c->walk)
    return false;
  int64_t main_thread = c->n_groups ? c->nodes[c->groups[0].first_node].thread : 0;
  for (int32_t i = 0; i < c->n_nodes; i++)
    if (c->nodes[i].is_cpu && c->nodes[i].thread != main_thread && is_backward (&c->nodes[i])) {
      int32_t *at = id_map_at (&threads, c->nodes[i].thread, job->err);
      if (!at)
        return false;
      *at = 1;
    }
  int32_t last_backward = -1;
  for (int32_t g = 0; g < c->n_groups; g++) {
    const chakra_node *n = &c->nodes[c->groups[g].first_node];
    bool backward = id_map_find (&threads, n->thread) == 1 || is_backward (n);
    c->walk[g] = (walk_node){ g, -1, backward ? PHASE_BWD : PHASE_FWD };
    if (backward)
      last_backward = g;
  }
  for (int32_t g = last_backward + 1; last_backward >= 0 && g < c->n_groups; g++)
    c->walk[g].phase = PHASE_OPT;
  return true;
}

/* Per group: inputs of its CPU nodes, outputs of all its nodes, then what GPU nodes name beside. */
enum { CPU_INPUTS, OUTPUTS, GPU_INPUTS, PARTS };

static int part_of (const chakra_node *n, const chakra_tensor *t) {
  return t->output ? OUTPUTS : n->is_cpu ? CPU_INPUTS : GPU_INPUTS;
}

static bool make_mentions (import_job *job, chakra *c) {
  int64_t *offset = NEW (job->scratch, (int64_t)c->n_groups * PARTS + 1, int64_t, job->err);
  if (!ALLOC (job->scratch, c->mentions, c->n_tensors, job->err) || !offset)
    return false;
  for (int pass = 0; pass < 2; pass++) {
    for (int32_t i = 0; i < c->n_nodes; i++) {
      const chakra_node *n = &c->nodes[i];
      for (int64_t j = 0; n->group >= 0 && j < n->n_tensors; j++) {
        const chakra_tensor *t = &c->tensors[n->first_tensor + j];
        int64_t *at = &offset[(int64_t)n->group * PARTS + part_of (n, t)];
        if (pass)
          c->mentions[*at] = (mention){ .storage = t->storage,
                                        .bytes = t->bytes,
                                        .own_bytes = t->own_bytes,
                                        .node = n->group,
                                        .output = t->output,
                                        .written = t->written };
        ++*at;
      }
    }
    if (pass)
      break;
    int64_t sum = 0;
    for (int64_t i = 0; i < (int64_t)c->n_groups * PARTS; i++) {
      int64_t count = offset[i];
      offset[i] = sum;
      sum += count;
    }
    c->n_mentions = sum;
  }
  return true;
}

/* State that the optimizer makes is filled or copied, and used again by another call. */
static void mark_kept (chakra *c) {
  for (int32_t i = 0; i < c->generations.count; i++) {
    generation *g = &c->generations.at[i];
    g->kept = g->defined && g->last_node != g->first_node &&
              call_is_factory (c->nodes[c->groups[g->first_node].first_node].name);
  }
}

bool chakra_group_nodes (import_job *job, chakra *c) {
  id_map ids;
  if (!map_ids (job, c, &ids) || !make_groups (job, c))
    return false;
  own_gpu_nodes (c, &ids);
  tell_threads (c, &ids);
  if (!tell_phases (job, c) || !make_mentions (job, c) ||
      !generations_split (job, c->walk, c->mentions, c->n_mentions, &c->generations))
    return false;
  mark_kept (c);
  return true;
}

/* ---- the trace ---- */

/* "aten::add(0)" is a piece of aten::add. */
static slice whole_name (slice name) {
  if (name.size > 3 && name.at[name.size - 1] == ')') {
    int64_t at = name.size - 2;
    while (at > 0 && name.at[at] >= '0' && name.at[at] <= '9')
      at--;
    if (at > 0 && at < name.size - 2 && name.at[at] == '(')
      name.size = at;
  }
  return name;
}

typedef struct maker {
  import_job *job;
  const chakra *c;
  int64_t stream;
  int64_t *ns;          /* per group, on the compute stream */
  bool *is_op;          /* per group */
  int32_t *op_of_group; /* the op it belongs to: its own, or the next one */
  int32_t n_ops;
  et_uses uses;
  int32_t *first_op;
  et_life *lives;
} maker;

static bool find_ops (maker *m) {
  const chakra *c = m->c;
  if (!ALLOC (m->job->scratch, m->ns, c->n_groups, m->job->err) ||
      !ALLOC (m->job->scratch, m->is_op, c->n_groups, m->job->err) ||
      !ALLOC (m->job->scratch, m->op_of_group, c->n_groups, m->job->err))
    return false;
  int64_t aside = 0;
  for (int32_t i = 0; i < c->n_nodes; i++) {
    const chakra_node *n = &c->nodes[i];
    if (n->is_cpu || n->group < 0)
      continue;
    if (chakra_stream (c, n) != m->stream) {
      aside++;
      continue;
    }
    m->is_op[n->group] = true;
    m->ns[n->group] += n->us * 1000;
  }
  for (int32_t g = 0; g < c->n_groups; g++)
    m->n_ops += m->is_op[g];
  for (int32_t g = c->n_groups - 1, op = m->n_ops; g >= 0; g--) {
    op -= m->is_op[g];
    m->op_of_group[g] = op < m->n_ops ? op : m->n_ops - 1;
  }
  if (aside)
    report_warn (m->job, "GPU nodes of other streams, whose time beside compute is not in the file",
                 aside, NULL);
  return m->n_ops > 0 ||
         error_set (m->job->err, ERR_infeasible, "no GPU nodes with an owner: nothing to plan");
}

static bool place (maker *m) {
  const chakra *c = m->c;
  if (!ALLOC (m->job->scratch, m->first_op, c->generations.count, m->job->err) ||
      !ALLOC (m->job->scratch, m->lives, c->generations.count, m->job->err))
    return false;
  for (int32_t i = 0; i < c->generations.count; i++) {
    const generation *g = &c->generations.at[i];
    m->first_op[i] = g->defined ? m->op_of_group[g->first_node] : 0;
    m->lives[i].used = true;
  }
  for (int64_t i = 0; i < c->n_mentions; i++) {
    const mention *x = &c->mentions[i];
    const generation *g = &c->generations.at[x->generation];
    bool makes = g->defined && g->first_node == x->node && x->output;
    if (!et_add_use (m->job, &m->uses, m->op_of_group[x->node], x, makes, m->is_op[x->node]))
      return false;
  }
  et_sort_uses (&m->uses, m->first_op);
  return et_sum_moved (m->job, &m->uses, &c->generations, m->n_ops);
}

static op_phase phase_of (uint8_t phase) {
  return phase == PHASE_OPT ? OP_UPDATE : phase == PHASE_BWD ? OP_BACKWARD : OP_FORWARD;
}

static bool make_trace (maker *m, const import_text *file, trace **out) {
  const chakra *c = m->c;
  const char *name = job_trace_name (m->job, file);
  trace_builder *b = name ? build_new (m->job->a, name, 1, m->job->err) : NULL;
  int32_t *tensor_of = NEW (m->job->scratch, c->generations.count, int32_t, m->job->err);
  if (!b || !tensor_of || !place (m) ||
      !et_make_tensors (m->job, &c->generations, c->walk, m->lives, m->n_ops, b, tensor_of))
    return false;
  int64_t at = 0;
  int32_t op = 0;
  for (int32_t g = 0; g < c->n_groups; g++) {
    if (!m->is_op[g])
      continue;
    const char *op_name = slice_name (whole_name (c->nodes[c->groups[g].first_node].name),
                                      m->job->scratch, m->job->err);
    if (!op_name)
      return false;
    build_op (b, op_name, phase_of (c->walk[g].phase), m->ns[g]);
    et_put_uses (&m->uses, &at, op++, tensor_of, b);
  }
  m->job->facts.measured = true;
  build_source (b, "import", "Chakra .et");
  if (c->several_devices)
    build_confidence (b, CONFIDENCE_NOT_PLANNABLE,
                      "tensors of several GPUs, of which each has a memory of its own");
  else
    build_confidence (b, CONFIDENCE_EXACT, "gaps are unknown");
  if (c->several_devices)
    m->job->report->advice = "a .et does not say on which GPU a node ran. Record an execution "
                             "trace and the Kineto file of one run (docs/record.md)";
  *out = build_finish (b, m->job->err);
  return *out;
}

bool chakra_import (import_job *job, const import_text *file, trace **out) {
  chakra c;
  if (!chakra_read (job, file, &c) || !chakra_group_nodes (job, &c))
    return false;
  if (c.n_nodes == 0)
    return error_set (job->err, ERR_infeasible, "a .et file without nodes");
  if (c.n_tensors == 0)
    return error_set (job->err, ERR_infeasible,
                      "this .et has no tensor values; link it again with tensor values kept");
  if (c.absent_control)
    report_warn (job, "control dependencies on nodes that are not in the file", c.absent_control,
                 NULL);
  if (c.absent_data)
    report_warn (job, "data dependencies on nodes that are not in the file", c.absent_data, NULL);
  if (c.unowned)
    report_warn (job, "GPU nodes without an owner", c.unowned, NULL);
  maker m = { .job = job, .c = &c };
  job->report->peak_by = "last use";
  job->report->inferred = "phases (from threads); gaps: unknown";
  return chakra_choose_stream (job, &c, &m.stream) && chakra_count_time (job, &c, m.stream) &&
         find_ops (&m) && make_trace (&m, file, out);
}
