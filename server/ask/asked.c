/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "config.h"

#include "server/ask/asked.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/sha256.h"
#include "server/ask/together.h"
#include "solver/policy/policy.h"
#include "trace/device.h"
#include "trace/host.h"
#include "trace/zoo/zoo.h"

typedef struct reader {
  asked *out;
  const char *const *devices;
  int most_list;
  json_writer w;
  arena *arena;
} reader;

/* ---- values ---- */

static bool read_int (reader *r, const json *j, const member *m, error *wrong) {
  int64_t value = 0;
  if (!json_get_int (j, m->least, m->most, &value, wrong))
    return false;
  json_add_int (&r->w, m->name, value);
  return true;
}

static bool read_word (reader *r, const json *j, const member *m, error *wrong) {
  const char *text = "";
  if (!json_get_text (j, &text, wrong))
    return false;
  if (!text_is_word (text, m->words))
    return json_error (j, wrong, "must be one of: %s", m->words);
  json_add_text (&r->w, m->name, text);
  return true;
}

static bool want_name (const json *j, const char **text, error *wrong) {
  return json_get_text (j, text, wrong) &&
         (name_is_plain (*text) || json_error (j, wrong, "must be a name: letters, digits, . _ -"));
}

static bool is_device (const reader *r, const char *name) {
  for (const char *const *at = r->devices; at && *at; at++)
    if (strcmp (*at, name) == 0)
      return true;
  return !r->devices;
}

/* resnet takes further depths than those that are listed. */
static bool is_network (const char *name) {
  int n;
  const zoo_network *all = zoo_list (&n);
  for (int i = 0; i < n; i++)
    if (strcmp (all[i].name, name) == 0)
      return true;
  return strncmp (name, "resnet", 6) == 0;
}

static bool is_policy (const char *name, bool ours) {
  return policy_named (name) != POLICIES || (ours && strncmp (name, "ferry", 5) == 0);
}

/* The name of an existing thing. */
static bool want_known (const reader *r, const json *j, member_type type, const char **text,
                        error *wrong) {
  if (!want_name (j, text, wrong))
    return false;
  switch (type) {
  case TYPE_DEVICE:
  case TYPE_DEVICES:
    return is_device (r, *text) ||
           json_error (j, wrong, "there is no such device; `ferry devices` lists them");
  case TYPE_NETWORK:
    return is_network (*text) ||
           json_error (j, wrong, "there is no such network; `ferry zoo --list` names them");
  case TYPE_POLICY:
  case TYPE_POLICIES:
    return is_policy (*text, type == TYPE_POLICIES) ||
           json_error (j, wrong, "there is no such policy; `ferry solve --policy list` names them");
  default:
    return true;
  }
}

static bool read_name (reader *r, const json *j, const member *m, error *wrong) {
  const char *text = "";
  if (!want_known (r, j, m->type, &text, wrong))
    return false;
  json_add_text (&r->w, m->name, text);
  return true;
}

