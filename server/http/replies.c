/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sha256.h"
#include "server/http/door.h"

static void add_headers (door *r, struct MHD_Response *out) {
  const reply *p = &r->e.reply;
  if (p->type) {
    MHD_add_response_header (out, "Content-Type", p->type);
    MHD_add_response_header (out, "X-Content-Type-Options", "nosniff");
  }
  if (r->unsure)
    MHD_add_response_header (out, "Connection", "close");
  for (int i = 0; i < p->n_headers; i++)
    MHD_add_response_header (out, p->headers[i].name, p->headers[i].value);
}

static int64_t now_s (void) {
  return monotonic_ns () / 1000000000;
}

/* Accept chooses no other form than JSON, and there is no query: memory holds one answer a path,
   and one a path and body of those that ask for work, since equal questions have equal answers.
   What takes some thought to read is left to the route. */
static bool is_plain (const request *q) {
  enum { MOST_BODY = 1 << 16 };
  const char *accept = request_list (q, "Accept");
  bool any = !accept || strcmp (accept, "*/*") == 0 || strcasecmp (accept, "application/json") == 0;
  bool asks = strcmp (q->method, "POST") == 0 && !q->spool && q->body.size &&
              q->body.size <= MOST_BODY && !request_header (q, "Content-Encoding") &&
              !request_header (q, "Transfer-Encoding") && !request_header (q, "Idempotency-Key");
  return (asks || strcmp (q->method, "GET") == 0) && !q->n_query && any;
}

static char *put_text (char *to, const char *text) {
  size_t n = strlen (text);
  memcpy (to, text, n);
  return to + n;
}

/* NULL: longer than those that are kept. */
static const char *key_of (door *r) {
  request *q = &r->e.request;
  char digest[SHA256_TEXT] = "", *at = r->key;
  sha256 s;
  if (strlen (q->owner) + strlen (q->path) + sizeof digest + 2 > sizeof r->key)
    return NULL;
  if (q->body.size) {
    sha256_start (&s);
    sha256_add (&s, q->body.data, (size_t)q->body.size);
    sha256_text (&s, digest);
  }
  at = put_text (at, q->owner);
  *at++ = ' ';
  at = put_text (at, q->path);
  *at++ = ' ';
  *put_text (at, digest) = 0;
  return r->key;
}

void door_sleep (exchange *e) {
  MHD_suspend_connection (((door *)e->door)->connection);
}

static ssize_t read_stream (void *context, uint64_t position, char *to, size_t most) {
  door *r = context;
  (void)position;
  int64_t n = desk_read (r->http->desk, &r->e, to, (int64_t)most, door_sleep);
  return n < 0 ? MHD_CONTENT_READER_END_OF_STREAM : (ssize_t)n;
}

static struct MHD_Response *make_response (door *r) {
  reply *p = &r->e.reply;
  struct MHD_Response *out;
  bool bare = p->status == 204 || p->status == 304;
  if (p->stream)
    out = MHD_create_response_from_callback (MHD_SIZE_UNKNOWN, 4096, read_stream, r, NULL);
  else if (p->file >= 0 && !bare) {
    out = MHD_create_response_from_fd64 ((uint64_t)p->file_bytes, p->file);
    p->file = out ? -1 : p->file;
  } else {
    out = MHD_create_response_from_buffer (bare ? 0 : (size_t)p->body.size, p->body.data,
                                           MHD_RESPMEM_MUST_FREE);
    p->body = out ? (bytes){ 0 } : p->body;
  }
  if (out)
    add_headers (r, out);
  return out;
}

/* A small file that stays the same is read into memory, so that the next answer comes from there.
 */
static void load_file (door *r) {
  reply *p = &r->e.reply;
  error ignored = { 0 };
  int64_t done = 0;
  if (!p->keep || p->file < 0 || !bytes_room (&p->body, p->file_bytes, &ignored))
    return;
  while (done < p->file_bytes) {
    ssize_t n = read (p->file, p->body.data + done, (size_t)(p->file_bytes - done));
    if (n <= 0)
      return;
    done += n;
  }
  p->body.size = done;
  close (p->file);
  p->file = -1;
}

/* The kind of jobs that the path is about. */
static const char *kind_of (const request *q) {
  const job_kind *k = q->part[0] ? kind_named (q->part[0]) : NULL;
  return k ? k->name : "other";
}

static const char *method_of (const request *q) {
  static const char *const known[] = { "GET", "HEAD", "POST", "PUT", "DELETE" };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp (q->method, known[i]) == 0)
      return known[i];
  return "other";
}

static void measure (door *r) {
  service *s = r->http->service;
  if (!r->link)
    return;
  const char *route = r->e.route ? r->e.route->path : "none";
  service_count_of (s, METRIC_http_requests_total, method_of (&r->e.request), route,
                    status_text (r->e.reply.status));
  service_observe (s, METRIC_http_request_duration_seconds, route,
                   monotonic_ns () - r->e.request.began_ns);
}

enum MHD_Result door_reply (door *r) {
  request *q = &r->e.request;
  reply *p = &r->e.reply;
  http *h = r->http;
  bool plain = is_plain (q) && p->status == 200;
  if (p->stream && !desk_stream (h->desk, &r->e)) {
    reply_problem (p, q, PROBLEM_unavailable, "too many wait already");
    reply_header (p, "Retry-After", "5");
  }
  load_file (r);
  if (!p->stream)
    links_busy (h->links, r->link, LINK_REPLY);
  bool cache = p->keep && plain && p->file < 0;
  r->sent_bytes = p->file >= 0 ? p->file_bytes : p->body.size;
  struct MHD_Response *out = make_response (r);
  if (!out)
    return MHD_NO;
  if (!cache) {
    MHD_add_response_header (out, "X-Request-Id", q->id);
    MHD_add_response_header (out, "traceparent", q->trace);
  }
  /* A kept answer may be another's business tomorrow: after a DELETE all is asked for again. */
  if (strcmp (q->method, "DELETE") == 0)
    answers_forget (h->kept);
  enum MHD_Result ok = MHD_queue_response (r->connection, (unsigned)p->status, out);
  if (cache)
    answers_keep (h->kept, key_of (r), out, r->sent_bytes,
                  now_s ()); /* the connection holds it too by now */
  else
    MHD_destroy_response (out);
  measure (r);
  if (cache)
    service_count_of (h->service, METRIC_cache_misses_total, kind_of (q), NULL, NULL);
  return ok;
}

bool door_reply_kept (door *r, enum MHD_Result *result) {
  request *q = &r->e.request;
  if (!is_plain (q) || request_header (q, "If-None-Match"))
    return false;
  const char *key = key_of (r);
  if (!key)
    return false;
  bool hit = answers_queue (r->http->kept, key, r->connection, now_s (), &r->sent_bytes, result);
  if (hit) {
    r->e.reply.status = 200;
    service_count_of (r->http->service, METRIC_cache_hits_total, kind_of (q), NULL, NULL);
    if (q->body.size)
      service_count_of (r->http->service, METRIC_jobs_joined_total, kind_of (q), NULL, NULL);
    measure (r);
  }
  return hit;
}
