/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "server/http/http.h"

#include <assert.h>
#include <microhttpd.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/http/door.h"
#include "server/http/listen.h"

enum { IDLE_S = 15, STATUS_INTERNAL = 70 };
/* The library clears all of a connection's memory behind each request. */
enum { CONNECTION_BYTES = 16 << 10, POOL = 4 };

/* Lines, those of chunks too, that end in LF alone are a 400 where the library knows how. */
#if MHD_VERSION >= 0x01000000
#define STRICT_OPTION MHD_OPTION_CLIENT_DISCIPLINE_LVL, 1,
#else
#define STRICT_OPTION
#endif

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

static door *open_request (http *h, struct MHD_Connection *c, const char *path, const char *method,
                           const char *version) {
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
  q->began_ns = monotonic_ns ();
  MHD_get_connection_values (c, MHD_HEADER_KIND, take_field, q);
  MHD_get_connection_values (c, MHD_GET_ARGUMENT_KIND, take_field, q);
  request_name (q, h->salt, atomic_fetch_add (&h->requests, 1));
  links_busy (h->links, r->link, LINK_BODY);
  const char *fault = request_fault (q, strcmp (version, MHD_HTTP_VERSION_1_1) == 0);
  const char *wrong = fault ? fault : request_target (q);
  /* libmicrohttpd takes other ends of a chunk's lines than a proxy in front may: none may follow.
   */
  r->unsure = fault || request_header (q, "Transfer-Encoding");
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
  upload_begin (&r->body, r->e.route ? routes_most_bytes (h->service, r->e.route) : 0, q,
                spooled ? h->service->options.folder : NULL);
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
  upload_end (&r->body, q);
  if (!body_is_here (r)) {
    r->e.handled = true;
    return door_reply (r);
  }
  r->put = true;
  q->began_ns = monotonic_ns ();
  links_busy (r->http->links, r->link, LINK_BUSY);
  if (desk_put (r->http->desk, &r->e, door_sleep))
    return MHD_YES;
  reply_problem (&r->e.reply, q, PROBLEM_unavailable, "the service stops");
  r->e.handled = true;
  return door_reply (r);
}

static bool has_body (const request *q) {
  return request_header (q, "Content-Length") || request_header (q, "Transfer-Encoding");
}

static enum MHD_Result handle (void *context, struct MHD_Connection *c, const char *path,
                               const char *method, const char *version, const char *data,
                               size_t *size, void **state) {
  door *r = *state;
  enum MHD_Result result = MHD_NO;
  if (!r) {
    *state = r = open_request (context, c, path, method, version);
    if (!r)
      return MHD_NO;
    /* A reply at this moment spares the body, and ends the connection. */
    return !r->e.route && (r->unsure || has_body (&r->e.request)) ? door_reply (r) : MHD_YES;
  }
  if (*size) {
    links_bytes (r->http->links, r->link, (int64_t)*size);
    service_count (r->http->service, METRIC_http_request_bytes_total, (int64_t)*size);
    bool ok = r->e.reply.status || upload_take (&r->body, &r->e.request, data, *size);
    *size = 0;
    return ok ? MHD_YES : MHD_NO;
  }
  if (r->e.route && r->e.route->run == api_health) /* of this thread, whatever the others do */
    routes_answer (r->http->service, r->e.route, &r->e.request, &r->e.reply);
  if (r->e.handled || r->e.reply.status)
    return door_reply (r);
  bool small = r->e.route->body == BODY_NONE || r->e.route->body == BODY_CONTROL;
  if (!r->put && small && !r->body.too_large && !r->body.failed && door_reply_kept (r, &result))
    return result;
  return r->put ? MHD_YES : put (r);
}

static void log_request (door *r) {
  char time[24], in[24], out[24], trace_id[33], span_id[17];
  const request *q = &r->e.request;
  snprintf (time, sizeof time, "%.6f", (double)(monotonic_ns () - q->began_ns) / 1e9);
  snprintf (in, sizeof in, "%lld", (long long)q->body_bytes);
  snprintf (out, sizeof out, "%lld", (long long)r->sent_bytes);
  snprintf (trace_id, sizeof trace_id, "%.32s", q->trace + 3);
  snprintf (span_id, sizeof span_id, "%.16s", q->trace + 36);
  service_log (r->http->service, "info", "request", "bytes_in", in, "bytes_out", out, "code",
               status_text (r->e.reply.status), "dur_s", time, "method", q->method, "request_id",
               q->id, "route", r->e.route ? r->e.route->path : "", "span_id", span_id, "trace_id",
               trace_id, NULL);
}

