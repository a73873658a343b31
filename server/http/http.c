/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "server/http/http.h"

#include <microhttpd.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/http/accept.h"
#include "server/http/answers.h"
#include "server/http/desk.h"
#include "server/http/links.h"
#include "server/http/upload.h"

enum { IDLE_S = 15 };
enum { CONNECTION_BYTES = 32 << 10, POOL = 4 };

struct http {
  service *service;
  desk *desk;
  links *links;
  struct MHD_Daemon *daemon;
  accepting *accepting;
  uint64_t salt;
  _Atomic uint64_t requests;
  answers *kept;
};

typedef struct door {
  exchange e;
  http *http;
  struct MHD_Connection *connection;
  link_state *link;
  upload body;
  int64_t sent_bytes; /* of the reply's body, where it is no stream */
  bool put;
} door;

/* ---- replies ---- */

static void add_headers (door *r, struct MHD_Response *out) {
  const reply *p = &r->e.reply;
  if (p->type)
    MHD_add_response_header (out, "Content-Type", p->type);
  for (int i = 0; i < p->n_headers; i++)
    MHD_add_response_header (out, p->headers[i].name, p->headers[i].value);
}

static int64_t now_s (void) {
  return service_now_ns () / 1000000000;
}

/* Accept chooses no other form than JSON, and there is no query: memory holds one answer a path.
   What takes some thought to read is left to the route. */
static bool is_plain (const request *q) {
  const char *accept = request_list (q, "Accept");
  bool any = !accept || strcmp (accept, "*/*") == 0 || strcasecmp (accept, "application/json") == 0;
  return strcmp (q->method, "GET") == 0 && !q->n_query && any;
}

static const char *key_of (door *r) {
  error ignored = { 0 };
  return arena_format (r->e.request.arena, &ignored, "%s %s", r->e.request.owner,
                       r->e.request.path);
}

static void fall_asleep (exchange *e) {
  MHD_suspend_connection (((door *)e->door)->connection);
}

static ssize_t read_stream (void *context, uint64_t position, char *to, size_t most) {
  door *r = context;
  (void)position;
  int64_t n = desk_read (r->http->desk, &r->e, to, (int64_t)most, fall_asleep);
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
  const char *route = r->e.route ? r->e.route->path : "none";
  service_count_of (s, METRIC_http_requests_total, method_of (&r->e.request), route,
                    status_text (r->e.reply.status));
  service_observe (s, METRIC_http_request_duration_seconds, route,
                   service_now_ns () - r->e.request.began_ns);
}

static enum MHD_Result queue_reply (door *r) {
  request *q = &r->e.request;
  reply *p = &r->e.reply;
  http *h = r->http;
  bool plain = is_plain (q) && p->status == 200;
  if (p->stream && !desk_stream (h->desk, &r->e)) {
    reply_problem (p, q, PROBLEM_unavailable, "too many wait already");
    reply_header (p, "Retry-After", "5");
  }
  load_file (r);
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

/* Answered here and now, where the answer is in memory. */
static bool answer_cached (door *r, enum MHD_Result *result) {
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
    measure (r);
  }
  return hit;
}

/* ---- requests ---- */

static enum MHD_Result take_field (void *context, enum MHD_ValueKind kind, const char *name,
                                   const char *value) {
  request *q = context;
  field *list = kind == MHD_HEADER_KIND ? q->headers : q->query;
  int *n = kind == MHD_HEADER_KIND ? &q->n_headers : &q->n_query;
  if (*n < MOST_FIELDS)
    list[(*n)++] = (field){ name, value ? value : "" };
  else
    q->crowded = true;
  return MHD_YES;
}

