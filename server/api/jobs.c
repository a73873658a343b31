/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Jobs: submitted, listed, waited for, stopped. */
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "server/api/api.h"
#include "server/api/cards.h"
#include "server/ask/asked.h"
#include "server/work/crew.h"
#include "server/api/routes.h"

enum {
  MOST_WAIT_S = 30,
  MOST_INLINE = 1 << 18,
  MOST_KEY = 128,
  TAG_TEXT = 128,
  LIST_DEFAULT = 20,
  LIST_MOST = 100
};

/* ---- a job as JSON ---- */

const char *api_job_link (request *q, const job_row *j, const char *rest, error *err) {
  return arena_format (q->arena, err, "/v1/%s/%s%s", j->kind, j->id, rest);
}

/* Names of files that a job of its kind comes to have. */
static bool may_have (const job_row *j, const char *name) {
  const job_kind *k = kind_named (j->kind);
  return strcmp (name, "plan") != 0 || (k && k->output == OUTPUT_PLAN);
}

/* A job that has ended names the files that there are, another those that are to come. */
static bool has_file (const json *files, const job_row *j, const char *name) {
  json one = json_member (files, name);
  return api_is_over (j) ? json_is_string (&one) : may_have (j, name);
}

static void put_links (json_writer *w, request *q, const job_row *j) {
  error ignored = { 0 };
  json_document *d =
      j->outcome ? json_open (j->outcome, (int64_t)strlen (j->outcome), &ignored) : NULL;
  json root = d ? json_root (d) : (json){ 0 };
  json files = d ? json_member (&root, "files") : (json){ 0 };
  json_add_object (w, "links");
  json_add_text (w, "events", api_job_link (q, j, "/events", &ignored));
  if (has_file (&files, j, "log"))
    json_add_text (w, "log", api_job_link (q, j, "/files/log", &ignored));
  if (has_file (&files, j, "plan"))
    json_add_text (w, "plan", api_job_link (q, j, "/files/plan", &ignored));
  if (has_file (&files, j, "result"))
    json_add_text (w, "result", api_job_link (q, j, "/result", &ignored));
  json_add_text (w, "self", api_job_link (q, j, "", &ignored));
  json_close_object (w);
  json_close (d);
}

