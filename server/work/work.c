/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A job's folder and processes, and its answer, read from files. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/order.h"
#include "server/work/spare.h"
#include "server/work/work.h"
#include "server/service/folder.h"

enum { MOST_RATIO = 200, UNRATIONED_BYTES = 16 << 20 };

void work_path (const work *w, const char *name, char path[400]) {
  assert (w && name && path);
  snprintf (path, 400, "%s/%s", w->folder, name);
}

/* ---- the folder ---- */

static bool complain (error *err) {
  return error_set (err, ERR_file, "the state folder cannot hold a job: %s", strerror (errno));
}

/* Root's worker is somebody else, who may have what is its job's. */
static bool give (const service *s, const char *path, error *err) {
  return !s->options.worker_user ||
         lchown (path, s->options.worker_user, s->options.worker_group) == 0 || complain (err);
}

static bool give_copy (service *s, const char *from, const char *to, error *err) {
  char digest[65];
  int64_t size;
  return file_take (from, to, digest, &size, err) && give (s, to, err);
}

static bool link_files (service *s, work *w, error *err) {
  char path[400];
  for (int i = 0; i < w->call.n_files; i++) {
    const char *from = store_file (s->store, w->call.files[i].digest, w->arena, err);
    work_path (w, w->call.files[i].name, path);
    if (!from || (s->options.worker_user && !give_copy (s, from, path, err)))
      return false;
    if (!s->options.worker_user && symlink (from, path) != 0)
      return complain (err);
  }
  return true;
}

static bool make_folder (service *s, work *w, error *err) {
  char path[400];
  snprintf (w->folder, sizeof w->folder, "%s/work/%.64s.%lld", s->options.folder, w->job.id,
            (long long)w->job.attempt);
  folder_remove (w->folder);
  if (mkdir (w->folder, 0700) != 0)
    return complain (err);
  if (!give (s, w->folder, err))
    return false;
  work_path (w, "plans", path);
  if (w->kind->output == OUTPUT_PLANS && mkdir (path, 0700) != 0)
    return complain (err);
  if (w->kind->output == OUTPUT_PLANS && !give (s, path, err))
    return false;
  work_path (w, "device.json", path);
  return (!w->call.device ||
          (file_write (path, w->call.device, (int64_t)strlen (w->call.device), FILE_PLAIN, err) &&
           give (s, path, err))) &&
         link_files (s, w, err);
}

/* ---- processes ---- */

/* arguments: a command of ferry; its answer goes to a file of the folder. */
static bool run_limited (service *s, work *w, const char *const *arguments, int n, int64_t seconds,
                         const char *answer, error *err) {
  errand e = { .folder = w->folder,
               .answer = answer,
               .arguments = arguments,
               .n = n,
               .seconds = seconds,
               .trace_id = w->trace_id,
               .span_id = w->span_id };
  worker of = { .pidfd = -1, .progress = -1 };
  if (!spares_send (s, &e, &of, err))
    return false;
  w->pid = of.pid;
  w->pidfd = of.pidfd;
  w->progress = of.progress;
  w->started_ns = service_now_ns ();
  w->signals = 0;
  w->signal_ns = 0;
  return true;
}

/* A small body that grows without end when decompressed is no profile. */
static int64_t most_decoded (const service *s, const work *w) {
  char path[400];
  struct stat is;
  int64_t most = s->options.most_decoded_bytes, by_ratio = most;
  work_path (w, w->call.files[0].name, path);
  if (stat (path, &is) != 0 || __builtin_mul_overflow (is.st_size, MOST_RATIO, &by_ratio))
    return most;
  by_ratio = by_ratio > UNRATIONED_BYTES ? by_ratio : UNRATIONED_BYTES;
  return by_ratio < most ? by_ratio : most;
}

