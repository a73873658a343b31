/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A Kineto file and a memory snapshot of one run.  Both list the same allocs in the same order, one
   as blocks and one as requested, so the iteration's sizes are looked for in the snapshot's.  That
   gives exact sizes and lines of source; reads stay inferred. */
#include "trace/import/kineto/kineto.h"
#include "trace/import/snapshot/snapshot.h"

static int64_t padded (int64_t bytes) {
  return (bytes + 511) / 512 * 512;
}

/* Comparisons in all, for files in which nearly everything looks alike. */
#define MOST_COMPARED ((int64_t)1 << 28)

/* How many allocs from a place on are those wanted, one after the other. */
static int32_t alike (const int64_t *wanted, int32_t n, const int64_t *all) {
  int32_t i = 0;
  while (i < n && all[i] <= wanted[i] && all[i] >= kineto_least_held (wanted[i]))
    i++;
  return i;
}

/* The last place of the wanted blocks among the snapshot's allocs; -1: nowhere.  Blocks may be
   larger than what was asked for, so that places are compared one by one. */
static int32_t find_sizes (const int64_t *wanted, int32_t n, const int64_t *all, int32_t n_all,
                           int32_t *places) {
  int32_t found = -1;
  int64_t compared = 0;
  *places = 0;
  for (int32_t at = n_all - n; n > 0 && at >= 0 && compared < MOST_COMPARED; at--) {
    int32_t same = alike (wanted, n, all + at);
    compared += same + 1;
    if (same < n)
      continue;
    found = found < 0 ? at : found;
    ++*places;
  }
  return found;
}

kineto_detail *kineto_match_snapshot (import_job *job, const kineto *k, const kineto_iteration *it,
                                      const import_text *file) {
  snapshot s;
  import_options options = job->options;
  job->options.device = it->device;
  bool ok = snapshot_read (job, file, &s);
  job->options = options;
  if (!ok)
    return NULL;
  int64_t *wanted = NEW (job->scratch, k->n_memory, int64_t, job->err);
  int64_t *all = NEW (job->scratch, s.n_allocs, int64_t, job->err);
  const snapshot_block **blocks = NEW (job->scratch, s.n_allocs, const snapshot_block *, job->err);
  kineto_detail *details = NEW (job->scratch, k->n_memory, kineto_detail, job->err);
  if (!wanted || !all || !blocks || !details)
    return NULL;
  for (int32_t i = 0; i < s.n_blocks; i++)
    if (s.blocks[i].alloc >= 0) {
      blocks[s.blocks[i].alloc] = &s.blocks[i];
      all[s.blocks[i].alloc] = padded (s.blocks[i].bytes);
    }
  int32_t n = 0, places;
  for (int32_t i = 0; i < k->n_memory; i++) {
    const kineto_memory *e = &k->memory[i];
    if (e->device == it->device && e->bytes > 0 && e->at_ns >= it->window.start_ns &&
        e->at_ns < it->window.end_ns)
      wanted[n++] = e->bytes;
  }
  int32_t from = find_sizes (wanted, n, all, s.n_allocs, &places);
  if (from < 0) {
    report_warn (job, "memory snapshots that do not hold the allocs of the iteration: left out", 1,
                 file->name);
    return NULL;
  }
  if (places > 1)
    report_warn (job, "places where the iteration fits into the snapshot; the last was taken",
                 places, NULL);
  for (int32_t i = 0, at = from; i < k->n_memory; i++) {
    const kineto_memory *e = &k->memory[i];
    if (e->device != it->device || e->bytes <= 0 || e->at_ns < it->window.start_ns ||
        e->at_ns >= it->window.end_ns)
      continue;
    details[i] = (kineto_detail){ blocks[at]->bytes, blocks[at]->line };
    at++;
  }
  job->report->joined =
      arena_format (job->a, job->err, "%d allocs with those of the snapshot by size", n);
  return details;
}
