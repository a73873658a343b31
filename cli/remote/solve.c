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
#include "cli/explain/policy.h"
#include "cli/inputs/devices.h"
#include "cli/inputs/inputs.h"
#include "server/client/client.h"
#include "server/protocol/kinds.h"

/* ---- the request, from the command line ---- */

static bool ends_with (const char *text, const char *end) {
  size_t n = strlen (text), m = strlen (end);
  return n >= m && strcmp (text + n - m, end) == 0;
}

/* A server takes less of some quantities than the command does. */
static bool put_int (call *c, json_writer *w, const member *m, int64_t value) {
  if (value < m->least || value > m->most)
    return call_usage (c, "--%s: `%s` is not for --server, which takes %lld to %lld", m->option,
                       call_text (c, m->option), (long long)m->least, (long long)m->most);
  json_add_int (w, m->name, value);
  return true;
}

static bool put_share (call *c, json_writer *w, const member *m, const char *text) {
  error wrong = { 0 };
  int64_t ppm = 0;
  if (!units_parse_share (text, &ppm, &wrong))
    return call_usage (c, "--%s: %s", m->option, wrong.text);
  return put_int (c, w, m, ppm);
}

static bool put_number (call *c, json_writer *w, const member *m) {
  int64_t value = 0;
  bool ok = ends_with (m->name, "_percent") ? call_percent (c, m->option, &value)
                                            : call_amount (c, m->option, 0, &value);
  return ok && put_int (c, w, m, value);
}

/* A name that the server knows too, or the whole device. */
static void put_device (json_writer *w, const member *m, const char *text, const device *d) {
  if (!device_is_file (text)) {
    json_add_text (w, m->name, text);
    return;
  }
  json_put_key (w, m->name);
  device_write (w, d);
}

static bool put_option (call *c, json_writer *w, const member *m, const device *d) {
  const char *text = call_text (c, m->option);
  bool percent = text && strchr (text, '%');
  bool sized = m->type == TYPE_INT && ends_with (m->name, "_bytes");
  if (!text || m->type == TYPE_HOST || (sized && percent) || (m->type == TYPE_PERCENT && !percent))
    return true;
  if (m->type == TYPE_PERCENT || m->type == TYPE_SHARE)
    return put_share (c, w, m, text);
  if (m->type == TYPE_FLAG) {
    json_add_bool (w, m->name, true);
    return true;
  }
  if (m->type == TYPE_DEVICE) {
    put_device (w, m, text, d);
    return true;
  }
  bool digits = *text && !text[strspn (text, "0123456789")];
  if (m->type == TYPE_INT || (m->type == TYPE_WORD_OR_INT && digits))
    return put_number (c, w, m);
  json_add_text (w, m->name, text);
  return true;
}