bool work_start (service *s, work *w, error *err) {
  w->pidfd = w->progress = -1;
  w->kind = kind_named (w->job.kind);
  if (!w->kind)
    return error_set (err, ERR_internal, "no such kind of job: %s", w->job.kind);
  /* So short that the worker ends by itself, with what it has, before it is told to. */
  int64_t most_s = max_of (1, (s->options.job_s - SPARE_S) * 5 / 6);
  if (!asked_call (w->kind, w->job.request, most_s, w->arena, &w->call, err) ||
      !make_folder (s, w, err))
    return false;
  if (w->kind->operand == OPERAND_BODY) {
    w->call.arguments[w->call.n++] =
        arena_format (w->arena, err, "%lld", (long long)most_decoded (s, w));
    if (w->call.name)
      w->call.arguments[w->call.n++] = w->call.name;
  }
  if (!run_limited (s, w, w->call.arguments, w->call.n, s->options.job_s, "result.json", err))
    return false;
  w->phase = WORK_RUNS;
  return true;
}

/* ---- the answer ---- */

bool work_has_plan (const work *w) {
  char path[400];
  work_path (w, w->kind->output == OUTPUT_PLANS ? "plans" : "plan.json", path);
  if (w->kind->output == OUTPUT_PLANS)
    return folder_bytes (path) > 0;
  return w->kind->output == OUTPUT_PLAN && file_exists (path);
}

bool work_verify (service *s, work *w, error *err) {
  const char *all[7 + 2 * MOST_PACK_JOBS] = { "worker", "verify" };
  char path[400];
  int n = 2;
  if (w->kind->output == OUTPUT_PLAN) {
    all[n++] = "trace.json";
    all[n++] = "plan.json";
    all[n++] = "picture.svg";
    all[n++] = "chrome.json";
    all[n++] = "timeline.json";
  } else {
    all[1] = "legal";
    for (int i = 0; i < w->call.n_files; i++) {
      const char *plan = arena_format (w->arena, err, "plans/%s.json", w->call.files[i].job);
      if (!plan)
        return false;
      work_path (w, plan, path);
      if (!file_exists (path))
        continue;
      all[n++] = w->call.files[i].name;
      all[n++] = plan;
    }
  }
  close (w->progress);
  w->progress = -1;
  if (!run_limited (s, w, all, n, VERIFY_S, "verified.json", err))
    return false;
  w->phase = WORK_VERIFIES;
  w->stop = w->stop == STOP_TIME ? STOP_NONE : w->stop; /* that was of the search */
  return true;
}

const char *work_complaint (const work *w, char text[400]) {
  char path[400];
  bytes log = { 0 };
  error ignored = { 0 };
  work_path (w, "log", path);
  snprintf (text, 400, "the worker said nothing");
  if (file_read_own (path, 1 << 24, &log, &ignored) && log.size) {
    char *end = log.data + log.size;
    while (end > log.data && (end[-1] == '\n' || end[-1] == '\r'))
      *--end = 0;
    char *from = strrchr (log.data, '\n');
    from = from ? from + 1 : log.data;
    snprintf (text, 400, "%.399s", strncmp (from, "ferry: ", 7) == 0 ? from + 7 : from);
  }
  bytes_free (&log);
  text_make_plain (text);
  return text;
}

static bool take (service *s, work *w, const char *file, char digest[65], error *err) {
  char path[400], copy[400];
  int64_t size = 0;
  work_path (w, file, path);
  snprintf (copy, sizeof copy, "%s/spool/%.64s.%lld", s->options.folder, w->job.id,
            (long long)w->job.attempt);
  if (!file_take (path, copy, digest, &size, err))
    return false;
  bool ok = store_put_file (s->store, digest, copy, err);
  if (!ok)
    unlink (copy);
  return ok;
}

static bool keep_file (service *s, work *w, const char *name, const char *file, json_writer *out,
                       error *err) {
  char path[400], digest[65];
  work_path (w, file, path);
  if (!file_has_bytes (path))
    return true;
  if (!take (s, w, file, digest, err))
    return false;
  json_add_text (out, name, digest);
  return true;
}

