/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A job of a server: requested, followed to its end, and its answer. */
#include "config.h"

#include "cli/remote/remote.h"

#ifdef HAVE_SERVER
#include <string.h>

#include "server/protocol/kinds.h"

bool remote_fingerprint (call *c, const char *text) {
  return name_is_plain (text) ||
         call_usage (
             c,
             "a fingerprint is up to 64 letters, digits, `_`, `.` and `-`, the last two not "
             "first: `%s`",
             text);
}

bool remote_ended (call *c, const bytes *status, int *exit_status) {
  const char *state = NULL, *detail = NULL;
  int64_t number = 0;
  json_document *d = json_open (status->data, status->size, &c->err);
  if (!d)
    return false;
  json root = json_root (d), s = json_member (&root, "state");
  json problem = json_member (&root, "problem");
  bool ok = json_get_text (&s, &state, &c->err) &&
            json_read_text (&problem, "detail", &detail, &c->err) &&
            json_read_int (&root, "exit", 0, 255, &number, &c->err);
  if (ok && (!state || strcmp (state, "done") != 0))
    ok = error_set (&c->err, ERR_input, "the job %s on the server: %s", state ? state : "was lost",
                    detail ? detail : "nothing is said");
  *exit_status = (int)number;
  json_close (d);
  return ok;
}

bool remote_work (call *c, client *it, const char *request, client_told *told, char job[256],
                  int *exit_status) {
  bytes status = { 0 };
  bool ok = client_submit (it, "schedules", request, job, &c->err) &&
            client_follow (it, job, told, c, &status, &c->err) &&
            remote_ended (c, &status, exit_status);
  bytes_free (&status);
  return ok;
}

bool remote_fetch (call *c, client *it, const char *job, const char *file, bytes *out) {
  answer a = { 0 };
  const char *path = arena_format (c->arena, &c->err, "%s/%s", job, file);
  if (!path || !client_ask (it, "GET", path, NULL, &a, &c->err))
    return false;
  *out = a.body;
  return a.status == 200 || error_set (&c->err, ERR_input, "the server has no %s of the job", file);
}

bool remote_fits (call *c, const json *result, int exit_status) {
  bool fits = false;
  const char *why = NULL;
  if (!json_read_bool (result, "fits", &fits, &c->err) ||
      !json_read_text (result, "why", &why, &c->err))
    return false;
  bool limit = exit_status == error_exit_status (ERR_limit);
  return fits ||
         error_set (&c->err, limit ? ERR_limit : ERR_infeasible, "%s", why ? why : "no plan fits");
}

static bool must_fit (call *c, client *it, const char *job, int exit_status) {
  bytes result = { 0 };
  bool ok = remote_fetch (c, it, job, "result", &result);
  json_document *d = ok ? json_open (result.data, result.size, &c->err) : NULL;
  json root = d ? json_root (d) : (json){ 0 };
  ok = d && remote_fits (c, &root, exit_status);
  json_close (d);
  bytes_free (&result);
  return ok;
}

bool remote_make_plan (call *c, client *it, const char *request, const char *output) {
  char job[256];
  bytes made = { 0 };
  int exit_status = 0;
  bool ok = remote_work (c, it, request, NULL, job, &exit_status) &&
            must_fit (c, it, job, exit_status) && remote_fetch (c, it, job, "files/plan", &made) &&
            call_write (c, output, made.data, made.size);
  bytes_free (&made);
  return ok;
}

#endif
