/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "server/client/client.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/coding.h"
#include "base/json.h"
#include "base/parts.h"
#include "base/sha256.h"
#include "server/client/inner.h"

enum { CONNECT_S = 10, MOST_ANSWER = 1 << 30, MOST_UPLOAD = 2 };

static bool is_url (const char *text) {
  if (strncmp (text, "http://", 7) != 0 && strncmp (text, "https://", 8) != 0)
    return false;
  CURLU *u = curl_url ();
  bool good = u != NULL && curl_url_set (u, CURLUPART_URL, text, 0) == CURLUE_OK;
  curl_url_cleanup (u);
  return good;
}

bool client_takes (const char *url, error *err) {
  bool is_path = strncmp (url, "unix:", 5) == 0;
  size_t n = strlen (url);
  if (is_path ? n > 5 && n < MOST_PATH : n < MOST_URL && is_url (url))
    return true;
  return error_set (err, ERR_usage, "--server: `%.80s` is not http://HOST:PORT or unix:PATH", url);
}

static void client_url (client *c, const char *url) {
  if (strncmp (url, "unix:", 5) == 0) {
    snprintf (c->socket, sizeof c->socket, "%s", url + 5);
    snprintf (c->url, sizeof c->url, "http://unix");
    return;
  }
  snprintf (c->url, sizeof c->url, "%s", url);
  for (size_t n = strlen (c->url); n && c->url[n - 1] == '/'; n--)
    c->url[n - 1] = 0;
}

client *client_new (const char *url, const char *token, arena *a, error *err) {
  client *c = client_takes (url, err) ? NEW (a, 1, client, err) : NULL;
  if (!c)
    return NULL;
  client_url (c, url);
  if (token)
    snprintf (c->authorization, sizeof c->authorization, "Authorization: Bearer %.200s", token);
  if (curl_global_init (CURL_GLOBAL_DEFAULT) == 0 && (c->curl = curl_easy_init ()))
    return c;
  error_set (err, ERR_internal, "libcurl does not start");
  return NULL;
}

void client_free (client *c) {
  if (!c)
    return;
  curl_easy_cleanup (c->curl);
  curl_global_cleanup ();
}

/* ---- one exchange ---- */

typedef struct taker {
  bytes *to;
} taker;

static size_t take (char *data, size_t size, size_t count, void *context) {
  taker *t = context;
  error ignored = { 0 };
  if (t->to->size + (int64_t)(size * count) > MOST_ANSWER ||
      !bytes_append (t->to, data, (int64_t)(size * count), &ignored))
    return 0;
  return size * count;
}

/* The value of a header line of that name, without the end of the line; or NULL. */
static const char *value_of (const char *line, size_t n, const char *name, int *length) {
  size_t before = strlen (name);
  if (n <= before || strncasecmp (line, name, before) != 0)
    return NULL;
  while (n > before && (line[n - 1] == '\r' || line[n - 1] == '\n'))
    n--;
  *length = (int)(n - before);
  return line + before;
}

static size_t take_header (char *data, size_t size, size_t count, void *context) {
  answer *out = context;
  int length = 0;
  const char *location = value_of (data, size * count, "location: ", &length);
  if (location)
    snprintf (out->location, sizeof out->location, "%.*s", length, location);
  const char *link = value_of (data, size * count, "link: <", &length);
  const char *end = link ? memchr (link, '>', (size_t)length) : NULL;
  if (end && memmem (end, (size_t)(link + length - end), "rel=\"next\"", 10))
    snprintf (out->next, sizeof out->next, "%.*s", (int)(end - link), link);
  return size * count;
}

/* A body of parts names what divides them: its first line says it. */
static const char *type_of (const bytes *body, char text[2 * PARTS_LINE]) {
  if (coding_is_packed (body->data, body->size))
    return "Content-Type: application/octet-stream";
  if (!parts_are (body->data, body->size))
    return "Content-Type: application/json";
  snprintf (text, 2 * PARTS_LINE, "Content-Type: multipart/form-data; boundary=%.*s",
            (int)strcspn (body->data + 2, "\r"), body->data + 2);
  return text;
}

