/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The remains of a finished job: its result in several forms, and its files. */
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "server/api/api.h"
#include "server/api/csv.h"
#include "server/api/routes.h"

enum { MOST_INLINE = 1 << 18, MOST_TABLE = 1 << 24 };

const char *api_job_file (service *s, request *q, const job_row *j, const char *name,
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

/* The bytes of a file of the job, which never change. */
static void reply_file (service *s, request *q, reply *p, const job_row *j, const char *name) {
  const char *digest = "", *path;
  struct stat is;
  error err = { 0 };
  path = api_job_file (s, q, j, name, &digest, &err);
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
  /* A job that failed may be asked for again, and say something else then. */
  p->keep = j->state == JOB_done && p->status == 200 && stat (path, &is) == 0 &&
            is.st_size <= MOST_INLINE;
}

/* A job that failed has its log, and nothing else. */
static bool must_be_done (request *q, reply *p, const job_row *j) {
  error err = { 0 };
  if (j->state == JOB_done)
    return true;
  if (j->state == JOB_cancelled)
    reply_problem (p, q, PROBLEM_cancelled, "the job was cancelled");
  else if (j->state == JOB_failed)
    reply_problem (p, q, PROBLEM_failed, "the job failed; its status says why, and its log more");
  else
    reply_problem (p, q, PROBLEM_not_finished, "the job is %s", job_state_names[j->state]);
  reply_header (p, "Location", api_job_link (q, j, "", &err));
  return false;
}

/* ---- forms ---- */

static const struct {
  const char *name, *type;
  const char *file; /* of the job; NULL: made of its result */
} forms[] = {
  { "json", "application/json", "result" },
  { "csv", "text/csv", NULL },
  { "svg", "image/svg+xml", "picture" },
  { "chrome", NULL, "chrome" },
};
enum { FORMS = sizeof forms / sizeof *forms, FORM_NONE = -1 };

/* ?format= decides, then Accept; whoever takes anything gets JSON. */
static int form_of (const request *q) {
  const char *format = request_query (q, "format"), *accept = request_list (q, "Accept");
  for (int i = 0; format && i < FORMS; i++)
    if (strcmp (format, forms[i].name) == 0)
      return i;
  if (format)
    return FORM_NONE;
  if (!accept || !*accept || strstr (accept, "*/*") || strstr (accept, "application/*"))
    return 0;
  for (int i = 0; i < FORMS; i++)
    if (forms[i].type && strstr (accept, forms[i].type))
      return i;
  return FORM_NONE;
}

static void reply_csv (service *s, request *q, reply *p, const job_row *j) {
  const char *digest;
  error err = { 0 };
  bytes text = { 0 };
  const char *path = api_job_file (s, q, j, "result", &digest, &err);
  if (!path || !file_read_raw (path, MOST_TABLE, &text, &err) ||
      !csv_write (j->kind, &text, &p->body, &err))
    reply_error (p, q, &err);
  else {
    p->status = 200;
    p->type = "text/csv; charset=utf-8";
  }
  bytes_free (&text);
}

void api_result (service *s, request *q, reply *p) {
  job_row j;
  reply_header (p, "Vary", "Accept");
  if (!api_find_job (s, q, p, &j) || !must_be_done (q, p, &j))
    return;
  int form = form_of (q);
  if (form == FORM_NONE)
    reply_problem (p, q, PROBLEM_not_acceptable, "results are json, csv, svg or chrome");
  else if (forms[form].file)
    reply_file (s, q, p, &j, forms[form].file);
  else if (csv_has (j.kind))
    reply_csv (s, q, p, &j);
  else
    reply_problem (p, q, PROBLEM_not_acceptable, "%s have no table", j.kind);
}

void api_file (service *s, request *q, reply *p) {
  job_row j;
  if (api_find_job (s, q, p, &j) &&
      ((j.state == JOB_failed && strcmp (q->part[2], "log") == 0) || must_be_done (q, p, &j)))
    reply_file (s, q, p, &j, q->part[2]);
}
