/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Jobs: asked for, looked at, waited for, stopped. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "server/api/api.h"
#include "server/ask/asked.h"
#include "server/work/crew.h"
#include "server/api/routes.h"

enum { MOST_WAIT_S = 30, MOST_INLINE = 1 << 18, LIST_DEFAULT = 20, LIST_MOST = 100 };

/* ---- a job as JSON ---- */

static const char *link_to (request *q, const job_row *j, const char *rest, error *err) {
  return arena_format (q->arena, err, "/v1/%s/%s%s", j->kind, j->id, rest);
}

static void put_links (json_writer *w, request *q, const job_row *j) {
  error ignored = { 0 };
  json_put_key (w, "links");
  json_open_object (w);
  json_add_text (w, "events", link_to (q, j, "/events", &ignored));
  json_add_text (w, "log", link_to (q, j, "/files/log", &ignored));
  if (j->kind[0] == 's' || j->kind[0] == 'm')
    json_add_text (w, "plan", link_to (q, j, "/files/plan", &ignored));
  json_add_text (w, "result", link_to (q, j, "/result", &ignored));
  json_add_text (w, "self", link_to (q, j, "", &ignored));
  json_close_object (w);
}

/* A file of a finished job by its name there; NULL: it has none, or *err. */
static const char *file_of (service *s, request *q, const job_row *j, const char *name,
                            const char **digest, error *err) {
  const char *path = NULL, *text = NULL;
  json_document *d = j->outcome ? json_open (j->outcome, (int64_t)strlen (j->outcome), err) : NULL;
  if (!d)
    return NULL;
  json root = json_root (d), files = json_member (&root, "files");
  json one = json_member (&files, name);
  if (json_get_text (&one, &text, err) && text && (*digest = arena_string (q->arena, text, err)))
    path = store_file (s->store, *digest, q->arena, err);
  json_close (d);
  return path;
}

/* Results that were imported, or are small, stand in the status itself. */
static void put_result (json_writer *w, service *s, request *q, const job_row *j) {
  const char *digest;
  error err = { 0 };
  bytes text = { 0 };
  const char *path = file_of (s, q, j, "result", &digest, &err);
  if (path && file_read_raw (path, MOST_INLINE, &text, &err))
    json_add_raw (w, "result", text.data);
  bytes_free (&text);
}

static const char *verified_of (request *q, const job_row *j) {
  error ignored = { 0 };
  const char *text = NULL;
  json_document *d = json_open (j->outcome, (int64_t)strlen (j->outcome), &ignored);
  json root = d ? json_root (d) : (json){ 0 };
  json one = d ? json_member (&root, "verified") : (json){ 0 };
  if (d && !json_is_absent (&one))
    text = json_canonical (&one, true, q->arena, &ignored);
  json_close (d);
  return text;
}

/* The status of the command behind the job: 0, 1 (the answer is no) or 4 (a limit ended the
   search). */
static int64_t exit_of (const job_row *j) {
  error ignored = { 0 };
  int64_t number = 0;
  json_document *d = json_open (j->outcome, (int64_t)strlen (j->outcome), &ignored);
  json root = d ? json_root (d) : (json){ 0 };
  json one = d ? json_member (&root, "exit") : (json){ 0 };
  if (d && !json_get_int (&one, 0, 255, &number, &ignored))
    number = 0;
  json_close (d);
  return number;
}

void api_put_status (json_writer *w, service *s, request *q, const job_row *j, bool whole) {
  error ignored = { 0 };
  int64_t position = 0;
  json_open_object (w);
  json_add_int (w, "attempt", j->attempt);
  json_add_int (w, "created_ms", j->created_ms);
  json_add_int (w, "events", j->events);
  if (j->state == JOB_done)
    json_add_int (w, "exit", exit_of (j));
  if (j->finished_ms)
    json_add_int (w, "finished_ms", j->finished_ms);
  json_add_text (w, "id", j->id);
  json_add_text (w, "kind", j->kind);
  put_links (w, q, j);
  if (whole && j->state == JOB_queued && store_position (s->store, j, &position, &ignored))
    json_add_int (w, "position", position);
  if (j->state == JOB_failed && j->problem)
    json_add_raw (w, "problem", j->problem);
  json_add_raw (w, "request", j->request);
  if (whole && j->state == JOB_done)
    put_result (w, s, q, j);
  if (j->started_ms)
    json_add_int (w, "started_ms", j->started_ms);
  json_add_text (w, "state", job_state_names[j->state]);
  const char *verified = j->state == JOB_done ? verified_of (q, j) : NULL;
  if (verified)
    json_add_raw (w, "verified", verified);
  json_close_object (w);
}

static void reply_job (service *s, request *q, reply *p, const job_row *j, int status) {
  json_writer w;
  char tag[96];
  error ignored = { 0 };
  json_begin (&w, 0);
  api_put_status (&w, s, q, j, true);
  reply_json (p, status, &w);
  snprintf (tag, sizeof tag, "\"%s-%lld-%lld\"", job_state_names[j->state], (long long)j->attempt,
            (long long)j->events);
  reply_header (p, "Cache-Control", "no-cache");
  reply_header (p, "ETag", arena_string (q->arena, tag, &ignored));
  api_match_tag (q, p, tag);
}

