/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The plan of a program's step, made by a server as `ferry run` would make it. */
#include "config.h"

#include "cli/remote/remote.h"

#ifdef HAVE_SERVER
#include <stdlib.h>

/* The host's free memory is another in each run, which would make each request another job. No plan
   takes as much as all tensors twice, so that stands for more; less is rounded down by an eighth at
   most, unless it was asked for. */
static int64_t host_asked (const call *c, const trace *t, int64_t host_bytes) {
  int64_t most = 0, unit = 1;
  for (int32_t i = 0; i < t->n_tensors; i++)
    most += 2 * t->tensors[i].bytes;
  if (most <= host_bytes)
    return most;
  while (!call_text (c, "host") && host_bytes / unit >= 16)
    unit *= 2;
  return host_bytes / unit * unit;
}

/* Whatever has another default there is given, such as no reserve. */
static bool make_request (call *c, const char *id, const trace *t, const solve_options *o,
                          bytes *out) {
  json_writer w;
  device asked = *o->device;
  int64_t host_bytes = host_asked (c, t, o->host_bytes);
  asked.host_bytes = host_bytes;
  json_begin_object (&w, 0);
  json_add_int (&w, "budget_bytes", o->budget_bytes);
  json_put_key (&w, "device");
  device_write (&w, &asked);
  json_add_int (&w, "host_bytes", host_bytes);
  json_add_int (&w, "limit_ticks", o->limit_ticks);
  json_add_text (&w, "order", "as-is");
  json_add_text (&w, "recompute", o->recompute == RECOMPUTE_AUTO ? "auto" : "off");
  json_add_int (&w, "reserve_bytes", 0);
  json_add_bool (&w, "same_places", o->same_places);
  json_add_text (&w, "sections", "off");
  json_add_int (&w, "seed", (int64_t)o->seed);
  json_add_text (&w, "trace", id);
  json_close_object (&w);
  return json_finish (&w, out, &c->err);
}

bool remote_named (call *c) {
  const char *url = call_text (c, "server");
  return !url || client_takes (url, &c->err);
}

bool remote_step (call *c, const char *path, const solve_options *o, const char *output) {
  char id[65];
  bytes request = { 0 };
  client *it = client_new (call_text (c, "server"), getenv ("FERRY_TOKEN"), c->arena, &c->err);
  const trace *t = it ? trace_load (path, NULL, c->arena, &c->err) : NULL;
  bool ok = t && client_upload (it, &path, 1, NULL, id, &c->err) &&
            make_request (c, id, t, o, &request) && remote_make_plan (c, it, request.data, output);
  bytes_free (&request);
  client_free (it);
  return ok;
}

#else

bool remote_named (call *c) {
  return !call_text (c, "server") || call_usage (c, "this ferry was built --without-server");
}

bool remote_step (call *c, const char *path, const solve_options *o, const char *output) {
  (void)path;
  (void)o;
  (void)output;
  return call_usage (c, "this ferry was built --without-server");
}

#endif
