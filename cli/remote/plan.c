/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The plan behind an advice: a schedule requested like the curve, at one of its budgets. */
#include "config.h"

#include "cli/remote/remote.h"

#ifdef HAVE_SERVER
#include <string.h>

#include "server/protocol/kinds.h"

/* The request of the curve says what the plan is for: its device, host memory and methods. */
static bool copy_members (call *c, const json *asked, json_writer *w, int64_t memory_bytes) {
  const job_kind *curves = kind_named ("curves"), *schedules = kind_named ("schedules");
  for (const member *m = members; m->name; m++) {
    json j = json_member (asked, m->name);
    if (strcmp (m->name, "budget_bytes") == 0) {
      json_add_int (w, m->name, memory_bytes);
    } else if (member_is_of (m, curves) && member_is_of (m, schedules) && !json_is_absent (&j)) {
      const char *text = json_canonical (&j, true, c->arena, &c->err);
      if (!text)
        return false;
      json_add_raw (w, m->name, text);
    }
  }
  return true;
}

static bool make_request (call *c, client *it, const remote_point *p, bytes *out) {
  answer got = { 0 };
  json_writer w;
  const char *path = arena_format (c->arena, &c->err, "/v1/curves/%s", p->curve);
  if (!path || !client_ask (it, "GET", path, NULL, &got, &c->err))
    return false;
  if (got.status == 404) {
    bytes_free (&got.body);
    return error_set (&c->err, ERR_infeasible,
                      "the curve behind the advice, %s, is another owner's, or gone: ask for your "
                      "own with `ferry submit FILE --fingerprint %s --kind curves`",
                      path, c->operands[0]);
  }
  json_document *d = json_open (got.body.data ? got.body.data : "", got.body.size, &c->err);
  bytes_free (&got.body);
  if (!d)
    return false;
  json root = json_root (d), asked = json_member (&root, "request");
  json_begin_object (&w, 0);
  bool ok = copy_members (c, &asked, &w, p->memory_bytes);
  json_close_object (&w);
  ok = json_finish (&w, out, &c->err) && ok;
  json_close (d);
  return ok;
}

bool remote_plan (call *c, client *it, const remote_point *p, const char *output) {
  bytes request = { 0 };
  bool ok = make_request (c, it, p, &request) && remote_make_plan (c, it, request.data, output);
  bytes_free (&request);
  return ok;
}

#endif