/* Results that were imported, or are small, stand in the status itself. */
static void put_result (json_writer *w, service *s, request *q, const job_row *j) {
  const char *digest;
  error err = { 0 };
  bytes text = { 0 };
  const char *path = api_job_file (s, q, j, "result", &digest, &err);
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

/* It changes with all that a status has: one that waits moves up in the queue, and one that was
   cancelled begins anew. */
static void status_tag (service *s, const job_row *j, char tag[TAG_TEXT]) {
  error ignored = { 0 };
  int64_t position = 0;
  if (j->state != JOB_queued || !store_position (s->store, j, &position, &ignored))
    position = 0;
  snprintf (tag, TAG_TEXT, "\"%s-%lld-%lld-%lld-%lld\"", job_state_names[j->state],
            (long long)j->attempt, (long long)j->events, (long long)position,
            (long long)j->created_ms);
}

static void reply_job (service *s, request *q, reply *p, const job_row *j, int status) {
  json_writer w;
  char tag[TAG_TEXT];
  error ignored = { 0 };
  json_begin (&w, 0);
  status_tag (s, j, tag); /* before the status: who has an older tag gets a newer status */
  api_put_status (&w, s, q, j, true);
  reply_json (p, status, &w);
  reply_header (p, "Cache-Control", "no-cache");
  reply_header (p, "ETag", arena_string (q->arena, tag, &ignored));
  api_match_tag (q, p, tag);
}

/* ---- Prefer: wait=N (RFC 7240) ---- */

/* The first of them counts. Beside respond-async it says how long the reply may take before it is
   of a job that goes on, which it is anyway. */
static int64_t wait_s (const request *q) {
  int64_t seconds;
  for (const char *at = request_list (q, "Prefer"); at; at = strchr (at, ',')) {
    at += strspn (at, ", \t");
    if (strncasecmp (at, "wait", 4) != 0)
      continue;
    const char *value = at + 4 + strspn (at + 4, " \t");
    if (*value != '=')
      continue;
    seconds = strtoll (value + 1, NULL, 10);
    return seconds < 0 ? 0 : seconds > MOST_WAIT_S ? MOST_WAIT_S : seconds;
  }
  return 0;
}

/* True if the reply is put off until the job has changed. */
static bool waits (request *q, reply *p, const job_row *j, int64_t seconds) {
  if (api_is_over (j) || q->last || seconds <= 0)
    return false;
  if (!q->wait_until_ns)
    q->wait_until_ns = monotonic_ns () + seconds * 1000000000;
  p->wait = j->id;
  return true;
}

void api_follow (service *s, request *q, reply *p, const job_row *j, int64_t seconds) {
  assert (seconds >= 0);
  error ignored = { 0 };
  if (waits (q, p, j, seconds))
    return;
  if (api_is_over (j) && q->wait_until_ns)
    reply_header (p, "Preference-Applied",
                  arena_format (q->arena, &ignored, "wait=%lld", (long long)wait_s (q)));
  if (!api_is_over (j))
    reply_header (p, "Retry-After", "1");
  reply_header (p, "Location", api_job_link (q, j, "", &ignored));
  reply_job (s, q, p, j, api_is_over (j) ? 200 : 202);
}

/* ---- asking ---- */

bool api_put_job (service *s, request *q, reply *p, const char *kind, const asked *a,
                  job_row *out) {
  error err = { 0 };
  bool found = false;
  submit_answer answer;
  job_row job = { .id = a->id,
                  .kind = kind,
                  .request = a->text,
                  .trace = q->trace + 3,
                  .length_ms = a->length_s * 1000 };
  if (!store_submit (s->store, &job, q->owner,
                     (queue_limit){ s->options.most_queued, s->tokens != NULL }, &answer, &err) ||
      (answer != SUBMIT_FULL &&
       !store_find_job (s->store, a->id, NULL, q->arena, out, &found, &err))) {
    reply_error (p, q, &err);
    return false;
  }
  if (answer == SUBMIT_FULL) {
    reply_problem (p, q, PROBLEM_queue_full,
                   "the queue has no place left for you: %lld jobs (--max-queue), of which"
                   " one owner may have as many as are free",
                   (long long)s->options.most_queued);
    reply_header (p, "Retry-After", "5");
    return false;
  }
  service_count_of (
      s, answer == SUBMIT_JOINED ? METRIC_jobs_joined_total : METRIC_jobs_submitted_total,
      kind_named (kind)->name, NULL, NULL);
  if (answer != SUBMIT_JOINED) {
    crew_wake (s);
    service_changed (s);
  } else if (found && api_is_over (out))
    api_saw (s, out->id);
  return found;
}

/* Traces of others are as absent as those that nobody has. */
static bool check_traces (service *s, request *q, reply *p, const job_kind *k, asked *a,
                          const char **infos) {
  error err = { 0 };
  for (int i = 0; i < a->n_traces; i++) {
    trace_row t;
    bool found = false;
    if (!store_find_trace (s->store, a->traces[i], q->owner, q->arena, &t, &found, &err)) {
      reply_error (p, q, &err);
      return false;
    }
    infos[i] = found ? t.info : "";
    if (!found && a->n_faults < MOST_FAULTS) {
      fault *f = &a->faults[a->n_faults++];
      if (k->operand == OPERAND_JOBS)
        snprintf (f->pointer, sizeof f->pointer, "/jobs/%d/trace", i);
      else
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

/* Equal requests are one job anyway; the key finds a client that uses it for two questions. */
static bool key_is_kept (service *s, request *q, reply *p, const char *id) {
  const char *key = request_header (q, "Idempotency-Key");
  bool kept = false;
  error err = { 0 };
  if (!key)
    return true;
  if (!*key || strlen (key) > MOST_KEY || !text_is_printable (key))
    reply_problem (p, q, PROBLEM_malformed, "Idempotency-Key: 1 to %d characters without blanks",
                   MOST_KEY);
  else if (!store_promise (s->store, q->owner, key, id, &kept, &err))
    reply_error (p, q, &err);
  else if (!kept)
    reply_problem (p, q, PROBLEM_invalid, "this Idempotency-Key was used for another request");
  return kept;
}

/* Only new work makes more files: a question that is asked again has its answer, or gets it. */
static bool is_new (service *s, const request *q, const char *id) {
  job_row j;
  bool found = false;
  error ignored = { 0 };
  return !store_find_job (s->store, id, NULL, q->arena, &j, &found, &ignored) || !found ||
         j.state == JOB_failed || j.state == JOB_cancelled;
}

static void reply_valid (reply *p, const asked *a) {
  json_writer w;
  json_begin_object (&w, 0);
  json_add_text (&w, "id", a->id);
  json_add_bool (&w, "valid", true);
  json_close_object (&w);
  reply_json (p, 200, &w);
}

/* The same question has the same answer for ever, once it has one. */
static void follow (service *s, request *q, reply *p, const job_row *j) {
  api_follow (s, q, p, j, wait_s (q));
  p->keep = j->state == JOB_done && p->status == 200 && !q->wait_until_ns &&
            !request_header (q, "Idempotency-Key");
}

void api_submit (service *s, request *q, reply *p) {
  const job_kind *k = kind_named (q->part[0]);
  const char *infos[MOST_PACK_JOBS];
  asked a;
  error err = { 0 };
  job_row j;
  if (k->operand == OPERAND_BODY) {
    reply_problem (p, q, PROBLEM_wrong_method, "imports are made by POST /v1/traces");
    reply_header (p, "Allow", "GET");
    return;
  }
  if (!asked_read (k, &q->body, s->options.devices, q->arena, &a, &err) && err.code) {
    reply_problem (p, q, err.code == ERR_memory ? PROBLEM_internal : PROBLEM_malformed, "%s",
                   err.text);
    return;
  }
  if (!check_traces (s, q, p, k, &a, infos))
    return;
  bool fresh = !q->wait_until_ns && !a.n_faults && is_new (s, q, a.id);
  if (fresh)
    cards_check (s, q, k, &a, infos);
  if (a.n_faults) {
    reply_faults (p, q, a.faults, a.n_faults);
    return;
  }
  if (a.only_validate) {
    reply_valid (p, &a);
    return;
  }
  if (!q->wait_until_ns && ((fresh && !api_has_room (s, q, p)) || !key_is_kept (s, q, p, a.id)))
    return;
  if (q->wait_until_ns ? find_asked (s, q, p, a.id, &j) : api_put_job (s, q, p, k->name, &a, &j))
    follow (s, q, p, &j);
}

/* ---- looking ---- */

void api_saw (service *s, const char *job) {
  error err = { 0 };
  if (!store_saw (s->store, job, &err))
    service_log (s, "error", err.text, "job_id", job, NULL);
}

bool api_find_job (service *s, request *q, reply *p, job_row *j) {
  error err = { 0 };
  bool found = false;
  if (digest_is_valid (q->part[1]) &&
      !store_find_job (s->store, q->part[1], q->owner, q->arena, j, &found, &err)) {
    reply_error (p, q, &err);
    return false;
  }
  if (found && strcmp (j->kind, q->part[0]) == 0) {
    if (api_is_over (j))
      api_saw (s, j->id);
    return true;
  }
  reply_problem (p, q, PROBLEM_not_found, "there is no such job");
  return false;
}

void api_job (service *s, request *q, reply *p) {
  job_row j;
  if (!api_find_job (s, q, p, &j) || waits (q, p, &j, wait_s (q)))
    return;
  reply_job (s, q, p, &j, 200);
}

void api_jobs (service *s, request *q, reply *p) {
  const char *after = request_query (q, "after");
  int64_t most = LIST_DEFAULT;
  error err = { 0 };
  job_row *all;
  int n = 0;
  json_writer w;
  if (!request_number (q, p, "limit", MOST_INT, &most))
    return;
  most = most < 1 ? 1 : most > LIST_MOST ? LIST_MOST : most;
  store_page page = { q->owner, after ? after : "", q->part[0], (int)most };
  if (!store_list_jobs (s->store, &page, q->arena, &all, &n, &err)) {
    reply_error (p, q, &err);
    return;
  }
  json_begin_object (&w, 0);
  json_add_array (&w, "jobs");
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

void api_cancel (service *s, request *q, reply *p) {
  job_row j;
  error err = { 0 };
  bool stopped = false;
  char tag[TAG_TEXT];
  if (!api_find_job (s, q, p, &j))
    return;
  status_tag (s, &j, tag);
  if (!api_is_as_asked (q, p, tag))
    return;
  if (api_is_over (&j)) {
    p->status = 204;
    return;
  }
  if (!store_cancel (s->store, j.id, q->owner, &stopped, &err)) {
    reply_error (p, q, &err);
    return;
  }
  if (stopped)
    service_count_of (s, METRIC_jobs_total, kind_named (j.kind)->name, "cancelled", NULL);
  crew_wake (s);
  service_changed (s);
  p->status = 202;
}
