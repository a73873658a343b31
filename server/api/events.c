/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The events of a job as a stream: what is stored is told again to whoever was away. */
#include <stdlib.h>
#include <string.h>

#include "server/api/api.h"
#include "server/api/routes.h"

void api_events (service *s, request *q, reply *p) {
  job_row j;
  const char *last = request_header (q, "Last-Event-ID");
  if (!api_find_job (s, q, p, &j))
    return;
  p->status = 200;
  p->type = "text/event-stream";
  p->stream = j.id;
  p->stream_after = last ? strtoll (last, NULL, 10) : 0;
  reply_header (p, "Cache-Control", "no-store");
  reply_header (p, "X-Accel-Buffering", "no");
}

static bool put_event (bytes *out, int64_t seq, const char *type, const char *data, error *err) {
  char head[96];
  int n = seq ? snprintf (head, sizeof head, "id: %lld\nevent: %s\ndata: ", (long long)seq, type)
              : snprintf (head, sizeof head, "event: %s\ndata: ", type);
  return bytes_append (out, head, n, err) &&
         bytes_append (out, data, (int64_t)strlen (data), err) &&
         bytes_append (out, "\n\n", 2, err);
}

bool routes_events (service *s, const char *job, const char *owner, int64_t *after, bytes *out,
                    bool *last, error *err) {
  request q = { .arena = arena_new (0), .owner = owner, .path = "" };
  event_row *all = NULL;
  job_row j;
  int n = 0;
  bool found = false;
  bool ok = q.arena || error_memory (err);
  /* The state first: what is told after it is in the next round. */
  ok = ok && store_find_job (s->store, job, NULL, q.arena, &j, &found, err) &&
       store_events (s->store, job, *after, q.arena, &all, &n, err);
  for (int i = 0; ok && i < n; i++) {
    ok = put_event (out, all[i].seq, all[i].type, all[i].data, err);
    *after = all[i].seq;
  }
  *last = ok && n < STORE_EVENTS && (!found || api_is_over (&j));
  if (*last && found) {
    json_writer w;
    bytes text = { 0 };
    json_begin (&w, 0);
    api_put_status (&w, s, &q, &j, true);
    ok = json_finish (&w, &text, err);
    for (int64_t i = 0; ok && i < text.size; i++) /* a line of its own ends an event */
      text.data[i] = text.data[i] == '\n' ? ' ' : text.data[i];
    ok = ok && put_event (out, 0, "done", text.data, err);
    bytes_free (&text);
  }
  arena_free (q.arena);
  return ok;
}
