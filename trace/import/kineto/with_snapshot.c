/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A Kineto file and a memory snapshot of one run.  Both list the same allocs in the same order, one
   padded to 512 bytes and one as requested, so the iteration's sizes are looked for in the
   snapshot's.  That gives exact sizes and lines of source; reads stay inferred. */
#include "trace/import/kineto/kineto.h"
#include "trace/import/snapshot/snapshot.h"

static int64_t padded (int64_t bytes) {
  return (bytes + 511) / 512 * 512;
}

/* The last place of the wanted sequence among the snapshot's allocs, by Knuth, Morris and Pratt;
   -1: nowhere.  Blocks of allocs come first and in order only by their `alloc`. */
static int32_t find_sizes (import_job *job, const int64_t *wanted, int32_t n, const int64_t *all,
                           int32_t n_all, int32_t *places) {
  int32_t *border = NEW (job->scratch, (int64_t)n + 1, int32_t, job->err);
  *places = 0;
  if (!border || n == 0)
    return -1;
  border[0] = -1;
  for (int32_t i = 0, b = -1; i < n;) {
    while (b >= 0 && wanted[i] != wanted[b])
      b = border[b];
    border[++i] = ++b;
  }
  int32_t found = -1;
  for (int32_t i = 0, m = 0; i < n_all; i++) {
    while (m >= 0 && (m == n || all[i] != wanted[m]))
      m = border[m];
    if (++m == n) {
      found = i + 1 - m;
      ++*places;
    }
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
  int32_t from = find_sizes (job, wanted, n, all, s.n_allocs, &places);
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
