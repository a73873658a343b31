/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "server/protocol/message.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

typedef struct problem_row {
  const char *name, *title;
  int status;
} problem_row;

static const problem_row problems[PROBLEMS] = {
#define PROBLEM(name, status, title) { #name, title, status },
#include "server/protocol/problems.def"
#undef PROBLEM
};

const char *status_text (int status) {
  static const struct {
    int status;
    const char *text;
  } all[] = {
    { 200, "200" }, { 201, "201" }, { 202, "202" }, { 204, "204" }, { 304, "304" },
#define PROBLEM(name, status, title) { status, #status },
#include "server/protocol/problems.def"
#undef PROBLEM
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i].status == status)
      return all[i].text;
  return "other";
}

const char *request_header (const request *q, const char *name) {
  assert (q && name);
  for (int i = 0; i < q->n_headers; i++)
    if (strcasecmp (q->headers[i].name, name) == 0)
      return q->headers[i].value;
  return NULL;
}

const char *request_list (const request *q, const char *name) {
  const char *all = NULL;
  error ignored = { 0 };
  for (int i = 0; i < q->n_headers; i++) {
    const char *one = q->headers[i].value;
    if (strcasecmp (q->headers[i].name, name) == 0)
      all = all ? arena_format (q->arena, &ignored, "%s, %s", all, one) : one;
  }
  return all;
}

const char *request_query (const request *q, const char *name) {
  for (int i = 0; i < q->n_query; i++)
    if (strcmp (q->query[i].name, name) == 0)
      return q->query[i].value;
  return NULL;
}

const char *request_text (request *q, const json *j) {
  const char *text = NULL;
  error ignored = { 0 };
  return json_is_string (j) && json_get_text (j, &text, &ignored)
             ? arena_string (q->arena, text, &ignored)
             : NULL;
}

bool text_is_printable (const char *text) {
  for (; *text; text++)
    if (*text < 33 || *text > 126)
      return false;
  return true;
}

bool text_is_word (const char *text, const char *words) {
  size_t n = strchr (text, ' ') ? 0 : strlen (text);
  for (const char *at = words; n && (at = strstr (at, text)); at += n)
    if ((at == words || at[-1] == ' ') && (!at[n] || at[n] == ' '))
      return true;
  return false;
}

bool text_to_int (const char *text, int64_t most, int64_t *out) {
  assert (most >= 0 && out);
  int64_t value = 0;
  for (const char *at = text; *at; at++)
    if (*at < '0' || *at > '9' || __builtin_mul_overflow (value, 10, &value) ||
        __builtin_add_overflow (value, *at - '0', &value) || value > most)
      return false;
  *out = value;
  return *text;
}

bool request_is_printable (const request *q) {
  bool ok = text_is_printable (q->path);
  for (int i = 0; ok && i < q->n_query; i++)
    ok = text_is_printable (q->query[i].name) && text_is_printable (q->query[i].value);
  return ok;
}

/* Asked by whoever watches over the service, which may say no Host. */
static bool is_probe (const request *q) {
  return strcmp (q->path, "/healthz") == 0 || strcmp (q->path, "/readyz") == 0;
}

/* Two readers of one stream of bytes, such as a proxy and this, could see its requests end at
   different places, or for different hosts. Without chunks or a length the end is that of the
   connection, whose client is taken for gone. */
const char *request_fault (const request *q, bool needs_host) {
  int ends = 0, hosts = 0, askers = 0;
  for (int i = 0; i < q->n_headers; i++) {
    const field *f = &q->headers[i];
    bool coding = strcasecmp (f->name, "Transfer-Encoding") == 0;
    if (!text_is_printable (f->name))
      return "the name of a header field has a blank";
    if (strchr (f->value, '\r'))
      return "a header field has a CR that ends no line";
    if (coding && strcasecmp (f->value, "chunked") != 0)
      return "Transfer-Encoding: chunked is the only one that is read here";
    if (strcasecmp (f->name, "Host") == 0 && f->value[strcspn (f->value, " \t/\\?#@")])
      return "Host names no host";
    ends += coding || strcasecmp (f->name, "Content-Length") == 0;
    hosts += strcasecmp (f->name, "Host") == 0;
    askers += strcasecmp (f->name, "Authorization") == 0;
  }
  return ends > 1     ? "one Content-Length, or one Transfer-Encoding, says where the body ends"
         : hosts > 1  ? "one Host says whom it is for"
         : askers > 1 ? "one Authorization says who asks"
         : needs_host && !hosts && !is_probe (q) ? "HTTP/1.1 needs a Host"
                                                 : NULL;
}

const char *request_target (request *q) {
  static const char *const schemes[] = { "http://", "https://" };
  const char *at = NULL, *host = request_header (q, "Host");
  for (int i = 0; i < 2 && !at; i++)
    if (strncasecmp (q->path, schemes[i], strlen (schemes[i])) == 0)
      at = q->path + strlen (schemes[i]);
  if (!at)
    return NULL;
  size_t n = strcspn (at, "/");
  if (!host || strlen (host) != n || strncasecmp (host, at, n) != 0)
    return "the target names another host than Host does";
  q->path = at[n] ? at + n : "/";
  return NULL;
}

