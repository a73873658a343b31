/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The plan of a program's step, made by a server as `ferry run` would make it. */
#include "config.h"

#include "cli/remote/remote.h"

#ifdef HAVE_SERVER
#include <stdlib.h>

static bool make_request (call *c, const char *trace, const solve_options *o, bytes *out) {
  json_writer w;
  json_begin (&w, 0);
  json_open_object (&w);
  json_add_int (&w, "budget_bytes", o->budget_bytes);
  json_put_key (&w, "device");
  device_write (&w, o->device);
  json_add_int (&w, "host_bytes", o->host_bytes);
  json_add_int (&w, "limit_ticks", o->limit_ticks);
  json_add_bool (&w, "same_places", o->same_places);
  json_add_int (&w, "seed", (int64_t)o->seed);
  json_add_text (&w, "trace", trace);
  json_close_object (&w);
  return json_finish (&w, out, &c->err);
}

bool remote_step (call *c, const char *trace, const solve_options *o, const char *output) {
  char id[65], job[256];
  bytes request = { 0 }, status = { 0 }, made = { 0 };
  int exit_status = 0;
  client *it = client_new (call_text (c, "server"), getenv ("FERRY_TOKEN"), c->arena, &c->err);
  bool ok =
      it && client_upload (it, &trace, 1, NULL, id, &c->err) && make_request (c, id, o, &request) &&
      client_submit (it, "schedules", request.data, job, &c->err) &&
      client_follow (it, job, NULL, NULL, &status, &c->err) &&
      remote_ended (c, &status, &exit_status) && remote_fetch (c, it, job, "files/plan", &made) &&
      call_write (c, output, made.data, made.size);
  bytes_free (&request);
  bytes_free (&status);
  bytes_free (&made);
  client_free (it);
  return ok;
}

#else

bool remote_step (call *c, const char *trace, const solve_options *o, const char *output) {
  (void)trace;
  (void)o;
  (void)output;
  return error_set (&c->err, ERR_usage, "this ferry was built --without-server");
}

#endif
