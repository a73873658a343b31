/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Traces: uploaded in any form that import reads, made by a worker, named by their bytes. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/api/api.h"
#include "server/service/folder.h"
#include "server/api/routes.h"

enum { IMPORT_WAIT_S = 10, LIST_DEFAULT = 20, LIST_MOST = 100 };

/* A weak tag will do where the same answer would only be sent again. */
static bool names (const char *list, const char *tag, bool weak) {
  for (const char *at = list; (at = strstr (at, tag)); at++)
    if (weak || at - list < 2 || strncmp (at - 2, "W/", 2) != 0)
      return true;
  return strcmp (list, "*") == 0;
}

void api_match_tag (const request *q, reply *p, const char *tag) {
  const char *has = request_list (q, "If-None-Match");
  bool looks = strcmp (q->method, "GET") == 0 || strcmp (q->method, "HEAD") == 0;
  if (!looks || p->status != 200 || !has || !names (has, tag, true))
    return;
  bytes_free (&p->body);
  if (p->file >= 0)
    close (p->file);
  p->file = -1;
  p->type = NULL;
  p->status = 304;
}

bool api_is_as_asked (const request *q, reply *p, const char *tag) {
  const char *wanted = request_list (q, "If-Match");
  if (!wanted || names (wanted, tag, false))
    return true;
  reply_problem (p, q, PROBLEM_changed, "it is not as If-Match says: its ETag is %s", tag);
  return false;
}

/* The digest of what never changes is its tag. */
enum { DIGEST_TAG = 70 };

static void digest_tag (const char *digest, char tag[DIGEST_TAG]) {
  snprintf (tag, DIGEST_TAG, "\"%.64s\"", digest);
}

void api_reply_path (request *q, reply *p, const char *path, const char *digest, const char *type) {
  struct stat is;
  char tag[DIGEST_TAG];
  error err = { 0 };
  p->file = open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (p->file < 0 || fstat (p->file, &is) != 0) {
    reply_problem (p, q, PROBLEM_unavailable, "a stored file cannot be read");
    return;
  }
  digest_tag (digest, tag);
  p->status = 200;
  p->type = type;
  p->file_bytes = is.st_size;
  reply_header (p, "ETag", arena_string (q->arena, tag, &err));
  reply_header (p, "Cache-Control", "private, max-age=31536000, immutable");
  api_match_tag (q, p, tag);
}

static void put_trace (json_writer *w, const trace_row *t) {
  json_open_object (w);
  json_add_text (w, "fingerprint", t->fingerprint);
  json_add_raw (w, "info", t->info);
  json_add_text (w, "trace", t->id);
  json_close_object (w);
}

static void reply_trace (request *q, reply *p, const trace_row *t, int status) {
  json_writer w;
  error ignored = { 0 };
  json_begin (&w, 0);
  put_trace (&w, t);
  reply_json (p, status, &w);
  reply_header (p, "Location", arena_format (q->arena, &ignored, "/v1/traces/%s", t->id));
}

/* ---- uploads ---- */

/* To send it once more, when it is done, is to ask for it too. */
static void own_import (service *s, request *q, const job_row *j) {
  error err = { 0 };
  trace_row t;
  bool found = false;
  const char *body = strstr (j->request, "\"body\":\""); /* canonical: no blanks */
  const char *digest = body ? arena_string_n (q->arena, body + 8, 64, &err) : NULL;
  const char *print = strstr (j->request, "\"fingerprint\":\"");
  print = print ? arena_string_n (q->arena, print + 15, strcspn (print + 15, "\""), &err) : NULL;
  if (digest && store_find_alias (s->store, digest, NULL, q->arena, &t, &found, &err) && found &&
      !(store_own (s->store, t.id, q->owner, &err) &&
        (!print || store_name_trace (s->store, t.id, q->owner, print, j->finished_ms, &err))))
    service_log (s, "error", err.text, "job_id", j->id, NULL);
}

bool api_has_room (service *s, request *q, reply *p) {
  char blobs[300];
  snprintf (blobs, sizeof blobs, "%s/blobs", s->options.folder);
  if (folder_bytes (blobs) + q->body_bytes <= s->options.disk_bytes)
    return true;
  reply_problem (p, q, PROBLEM_disk_full,
                 "traces and results may take %lld bytes (--disk-quota; --keep says how long)",
                 (long long)s->options.disk_bytes);
  return false;
}

