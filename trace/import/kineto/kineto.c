/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A Kineto file alone.  With memory events it can be planned, approximately; without them it holds
   durations only. */
#include "trace/import/kineto/kineto.h"

/* How reads were told, for people. */
static const char *reads_of (const import_job *job, const kineto *k) {
  return job->options.likely ? "reads guessed"
         : k->has_shapes     ? "reads are those of all ops that may read, by shapes"
                             : "reads are those of all ops that may read, and there are no shapes";
}

static const char *doubt_of (import_job *job, const kineto *k, const kineto_blocks *blocks) {
  const char *reads = reads_of (job, k);
  job->report->inferred =
      arena_format (job->a, job->err, "%s; kinds%s%s", reads,
                    blocks->by_address ? "" : "; identity is guessed: no addresses",
                    blocks->by_address || blocks->has_totals ? "" : "; the baseline is unknown");
  if (!job->report->inferred)
    return NULL;
  return arena_format (job->a, job->err, "%s, kinds inferred%s%s", reads,
                       blocks->by_address ? "" : ", identity guessed by size",
                       blocks->has_totals ? "" : ", memory held before the step unknown");
}

/* Those of other steps and devices say nothing of this one. */
static bool has_memory (const kineto *k, const kineto_iteration *it) {
  for (int32_t i = 0; i < k->n_memory; i++)
    if (k->memory[i].device == it->device && k->memory[i].at_ns >= it->window.start_ns &&
        k->memory[i].at_ns < it->window.end_ns)
      return true;
  return false;
}

void kineto_facts (import_job *job, const kineto *k, const kineto_iteration *it) {
  import_facts *f = &job->facts;
  f->measured = true;
  f->seen_ns = it->busy_ns + it->aside_ns;
  f->kept_ns = it->busy_ns;
  f->aside_ns = it->aside_ns;
  f->timeless = k->timeless;
  f->unlaunched = it->unlaunched;
  error ignored = { 0 };
  for (int32_t i = 0; i < k->n_cards; i++)
    if (k->cards[i].id == it->device && k->cards[i].name.size) {
      job->report->card = slice_name (k->cards[i].name, job->a, &ignored);
      job->report->card_bytes = k->cards[i].bytes;
    }
}

/* Such work belongs to no call, and to whatever step was on when it ran: the GPU runs behind. But
   what ran before all that has a launch was launched before the profile began. */
const char *kineto_lacks_launches (import_job *job, const kineto *k, int32_t device) {
  int64_t all = 0, launched = 0, from_ns = INT64_MAX;
  for (int32_t i = 0; i < k->n_gpu; i++)
    if (k->gpu[i].device == device && k->gpu[i].launch != NONE && k->gpu[i].start_ns < from_ns)
      from_ns = k->gpu[i].start_ns;
  for (int32_t i = 0; i < k->n_gpu; i++) {
    bool counts =
        k->gpu[i].device == device && (from_ns == INT64_MAX || k->gpu[i].start_ns >= from_ns);
    all += counts;
    launched += counts && k->gpu[i].launch != NONE;
  }
  if (2 * launched >= all)
    return NULL;
  job->report->advice =
      "the file lacks the calls that launch GPU work, or their correlation. Record "
      "with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], and keep "
      "all that the profiler writes";
  return "most GPU events have no launch";
}

bool kineto_import (import_job *job, const import_text *file, const import_text *snapshot,
                    trace **out) {
  kineto k;
  kineto_iteration it;
  if (!kineto_read (job, file, &k) || !kineto_nest (job, &k) || !kineto_choose (job, &k, &it) ||
      !kineto_runs (job, &k, it.window, &it) || !kineto_check_span (job, &it))
    return false;
  kineto_facts (job, &k, &it);
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
  const char *doubt = kineto_lacks_launches (job, &k, it.device);
  bool plannable = !doubt && has_memory (&k, &it);
  if (plannable) {
    kineto_blocks blocks;
    if (!kineto_pair (job, &k, it.device, &blocks))
      return false;
    doubt = doubt_of (job, &k, &blocks);
  } else if (!doubt) {
    doubt = "durations only";
    job->report->advice = arena_format (
        job->a, job->err,
        "no [memory] events%s: sizes are unknown. Profile again with profile_memory=True, or add "
        "the execution trace of the same run as second file",
        k.n_memory ? " of this device in this step" : "");
    if (!job->report->advice)
      return false;
  }
  if (!doubt)
    return false;
  build_source (b, "import", "Kineto JSON");
  build_confidence (b, plannable ? CONFIDENCE_APPROXIMATE : CONFIDENCE_NOT_PLANNABLE, doubt);
  *out = build_finish (b, job->err);
  return kineto_put_waits (job, &k, &it, *out);
}