/* ---- Prefer: wait=N (RFC 7240) ---- */

static int64_t wait_s (const request *q) {
  const char *prefer = request_header (q, "Prefer");
  const char *at = prefer ? strcasestr (prefer, "wait=") : NULL;
  if (!at || strcasestr (prefer, "respond-async"))
    return 0;
  int64_t seconds = strtoll (at + 5, NULL, 10);
  return seconds < 0 ? 0 : seconds > MOST_WAIT_S ? MOST_WAIT_S : seconds;
}

/* True if the reply is put off until the job has changed. */
static bool waits (request *q, reply *p, const job_row *j, int64_t seconds) {
  if (api_is_over (j) || q->last || seconds <= 0)
    return false;
  if (!q->wait_until_ns)
    q->wait_until_ns = service_now_ns () + seconds * 1000000000;
  p->wait = j->id;
  return true;
}

void api_follow (service *s, request *q, reply *p, const job_row *j, int64_t seconds) {
  error ignored = { 0 };
  if (waits (q, p, j, seconds))
    return;
  if (api_is_over (j) && q->wait_until_ns)
    reply_header (p, "Preference-Applied",
                  arena_format (q->arena, &ignored, "wait=%lld", (long long)wait_s (q)));
  if (!api_is_over (j))
    reply_header (p, "Retry-After", "1");
  reply_header (p, "Location", link_to (q, j, "", &ignored));
  reply_job (s, q, p, j, api_is_over (j) ? 200 : 202);
}

/* ---- asking ---- */

bool api_put_job (service *s, request *q, reply *p, const char *kind, const asked *a,
                  job_row *out) {
  error err = { 0 };
  bool found = false;
  submit_answer answer;
  job_row job = { .id = a->id, .kind = kind, .request = a->text };
  if (!store_submit (s->store, &job, q->owner, s->options.most_queued, &answer, &err) ||
      (answer != SUBMIT_FULL &&
       !store_find_job (s->store, a->id, NULL, q->arena, out, &found, &err))) {
    reply_error (p, q, &err);
    return false;
  }
  if (answer == SUBMIT_FULL) {
    reply_problem (p, q, PROBLEM_queue_full, "%lld jobs are queued (--max-queue)",
                   (long long)s->options.most_queued);
    reply_header (p, "Retry-After", "5");
    return false;
  }
  service_count (
      s, answer == SUBMIT_JOINED ? METRIC_jobs_joined_total : METRIC_jobs_submitted_total, 1);
  if (answer != SUBMIT_JOINED) {
    crew_wake (s);
    service_changed (s);
  }
  return found;
}

/* Traces of others are as absent as those that nobody has. */
static bool check_traces (service *s, request *q, reply *p, asked *a) {
  error err = { 0 };
  for (int i = 0; i < a->n_traces; i++) {
    trace_row t;
    bool found = false;
    if (!store_find_trace (s->store, a->traces[i], q->owner, q->arena, &t, &found, &err)) {
      reply_error (p, q, &err);
      return false;
    }
    if (!found && a->n_faults < MOST_FAULTS) {
      fault *f = &a->faults[a->n_faults++];
      snprintf (f->pointer, sizeof f->pointer, "/trace");
      snprintf (f->detail, sizeof f->detail, "there is no trace %.64s", a->traces[i]);
    }
  }
  return true;
}

/* The job of a request that waited: it is not asked for a second time, or a cancelled one would
   come back. */
static bool find_asked (service *s, request *q, reply *p, const char *id, job_row *j) {
  bool found = false;
  error err = { 0 };
  if (store_find_job (s->store, id, q->owner, q->arena, j, &found, &err) && found)
    return true;
  reply_problem (p, q, PROBLEM_not_found, "the job is gone");
  return false;
}

void api_submit (service *s, request *q, reply *p) {
  const job_kind *k = kind_named (q->part[0]);
  asked a;
  error err = { 0 };
  job_row j;
  json_writer w;
  if (k->operand == OPERAND_BODY) {
    reply_problem (p, q, PROBLEM_wrong_method, "imports are made by POST /v1/traces");
    reply_header (p, "Allow", "GET");
    return;
  }
  if (!asked_read (k, &q->body, q->arena, &a, &err) && err.code) {
    reply_problem (p, q, err.code == ERR_memory ? PROBLEM_internal : PROBLEM_malformed, "%s",
                   err.text);
    return;
  }
  if (!check_traces (s, q, p, &a))
    return;
  if (a.n_faults) {
    reply_faults (p, q, a.faults, a.n_faults);
    return;
  }
  if (a.only_validate) {
    json_begin (&w, 0);
    json_open_object (&w);
    json_add_text (&w, "id", a.id);
    json_add_bool (&w, "valid", true);
    json_close_object (&w);
    reply_json (p, 200, &w);
    return;
  }
  if (q->wait_until_ns ? find_asked (s, q, p, a.id, &j) : api_put_job (s, q, p, k->name, &a, &j))
    api_follow (s, q, p, &j, wait_s (q));
}