/* The upload is durable before the job is: an accepted one is never lost. */
static bool keep_upload (service *s, request *q, reply *p) {
  error err = { 0 };
  if (!api_has_room (s, q, p))
    return false;
  if (store_put_file (s->store, q->digest, q->spool, &err))
    return true;
  reply_error (p, q, &err);
  return false;
}

static void reply_failed_import (request *q, reply *p, const job_row *j) {
  const char *detail = NULL;
  error ignored = { 0 };
  json_document *d =
      j->problem ? json_open (j->problem, (int64_t)strlen (j->problem), &ignored) : NULL;
  json root = d ? json_root (d) : (json){ 0 }, one = d ? json_member (&root, "detail") : root;
  if (d && !json_get_text (&one, &detail, &ignored))
    detail = NULL;
  reply_problem (p, q, PROBLEM_import_failed, "%s", detail ? detail : "");
  json_close (d);
}

/* The job of the upload, which a second round of waiting finds again. */
static void follow_import (service *s, request *q, reply *p, const job_row *j) {
  trace_row t;
  bool found = false;
  error err = { 0 };
  if (j->state == JOB_done) {
    own_import (s, q, j);
    if (!store_find_alias (s->store, q->digest, q->owner, q->arena, &t, &found, &err))
      reply_error (p, q, &err);
    else if (!found)
      reply_problem (p, q, PROBLEM_internal, "the import left no trace");
    else
      reply_trace (q, p, &t, 201);
    return;
  }
  if (j->state == JOB_failed) {
    reply_failed_import (q, p, j);
    return;
  }
  if (j->state == JOB_cancelled) {
    reply_problem (p, q, PROBLEM_cancelled, "its import was stopped; sent again, it begins again");
    return;
  }
  api_follow (s, q, p, j, IMPORT_WAIT_S);
}

static const char *print_of (request *q, reply *p, bool *ok) {
  const char *print = request_query (q, "fingerprint");
  *ok = !print || name_is_plain (print);
  if (!*ok)
    reply_problem (p, q, PROBLEM_invalid, "fingerprint: letters, digits, . _ -, at most 64");
  return print;
}

