/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From the canonical text of a request to the command line of its worker. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/order.h"
#include "server/ask/asked.h"

typedef struct line {
  job_call *out;
  int64_t most_s;
  arena *arena;
  error *err;
} line;

static bool put (line *l, const char *text) {
  if (!text)
    return false;
  if (l->out->n >= MOST_ARGUMENTS - 1)
    return error_set (l->err, ERR_internal, "a job of more than %d arguments", MOST_ARGUMENTS);
  l->out->arguments[l->out->n++] = text;
  return true;
}

/* A share with all its millionths, in integers: the same text everywhere. */
static const char *share_text (const line *l, int64_t ppm) {
  return arena_format (l->arena, l->err, "%lld.%04d%%", (long long)(ppm / 10000),
                       (int)(ppm % 10000));
}

static const char *element_text (const line *l, const json *j, const member *m) {
  const char *text = NULL;
  int64_t value = 0;
  if (json_is_string (j))
    return json_get_text (j, &text, l->err) ? arena_string (l->arena, text, l->err) : NULL;
  if (!json_get_int (j, INT64_MIN, INT64_MAX, &value, l->err))
    return NULL;
  if (m->type == TYPE_SHARE || m->type == TYPE_PERCENT)
    return share_text (l, value);
  const char *before = m->type == TYPE_TIMES ? "x" : "";
  bool sizes = m->type == TYPE_SIZES || strstr (m->name, "_bytes");
  const char *behind = m->type == TYPE_RATES          ? "B/s"
                       : sizes                        ? "B"
                       : strstr (m->name, "_percent") ? "%"
                                                      : "";
  return arena_format (l->arena, l->err, "%s%lld%s", before, (long long)value, behind);
}

static const char *value_text (const line *l, const json *j, const member *m) {
  const char *all = NULL;
  if (!json_is_array (j))
    return element_text (l, j, m);
  for (size_t i = 0; i < json_count (j); i++) {
    json e = json_element (j, i);
    const char *one = element_text (l, &e, m);
    if (!one || !(all = all ? arena_format (l->arena, l->err, "%s,%s", all, one) : one))
      return NULL;
  }
  return all;
}

static bool put_member (line *l, const json *root, const member *m) {
  json j = json_member (root, m->name);
  if (json_is_absent (&j) || !m->option)
    return true;
  if (m->type == TYPE_FLAG)
    return put (l, arena_format (l->arena, l->err, "--%s", m->option));
  if (m->type == TYPE_DEVICE && json_is_object (&j)) {
    l->out->device = json_canonical (&j, false, l->arena, l->err);
    return l->out->device && put (l, "--device=./device.json");
  }
  if (m->type == TYPE_HOST && json_is_object (&j)) {
    l->out->host = json_canonical (&j, false, l->arena, l->err);
    l->out->host_name = "./host.json";
    return l->out->host && put (l, "--host=./host.json");
  }
  if (strcmp (m->name, "time_limit_s") == 0) {
    if (!json_get_int (&j, 0, MOST_INT, &l->out->time_limit_s, l->err))
      return false;
    l->out->time_limit_s = min_of (l->out->time_limit_s, l->most_s);
    return put (l, arena_format (l->arena, l->err, "--%s=%lld", m->option,
                                 (long long)l->out->time_limit_s));
  }
  const char *text = value_text (l, &j, m);
  l->out->host_name = m->type == TYPE_HOST ? text : l->out->host_name;
  return text && put (l, arena_format (l->arena, l->err, "--%s=%s", m->option, text));
}

static bool add_file (line *l, const char *name, const json *digest) {
  const char *text = "";
  job_file *f = &l->out->files[l->out->n_files++];
  if (!json_get_text (digest, &text, l->err))
    return false;
  f->name = name;
  f->digest = arena_string (l->arena, text, l->err);
  return f->digest && put (l, name);
}

static bool put_jobs (line *l, const json *root) {
  json list = json_member (root, "jobs");
  for (size_t i = 0; i < json_count (&list) && i < MOST_PACK_JOBS; i++) {
    json e = json_element (&list, i), t = json_member (&e, "trace");
    const char *name = "";
    if (!json_read_text (&e, "name", &name, l->err))
      return false;
    /* No file that is written beside it ends so, and `ferry pack` names the job by the rest. */
    const char *file = arena_format (l->arena, l->err, "./%s.trace.json", name);
    if (!file || !add_file (l, file, &t))
      return false;
    l->out->files[i].job = arena_string (l->arena, name, l->err);
    if (!l->out->files[i].job)
      return false;
  }
  return true;
}

/* Further ranks' traces, in their order. */
static bool put_stages (line *l, const json *root) {
  json list = json_member (root, "stages");
  for (size_t i = 0; i < json_count (&list) && l->out->n_files < MOST_PACK_JOBS; i++) {
    json e = json_element (&list, i);
    const char *file = arena_format (l->arena, l->err, "./stage%zu.trace.json", i + 1);
    if (!file || !add_file (l, file, &e))
      return false;
  }
  return true;
}

static bool put_operand (line *l, const job_kind *k, const json *root) {
  const char *text = "";
  if (k->operand == OPERAND_JOBS)
    return put_jobs (l, root);
  json j = json_member (root, k->operand == OPERAND_NETWORK ? "network"
                              : k->operand == OPERAND_BODY  ? "body"
                                                            : "trace");
  if (k->operand != OPERAND_NETWORK)
    return add_file (l, k->operand == OPERAND_BODY ? "./body" : "./trace.json", &j) &&
           put_stages (l, root);
  return json_get_text (&j, &text, l->err) && put (l, arena_string (l->arena, text, l->err));
}

/* Curves and least budgets of stages have neither a picture nor a plan. */
static bool put_output (line *l, const job_kind *k, const json *root) {
  json stages = json_member (root, "stages");
  if (!json_is_absent (&stages) && k->letter != 'S')
    return true;
  switch (k->output) {
  case OUTPUT_PICTURE:
    return put (l, "--svg=./picture.svg");
  case OUTPUT_PLANS:
    return put (l, "--output=./plans");
  case OUTPUT_PLAN:
    return put (l, "--output=./plan.json");
  default:
    return true;
  }
}

bool asked_call (const job_kind *k, const char *text, int64_t most_s, arena *a, job_call *out,
                 error *err) {
  assert (k && text && out);
  *out = (job_call){ 0 };
  line l = { out, most_s, a, err };
  json_document *d = json_open (text, (int64_t)strlen (text), err);
  if (!d)
    return false;
  json root = json_root (d);
  bool ok = put (&l, k->command);
  if (k->operand == OPERAND_BODY) {
    const char *given = NULL, *name = NULL;
    ok = ok && put (&l, "import") && put_operand (&l, k, &root) && put (&l, "./trace.json") &&
         json_read_text (&root, "fingerprint", &given, err) &&
         json_read_text (&root, "name", &name, err);
    out->fingerprint = given ? arena_string (a, given, err) : NULL;
    out->name = name ? arena_format (a, err, "./%s", name) : NULL;
    json_close (d);
    return ok;
  }
  for (const member *m = members; ok && m->name; m++)
    ok = !member_is_of (m, k) || put_member (&l, &root, m);
  ok = ok && put (&l, "--json") && put_output (&l, k, &root) && put_operand (&l, k, &root);
  json_close (d);
  return ok;
}