static bool read_pairs (reader *r, const json *j, const member *m, error *wrong) {
  static const char plain[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-=,%";
  const char *text = "";
  if (!json_get_text (j, &text, wrong))
    return false;
  if (!*text || strlen (text) > 200 || text[strspn (text, plain)])
    return json_error (j, wrong, "must be KEY=VALUE,... of letters, digits, . _ - %%");
  json_add_text (&r->w, m->name, text);
  return true;
}

static bool read_device (reader *r, const json *j, const member *m, error *wrong) {
  static const read_options strict = { .strict = true };
  device d;
  if (json_is_string (j))
    return read_name (r, j, m, wrong);
  if (!device_read (j, &strict, r->arena, &d, wrong))
    return false;
  json_put_key (&r->w, m->name);
  device_write (&r->w, &d);
  return true;
}

/* Its cards are known ones: a file's name would be read where the worker runs. */
static bool read_host (reader *r, const json *j, const member *m, error *wrong) {
  static const read_options strict = { .strict = true };
  json name = json_member (j, "name"), card = json_member (j, "device");
  const char *text = "";
  gpu_host h;
  if (json_is_string (j))
    return read_name (r, j, m, wrong);
  if (!json_want_object (j, wrong) ||
      (json_is_absent (&name) && !json_error (&name, wrong, "a name is needed")) ||
      !want_name (&name, &text, wrong) || !host_read (j, &strict, r->arena, &h, wrong) ||
      !want_known (r, &card, TYPE_DEVICE, &text, wrong))
    return false;
  json_put_key (&r->w, m->name);
  host_write (&r->w, &h);
  return true;
}

/* Up to four digits, and as many behind a point; not nothing. */
static bool is_percentage (const char *text) {
  enum { MOST_DIGITS = 4 };
  static const char digits[] = "0123456789";
  size_t whole = strspn (text, digits);
  const char *at = text + whole;
  size_t part = *at == '.' ? strspn (at + 1, digits) : 0;
  bool ok = whole >= 1 && whole <= MOST_DIGITS && part <= MOST_DIGITS && (part || *at != '.');
  at += part ? part + 1 : 0;
  return ok && strcmp (at, "%") == 0 && text + strspn (text, "0.") != at;
}

static bool read_size (reader *r, const json *j, const member *m, error *wrong) {
  const char *text = "";
  int64_t value = 0;
  if (json_is_string (j)) {
    if (!json_get_text (j, &text, wrong))
      return false;
    if (!is_percentage (text))
      return json_error (j, wrong, "must be bytes, or a text such as \"50%%\" or \"12.5%%\"");
    json_put_text (&r->w, text);
    return true;
  }
  if (!json_get_int (j, m->least, m->most, &value, wrong))
    return false;
  json_put_int (&r->w, value);
  return true;
}

static bool read_list (reader *r, const json *j, const member *m, error *wrong) {
  if (!json_want_array (j, wrong))
    return false;
  size_t n = json_count (j);
  if (n < 1 || n > (size_t)r->most_list)
    return json_error (j, wrong, "must have 1 to %d elements", r->most_list);
  json_add_array (&r->w, m->name);
  bool ok = true;
  for (size_t i = 0; ok && i < n; i++) {
    json e = json_element (j, i);
    const char *text = "";
    if (m->type == TYPE_DEVICES || m->type == TYPE_POLICIES) {
      ok = json_is_string (&e) ? want_known (r, &e, m->type, &text, wrong)
                               : json_error (&e, wrong, "must be a name");
      json_put_text (&r->w, ok ? text : "");
    } else if (m->type != TYPE_SIZES && !json_is_int (&e))
      ok = json_error (&e, wrong, "must be a whole number");
    else
      ok = read_size (r, &e, m, wrong);
  }
  json_close_array (&r->w);
  return ok;
}

static bool read_flag (reader *r, const json *j, const member *m, error *wrong) {
  bool value = false;
  if (!json_get_bool (j, &value, wrong))
    return false;
  if (value)
    json_add_bool (&r->w, m->name, true);
  return true;
}

/* ---- operands ---- */

static bool want_digest (const json *j, const char **text, error *wrong) {
  *text = "";
  return (json_is_string (j) || json_error (j, wrong, "must be the id of a trace")) &&
         json_get_text (j, text, wrong) &&
         (digest_is_valid (*text) || json_error (j, wrong, "must be 64 hexadecimal digits"));
}

static bool keep_trace (reader *r, const char *digest, error *wrong) {
  char *copy = arena_string (r->arena, digest, wrong);
  r->out->traces[r->out->n_traces++] = copy;
  return copy;
}

static bool read_job (reader *r, const json *j, error *wrong) {
  static const char *const keys[] = { "name", "trace", NULL };
  const char *name = "", *digest = "";
  json n = json_member (j, "name"), t = json_member (j, "trace");
  if (!json_want_object (j, wrong) || !json_known (j, keys, true, NULL, wrong) ||
      (json_is_absent (&n) && !json_error (&n, wrong, "a name is needed")) ||
      !want_name (&n, &name, wrong) || !want_digest (&t, &digest, wrong))
    return false;
  json_open_object (&r->w);
  json_add_text (&r->w, "name", name);
  json_add_text (&r->w, "trace", digest);
  json_close_object (&r->w);
  return keep_trace (r, digest, wrong);
}

/* Plans are told apart by the names of their jobs. */
static bool is_first (const json *list, size_t at, error *wrong) {
  json e = json_element (list, at), mine = json_member (&e, "name");
  const char *name = "", *other = "";
  bool ok = json_get_text (&mine, &name, wrong);
  for (size_t i = 0; ok && i < at; i++) {
    json before = json_element (list, i);
    ok = json_read_text (&before, "name", &other, wrong) &&
         (strcmp (name, other) != 0 || json_error (&mine, wrong, "another job has this name"));
  }
  return ok;
}

static bool read_jobs (reader *r, const json *list, const member *m, error *wrong) {
  size_t n = json_count (list);
  if (!json_is_array (list) || n < 1 || n > MOST_PACK_JOBS)
    return json_error (list, wrong, "must be a list of 1 to %d jobs", MOST_PACK_JOBS);
  json_add_array (&r->w, m->name);
  bool ok = true;
  for (size_t i = 0; ok && i < n; i++) {
    json e = json_element (list, i);
    ok = read_job (r, &e, wrong) && is_first (list, i, wrong);
  }
  json_close_array (&r->w);
  return ok;
}

static bool read_trace (reader *r, const json *j, const member *m, error *wrong) {
  const char *text = "";
  if (!want_digest (j, &text, wrong))
    return false;
  json_add_text (&r->w, m->name, text);
  return keep_trace (r, text, wrong);
}

/* Beside the one of `trace`. */
static bool read_traces (reader *r, const json *list, const member *m, error *wrong) {
  size_t n = json_count (list);
  if (!json_is_array (list) || n < 1 || n >= MOST_PACK_JOBS)
    return json_error (list, wrong, "must be a list of 1 to %d traces", MOST_PACK_JOBS - 1);
  json_add_array (&r->w, m->name);
  bool ok = true;
  for (size_t i = 0; ok && i < n; i++) {
    json e = json_element (list, i);
    const char *text = "";
    ok = want_digest (&e, &text, wrong) && keep_trace (r, text, wrong);
    json_put_text (&r->w, text);
  }
  json_close_array (&r->w);
  return ok;
}

static bool read_member (reader *r, const json *j, const member *m, error *wrong) {
  switch (m->type) {
  case TYPE_INT:
  case TYPE_SHARE:
  case TYPE_PERCENT:
    return read_int (r, j, m, wrong);
  case TYPE_FLAG:
    return read_flag (r, j, m, wrong);
  case TYPE_WORD:
    return read_word (r, j, m, wrong);
  case TYPE_WORD_OR_INT:
    return json_is_string (j) ? read_word (r, j, m, wrong) : read_int (r, j, m, wrong);
  case TYPE_NAME:
  case TYPE_POLICY:
  case TYPE_NETWORK:
    return read_name (r, j, m, wrong);
  case TYPE_PAIRS:
    return read_pairs (r, j, m, wrong);
  case TYPE_DEVICE:
    return read_device (r, j, m, wrong);
  case TYPE_HOST:
    return read_host (r, j, m, wrong);
  case TYPE_TRACE:
    return read_trace (r, j, m, wrong);
  case TYPE_TRACES:
    return read_traces (r, j, m, wrong);
  case TYPE_JOBS:
    return read_jobs (r, j, m, wrong);
  default:
    return read_list (r, j, m, wrong);
  }
}

/* ---- the whole ---- */

void asked_id (const char *kind, const char *text, char id[65]) {
  assert (kind && text);
  sha256 s;
  sha256_start (&s);
  sha256_add (&s, kind, strlen (kind) + 1);
  sha256_add (&s, PACKAGE_VERSION, sizeof PACKAGE_VERSION);
  sha256_add (&s, text, strlen (text));
  sha256_text (&s, id);
}

static bool known_only (const job_kind *k, const json *root, error *wrong) {
  const char *keys[80];
  int n = 0;
  for (const member *m = members; m->name; m++)
    if (member_is_of (m, k))
      keys[n++] = m->name;
  keys[n++] = "validate_only";
  keys[n] = NULL;
  return json_known (root, keys, true, NULL, wrong);
}

static bool finish (reader *r, const char *kind, error *err) {
  bytes text = { 0 };
  json_close_object (&r->w);
  bool ok = json_finish (&r->w, &text, err) &&
            (r->out->text = arena_string_n (r->arena, text.data, (size_t)text.size, err));
  bytes_free (&text);
  if (ok)
    asked_id (kind, r->out->text, r->out->id);
  return ok;
}

/* A network has no times of its own: without a device there is nothing to plan. */
static bool is_needed (const job_kind *k, const member *m) {
  return (!m->option && m->type != TYPE_TRACES) ||
         (m->type == TYPE_DEVICE && k->operand == OPERAND_NETWORK);
}

bool asked_read (const job_kind *k, const bytes *body, const char *const *devices, arena *a,
                 asked *out, error *err) {
  assert (k && body && out);
  *out = (asked){ 0 };
  reader r = { .out = out, .devices = devices, .most_list = k->most_list, .arena = a };
  json_document *d = json_open (body->data ? body->data : "", body->size, err);
  if (!d)
    return false;
  json root = json_root (d);
  error wrong = { 0 };
  json_begin_object (&r.w, 0);
  bool object = json_is_object (&root) || json_error (&root, &wrong, "must be an object");
  if (!object || !known_only (k, &root, &wrong))
    asked_add_fault (out, &wrong);
  for (const member *m = members; object && m->name; m++) {
    json j = json_member (&root, m->name);
    wrong = (error){ 0 };
    if (!member_is_of (m, k) || (json_is_absent (&j) && !is_needed (k, m)))
      continue;
    if (json_is_absent (&j) ? !json_error (&j, &wrong, "is needed")
                            : !read_member (&r, &j, m, &wrong))
      asked_add_fault (out, &wrong);
  }
  json only = object ? json_member (&root, "validate_only") : (json){ 0 };
  wrong = (error){ 0 };
  if (object && !json_get_bool (&only, &out->only_validate, &wrong))
    asked_add_fault (out, &wrong);
  if (object)
    together_check (k, &root, out);
  out->length_s = asked_length_s (&root);
  bool ok = out->n_faults == 0 && finish (&r, k->name, err);
  json_close (d);
  if (!ok)
    bytes_free (&r.w.out);
  return ok;
}

bool asked_import (const char *digest, const char *fingerprint, const char *name, arena *a,
                   asked *out, error *err) {
  *out = (asked){ 0 };
  reader r = { .out = out, .arena = a };
  json_begin_object (&r.w, 0);
  json_add_text (&r.w, "body", digest);
  if (fingerprint)
    json_add_text (&r.w, "fingerprint", fingerprint);
  if (name)
    json_add_text (&r.w, "name", name);
  return finish (&r, "imports", err);
}
