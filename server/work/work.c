/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A job's folder and processes, and its answer, read from files. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/order.h"
#include "server/work/spare.h"
#include "server/work/work.h"
#include "server/service/folder.h"
#include "trace/host.h"

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

/* NULL: the request has none. */
static bool put_text (const service *s, const work *w, const char *name, const char *text,
                      error *err) {
  char path[400];
  work_path (w, name, path);
  return !text ||
         (file_write (path, text, (int64_t)strlen (text), FILE_PLAIN, err) && give (s, path, err));
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
  return put_text (s, w, "device.json", w->call.device, err) &&
         put_text (s, w, "host.json", w->call.host, err) && link_files (s, w, err);
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
  w->started_ns = monotonic_ns ();
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

/* The file of the n-th plan of ranks; NULL: there is none, or *err. */
static const char *rank_plan (const work *w, int n, error *err) {
  char path[400];
  const char *file = n ? arena_format (w->arena, err, "plan.%d.json", n) : "plan.json";
  if (file)
    work_path (w, file, path);
  return file && n < HOST_MOST_CARDS && file_exists (path) ? file : NULL;
}

static bool has_ranks (const work *w) {
  return w->kind->letter == 'S' && w->call.host_name;
}

/* The command of a checker; each plan adds two words. */
typedef struct words {
  const char *all[7 + 2 * HOST_MOST_CARDS];
  int n;
} words;

static void say (words *to, const char *text) {
  to->all[to->n++] = text;
}

/* The daemon wrote down the answer, which says how long a step takes. */
static bool say_ranks (const service *s, const work *w, words *to, error *err) {
  char path[400];
  const char *plan;
  work_path (w, "result.json", path);
  if (!give (s, path, err))
    return false;
  say (to, "ranks");
  say (to, "result.json");
  say (to, "picture.svg");
  say (to, w->call.host_name);
  for (int i = 0; (plan = rank_plan (w, i, err)); i++) {
    say (to, w->call.files[i % w->call.n_files].name);
    say (to, plan);
  }
  return !err->code;
}

static bool say_plans (const work *w, words *to, error *err) {
  char path[400];
  say (to, "legal");
  for (int i = 0; i < w->call.n_files; i++) {
    const char *plan = arena_format (w->arena, err, "plans/%s.json", w->call.files[i].job);
    if (!plan)
      return false;
    work_path (w, plan, path);
    if (!file_exists (path))
      continue;
    say (to, w->call.files[i].name);
    say (to, plan);
  }
  return true;
}

static void say_plan (words *to) {
  static const char *const all[] = { "verify",      "trace.json",  "plan.json",
                                     "picture.svg", "chrome.json", "timeline.json" };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    say (to, all[i]);
}

static bool say_verify (const service *s, const work *w, words *to, error *err) {
  if (w->kind->output == OUTPUT_PLANS)
    return say_plans (w, to, err);
  if (has_ranks (w))
    return say_ranks (s, w, to, err);
  say_plan (to);
  return true;
}

bool work_verify (service *s, work *w, error *err) {
  words of = { { "worker" }, 1 };
  if (!say_verify (s, w, &of, err))
    return false;
  close (w->progress);
  w->progress = -1;
  if (!run_limited (s, w, of.all, of.n, VERIFY_S, "verified.json", err))
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
  json_begin_object (&out, 0);
  json_add_object (&out, "files");
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

/* Further plans of ranks: plan.1, plan.2; a JSON object has plan.10 before plan.2. */
static bool keep_rank_plans (service *s, work *w, json_writer *out, error *err) {
  const char *names[HOST_MOST_CARDS];
  size_t n = 0;
  for (int i = 1; has_ranks (w) && rank_plan (w, i, err); i++)
    if (!(names[n++] = arena_format (w->arena, err, "plan.%d", i)))
      return false;
  qsort (names, n, sizeof *names, by_text);
  for (size_t i = 0; i < n; i++) {
    const char *file = arena_format (w->arena, err, "%s.json", names[i]);
    if (!file || !keep_file (s, w, names[i], file, out, err))
      return false;
  }
  return !err->code;
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
  json_begin_object (&out, 0);
  json_add_int (&out, "exit", w->status);
  json_add_object (&out, "files");
  bool ok =
      (w->kind->output != OUTPUT_TRACE || keep_trace (s, w, trace, err)) &&
      keep_file (s, w, "chrome", "chrome.json", &out, err) &&
      keep_file (s, w, "log", "log", &out, err) &&
      keep_file (s, w, "picture", "picture.svg", &out, err) &&
      keep_file (s, w, "plan", "plan.json", &out, err) &&
      (w->kind->output != OUTPUT_PLANS || keep_plans (s, w, &out, err)) &&
      keep_rank_plans (s, w, &out, err) && keep_file (s, w, "result", "result.json", &out, err) &&
      keep_file (s, w, "timeline", "timeline.json", &out, err) && read_verified (w, &verified, err);
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
