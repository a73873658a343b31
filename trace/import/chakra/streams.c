/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which stream a GPU node ran on, which of them is planned, and how much time that leaves out. */
#include <stdio.h>

#include "trace/import/common/calls.h"
#include "trace/import/chakra/chakra.h"

static bool is_collective (const chakra_node *n) {
  return n->type == CHAKRA_COLLECTIVE || n->type == CHAKRA_SEND || n->type == CHAKRA_RECEIVE ||
         call_is_collective (n->name);
}

int64_t chakra_stream (const chakra *c, const chakra_node *n) {
  if (n->stream >= 0)
    return n->stream;
  if (c->threads)
    return is_collective (n) ? STREAM_COLLECTIVE : STREAM_COMPUTE;
  return n->thread;
}

typedef struct tally {
  int64_t stream, nodes, forward, ns;
} tally;

enum { TALLIES = 64 };

/* One row a stream; what is more than fits goes to the last. */
static int tally_streams (const chakra *c, tally rows[TALLIES]) {
  int n = 0;
  for (int32_t i = 0; i < c->n_nodes; i++) {
    const chakra_node *node = &c->nodes[i];
    if (node->is_cpu)
      continue;
    int at = 0;
    int64_t stream = chakra_stream (c, node);
    while (at < n && rows[at].stream != stream)
      at++;
    if (at == TALLIES)
      at--;
    if (at == n)
      rows[n++] = (tally){ .stream = stream };
    rows[at].ns += node->us * 1000;
    if (node->group < 0)
      continue;
    rows[at].nodes++;
    rows[at].forward += c->walk[node->group].phase == PHASE_FWD && !is_collective (node);
  }
  return n;
}

static void name_stream (int64_t stream, char text[40]) {
  if (stream == STREAM_COMPUTE)
    snprintf (text, 40, "not told");
  else if (stream == STREAM_COLLECTIVE)
    snprintf (text, 40, "collectives");
  else
    snprintf (text, 40, "%lld", (long long)stream);
}

/* The stream on which most forward work runs. */
const char *chakra_choose_stream (import_job *job, const chakra *c, int64_t *stream) {
  tally rows[TALLIES];
  char text[200] = "", name[40];
  int n = tally_streams (c, rows);
  const tally *best = n ? &rows[0] : NULL;
  for (int i = 1; i < n; i++)
    if (rows[i].forward > best->forward ||
        (rows[i].forward == best->forward && rows[i].nodes > best->nodes))
      best = &rows[i];
  *stream = best ? best->stream : STREAM_COMPUTE;
  name_stream (*stream, name);
  int length = best ? snprintf (text, sizeof text, "%s (compute)", name) : 0;
  for (int i = 0; i < n && length < 150; i++)
    if (&rows[i] != best) {
      name_stream (rows[i].stream, name);
      length += snprintf (text + length, sizeof text - (size_t)length, ", %s", name);
    }
  return job->report->streams = arena_string (job->a, text, job->err);
}

bool chakra_count_time (import_job *job, const chakra *c, int64_t stream) {
  int64_t seen = 0, kept = 0, unowned = 0;
  for (int32_t i = 0; i < c->n_nodes; i++) {
    const chakra_node *n = &c->nodes[i];
    if (n->is_cpu)
      continue;
    seen += n->us * 1000;
    if (n->group < 0)
      unowned += n->us * 1000;
    else if (chakra_stream (c, n) == stream)
      kept += n->us * 1000;
  }
  job->facts.seen_ns = seen;
  job->facts.kept_ns = kept;
  job->facts.aside_ns = seen - kept - unowned;
  job->facts.unowned_ns = unowned;
  return true;
}