static bool make_request (call *c, const char *trace, const device *d, bytes *out) {
  const job_kind *k = kind_named ("schedules");
  json_writer w;
  bool ok = true;
  json_begin_object (&w, 0);
  for (const member *m = members; ok && m->name; m++) {
    if (m->type == TYPE_TRACE)
      json_add_text (&w, m->name, trace);
    else if (m->option && member_is_of (m, k))
      ok = put_option (c, &w, m, d);
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
  return json_read_int (object, key, INT64_MIN, INT64_MAX, out, err);
}

static bool get_costs (const json *root, predicted *out, error *err) {
  json costs = json_member (root, "predicted");
  return get_int (&costs, "step_ns", &out->step_ns, err) &&
         get_int (&costs, "stall_ns", &out->stall_ns, err) &&
         get_int (&costs, "peak_bytes", &out->peak_bytes, err) &&
         get_int (&costs, "host_peak_bytes", &out->host_peak_bytes, err) &&
         get_int (&costs, "d2h_bytes", &out->d2h_bytes, err) &&
         get_int (&costs, "h2d_bytes", &out->h2d_bytes, err) &&
         get_int (&costs, "baseline_ns", &out->baseline_ns, err);
}

/* The line that `ferry solve` ends with here. */
static bool print_closing (FILE *to, const json *root, error *err) {
  plan made = { .has_certificate = true, .certificate.has_cover = true };
  closing end = { .plan = &made };
  json others = json_member (root, "others"), proof = json_member (root, "certificate");
  json cover = json_member (&proof, "cover");
  bool ok = get_costs (root, &made.predicted, err) &&
            get_int (&proof, "lower_bound_ns", &made.certificate.lower_bound_ns, err) &&
            json_read_text (&proof, "bound_by", &made.certificate.bound_by, err) &&
            cover_read (&cover, &made.certificate.cover, err);
  for (size_t i = 0; ok && i < json_count (&others) && i < ASK_OTHERS; i++) {
    json one = json_element (&others, i), option = json_member (&one, "option");
    ok = get_int (&one, "lower_bound_ns", &end.others[i].lower_bound_ns, err) &&
         json_get_text (&option, &end.others[i].option, err);
    end.n_others++;
  }
  if (ok)
    closing_line (to, &end);
  return ok;
}

static bool get_policy (const json *root, policy_answer *a, error *err) {
  json label = json_member (root, "label"), note = json_member (root, "note");
  json costs = json_member (root, "predicted"), fits = json_member (root, "fits");
  a->has_cost = !json_is_absent (&costs);
  return json_get_text (&label, &a->label, err) && json_get_text (&note, &a->note, err) &&
         json_get_bool (&fits, &a->fits, err) && get_costs (root, &a->cost, err) &&
         get_int (root, "moves", &a->moves, err) && get_int (root, "drops", &a->drops, err) &&
         get_int (root, "reached_bytes", &a->reached_bytes, err);
}

/* made: the plan, or nothing. */
static bool print_answer (call *c, const json *root, const remote_question *q, const bytes *made) {
  FILE *to = call_is_stdout (call_text (c, "output")) ? stderr : stdout;
  policy_answer a = { 0 };
  if (!q->by_policy && !print_closing (to, root, &c->err))
    return false;
  if (q->by_policy) {
    if (!get_policy (root, &a, &c->err) ||
        (made->size && !(a.plan = plan_parse (made->data, made->size, NULL, c->arena, &c->err))))
      return false;
    policy_answer_print (to, &a, q->budget_bytes);
  }
  call_tell_doubt (to, c, q->trace);
  return true;
}

/* That a policy does not fit is an answer; that nothing fits is an error, as it is here. */
static bool take_answer (call *c, client *it, const char *job, const remote_question *q,
                         int exit_status) {
  bytes result = { 0 }, made = { 0 };
  const char *output = call_text (c, "output");
  bool fits = false;
  bool ok = remote_fetch (c, it, job, "result", &result) &&
            (!c->json || call_write (c, NULL, result.data, result.size));
  json_document *d = ok ? json_open (result.data, result.size, &c->err) : NULL;
  json root = d ? json_root (d) : (json){ 0 }, f = d ? json_member (&root, "fits") : (json){ 0 };
  ok = d && json_get_bool (&f, &fits, &c->err) &&
       (q->by_policy || remote_fits (c, &root, exit_status)) &&
       (!fits || remote_fetch (c, it, job, "files/plan", &made)) &&
       (!fits || !output || call_write (c, output, made.data, made.size)) &&
       (c->json || print_answer (c, &root, q, &made));
  json_close (d);
  bytes_free (&result);
  bytes_free (&made);
  return ok;
}

bool remote_can (call *c) {
  static const char *const local[] = { "dump", "from", "html", "tune" };
  for (size_t i = 0; i < sizeof local / sizeof *local; i++)
    if (call_text (c, local[i]))
      return call_usage (c, "--%s is not for --server: solve here", local[i]);
  return true;
}

/* Standard input went into the question; its trace is sent as it was understood. */
static bool upload (call *c, client *it, const remote_question *q, char id[65]) {
  bytes text = { 0 };
  if (strcmp (c->operands[0], "-") != 0)
    return client_upload (it, c->operands, 1, NULL, id, &c->err);
  bool ok = trace_text (q->trace, TRACE_PACKED, &text, &c->err) &&
            client_upload_text (it, &text, id, &c->err);
  bytes_free (&text);
  return ok;
}

/* The request is built once before anything is sent, so that its errors come first. */
int remote_solve (call *c, const remote_question *q) {
  char id[65] = "", job[256];
  bytes request = { 0 };
  int exit_status = 0;
  client *it = client_new (call_text (c, "server"), getenv ("FERRY_TOKEN"), c->arena, &c->err);
  bool ok = it && make_request (c, id, q->device, &request);
  bytes_free (&request);
  ok = ok && upload (c, it, q, id) && make_request (c, id, q->device, &request) &&
       remote_work (c, it, request.data, tell, job, &exit_status) &&
       take_answer (c, it, job, q, exit_status);
  bytes_free (&request);
  client_free (it);
  return ok ? exit_status : call_failed (c);
}

#else

bool remote_can (call *c) {
  return call_usage (c, "this ferry was built --without-server");
}

int remote_solve (call *c, const remote_question *q) {
  (void)q;
  return call_failed (c);
}

#endif
