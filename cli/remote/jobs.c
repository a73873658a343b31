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
  json j = json_member (object, key);
  *out = "";
  return json_get_text (&j, out, err);
}

/* Lines, or elements of the open list. */
static bool print_rows (call *c, const answer *a, json_writer *w) {
  json_document *d = json_open (a->body.data, a->body.size, &c->err);
  json root = d ? json_root (d) : (json){ 0 }, jobs = d ? json_member (&root, "jobs") : (json){ 0 };
  bool ok = d;
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

static bool list_all (call *c, client *it) {
  bool ok = true;
  json_writer w;
  json_begin (&w, 2);
  json_open_object (&w);
  json_put_key (&w, "jobs");
  json_open_array (&w);
  for (int i = 0; ok && i < JOB_KINDS; i++) {
    answer a = { 0 };
    const char *path = arena_format (c->arena, &c->err, "/v1/%s?limit=100", job_kinds[i].name);
    ok = path && client_ask (it, "GET", path, NULL, &a, &c->err) && print_rows (c, &a, &w);
    bytes_free (&a.body);
  }
  json_close_array (&w);
  json_close_object (&w);
  if (ok && c->json)
    return call_print_json (c, &w);
  bytes_free (&w.out);
  return ok;
}

static bool show_one (call *c, client *it, const char *job) {
  answer a = { 0 };
  const char *method = call_flag (c, "cancel") ? "DELETE" : "GET";
  const char *rest = call_flag (c, "result") ? "/result"
                     : call_flag (c, "log")  ? "/files/log"
                     : call_flag (c, "plan") ? "/files/plan"
                                             : "";
  const char *path = arena_format (c->arena, &c->err, "%s%s", job, rest);
  bool ok = path && client_ask (it, method, path, NULL, &a, &c->err);
  if (ok && a.status == 404)
    ok = error_set (&c->err, ERR_input, "the server has no %s", path);
  if (ok && c->json && call_flag (c, "log")) {
    ok = call_print_text (c, "log", a.body.data ? a.body.data : "");
    bytes_free (&a.body);
    return ok;
  }
  ok = ok && call_write (c, NULL, a.body.data, a.body.size);
  if (ok && a.body.size && a.body.data[a.body.size - 1] != '\n')
    ok = call_write (c, NULL, "\n", 1);
  bytes_free (&a.body);
  return ok;
}

static int run (call *c) {
  const char *url = call_text (c, "server");
  const char *job = c->n_operands ? c->operands[0] : NULL;
  if (job && strncmp (job, "/v1/", 4) != 0) {
    error_set (&c->err, ERR_usage, "a job is /v1/KIND/ID, as `ferry submit` prints it");
    return call_failed (c);
  }
  client *it =
      client_new (url ? url : "http://127.0.0.1:8077", getenv ("FERRY_TOKEN"), c->arena, &c->err);
  bool ok = it && (job ? show_one (c, it, job) : list_all (c, it));
  client_free (it);
  return ok ? EXIT_YES : call_failed (c);
}

#else

static int run (call *c) {
  error_set (&c->err, ERR_usage, "this ferry was built --without-server");
  return call_failed (c);
}

#endif

static const cli_option options[] = {
  OPTION_SERVER,
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