static bool lacks_room (int error) {
  return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

static door *begin (http *h, struct MHD_Connection *c, const char *path, const char *method) {
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info (c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  door *r = calloc (1, sizeof *r);
  if (!r || !(r->e.request.arena = arena_new (0))) {
    free (r);
    return NULL;
  }
  request *q = &r->e.request;
  reply_start (&r->e.reply);
  r->http = h;
  r->connection = c;
  r->link = info ? info->socket_context : NULL;
  r->e.door = r;
  q->method = method;
  q->path = path;
  q->owner = "";
  q->began_ns = service_now_ns ();
  MHD_get_connection_values (c, MHD_HEADER_KIND, take_field, q);
  MHD_get_connection_values (c, MHD_GET_ARGUMENT_KIND, take_field, q);
  request_name (q, h->salt, atomic_fetch_add (&h->requests, 1));
  links_busy (h->links, r->link, LINK_BODY);
  const char *fault = request_fault (q), *wrong = fault ? fault : request_target (q);
  if (!request_is_printable (q))
    reply_problem (&r->e.reply, q, PROBLEM_malformed, "the path or query has odd characters");
  else if (wrong)
    reply_problem (&r->e.reply, q, PROBLEM_malformed, "%s", wrong);
  else if (q->crowded)
    reply_problem (&r->e.reply, q, PROBLEM_too_many,
                   "more than %d header fields, or members of the query", MOST_FIELDS);
  else
    r->e.route = routes_begin (h->service, q, &r->e.reply);
  bool spooled = r->e.route && r->e.route->body == BODY_UPLOAD;
  if (!upload_begin (&r->body, r->e.route ? routes_most_bytes (h->service, r->e.route) : 0, q,
                     spooled ? h->service->options.folder : NULL)) {
    reply_problem (&r->e.reply, q, lacks_room (errno) ? PROBLEM_disk_full : PROBLEM_unavailable,
                   "no file for the upload: %s", strerror (errno));
    r->e.route = NULL;
  }
  return r;
}

/* True: the body came whole. */
static bool body_is_here (door *r) {
  const request *q = &r->e.request;
  const upload *u = &r->body;
  if (u->too_large && !u->most_bytes)
    reply_problem (&r->e.reply, q, PROBLEM_too_large, "%s has no body here", q->method);
  else if (u->too_large)
    reply_problem (&r->e.reply, q, PROBLEM_too_large, "%lld bytes are the most",
                   (long long)u->most_bytes);
  else if (lacks_room (u->failed))
    reply_problem (&r->e.reply, q, PROBLEM_disk_full, "the state folder has no room for it: %s",
                   strerror (u->failed));
  else if (u->failed)
    reply_problem (&r->e.reply, q, PROBLEM_unavailable, "the upload cannot be kept: %s",
                   strerror (u->failed));
  return !u->too_large && !u->failed;
}

static enum MHD_Result put (door *r) {
  request *q = &r->e.request;
  if (!body_is_here (r)) {
    r->e.handled = true;
    return queue_reply (r);
  }
  upload_end (&r->body, q);
  r->put = true;
  q->began_ns = service_now_ns ();
  links_busy (r->http->links, r->link, LINK_BUSY);
  if (desk_put (r->http->desk, &r->e, fall_asleep))
    return MHD_YES;
  reply_problem (&r->e.reply, q, PROBLEM_unavailable, "the service stops");
  r->e.handled = true;
  return queue_reply (r);
}

static bool has_body (const request *q) {
  return request_header (q, "Content-Length") || request_header (q, "Transfer-Encoding");
}

static enum MHD_Result handle (void *context, struct MHD_Connection *c, const char *path,
                               const char *method, const char *version, const char *data,
                               size_t *size, void **state) {
  door *r = *state;
  enum MHD_Result result = MHD_NO;
  (void)version;
  if (!r) {
    *state = r = begin (context, c, path, method);
    if (!r)
      return MHD_NO;
    /* A reply at this moment spares the body, and ends the connection. */
    return !r->e.route && has_body (&r->e.request) ? queue_reply (r) : MHD_YES;
  }
  if (*size) {
    links_bytes (r->http->links, r->link, (int64_t)*size);
    service_count (r->http->service, METRIC_http_request_bytes_total, (int64_t)*size);
    bool ok = r->e.reply.status || upload_take (&r->body, &r->e.request, data, *size);
    *size = 0;
    return ok ? MHD_YES : MHD_NO;
  }
  if (r->e.handled || !r->e.route)
    return queue_reply (r);
  if (!r->put && r->e.route->body == BODY_NONE && !r->body.too_large && answer_cached (r, &result))
    return result;
  return r->put ? MHD_YES : put (r);
}

static void completed (void *context, struct MHD_Connection *c, void **state,
                       enum MHD_RequestTerminationCode how) {
  door *r = *state;
  char time[24], in[24], out[24], trace_id[33], span_id[17];
  (void)context, (void)c, (void)how;
  if (!r)
    return;
  if (r->e.reply.stream)
    desk_forget (r->http->desk, &r->e);
  upload_forget (&r->body);
  links_busy (r->http->links, r->link, LINK_HEAD);
  if (r->http->service->options.log && (r->e.handled || r->e.reply.status)) {
    const request *q = &r->e.request;
    snprintf (time, sizeof time, "%.6f", (double)(service_now_ns () - q->began_ns) / 1e9);
    snprintf (in, sizeof in, "%lld", (long long)q->body_bytes);
    snprintf (out, sizeof out, "%lld", (long long)r->sent_bytes);
    snprintf (trace_id, sizeof trace_id, "%.32s", q->trace + 3);
    snprintf (span_id, sizeof span_id, "%.16s", q->trace + 36);
    service_log (r->http->service, "info", "request", "bytes_in", in, "bytes_out", out, "code",
                 status_text (r->e.reply.status), "dur_s", time, "method", q->method, "request_id",
                 q->id, "route", r->e.route ? r->e.route->path : "", "span_id", span_id, "trace_id",
                 trace_id, NULL);
  }
  bytes_free (&r->e.request.body);
  bytes_free (&r->e.text);
  reply_free (&r->e.reply);
  arena_free (r->e.request.arena);
  free (r);
}

static void connected (void *context, struct MHD_Connection *c, void **state,
                       enum MHD_ConnectionNotificationCode what) {
  http *h = context;
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info (c, MHD_CONNECTION_INFO_CONNECTION_FD);
  bool opens = what == MHD_CONNECTION_NOTIFY_STARTED;
  service_count (h->service, METRIC_http_connections, opens ? 1 : -1);
  if (opens)
    *state = links_add (h->links, info ? info->connect_fd : -1);
  else
    links_remove (h->links, *state);
}

static void on_ready (void *context, exchange *e) {
  (void)context;
  MHD_resume_connection (((door *)e->door)->connection);
}

/* ---- life ---- */

static bool is_full (void *context) {
  http *h = context;
  const union MHD_DaemonInfo *info =
      MHD_get_daemon_info (h->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
  return info && (int64_t)info->num_connections >= h->service->options.most_connections;
}

static void take (void *context, int fd, const struct sockaddr *from, socklen_t size) {
  MHD_add_connection (((http *)context)->daemon, fd, from, size); /* closes it where it refuses */
}

/* A path would end at a NUL for us, not for who sent it: another control character takes its place,
   which is refused. */
static size_t unescape (void *context, struct MHD_Connection *c, char *text) {
  (void)context, (void)c;
  for (char *at = text; (at = strstr (at, "%00")); at += 3)
    at[2] = '1';
  return MHD_http_unescape (text);
}

static bool start_daemon (http *h, error *err) {
  long n = sysconf (_SC_NPROCESSORS_ONLN);
  unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC |
                   MHD_USE_NO_LISTEN_SOCKET;
  h->daemon =
      MHD_start_daemon (flags, 0, NULL, NULL, handle, h, MHD_OPTION_THREAD_POOL_SIZE,
                        (unsigned)(n > POOL ? POOL
                                   : n < 2  ? 2
                                            : n),
                        MHD_OPTION_CONNECTION_LIMIT, (unsigned)h->service->options.most_connections,
                        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
                        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
                        MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL, MHD_OPTION_NOTIFY_COMPLETED,
                        completed, h, MHD_OPTION_NOTIFY_CONNECTION, connected, h, MHD_OPTION_END);
  return h->daemon || error_set (err, ERR_internal, "libmicrohttpd does not start");
}

http *http_start (service *s, const int *sockets, int n, error *err) {
  http *h = calloc (1, sizeof *h);
  if (!h) {
    error_memory (err);
    return NULL;
  }
  h->service = s;
  accept_to to = { .is_full = is_full, .take = take, .context = h };
  bool ok = getrandom (&h->salt, sizeof h->salt, 0) == (ssize_t)sizeof h->salt ||
            error_set (err, ERR_internal, "the system gives no random bytes");
  ok = ok && (h->kept = answers_new (err)) && (h->links = links_start (err)) &&
       (h->desk = desk_start (s, on_ready, h, err)) && start_daemon (h, err) &&
       (h->accepting = accept_start (sockets, n, &to, err));
  return ok ? h : NULL; /* the program ends then */
}

void http_stop (http *h, void (*stop_work) (service *s)) {
  accept_stop (h->accepting);
  desk_drain (h->desk);
  stop_work (h->service);
  MHD_stop_daemon (h->daemon);
  desk_stop (h->desk);
  links_stop (h->links);
  answers_free (h->kept);
  free (h);
}
