/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry solve --server URL`: uploads the trace, lets the server plan, and writes the plan that a
   local run would have written. */
#include "config.h"

#include "cli/remote/remote.h"

#ifdef HAVE_SERVER
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/explain/closing.h"
#include "server/client/client.h"
#include "server/protocol/kinds.h"

/* ---- the request, from the command line ---- */

static bool ends_with (const char *text, const char *end) {
  size_t n = strlen (text), m = strlen (end);
  return n >= m && strcmp (text + n - m, end) == 0;
}

static bool put_share (call *c, json_writer *w, const member *m, const char *text) {
  error wrong = { 0 };
  int64_t ppm = 0;
  if (!units_parse_share (text, &ppm, &wrong))
    return error_set (&c->err, ERR_usage, "--%s: %s", m->option, wrong.text);
  json_add_int (w, m->name, ppm);
  return true;
}

static bool put_number (call *c, json_writer *w, const member *m) {
  int64_t value = 0;
  bool ok = ends_with (m->name, "_percent") ? call_percent (c, m->option, &value)
                                            : call_amount (c, m->option, 0, &value);
  if (!ok)
    return false;
  json_add_int (w, m->name, value);
  return true;
}

/* A name that the server knows too, or the whole device file. */
static bool put_device (call *c, json_writer *w, const member *m, const char *text) {
  bytes file = { 0 };
  if (!strchr (text, '/') && !ends_with (text, ".json")) {
    json_add_text (w, m->name, text);
    return true;
  }
  if (!file_read (text, 1 << 20, &file, &c->err))
    return false;
  json_add_raw (w, m->name, file.data);
  bytes_free (&file);
  return true;
}

static bool put_option (call *c, json_writer *w, const member *m) {
  const char *text = call_text (c, m->option);
  bool percent = text && strchr (text, '%');
  bool sized = m->type == TYPE_INT && ends_with (m->name, "_bytes");
  if (!text || (sized && percent) || (m->type == TYPE_PERCENT && !percent))
    return true;
  if (m->type == TYPE_PERCENT || m->type == TYPE_SHARE)
    return put_share (c, w, m, text);
  if (m->type == TYPE_FLAG) {
    json_add_bool (w, m->name, true);
    return true;
  }
  if (m->type == TYPE_DEVICE)
    return put_device (c, w, m, text);
  bool digits = *text && !text[strspn (text, "0123456789")];
  if (m->type == TYPE_INT || (m->type == TYPE_WORD_OR_INT && digits))
    return put_number (c, w, m);
  json_add_text (w, m->name, text);
  return true;
}

static bool make_request (call *c, const char *trace, bytes *out) {
  const job_kind *k = kind_named ("schedules");
  json_writer w;
  bool ok = true;
  json_begin (&w, 0);
  json_open_object (&w);
  for (const member *m = members; ok && m->name; m++) {
    if (m->type == TYPE_TRACE)
      json_add_text (&w, m->name, trace);
    else if (m->option && member_is_of (m, k))
      ok = put_option (c, &w, m);
  }
  json_close_object (&w);
  return json_finish (&w, out, &c->err) && ok;
}

/* ---- progress and answer ---- */

static void tell (void *context, const char *data) {
  call *c = context;
  error ignored = { 0 };
  int64_t step_ns = 0, bound_ns = 0;
  char a[UNITS_TEXT], b[UNITS_TEXT];
  json_document *d = json_open (data, (int64_t)strlen (data), &ignored);
  json root = d ? json_root (d) : (json){ 0 };
  json step = d ? json_member (&root, "step_ns") : (json){ 0 };
  json bound = d ? json_member (&root, "bound_ns") : (json){ 0 };
  if (d && json_get_int (&step, 0, INT64_MAX, &step_ns, &ignored) &&
      json_get_int (&bound, 0, INT64_MAX, &bound_ns, &ignored))
    log_say (&c->log, LOG_PROGRESS, "plan %s, bound %s", units_time (a, step_ns),
             units_time (b, bound_ns));
  json_close (d);
}

static bool get_int (const json *object, const char *key, int64_t *out, error *err) {
  json j = json_member (object, key);
  return json_get_int (&j, INT64_MIN, INT64_MAX, out, err);
}

/* The line that `ferry solve` ends with here. */
static bool print_closing (const json *root, const plan *made, error *err) {
  closing end = { .plan = made };
  json others = json_member (root, "others");
  bool ok = true;
  for (size_t i = 0; ok && i < json_count (&others) && i < ASK_OTHERS; i++) {
    json one = json_element (&others, i), option = json_member (&one, "option");
    ok = get_int (&one, "lower_bound_ns", &end.others[i].lower_bound_ns, err) &&
         json_get_text (&option, &end.others[i].option, err);
    end.n_others++;
  }
  if (ok)
    closing_line (stdout, &end);
  return ok;
}

static bool print_answer (call *c, const bytes *result, bool *fits) {
  plan made = { .has_certificate = true };
  const char *why = NULL;
  json_document *doc = json_open (result->data, result->size, &c->err);
  if (!doc)
    return false;
  json root = json_root (doc), costs = json_member (&root, "predicted");
  if (json_is_absent (&costs))
    costs = json_member (&root, "cost");
  json proof = json_member (&root, "certificate"), f = json_member (&root, "fits");
  json reason = json_member (&root, "why"), covers = json_member (&proof, "covers");
  bool ok = json_get_bool (&f, fits, &c->err) && json_get_text (&reason, &why, &c->err) &&
            get_int (&costs, "step_ns", &made.predicted.step_ns, &c->err) &&
            get_int (&costs, "peak_bytes", &made.predicted.peak_bytes, &c->err) &&
            get_int (&costs, "baseline_ns", &made.predicted.baseline_ns, &c->err) &&
            get_int (&proof, "lower_bound_ns", &made.certificate.lower_bound_ns, &c->err) &&
            json_get_text (&covers, &made.certificate.covers, &c->err);
  if (ok && !*fits)
    ok = error_set (&c->err, ERR_infeasible, "%s", why ? why : "no plan fits");
  else if (ok && !c->json)
    ok = print_closing (&root, &made, &c->err);
  json_close (doc);
  return ok;
}

bool remote_ended (call *c, const bytes *status, int *exit_status) {
  const char *state = NULL, *detail = NULL;
  int64_t number = 0;
  json_document *d = json_open (status->data, status->size, &c->err);
  if (!d)
    return false;
  json root = json_root (d), s = json_member (&root, "state");
  json problem = json_member (&root, "problem"), text = json_member (&problem, "detail");
  bool ok = json_get_text (&s, &state, &c->err) && json_get_text (&text, &detail, &c->err) &&
            get_int (&root, "exit", &number, &c->err);
  if (ok && (!state || strcmp (state, "done") != 0))
    ok = error_set (&c->err, ERR_input, "the job %s on the server: %s", state ? state : "was lost",
                    detail ? detail : "nothing is said");
  *exit_status = (int)number;
  json_close (d);
  return ok;
}

bool remote_fetch (call *c, client *it, const char *job, const char *file, bytes *out) {
  answer a = { 0 };
  const char *path = arena_format (c->arena, &c->err, "%s/%s", job, file);
  if (!path || !client_ask (it, "GET", path, NULL, &a, &c->err))
    return false;
  *out = a.body;
  return a.status == 200 ||
         error_set (&c->err, ERR_unreachable, "the server has no %s of the job", file);
}

static bool take_answer (call *c, client *it, const char *job, bool *fits) {
  bytes result = { 0 }, made = { 0 };
  const char *output = call_text (c, "output");
  *fits = false;
  bool ok = remote_fetch (c, it, job, "result", &result) &&
            (!c->json || call_write (c, NULL, result.data, result.size)) &&
            print_answer (c, &result, fits);
  if (ok && output && *fits)
    ok = remote_fetch (c, it, job, "files/plan", &made) &&
         call_write (c, output, made.data, made.size);
  bytes_free (&result);
  bytes_free (&made);
  return ok;
}

static bool refuse_local (call *c) {
  static const char *const local[] = { "dump", "tune" };
  for (size_t i = 0; i < sizeof local / sizeof *local; i++)
    if (call_text (c, local[i]))
      return error_set (&c->err, ERR_usage, "--%s is not for --server: solve here", local[i]);
  return c->n_operands == 1 || error_set (&c->err, ERR_usage, "solve needs a TRACE");
}

int remote_solve (call *c) {
  char id[65], job[256];
  bytes request = { 0 }, status = { 0 };
  bool fits = false;
  int exit_status = 0;
  client *it = refuse_local (c)
                   ? client_new (call_text (c, "server"), getenv ("FERRY_TOKEN"), c->arena, &c->err)
                   : NULL;
  bool ok = it && client_upload (it, c->operands, 1, NULL, id, &c->err) &&
            make_request (c, id, &request) &&
            client_submit (it, "schedules", request.data, job, &c->err) &&
            client_follow (it, job, tell, c, &status, &c->err) &&
            remote_ended (c, &status, &exit_status) && take_answer (c, it, job, &fits);
  bytes_free (&request);
  bytes_free (&status);
  client_free (it);
  return ok ? exit_status : call_failed (c);
}

#else

int remote_solve (call *c) {
  error_set (&c->err, ERR_usage, "this ferry was built --without-server");
  return call_failed (c);
}

#endif
