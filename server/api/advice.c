/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "server/api/advice.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/units.h"

typedef struct point {
  int64_t budget_bytes, peak_bytes, host_bytes, d2h_bytes, h2d_bytes, step_ns, bound_ns;
  bool planned;
} point;

static bool get (const json *object, const char *key, int64_t *out, error *err) {
  return json_read_int (object, key, 0, INT64_MAX, out, err);
}

static bool read_point (const json *j, point *p, error *err) {
  json costs = json_member (j, "predicted");
  *p = (point){ .planned = json_is_object (&costs) };
  return get (j, "budget_bytes", &p->budget_bytes, err) &&
         (!p->planned || (get (j, "lower_bound_ns", &p->bound_ns, err) &&
                          get (&costs, "peak_bytes", &p->peak_bytes, err) &&
                          get (&costs, "host_peak_bytes", &p->host_bytes, err) &&
                          get (&costs, "d2h_bytes", &p->d2h_bytes, err) &&
                          get (&costs, "h2d_bytes", &p->h2d_bytes, err) &&
                          get (&costs, "step_ns", &p->step_ns, err)));
}

static void take (const point *p, advice *out) {
  out->memory_bytes = p->budget_bytes;
  out->peak_bytes = p->peak_bytes;
  out->host_bytes = p->host_bytes;
  out->d2h_bytes = p->d2h_bytes;
  out->h2d_bytes = p->h2d_bytes;
  out->step_ns = p->step_ns;
  out->bound_ns = p->bound_ns;
}

/* The least budget at which the step is short enough. */
static bool choose (const json *root, advice *out, error *err) {
  json points = json_member (root, "points");
  if (!get (root, "baseline_ns", &out->baseline_ns, err) ||
      !get (root, "floor_bytes", &out->floor_bytes, err))
    return false;
  json reserved = json_member (root, "reserved_bytes");
  int64_t reserve = 0;
  if (!json_is_absent (&reserved) && !json_get_int (&reserved, 0, INT64_MAX, &reserve, err))
    return false;
  out->reserved_bytes = reserve ? reserve : out->reserved_bytes;
  int64_t most_ns = out->baseline_ns + units_scale (out->baseline_ns, out->slowdown_ppm, 1000000);
  for (size_t i = 0; i < json_count (&points); i++) {
    json e = json_element (&points, i);
    point p;
    if (!read_point (&e, &p, err))
      return false;
    if (p.planned && p.step_ns <= most_ns &&
        (!out->memory_bytes || p.budget_bytes < out->memory_bytes))
      take (&p, out);
  }
  advice_weigh (out, 0);
  return true;
}

void advice_weigh (advice *a, int64_t gpu_bytes) {
  assert (a);
  char need[UNITS_TEXT], has[UNITS_TEXT];
  a->fits = a->memory_bytes && (!gpu_bytes || advice_card_bytes (a) <= gpu_bytes);
  a->reason[0] = 0;
  if (!a->memory_bytes)
    snprintf (a->reason, sizeof a->reason, "no budget of its curve is fast enough");
  else if (!a->fits)
    snprintf (a->reason, sizeof a->reason, "needs %s at a slowdown of %lld.%04lld %%, has %s",
              units_bytes (need, advice_card_bytes (a)), (long long)(a->slowdown_ppm / 10000),
              (long long)(a->slowdown_ppm % 10000), units_bytes (has, gpu_bytes));
}

static const char *result_of (service *s, const char *outcome, arena *a, error *err) {
  const char *digest = NULL, *path = NULL;
  json_document *d = json_open (outcome, (int64_t)strlen (outcome), err);
  json root = d ? json_root (d) : (json){ 0 };
  json files = d ? json_member (&root, "files") : (json){ 0 };
  json one = d ? json_member (&files, "result") : (json){ 0 };
  if (d && json_get_text (&one, &digest, err) && digest)
    path = store_file (s->store, digest, a, err);
  json_close (d);
  return path;
}

/* The name of the device in the curve's request. */
static const char *device_of (const char *request, arena *a) {
  error ignored = { 0 };
  const char *text = NULL;
  json_document *d = json_open (request, (int64_t)strlen (request), &ignored);
  json root = d ? json_root (d) : (json){ 0 };
  json j = d ? json_member (&root, "device") : (json){ 0 };
  if (d && json_is_object (&j))
    j = json_member (&j, "name");
  if (d && json_is_string (&j) && json_get_text (&j, &text, &ignored))
    text = arena_string (a, text, &ignored);
  json_close (d);
  return text;
}

bool advice_is_name (const request *q, const char *fingerprint) {
  const char *slash = strchr (fingerprint, '/');
  error ignored = { 0 };
  const char *owner =
      slash ? arena_string_n (q->arena, fingerprint, (size_t)(slash - fingerprint), &ignored) : "";
  return owner && (!slash || (advice_sees_all (q) && name_is_plain (owner))) &&
         name_is_plain (slash ? slash + 1 : fingerprint);
}

/* The newest answer of a kind, opened; NULL without an error: there is none. */
static json_document *find_answer (service *s, request *q, const char *kind,
                                   const char *fingerprint, const char *host, curve_row *c,
                                   error *err) {
  const char *owner = advice_sees_all (q) ? "" : q->owner, *slash = strchr (fingerprint, '/');
  bool known = false;
  bytes text = { 0 };
  if (slash &&
      !(owner = arena_string_n (q->arena, fingerprint, (size_t)(slash - fingerprint), err)))
    return NULL;
  curve_wanted wanted = { kind, slash ? slash + 1 : fingerprint, owner, host };
  if (!store_find_curve (s->store, &wanted, q->arena, c, &known, err) || !known)
    return NULL;
  const char *path = result_of (s, c->outcome, q->arena, err);
  json_document *d = path && file_read_raw (path, 1 << 22, &text, err)
                         ? json_open (text.data, text.size, err)
                         : NULL;
  bytes_free (&text);
  return d;
}

bool advice_find (service *s, request *q, const char *fingerprint, int64_t slowdown_ppm,
                  advice *out, error *err) {
  curve_row c;
  *out = (advice){ .slowdown_ppm = slowdown_ppm, .reserved_bytes = s->options.card_reserve_bytes };
  json_document *d = find_answer (s, q, "curves", fingerprint, "", &c, err);
  out->known = d;
  if (!d)
    return err->code == ERR_none;
  out->job = c.job;
  out->trace = c.trace;
  out->device = device_of (c.request, q->arena);
  json root = json_root (d);
  bool ok = choose (&root, out, err);
  json_close (d);
  return ok;
}

bool advice_find_host (service *s, request *q, const char *fingerprint, const char *host,
                       const node_question *asked, node_advice *out, error *err) {
  curve_row c;
  node_row *rows;
  int32_t n;
  *out = (node_advice){ 0 };
  json_document *d = find_answer (s, q, "what-if", fingerprint, host, &c, err);
  out->known = d;
  if (!d)
    return err->code == ERR_none;
  out->job = c.job;
  out->trace = c.trace;
  json root = json_root (d);
  bool ok = node_read (&root, q->arena, &out->facts, &rows, &n, err);
  json_close (d);
  if (ok)
    node_choose (&out->facts, asked, rows, n, &out->answer);
  return ok;
}
