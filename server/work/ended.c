/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The end of a worker's process: an answer that is verified and kept, a failure, or one more try.
   */
#include <assert.h>
#include <math.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/work/work.h"
#include "server/service/folder.h"

enum { STATUS_LIMIT = 4, STATUS_INTERRUPTED = 130 };

static void drop_folder (work *w) {
  if (w->pidfd >= 0)
    close (w->pidfd);
  if (w->progress >= 0)
    close (w->progress);
  if (w->folder[0])
    folder_remove (w->folder);
  w->pidfd = w->progress = -1;
  w->folder[0] = 0;
}

static void clear (service *s, work *w) {
  drop_folder (w);
  arena_free (w->arena);
  *w = (work){ .pidfd = -1, .progress = -1 };
  service_changed (s);
}

/* `state` is a text that stays. */
static void count_end (service *s, const work *w, const char *state) {
  service_count_of (s, METRIC_jobs_total, w->kind ? w->kind->name : "none", state, NULL);
  service_observe (s, METRIC_solve_duration_seconds, state, w->worked_ns);
  if (w->bound_ns > 0 && w->step_ns >= w->bound_ns)
    service_observe (s, METRIC_solve_gap_ratio, NULL,
                     (int64_t)fmin ((double)(w->step_ns - w->bound_ns) / (double)w->bound_ns * 1e9,
                                    (double)INT64_MAX / 2));
}

static void log_end (service *s, const work *w, const char *state) {
  service_log (s, "info", "job ended", "job_id", w->job.id, "kind", w->job.kind, "span_id",
               w->span_id, "state", state, "trace_id", w->trace_id, NULL);
}

/* The store takes no end of it, as on a full disk: the job would be running for ever. What it wrote
   goes, which may be what is in the way, and it is queued again once the store can say so. */
static void strand (service *s, work *w, const error *err) {
  service_log (s, "error", err->text, "job_id", w->job.id, NULL);
  log_end (s, w, "stranded");
  drop_folder (w);
  w->phase = WORK_STRANDED;
  w->stop = STOP_NONE;
  w->told_ns = monotonic_ns ();
}

void work_rescue (service *s, work *w) {
  enum { RESCUE_NS = 1000000000 };
  error ignored = { 0 };
  bool ends = w->stop == STOP_DRAIN; /* the next daemon queues it */
  if (!ends && monotonic_ns () - w->told_ns < RESCUE_NS)
    return;
  w->told_ns = monotonic_ns ();
  if (store_requeue (s->store, &w->job, false, &ignored) || ends)
    clear (s, w);
}

void work_fail (service *s, work *w, const char *type, const char *detail) {
  assert (s && w && type && detail);
  json_writer out;
  bytes text = { 0 };
  error err = { 0 };
  bool held = false;
  const char *remains = work_keep_log (s, w, &err);
  json_begin_object (&out, 0);
  json_add_text (&out, "detail", detail);
  json_add_text (&out, "type", type);
  json_close_object (&out);
  if (err.code) /* of its log */
    service_log (s, "error", err.text, "job_id", w->job.id, NULL);
  err = (error){ 0 };
  bool told = json_finish (&out, &text, &err) &&
              store_finish (s->store, &w->job, JOB_failed, remains, text.data, &held, &err);
  bytes_free (&text);
  if (!told) {
    strand (s, w, &err);
    return;
  }
  if (held)
    count_end (s, w, "failed");
  log_end (s, w, "failed");
  clear (s, w);
}

/* Back into the queue, until it was tried often enough. */
static void again (service *s, work *w, bool blamed, const char *why) {
  error err = { 0 };
  if (blamed && w->job.tries >= s->options.most_tries) {
    work_fail (s, w, "/problems/worker-lost", why);
    return;
  }
  if (!store_requeue (s->store, &w->job, blamed, &err)) {
    strand (s, w, &err);
    return;
  }
  log_end (s, w, "queued");
  clear (s, w);
}

static void keep (service *s, work *w) {
  error err = { 0 };
  bool held = false;
  if (!work_keep (s, w, &held, &err)) {
    service_log (s, "error", err.text, "job_id", w->job.id, NULL);
    again (s, w, true, err.text);
    return;
  }
  if (held)
    count_end (s, w, "done");
  else
    service_count (s, METRIC_lease_lost_total, 1);
  log_end (s, w, held ? "done" : "lost");
  clear (s, w);
}

static void died (service *s, work *w, int signal) {
  char text[120];
  if (signal == SIGXCPU || signal == SIGXFSZ || signal == SIGABRT) {
    snprintf (text, sizeof text, "the worker met its limit of %s",
              signal == SIGXCPU   ? "processor time"
              : signal == SIGXFSZ ? "bytes written"
                                  : "memory");
    work_fail (s, w, "/problems/worker-limit", text);
    return;
  }
  snprintf (text, sizeof text, "the worker died by signal %d", signal);
  again (s, w, true, text);
}

/* Its time was up, and it has written no answer by then; once more would be no better. */
static void out_of_time (service *s, work *w) {
  char text[120];
  if (w->phase == WORK_VERIFIES)
    snprintf (text, sizeof text, "the plan was not checked within %d seconds", VERIFY_S);
  else if (w->call.time_limit_s)
    snprintf (text, sizeof text, "nothing was found within a time limit of %lld s",
              (long long)w->call.time_limit_s);
  else
    snprintf (text, sizeof text,
              "nothing was found within the %lld seconds that a job may take (--job-seconds)",
              (long long)s->options.job_s);
  work_fail (s, w, "/problems/worker-limit", text);
}

/* 130: an interrupt, which is how the daemon says that time is up. */
static bool has_answered (const work *w, work_end e) {
  char path[400];
  work_path (w, "result.json", path);
  return file_has_bytes (path) && !e.by_signal &&
         (e.number == 0 || e.number == 1 || e.number == STATUS_LIMIT ||
          (e.number == STATUS_INTERRUPTED && w->stop == STOP_TIME));
}

void work_ended (service *s, work *w, work_end e) {
  char text[400];
  error err = { 0 };
  if (w->stop == STOP_CANCEL || w->stop == STOP_LOST) {
    if (w->stop == STOP_CANCEL) /* counted with the request */
      service_observe (s, METRIC_solve_duration_seconds, "cancelled", w->worked_ns);
    log_end (s, w, w->stop == STOP_CANCEL ? "cancelled" : "lost");
    clear (s, w);
  } else if (w->stop == STOP_DRAIN) {
    again (s, w, false, "");
  } else if (w->stop == STOP_TIME &&
             (e.by_signal || (e.number == STATUS_INTERRUPTED && !has_answered (w, e)))) {
    out_of_time (s, w);
  } else if (e.by_signal) {
    died (s, w, e.number);
  } else if (w->phase == WORK_VERIFIES && e.number != 0) {
    service_count (s, METRIC_verify_failures_total, 1);
    work_fail (s, w, "/problems/verification-failed", work_complaint (w, text));
  } else if (w->phase == WORK_VERIFIES) {
    keep (s, w);
  } else if (!has_answered (w, e)) {
    work_fail (s, w, e.number == 2 || e.number == 3 ? "/problems/invalid" : "/problems/failed",
               work_complaint (w, text));
  } else {
    w->status = e.number == STATUS_INTERRUPTED ? STATUS_LIMIT : e.number;
    if (!work_has_plan (w))
      keep (s, w);
    else if (!work_verify (s, w, &err))
      again (s, w, true, err.text);
  }
}
