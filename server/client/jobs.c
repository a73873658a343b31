/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Jobs of a server: submitted, and followed to their end. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/client/inner.h"

enum { MOST_LINE = 1 << 20 };

bool client_submit (client *c, const char *kind, const char *request, char job[256], error *err) {
  assert (kind && request);
  char path[128];
  bytes body = { 0 };
  answer a = { 0 };
  snprintf (path, sizeof path, "/v1/%.64s", kind);
  bool ok = bytes_append (&body, request, (int64_t)strlen (request), err) &&
            client_ask (c, "POST", path, &body, &a, err);
  if (ok && (a.status == 404 || !a.location[0]))
    ok = client_complain (&a, path, err);
  if (ok)
    snprintf (job, 256, "%s", a.location);
  bytes_free (&a.body);
  bytes_free (&body);
  return ok;
}

typedef struct listener {
  bytes line, *status;
  client_told *told;
  void *context;
  char event[32], last[32];
} listener;

static void take_line (listener *l) {
  error ignored = { 0 };
  const char *text = l->line.data ? l->line.data : "";
  if (strncmp (text, "id: ", 4) == 0)
    snprintf (l->last, sizeof l->last, "%.31s", text + 4);
  else if (strncmp (text, "event: ", 7) == 0)
    snprintf (l->event, sizeof l->event, "%.31s", text + 7);
  else if (strncmp (text, "data: ", 6) == 0 && strcmp (l->event, "done") == 0) {
    if (!bytes_append (l->status, text + 6, (int64_t)strlen (text + 6), &ignored))
      l->status->size = 0;
  } else if (strncmp (text, "data: ", 6) == 0 && l->told && strcmp (l->event, "incumbent") == 0)
    l->told (l->context, text + 6);
}

static size_t hear (char *data, size_t size, size_t count, void *context) {
  listener *l = context;
  error ignored = { 0 };
  for (size_t i = 0; i < size * count; i++) {
    if (data[i] != '\n') {
      if (l->line.size > MOST_LINE || !bytes_append (&l->line, data + i, 1, &ignored))
        return 0;
      continue;
    }
    take_line (l);
    l->line.size = 0;
    if (l->line.data)
      l->line.data[0] = 0;
  }
  return size * count;
}

typedef enum heard { HEARD_STREAM, HEARD_REFUSAL, HEARD_NOTHING } heard;

/* One connection of the stream: until it ends or breaks. */
static heard listen_once (client *c, const char *job, listener *l, error *err) {
  char url[1024], last[64];
  long status = 0;
  snprintf (url, sizeof url, "%s%s/events", c->url, job);
  snprintf (last, sizeof last, "Last-Event-ID: %s", l->last[0] ? l->last : "0");
  client_set_up (c, "GET", url, NULL);
  struct curl_slist *headers = client_headers (c, NULL, last);
  curl_easy_setopt (c->curl, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt (c->curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt (c->curl, CURLOPT_LOW_SPEED_TIME, (long)ANSWER_S);
  curl_easy_setopt (c->curl, CURLOPT_WRITEFUNCTION, hear);
  curl_easy_setopt (c->curl, CURLOPT_WRITEDATA, l);
  curl_easy_setopt (c->curl, CURLOPT_FAILONERROR, 1L);
  CURLcode code = curl_easy_perform (c->curl);
  curl_easy_getinfo (c->curl, CURLINFO_RESPONSE_CODE, &status);
  curl_slist_free_all (headers);
  if (code == CURLE_HTTP_RETURNED_ERROR && status >= 400)
    return HEARD_REFUSAL;
  if (code == CURLE_OK)
    return HEARD_STREAM;
  client_away (c, code, err);
  return HEARD_NOTHING;
}

/* A server that tells no more listeners still says how a job is; one that refuses says why. */
static bool look (client *c, const char *job, bytes *status, error *err) {
  answer a = { 0 };
  const char *state = NULL;
  json_document *d = NULL;
  bool ok = client_ask (c, "GET", job, NULL, &a, err) &&
            (a.status != 404 || error_set (err, ERR_input, "the server has no job %s", job)) &&
            (d = json_open (a.body.data, a.body.size, err));
  json root = ok ? json_root (d) : (json){ 0 }, s = json_member (&root, "state");
  ok = ok && json_get_text (&s, &state, err);
  bool over = ok && state && strcmp (state, "queued") != 0 && strcmp (state, "running") != 0;
  json_close (d);
  if (over)
    *status = a.body;
  else
    bytes_free (&a.body);
  return ok;
}

bool client_follow (client *c, const char *job, client_told *told, void *context, bytes *status,
                    error *err) {
  assert (c && job && status);
  listener l = { .status = status, .told = told, .context = context };
  int64_t wait_ms = FIRST_WAIT_MS;
  bool ok = true;
  for (int failed = 0; ok && !status->size;) {
    error once = { 0 };
    heard what = listen_once (c, job, &l, &once);
    if (what == HEARD_STREAM)
      wait_ms = FIRST_WAIT_MS;
    failed = what == HEARD_NOTHING ? failed + 1 : 0;
    if (what == HEARD_REFUSAL)
      ok = look (c, job, status, err);
    if (failed == TRIES) {
      *err = once;
      ok = false;
    }
    l.line.size = 0;
    if (ok && !status->size) {
      client_pause (wait_ms);
      wait_ms = wait_ms * 2 < MOST_WAIT_MS ? wait_ms * 2 : MOST_WAIT_MS;
    }
  }
  bytes_free (&l.line);
  return ok;
}