struct curl_slist *client_headers (const client *c, const bytes *body, const char *more) {
  struct curl_slist *list = curl_slist_append (NULL, "Expect:");
  char type[2 * PARTS_LINE];
  bool packed = body && coding_is_zstd (body->data, body->size);
  bool zipped = body && coding_is_gzip (body->data, body->size);
  if (c->authorization[0])
    list = curl_slist_append (list, c->authorization);
  if (packed || zipped)
    list = curl_slist_append (list, packed ? "Content-Encoding: zstd" : "Content-Encoding: gzip");
  if (body)
    list = curl_slist_append (list, type_of (body, type));
  if (more)
    list = curl_slist_append (list, more);
  return list;
}

void client_set_up (client *c, const char *method, const char *url, const bytes *body) {
  curl_easy_reset (c->curl);
  curl_easy_setopt (c->curl, CURLOPT_URL, url);
  curl_easy_setopt (c->curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt (c->curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
  curl_easy_setopt (c->curl, CURLOPT_PROXY, "");
  if (c->socket[0])
    curl_easy_setopt (c->curl, CURLOPT_UNIX_SOCKET_PATH, c->socket);
  if (body) {
    curl_easy_setopt (c->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->size);
    curl_easy_setopt (c->curl, CURLOPT_POSTFIELDS, body->data);
  }
  if (strcmp (method, "GET") != 0)
    curl_easy_setopt (c->curl, CURLOPT_CUSTOMREQUEST, method);
}

bool client_away (const client *c, CURLcode code, error *err) {
  return error_set (err, ERR_unreachable, "no ferry serve answers at %s: %s; is it running?",
                    c->socket[0] ? c->socket : c->url, curl_easy_strerror (code));
}

static bool ask_once (client *c, const char *method, const char *path, const bytes *body,
                      answer *out, error *err) {
  char url[1024];
  taker t = { &out->body };
  curl_off_t retry = -1;
  long status = 0;
  snprintf (url, sizeof url, "%s%s", c->url, path);
  client_set_up (c, method, url, body);
  struct curl_slist *headers = client_headers (c, body, body ? "Prefer: wait=20" : NULL);
  curl_easy_setopt (c->curl, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt (c->curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt (c->curl, CURLOPT_LOW_SPEED_TIME, (long)ANSWER_S);
  curl_easy_setopt (c->curl, CURLOPT_WRITEFUNCTION, take);
  curl_easy_setopt (c->curl, CURLOPT_WRITEDATA, &t);
  curl_easy_setopt (c->curl, CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt (c->curl, CURLOPT_HEADERDATA, out);
  out->location[0] = out->next[0] = 0;
  CURLcode code = curl_easy_perform (c->curl);
  curl_easy_getinfo (c->curl, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo (c->curl, CURLINFO_RETRY_AFTER, &retry);
  curl_slist_free_all (headers);
  out->status = (int)status;
  c->retry_s = (long)retry;
  return code == CURLE_OK || client_away (c, code, err);
}

/* ---- again, and what went wrong ---- */

void client_pause (int64_t ms) {
  struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
  nanosleep (&t, NULL);
}

static bool is_busy (int status) {
  return status == 429 || status == 503;
}

static error_code kind_of (int status) {
  return status == 401 || status == 403 ? ERR_usage
         : is_busy (status)             ? ERR_unreachable
         : status < 500                 ? ERR_input
         : status == 500                ? ERR_internal
                                        : ERR_unreachable;
}

/* Faults with places are of a request: of what the command line asked for. */
bool client_complain (const answer *a, const char *path, error *err) {
  const char *detail = NULL;
  error ignored = { 0 };
  error_code kind = kind_of (a->status);
  json_document *d = a->body.data ? json_open (a->body.data, a->body.size, &ignored) : NULL;
  json root = d ? json_root (d) : (json){ 0 };
  json text = d ? json_member (&root, "detail") : (json){ 0 };
  json list = d ? json_member (&root, "errors") : (json){ 0 };
  json first = json_element (&list, 0);
  const char *where = "";
  if (json_count (&list) > 0 && json_read_text (&first, "detail", &detail, &ignored) &&
      json_read_text (&first, "pointer", &where, &ignored))
    error_at (err, ERR_usage, where, "%s", detail ? detail : "");
  else if (d && json_get_text (&text, &detail, &ignored) && detail)
    error_set (err, kind, "the server says: %s%s", detail,
               a->status == 401 ? "; it is taken from FERRY_TOKEN" : "");
  else
    error_set (err, kind, "the server answers %s with status %d", path, a->status);
  json_close (d);
  return false;
}

/* Until it is answered by more than that the server is busy. */
static bool ask_patiently (client *c, const char *method, const char *path, const bytes *body,
                           answer *out, error *err) {
  int64_t wait_ms = FIRST_WAIT_MS;
  *out = (answer){ 0 };
  for (int tried = 1;; tried++, wait_ms *= 2) {
    error once = { 0 };
    bytes_free (&out->body);
    bool ok = ask_once (c, method, path, body, out, &once);
    if (ok && !is_busy (out->status))
      break;
    if (tried == TRIES) {
      if (!ok)
        *err = once;
      else
        client_complain (out, path, err);
      return false;
    }
    int64_t told_ms = ok && c->retry_s > 0 ? c->retry_s * 1000 : wait_ms;
    client_pause (told_ms < MOST_WAIT_MS ? told_ms : MOST_WAIT_MS);
  }
  return out->status < 400 || out->status == 404 || client_complain (out, path, err);
}

/* Its answers are JSON, but a log, and lead nowhere else: the page of a proxy that wants a password
   is none. */
static bool is_of_ferry (const client *c, const char *path, const answer *a) {
  const char *type = NULL, *last = strrchr (path, '/');
  if (curl_easy_getinfo (c->curl, CURLINFO_CONTENT_TYPE, &type) != CURLE_OK || !type)
    type = "";
  bool log = last && strcmp (last, "/log") == 0 && strncmp (type, "text/plain", 10) == 0;
  return (a->status < 300 || a->status >= 400) && (!a->body.size || log || strstr (type, "json"));
}

bool client_elsewhere (const client *c, error *err) {
  return error_set (err, ERR_unreachable, "what answers at %s is no ferry serve",
                    c->socket[0] ? c->socket : c->url);
}

bool client_ask (client *c, const char *method, const char *path, const bytes *body, answer *out,
                 error *err) {
  assert (c && method && path && out);
  bool ok = ask_patiently (c, method, path, body, out, err) &&
            (is_of_ferry (c, path, out) || client_elsewhere (c, err));
  if (!ok)
    bytes_free (&out->body);
  return ok;
}

bool client_is_problem (const answer *a, const char *name) {
  const char *type = NULL;
  error ignored = { 0 };
  json_document *d = a->body.data ? json_open (a->body.data, a->body.size, &ignored) : NULL;
  json root = d ? json_root (d) : (json){ 0 };
  json j = d ? json_member (&root, "type") : (json){ 0 };
  bool is = d && json_get_text (&j, &type, &ignored) && type &&
            strncmp (type, "/problems/", 10) == 0 && strcmp (type + 10, name) == 0;
  json_close (d);
  return is;
}

/* ---- uploads ---- */

static bool take_id (const answer *a, char id[65], error *err) {
  const char *text = NULL;
  json_document *d = json_open (a->body.data ? a->body.data : "", a->body.size, err);
  json root = d ? json_root (d) : (json){ 0 };
  json j = d ? json_member (&root, "trace") : (json){ 0 };
  bool ok = d && json_get_text (&j, &text, err) &&
            (text || error_set (err, ERR_unreachable, "the server names no trace"));
  if (ok)
    snprintf (id, 65, "%.64s", text);
  json_close (d);
  return ok;
}

static bool pack_file (const char *path, bytes *out, error *err) {
  bytes plain = { 0 };
  if (!file_read_raw (path, 0, &plain, err))
    return false;
  if (coding_is_packed (plain.data, plain.size)) {
    *out = plain;
    return true;
  }
  bool ok = zstd_encode (plain.data, plain.size, out, err);
  bytes_free (&plain);
  return ok;
}

/* Files of one run: each is compressed, and a part of one body. */
static bool pack_files (const char *const *paths, int n, bytes *out, error *err) {
  bytes packed[MOST_UPLOAD] = { 0 };
  part parts[MOST_UPLOAD] = { 0 };
  char boundary[PARTS_LINE];
  bool ok = n <= MOST_UPLOAD || error_set (err, ERR_usage, "at most %d files", MOST_UPLOAD);
  for (int i = 0; ok && i < n; i++) {
    ok = pack_file (paths[i], &packed[i], err);
    parts[i] = (part){ paths[i], packed[i].data, packed[i].size };
  }
  if (ok && n == 1) {
    *out = packed[0];
    return true;
  }
  ok = ok && parts_write (parts, n, out, boundary, err);
  for (int i = 0; i < n && i < MOST_UPLOAD; i++)
    bytes_free (&packed[i]);
  return ok;
}

static bool is_done (const bytes *status, error *err) {
  const char *state = NULL, *detail = NULL;
  json_document *d = json_open (status->data, status->size, err);
  if (!d)
    return false;
  json root = json_root (d), s = json_member (&root, "state");
  json problem = json_member (&root, "problem");
  bool ok = json_get_text (&s, &state, err) && json_read_text (&problem, "detail", &detail, err);
  if (ok && (!state || strcmp (state, "done") != 0))
    ok = detail ? error_set (err, ERR_input, "the server says: %s", detail)
                : error_set (err, ERR_input, "the import was stopped; sent again, it begins again");
  json_close (d);
  return ok;
}

/* An import that takes long is waited for where it says it is. */
static bool finish_upload (client *c, answer *a, const char *known, error *err) {
  char job[256];
  bytes status = { 0 };
  if (a->status != 202)
    return true;
  snprintf (job, sizeof job, "%s", a->location);
  bool ok = client_follow (c, job, NULL, NULL, &status, err) && is_done (&status, err);
  bytes_free (&status);
  bytes_free (&a->body);
  return ok && client_ask (c, "GET", known, NULL, a, err);
}

/* A name in a query, whatever it has in it. */
static bool traces_of (client *c, const char *fingerprint, char path[512], error *err) {
  char *escaped = curl_easy_escape (c->curl, fingerprint, 0);
  int length = escaped ? snprintf (path, 512, "/v1/traces?fingerprint=%s", escaped) : -1;
  curl_free (escaped);
  if (length < 0)
    return error_memory (err);
  return length < 512 || error_set (err, ERR_usage, "the fingerprint is too long");
}

/* Whose file it is, where that is one. */
static bool add_name (client *c, const char *file, char path[512], error *err) {
  const char *slash = file ? strrchr (file, '/') : NULL;
  const char *base = slash ? slash + 1 : file;
  size_t n = strlen (path);
  char plain[64] = "";
  for (size_t i = 0; base && base[i] && i + 1 < sizeof plain; i++)
    plain[i] = (char)(base[i] > 32 && base[i] < 127 ? base[i] : '_');
  char *escaped = *plain ? curl_easy_escape (c->curl, plain, 0) : NULL;
  if (*plain && !escaped)
    return error_memory (err);
  if (escaped)
    snprintf (path + n, 512 - n, "%sname=%s", strchr (path, '?') ? "&" : "?", escaped);
  curl_free (escaped);
  return true;
}

static bool send_packed (client *c, const bytes *body, const char *file, const char *fingerprint,
                         char id[65], error *err) {
  char digest[65], known[128], target[512] = "/v1/traces";
  sha256 s;
  answer a = { 0 };
  sha256_start (&s);
  sha256_add (&s, body->data, (size_t)body->size);
  sha256_text (&s, digest);
  snprintf (known, sizeof known, "/v1/uploads/%s", digest);
  bool ok = fingerprint ? traces_of (c, fingerprint, target, err)
                        : client_ask (c, "GET", known, NULL, &a, err);
  if (ok && a.status != 200) {
    bytes_free (&a.body);
    ok = add_name (c, file, target, err) && client_ask (c, "POST", target, body, &a, err) &&
         finish_upload (c, &a, known, err);
  }
  ok = ok && take_id (&a, id, err);
  bytes_free (&a.body);
  return ok;
}

bool client_upload (client *c, const char *const *paths, int n, const char *fingerprint,
                    char id[65], error *err) {
  assert (n > 0 && paths);
  bytes body = { 0 };
  bool ok = pack_files (paths, n, &body, err) &&
            send_packed (c, &body, n == 1 ? paths[0] : NULL, fingerprint, id, err);
  bytes_free (&body);
  return ok;
}

bool client_upload_text (client *c, const bytes *text, char id[65], error *err) {
  bytes body = { 0 };
  bool ok = zstd_encode (text->data, text->size, &body, err) &&
            send_packed (c, &body, NULL, NULL, id, err);
  bytes_free (&body);
  return ok;
}