/* ---- looking ---- */

bool api_find_job (service *s, request *q, reply *p, job_row *j) {
  error err = { 0 };
  bool found = false;
  if (digest_is_valid (q->part[1]) &&
      !store_find_job (s->store, q->part[1], q->owner, q->arena, j, &found, &err)) {
    reply_error (p, q, &err);
    return false;
  }
  if (found && strcmp (j->kind, q->part[0]) == 0)
    return true;
  reply_problem (p, q, PROBLEM_not_found, "there is no such job");
  return false;
}

void api_job (service *s, request *q, reply *p) {
  job_row j;
  if (!api_find_job (s, q, p, &j) || waits (q, p, &j, wait_s (q)))
    return;
  if (j.state == JOB_done && strcmp (j.kind, "imports") == 0)
    api_own_import (s, q, &j);
  reply_job (s, q, p, &j, 200);
}

void api_jobs (service *s, request *q, reply *p) {
  const char *after = request_query (q, "after"), *limit = request_query (q, "limit");
  int64_t most = limit ? strtoll (limit, NULL, 10) : LIST_DEFAULT;
  error err = { 0 };
  job_row *all;
  int n = 0;
  json_writer w;
  most = most < 1 ? 1 : most > LIST_MOST ? LIST_MOST : most;
  store_page page = { q->owner, after ? after : "", q->part[0], (int)most };
  if (!store_list_jobs (s->store, &page, q->arena, &all, &n, &err)) {
    reply_error (p, q, &err);
    return;
  }
  json_begin (&w, 0);
  json_open_object (&w);
  json_put_key (&w, "jobs");
  json_open_array (&w);
  for (int i = 0; i < n; i++)
    api_put_status (&w, s, q, &all[i], false);
  json_close_array (&w);
  json_close_object (&w);
  reply_json (p, 200, &w);
  if (n == most)
    reply_header (p, "Link",
                  arena_format (q->arena, &err, "</v1/%s?limit=%lld&after=%s>; rel=\"next\"",
                                q->part[0], (long long)most, all[n - 1].id));
}

/* The bytes of a file of the job, which never change. */
static void reply_file (service *s, request *q, reply *p, const job_row *j, const char *name) {
  const char *digest = "", *path;
  struct stat is;
  error err = { 0 };
  path = file_of (s, q, j, name, &digest, &err);
  if (!path && err.code) {
    reply_error (p, q, &err);
    return;
  }
  if (!path) {
    reply_problem (p, q, PROBLEM_not_found, "the job has no file of that name");
    return;
  }
  bool drawn = strcmp (name, "picture") == 0;
  if (drawn) /* opened by itself it must not run anything */
    reply_header (p, "Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'");
  api_reply_path (q, p, path, digest,
                  drawn                       ? "image/svg+xml"
                  : strcmp (name, "log") == 0 ? "text/plain; charset=utf-8"
                                              : "application/json");
  p->keep = p->status == 200 && stat (path, &is) == 0 && is.st_size <= MOST_INLINE;
}

static bool must_be_done (request *q, reply *p, const job_row *j) {
  error err = { 0 };
  if (j->state == JOB_done)
    return true;
  if (j->state == JOB_cancelled)
    reply_problem (p, q, PROBLEM_cancelled, "the job was cancelled");
  else if (j->state == JOB_failed)
    reply_problem (p, q, PROBLEM_failed, "the job failed; its status says why");
  else
    reply_problem (p, q, PROBLEM_not_finished, "the job is %s", job_state_names[j->state]);
  reply_header (p, "Location", link_to (q, j, "", &err));
  return false;
}

static bool accepts_json (const request *q) {
  const char *accept = request_header (q, "Accept");
  return !accept || !*accept || strstr (accept, "*/*") || strstr (accept, "application/*") ||
         strstr (accept, "application/json");
}

void api_result (service *s, request *q, reply *p) {
  job_row j;
  if (!api_find_job (s, q, p, &j) || !must_be_done (q, p, &j))
    return;
  if (!accepts_json (q))
    reply_problem (p, q, PROBLEM_not_acceptable, "results are application/json");
  else
    reply_file (s, q, p, &j, "result");
}

void api_file (service *s, request *q, reply *p) {
  job_row j;
  if (api_find_job (s, q, p, &j) && must_be_done (q, p, &j))
    reply_file (s, q, p, &j, q->part[2]);
}

void api_cancel (service *s, request *q, reply *p) {
  job_row j;
  error err = { 0 };
  bool stopped = false;
  if (!api_find_job (s, q, p, &j))
    return;
  if (api_is_over (&j)) {
    p->status = 204;
    return;
  }
  if (!store_cancel (s->store, j.id, q->owner, &stopped, &err)) {
    reply_error (p, q, &err);
    return;
  }
  crew_wake (s);
  service_changed (s);
  p->status = 202;
}