/* The end of a path, for people: odd characters are of no use there. */
static const char *plain_name (request *q, const char *from, size_t n) {
  enum { MOST_NAME = 100 };
  static const char plain[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+=@,()[] ";
  error ignored = { 0 };
  for (size_t i = 0; i < n; i++)
    if (from[i] == '/' || from[i] == '\\') {
      from += i + 1;
      n -= i + 1;
      i = (size_t)-1;
    }
  char *name = arena_string_n (q->arena, from, n < MOST_NAME ? n : MOST_NAME, &ignored);
  for (char *at = name; at && *at; at++)
    if (!strchr (plain, *at))
      *at = '_';
  return name && *name && strcmp (name, ".") != 0 && strcmp (name, "..") != 0 ? name : NULL;
}

/* The name of the file that is sent: of the query, or of the field that downloads have. */
static const char *name_of (request *q) {
  const char *name = request_query (q, "name"), *field = request_header (q, "Content-Disposition");
  if (name)
    return plain_name (q, name, strlen (name));
  const char *at = field ? strcasestr (field, "filename=") : NULL;
  if (!at)
    return NULL;
  at += strlen ("filename=");
  return *at == '"' ? plain_name (q, at + 1, strcspn (at + 1, "\""))
                    : plain_name (q, at, strcspn (at, "; "));
}

/* Bytes that another has sent are new to who sends them for the first time. */
static bool known_already (service *s, request *q, reply *p, const char *print, bool *failed) {
  trace_row t;
  bool found = false, mine = false, now = false;
  error err = { 0 };
  *failed =
      !store_find_alias (s->store, q->digest, q->owner, q->arena, &t, &mine, &err) ||
      !store_find_alias (s->store, q->digest, NULL, q->arena, &t, &found, &err) ||
      (found &&
       (!store_own (s->store, t.id, q->owner, &err) ||
        (print && !store_name_trace (s->store, t.id, q->owner, print, store_now_ms (), &err)) ||
        !store_find_trace (s->store, t.id, q->owner, q->arena, &t, &now, &err)));
  if (*failed)
    reply_error (p, q, &err);
  else if (found)
    reply_trace (q, p, &t, mine ? 200 : 201);
  return found;
}

void api_upload (service *s, request *q, reply *p) {
  asked a;
  job_row j;
  bool found = false, ok, failed = false;
  error err = { 0 };
  const char *print = print_of (q, p, &ok);
  if (!ok)
    return;
  if (!q->body_bytes) {
    reply_problem (p, q, PROBLEM_invalid, "the body is empty: send a trace or a profile");
    return;
  }
  if (!q->wait_until_ns && (known_already (s, q, p, print, &failed) || failed))
    return;
  if (!asked_import (q->digest, print, name_of (q), q->arena, &a, &err)) {
    reply_error (p, q, &err);
    return;
  }
  if (q->wait_until_ns) { /* it waited */
    if (!store_find_job (s->store, a.id, NULL, q->arena, &j, &found, &err) || !found)
      reply_problem (p, q, PROBLEM_internal, "the import is gone");
    else
      follow_import (s, q, p, &j);
    return;
  }
  if (keep_upload (s, q, p) && api_put_job (s, q, p, "imports", &a, &j))
    follow_import (s, q, p, &j);
}

/* A client that has the bytes asks before it sends them. */
void api_uploaded (service *s, request *q, reply *p) {
  trace_row t;
  bool found = false;
  error err = { 0 };
  if (digest_is_valid (q->part[0]) &&
      !store_find_alias (s->store, q->part[0], q->owner, q->arena, &t, &found, &err))
    reply_error (p, q, &err);
  else if (!found)
    reply_problem (p, q, PROBLEM_not_found, "nobody of yours has sent these bytes");
  else
    reply_trace (q, p, &t, 200);
}

/* ---- traces ---- */

static bool find_trace (service *s, request *q, reply *p, trace_row *t) {
  bool found = false;
  error err = { 0 };
  if (digest_is_valid (q->part[0]) &&
      !store_find_trace (s->store, q->part[0], q->owner, q->arena, t, &found, &err)) {
    reply_error (p, q, &err);
    return false;
  }
  if (!found)
    reply_problem (p, q, PROBLEM_not_found, "there is no such trace");
  return found;
}

void api_trace (service *s, request *q, reply *p) {
  trace_row t;
  if (find_trace (s, q, p, &t))
    reply_trace (q, p, &t, 200);
}

void api_trace_content (service *s, request *q, reply *p) {
  trace_row t;
  error err = { 0 };
  if (!find_trace (s, q, p, &t))
    return;
  const char *path = store_file (s->store, t.id, q->arena, &err);
  if (path)
    api_reply_path (q, p, path, t.id, "application/json");
  else
    reply_error (p, q, &err);
}

void api_trace_drop (service *s, request *q, reply *p) {
  trace_row t;
  error err = { 0 };
  char tag[DIGEST_TAG];
  if (!find_trace (s, q, p, &t))
    return;
  digest_tag (t.id, tag);
  if (!api_is_as_asked (q, p, tag))
    return;
  if (store_disown (s->store, t.id, q->owner, &err))
    p->status = 204;
  else
    reply_error (p, q, &err);
}

void api_traces (service *s, request *q, reply *p) {
  bool ok;
  const char *after = request_query (q, "after"), *print = print_of (q, p, &ok);
  int64_t most = LIST_DEFAULT;
  trace_row *all;
  int n = 0;
  error err = { 0 };
  json_writer w;
  if (!ok || !request_number (q, p, "limit", MOST_INT, &most))
    return;
  most = most < 1 ? 1 : most > LIST_MOST ? LIST_MOST : most;
  store_page page = { q->owner, after ? after : "", print, (int)most };
  if (!store_list_traces (s->store, &page, q->arena, &all, &n, &err)) {
    reply_error (p, q, &err);
    return;
  }
  json_begin_object (&w, 0);
  json_add_array (&w, "traces");
  for (int i = 0; i < n; i++)
    put_trace (&w, &all[i]);
  json_close_array (&w);
  json_close_object (&w);
  reply_json (p, 200, &w);
  if (n == most)
    reply_header (p, "Link",
                  arena_format (q->arena, &err,
                                "</v1/traces?limit=%lld%s%s&after=%s>; rel=\"next\"",
                                (long long)most, print ? "&fingerprint=" : "", print ? print : "",
                                all[n - 1].id));
}