const char *work_keep_log (service *s, work *w, error *err) {
  json_writer out;
  bytes text = { 0 };
  const char *kept = NULL;
  if (!w->folder[0])
    return NULL;
  json_begin (&out, 0);
  json_open_object (&out);
  json_put_key (&out, "files");
  json_open_object (&out);
  bool ok = keep_file (s, w, "log", "log", &out, err);
  json_close_object (&out);
  json_close_object (&out);
  if (json_finish (&out, &text, err) && ok)
    kept = arena_string (w->arena, text.data, err);
  bytes_free (&text);
  return kept;
}

static int by_text (const void *a, const void *b) {
  return strcmp (*(const char *const *)a, *(const char *const *)b);
}

/* In the order of their names, as a JSON object has its keys; the client named the jobs in any. */
static bool keep_plans (service *s, work *w, json_writer *out, error *err) {
  const char *names[MOST_PACK_JOBS];
  int n = w->call.n_files;
  for (int i = 0; i < n; i++) {
    names[i] = arena_format (w->arena, err, "plan.%s", w->call.files[i].job);
    if (!names[i])
      return false;
  }
  qsort (names, (size_t)n, sizeof *names, by_text);
  for (int i = 0; i < n; i++) {
    const char *file = arena_format (w->arena, err, "plans/%s.json", names[i] + 5);
    if (!file || !keep_file (s, w, names[i], file, out, err))
      return false;
  }
  return true;
}

/* An import's trace gets its owners and names, and the upload is known from now on. */
static bool keep_trace (service *s, work *w, char digest[65], error *err) {
  char path[400];
  bytes info = { 0 };
  if (!take (s, w, "trace.json", digest, err))
    return false;
  work_path (w, "result.json", path);
  bool ok = file_read_own (path, 1 << 20, &info, err);
  trace_row t = { .id = digest, .info = info.data };
  ok = ok && store_add_trace (s->store, &t, w->call.files[0].digest, err) &&
       store_give_trace (s->store, &w->job, digest, w->call.fingerprint, err);
  bytes_free (&info);
  return ok;
}

static bool read_verified (const work *w, bytes *out, error *err) {
  char path[400];
  work_path (w, "verified.json", path);
  return !file_exists (path) || file_read_own (path, 1 << 20, out, err);
}

bool work_keep (service *s, work *w, bool *held, error *err) {
  json_writer out;
  char trace[65] = "";
  bytes text = { 0 }, verified = { 0 };
  json_begin (&out, 0);
  json_open_object (&out);
  json_add_int (&out, "exit", w->status);
  json_put_key (&out, "files");
  json_open_object (&out);
  bool ok = (w->kind->output != OUTPUT_TRACE || keep_trace (s, w, trace, err)) &&
            keep_file (s, w, "chrome", "chrome.json", &out, err) &&
            keep_file (s, w, "log", "log", &out, err) &&
            keep_file (s, w, "picture", "picture.svg", &out, err) &&
            keep_file (s, w, "plan", "plan.json", &out, err) &&
            (w->kind->output != OUTPUT_PLANS || keep_plans (s, w, &out, err)) &&
            keep_file (s, w, "result", "result.json", &out, err) &&
            keep_file (s, w, "timeline", "timeline.json", &out, err) &&
            read_verified (w, &verified, err);
  json_close_object (&out);
  if (ok && verified.size)
    json_add_raw (&out, "verified", verified.data);
  json_close_object (&out);
  ok = json_finish (&out, &text, err) && ok;
  ok = ok && store_finish (s->store, &w->job, JOB_done, text.data, NULL, held, err);
  if (ok && *held && *trace) /* to those too who asked meanwhile */
    ok = store_give_trace (s->store, &w->job, trace, w->call.fingerprint, err);
  bytes_free (&text);
  bytes_free (&verified);
  return ok;
}