/* Sixteen digits; a format takes longer, and each request has three. */
static void put_hex (char *to, uint64_t number) {
  for (int i = 15; i >= 0; i--, number >>= 4)
    to[i] = "0123456789abcdef"[number & 15];
  to[16] = 0;
}

void request_name (request *q, uint64_t salt, uint64_t number) {
  const char *sent = request_header (q, "traceparent");
  put_hex (q->id, salt);
  put_hex (q->id + 16, number);
  bool valid = sent && strlen (sent) == 55 && strspn (sent, "0123456789abcdef-") == 55 &&
               sent[2] == '-' && sent[35] == '-' && sent[52] == '-';
  memcpy (q->trace, "00-", 3);
  memcpy (q->trace + 3, q->id, 32);
  q->trace[35] = '-';
  put_hex (q->trace + 36, number + 1);
  memcpy (q->trace + 52, "-00", 4);
  if (valid)
    memcpy (q->trace, sent, 56);
}

void reply_start (reply *p) {
  *p = (reply){ .file = -1 };
}

void reply_free (reply *p) {
  bytes_free (&p->body);
  if (p->file >= 0)
    close (p->file);
  reply_start (p);
}

void reply_header (reply *p, const char *name, const char *value) {
  assert (p && name);
  if (value && p->n_headers < MOST_REPLY_FIELDS)
    p->headers[p->n_headers++] = (field){ name, value };
}

void reply_json (reply *p, int status, json_writer *w) {
  assert (status >= 200 && status < 600);
  error ignored = { 0 };
  p->status = status;
  p->type = "application/json";
  if (!json_finish (w, &p->body, &ignored)) {
    p->status = 500;
    p->body = (bytes){ 0 };
  }
}

void reply_text (reply *p, int status, const char *type, const char *text) {
  assert (status >= 200 && status < 600);
  error ignored = { 0 };
  p->status = status;
  p->type = type;
  if (!bytes_append (&p->body, text, (int64_t)strlen (text), &ignored))
    p->status = 500;
}

/* ---- problems ---- */

static void begin_problem (json_writer *w, const char *detail) {
  json_begin_object (w, 0);
  json_add_text (w, "detail", detail);
}

static void end_problem (json_writer *w, reply *p, const request *q, problem kind) {
  char type[64];
  snprintf (type, sizeof type, "/problems/%s", problems[kind].name);
  for (char *at = type; *at; at++)
    if (*at == '_')
      *at = '-';
  json_add_text (w, "instance", q->path);
  json_add_text (w, "request_id", q->id);
  json_add_int (w, "status", problems[kind].status);
  json_add_text (w, "title", problems[kind].title);
  json_add_text (w, "type", type);
  json_close_object (w);
  bytes_free (&p->body);
  reply_json (p, problems[kind].status, w);
  p->type = "application/problem+json";
  p->keep = false;
  p->wait = p->stream = NULL;
  if (kind == PROBLEM_unauthorized)
    reply_header (p, "WWW-Authenticate", "Bearer");
}

void text_make_plain (char *text) {
  for (; *text; text++)
    if ((unsigned char)*text < 32 || (unsigned char)*text > 126)
      *text = '?';
}

void reply_problem (reply *p, const request *q, problem kind, const char *format, ...) {
  char detail[700];
  json_writer w;
  va_list args;
  va_start (args, format);
  vsnprintf (detail, sizeof detail, format, args);
  va_end (args);
  text_make_plain (detail);
  begin_problem (&w, detail);
  end_problem (&w, p, q, kind);
}

bool request_number (const request *q, reply *p, const char *name, int64_t most, int64_t *out) {
  const char *text = request_query (q, name);
  if (!text || text_to_int (text, most, out))
    return true;
  reply_problem (p, q, PROBLEM_invalid, "%s must be a whole number, at most %lld", name,
                 (long long)most);
  return false;
}

void reply_faults (reply *p, const request *q, const fault *faults, int n) {
  assert (n > 0 && faults);
  char detail[64];
  json_writer w;
  snprintf (detail, sizeof detail, "%d fault%s", n, n == 1 ? "" : "s");
  begin_problem (&w, detail);
  json_add_array (&w, "errors");
  for (int i = 0; i < n; i++) {
    json_open_object (&w);
    json_add_text (&w, "detail", faults[i].detail);
    json_add_text (&w, "pointer", faults[i].pointer);
    json_close_object (&w);
  }
  json_close_array (&w);
  end_problem (&w, p, q, PROBLEM_invalid);
}

void reply_error (reply *p, const request *q, const error *err) {
  problem kind = err->code == ERR_usage         ? PROBLEM_malformed
                 : err->code == ERR_input       ? PROBLEM_invalid
                 : err->code == ERR_unreachable ? PROBLEM_unavailable
                 : err->code == ERR_file        ? PROBLEM_unavailable
                                                : PROBLEM_internal;
  reply_problem (p, q, kind, "%s", err->text);
  if (kind == PROBLEM_unavailable)
    reply_header (p, "Retry-After", "2");
}
