/* A Kineto file alone.  With memory events it can be planned, approximately; without them it holds
   durations only. */
#include "trace/import/kineto/kineto.h"

static const char *confidence_of (import_job *job, const kineto_blocks *blocks) {
  if (!blocks->by_address)
    job->report->inferred =
        blocks->has_totals ? "reads, kinds; identity is guessed: no addresses"
                           : "reads, kinds; identity is guessed: no addresses; the baseline is "
                             "unknown";
  else
    job->report->inferred = "reads, kinds";
  return arena_format (job->a, job->err, "approximate: %s inferred%s%s", "reads and kinds",
                       blocks->by_address ? "" : ", identity guessed by size",
                       blocks->has_totals ? "" : ", memory held before the step unknown");
}

static bool has_memory (const kineto *k, int32_t device) {
  for (int32_t i = 0; i < k->n_memory; i++)
    if (k->memory[i].device == device)
      return true;
  return false;
}

bool kineto_import (import_job *job, const import_text *file, const import_text *snapshot,
                    trace **out) {
  kineto k;
  kineto_iteration it;
  if (!kineto_read (job, file, &k) || !kineto_nest (job, &k) || !kineto_choose (job, &k, &it) ||
      !kineto_runs (job, &k, it.window, &it) || !kineto_check_span (job, &it))
    return false;
  kineto_detail *details = NULL;
  if (snapshot) {
    details = kineto_match_snapshot (job, &k, &it, snapshot);
    if (job->err->code != ERR_none)
      return false;
  }
  const char *name = job_trace_name (job, file);
  trace_builder *b = name ? build_new (job->a, name, 1, job->err) : NULL;
  if (!b || !kineto_tensors (job, &k, &it, details, b) || !kineto_samples (job, &k, &it, b))
    return false;
  const char *confidence;
  if (has_memory (&k, it.device)) {
    kineto_blocks blocks;
    if (!kineto_pair (job, &k, it.device, &blocks))
      return false;
    confidence = confidence_of (job, &blocks);
  } else {
    confidence = "not plannable: durations only";
    job->report->advice = "no [memory] events: sizes are unknown. Profile again with "
                          "profile_memory=True, or add the execution trace of the same run as "
                          "second file";
  }
  if (!confidence)
    return false;
  build_source (b, "import", "Kineto JSON", confidence);
  *out = build_finish (b, job->err);
  return *out;
}
