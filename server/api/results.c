/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The remains of a finished job: its result in several forms, and its files. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
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
  if (json_read_text (&files, name, &text, err) && text &&
      (*digest = arena_string (q->arena, text, err)))
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

/* Whoever takes anything gets JSON. */
static int form_of_range (const char *range, size_t length) {
  static const struct {
    const char *range;
    int form;
  } wide[] = { { "*/*", 0 }, { "application/*", 0 }, { "text/*", 1 }, { "image/*", 2 } };
  for (int i = 0; i < FORMS; i++)
    if (forms[i].type && strlen (forms[i].type) == length &&
        strncasecmp (range, forms[i].type, length) == 0)
      return i;
  for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
    if (strlen (wide[i].range) == length && strncasecmp (range, wide[i].range, length) == 0)
      return wide[i].form;
  return FORM_NONE;
}

/* How much a range is wanted, from its parameters: `;q=0.5`; 1 without it, 0: not at all. */
static double wanted (const char *parameters, const char *end) {
  for (const char *at = parameters; at < end; at += strcspn (at, ";,")) {
    at += 1 + strspn (at + 1, " \t");
    if (strncasecmp (at, "q=", 2) == 0)
      return strtod (at + 2, NULL);
  }
  return 1;
}

static int form_accepted (const char *accept) {
  int form = FORM_NONE;
  double most = 0;
  for (const char *at = accept, *end; *at; at = end + (*end == ',')) {
    at += strspn (at, " \t");
    end = at + strcspn (at, ",");
    size_t length = strcspn (at, " \t;,");
    int other = form_of_range (at, length);
    double much = wanted (at + strcspn (at, ";,"), end);
    bool anything = other == 0 && at[length - 1] == '*';
    if (other != FORM_NONE && much > 0 && (anything || much > most)) {
      form = other;
      most = anything ? 2 : much;
    }
  }
  return form;
}

/* ?format= decides, then Accept. */
static int form_of (const request *q) {
  const char *format = request_query (q, "format"), *accept = request_list (q, "Accept");
  for (int i = 0; format && i < FORMS; i++)
    if (strcmp (format, forms[i].name) == 0)
      return i;
  if (format)
    return FORM_NONE;
  return accept && *accept ? form_accepted (accept) : 0;
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
