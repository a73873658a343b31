/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry jobs`: what a server is doing. */
#include "config.h"

#include "cli/remote/remote.h"

#ifdef HAVE_SERVER
#include <stdlib.h>
#include <string.h>

#include "server/client/client.h"
#include "server/protocol/kinds.h"

static bool text_of (const json *object, const char *key, const char **out, error *err) {
  *out = "";
  return json_read_text (object, key, out, err);
}

/* Lines, or elements of the open list. */
static bool print_rows (call *c, const answer *a, json_writer *w) {
  json_document *d = json_open (a->body.data, a->body.size, &c->err);
  json root = d ? json_root (d) : (json){ 0 }, jobs = d ? json_member (&root, "jobs") : (json){ 0 };
  bool ok = d && json_want_array (&jobs, &c->err);
  for (size_t i = 0; ok && i < json_count (&jobs); i++) {
    json e = json_element (&jobs, i);
    const char *kind, *id, *state;
    ok = text_of (&e, "kind", &kind, &c->err) && text_of (&e, "id", &id, &c->err) &&
         text_of (&e, "state", &state, &c->err);
    if (ok && c->json) {
      const char *path = arena_format (c->arena, &c->err, "/v1/%s/%s", kind, id);
      json_open_object (w);
      json_add_text (w, "job", path);
      json_add_text (w, "state", state);
      json_close_object (w);
    } else if (ok)
      printf ("%-10s /v1/%s/%s\n", state, kind, id);
  }
  json_close (d);
  return ok;
}

/* All pages of one kind. */
static bool list_kind (call *c, client *it, const char *kind, json_writer *w) {
  const char *path = arena_format (c->arena, &c->err, "/v1/%s?limit=100", kind);
  bool ok = path;
  while (ok && *path) {
    answer a = { 0 };
    ok = client_ask (it, "GET", path, NULL, &a, &c->err) &&
         (a.status == 200 || client_elsewhere (it, &c->err)) && print_rows (c, &a, w) &&
         (path = arena_string (c->arena, a.next, &c->err));
    bytes_free (&a.body);
  }
  return ok;
}

static bool list_all (call *c, client *it) {
  bool ok = true;
  json_writer w;
  json_begin_object (&w, 2);
  json_add_array (&w, "jobs");
  for (int i = 0; ok && i < JOB_KINDS; i++)
    ok = list_kind (c, it, job_kinds[i].name, &w);
  json_close_array (&w);
  json_close_object (&w);
  if (ok && c->json)
    return call_print_json (c, &w);
  bytes_free (&w.out);
  return ok;
}

/* The reason why a job has no such file. A job that said nothing has no log, which is no fault. */
static bool tell_missing (call *c, client *it, const char *job, const char *what) {
  answer a = { 0 };
  const char *state = "";
  int ignored = 0;
  if (!client_ask (it, "GET", job, NULL, &a, &c->err))
    return false;
  json_document *d =
      a.status == 404 ? NULL : json_open (a.body.data ? a.body.data : "", a.body.size, &c->err);
  json root = d ? json_root (d) : (json){ 0 };
  bool ok = d && text_of (&root, "state", &state, &c->err);
  bool done = strcmp (state, "done") == 0, failed = strcmp (state, "failed") == 0;
  if (a.status == 404)
    error_set (&c->err, ERR_input, "the server has no %s", job);
  else if (ok && failed && strcmp (what, "log") != 0)
    ok = remote_ended (c, &a.body, &ignored);
  else if (ok && !failed && (!done || strcmp (what, "log") != 0))
    ok = error_set (&c->err, ERR_input, "the job is %s and has no %s", state, what);
  json_close (d);
  bytes_free (&a.body);
  return ok;
}

/* A file of the job; it stays empty where there is nothing to show. */
static bool take_file (call *c, client *it, const char *job, const char *what, bytes *out) {
  answer a = { 0 };
  error err = { 0 };
  const char *path = arena_format (
      c->arena, &c->err, strcmp (what, "result") == 0 ? "%s/%s" : "%s/files/%s", job, what);
  if (!path)
    return false;
  if (client_ask (it, "GET", path, NULL, &a, &err) && a.status != 404) {
    *out = a.body;
    return true;
  }
  bytes_free (&a.body);
  if (a.status == 404 || a.status == 409 || a.status == 410 || a.status == 500)
    return tell_missing (c, it, job, what);
  c->err = err;
  return false;
}

static bool take_status (call *c, client *it, const char *job, bytes *out) {
  answer a = { 0 };
  const char *method = call_flag (c, "cancel") ? "DELETE" : "GET";
  if (!client_ask (it, method, job, NULL, &a, &c->err))
    return false;
  *out = a.body;
  return a.status != 404 || error_set (&c->err, ERR_input, "the server has no %s", job);
}

static bool show_one (call *c, client *it, const char *job) {
  bytes text = { 0 };
  const char *what = call_flag (c, "result") ? "result"
                     : call_flag (c, "log")  ? "log"
                     : call_flag (c, "plan") ? "plan"
                                             : NULL;
  bool ok = what ? take_file (c, it, job, what, &text) : take_status (c, it, job, &text);
  if (ok && c->json && what && strcmp (what, "log") == 0) {
    ok = call_print_text (c, "log", text.data ? text.data : "");
  } else {
    ok = ok && call_write (c, NULL, text.data, text.size);
    if (ok && text.size && text.data[text.size - 1] != '\n')
      ok = call_write (c, NULL, "\n", 1);
  }
  bytes_free (&text);
  return ok;
}

/* One thing at a time is asked of a job. */
static bool read_asked (call *c, const char *job) {
  static const char *const parts[] = { "result", "plan", "log", "cancel" };
  const char *first = NULL;
  if (job && strncmp (job, "/v1/", 4) != 0)
    return call_usage (c, "a job is /v1/KIND/ID, as `ferry submit` prints it");
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    if (!call_flag (c, parts[i]))
      continue;
    if (first)
      return call_usage (c, "give --%s or --%s, not both", first, parts[i]);
    first = parts[i];
  }
  return job || !first || call_usage (c, "--%s is of one job: name it", first);
}

static int run (call *c) {
  const char *url = call_text (c, "server");
  const char *job = c->n_operands ? c->operands[0] : NULL;
  if (!read_asked (c, job))
    return call_failed (c);
  client *it = client_new (url ? url : SERVICE_URL, getenv ("FERRY_TOKEN"), c->arena, &c->err);
  bool ok = it && (job ? show_one (c, it, job) : list_all (c, it));
  client_free (it);
  return ok ? EXIT_YES : call_failed (c);
}

#else

static int run (call *c) {
  call_usage (c, "this ferry was built --without-server");
  return call_failed (c);
}

#endif

static const cli_option options[] = {
  OPTION_SERVICE,
  { 0, "result", NULL, "print the job's result" },
  { 0, "plan", NULL, "print its plan" },
  { 0, "log", NULL, "print what its worker said" },
  { 0, "cancel", NULL, "stop it" },
  OPTIONS_END,
};

const cli_command command_jobs = {
  .name = "jobs",
  .says = "list a server's jobs, look at one, stop one",
  .operands = "[JOB]",
  .least = 0,
  .most = 1,
  .about =
      "Lists the jobs that the token's owner has on `ferry serve`, with their states; with the "
      "path of one, prints its status, result, plan or log, or stops it.\n",
  .options = options,
  .json = true,
  .run = run,
};