static void completed (void *context, struct MHD_Connection *c, void **state,
                       enum MHD_RequestTerminationCode how) {
  door *r = *state;
  (void)context, (void)c, (void)how;
  if (!r)
    return;
  if (r->e.reply.stream)
    desk_forget (r->http->desk, &r->e);
  upload_forget (&r->body);
  if (r->e.request.role != ROLE_none && r->e.reply.status < 400)
    links_know (r->http->links, r->link);
  links_busy (r->http->links, r->link, LINK_HEAD);
  if (r->link && r->http->service->options.log && (r->e.handled || r->e.reply.status))
    log_request (r);
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
  if (opens)
    *state = links_of (h->links, info ? info->connect_fd : -1);
  if (*state)
    service_count (h->service, METRIC_http_connections, opens ? 1 : -1);
  if (!opens)
    links_remove (h->links, *state);
}

static void on_ready (void *context, exchange *e) {
  (void)context;
  MHD_resume_connection (((door *)e->door)->connection);
}

/* ---- life ---- */

static bool is_full (void *context) {
  return !links_have_room (((http *)context)->links);
}

static void take (void *context, int fd, const struct sockaddr *from, socklen_t size) {
  http *h = context;
  if (!links_take (h->links, fd))
    close (fd);
  else if (MHD_add_connection (h->daemon, fd, from, size) != MHD_YES) /* which has closed it */
    service_log (h->service, "error", "libmicrohttpd refuses a connection", NULL);
}

static bool open_probe (void *context, int fd) {
  struct sockaddr none = { .sa_family = AF_UNIX };
  return MHD_add_connection (((http *)context)->daemon, fd, &none, sizeof none) == MHD_YES;
}

static void on_answered (void *context) {
  (void)context;
  listen_notify (getenv ("NOTIFY_SOCKET"), "WATCHDOG=1");
}

/* Jobs are in the store, and workers end with the daemon. */
static void on_late (void *context) {
  service_log (((http *)context)->service, "error",
               "a thread has not answered for ten seconds: the daemon ends, to be started again",
               NULL);
  _exit (STATUS_INTERNAL);
}

/* A path would end at a NUL for us, not for who sent it: another control character takes its place,
   which is refused. */
static size_t unescape (void *context, struct MHD_Connection *c, char *text) {
  (void)context, (void)c;
  for (char *at = text; (at = strstr (at, "%00")); at += 3)
    at[2] = '1';
  return MHD_http_unescape (text);
}

/* A thread of the library that comes to its share of the limit waits for a lock that it holds, for
   ever: 0.9.75 counts a connection only once that thread has begun with it, and one socket too many
   may be on its way. links keeps all of them together below what each thread may have. */
static bool start_daemon (http *h, unsigned threads, error *err) {
  unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC |
                   MHD_USE_NO_LISTEN_SOCKET;
  int64_t each = h->service->options.most_connections + 2 * LINKS_LEAVING;
  h->daemon = MHD_start_daemon (
      flags, 0, NULL, NULL, handle, h, STRICT_OPTION MHD_OPTION_THREAD_POOL_SIZE, threads,
      MHD_OPTION_CONNECTION_LIMIT, (unsigned)each * threads, MHD_OPTION_CONNECTION_TIMEOUT,
      (unsigned)IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
      MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL, MHD_OPTION_NOTIFY_COMPLETED, completed, h,
      MHD_OPTION_NOTIFY_CONNECTION, connected, h, MHD_OPTION_END);
  return h->daemon || error_set (err, ERR_internal, "libmicrohttpd does not start");
}

static bool start_watchdog (http *h, unsigned threads, error *err) {
  watchdog_care care = { .threads = (int)threads,
                         .moment_ms = 1000,
                         .patience = 10,
                         .open = open_probe,
                         .answered = on_answered,
                         .late = on_late,
                         .context = h };
  return (h->watchdog = watchdog_start (&care, err)) != NULL;
}

http *http_start (service *s, const int *sockets, int n, error *err) {
  assert (s && sockets && n > 0);
  http *h = calloc (1, sizeof *h);
  if (!h) {
    error_memory (err);
    return NULL;
  }
  long cpus = sysconf (_SC_NPROCESSORS_ONLN);
  unsigned threads = (unsigned)(cpus > POOL ? POOL : cpus < 2 ? 2 : cpus);
  h->service = s;
  accept_to to = { .is_full = is_full, .take = take, .context = h };
  bool ok = getrandom (&h->salt, sizeof h->salt, 0) == (ssize_t)sizeof h->salt ||
            error_set (err, ERR_internal, "the system gives no random bytes");
  ok = ok && (h->kept = answers_new (err)) &&
       (h->links = links_start (s->options.most_connections, err)) &&
       (h->desk = desk_start (s, on_ready, h, err)) && start_daemon (h, threads, err) &&
       start_watchdog (h, threads, err) && (h->accepting = accept_start (sockets, n, &to, err));
  return ok ? h : NULL; /* the program ends then */
}

void http_stop (http *h, void (*stop_work) (service *s)) {
  watchdog_stop (h->watchdog);
  accept_stop (h->accepting);
  desk_drain (h->desk);
  stop_work (h->service);
  MHD_stop_daemon (h->daemon);
  desk_stop (h->desk);
  links_stop (h->links);
  answers_free (h->kept);
  free (h);
}
