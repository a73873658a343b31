/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "server/http/links.h"

#include <assert.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <linux/tcp.h>

#include "base/clock.h"
#include "base/order.h"
#include "base/patience.h"

#define SECOND ((int64_t)1000000000)
enum { PATIENCE_S = 10, LEAST_BYTES_PER_S = 1024, KEPT_SHARE = 16, YOUNG_MS = 60 };

struct link_state {
  int fd;
  link_phase phase;
  bool known, leaves; /* leaves: its socket is shut, and its end not yet told */
  bool listed; /* all but those that are busy: they need not be passed over for each new one */
  int64_t born_ms, since_s, bytes;
  uint64_t acked; /* of its reply, when last looked at */
  link_state *next, *before;
};

struct links {
  pthread_t thread;
  pthread_mutex_t lock; /* guards all below and every link_state */
  pthread_cond_t end;
  link_state *first, *last; /* the longest still one is the first */
  link_state **at;          /* by descriptor */
  int n_at;
  int64_t most, n, n_known, n_leaving;
  bool stop;
};

static int64_t now_ms (void) {
  return monotonic_ns () / 1000000;
}

static int64_t now_s (void) {
  return now_ms () / 1000;
}

/* ---- the list ---- */

static void append (links *l, link_state *s) {
  s->next = NULL;
  s->before = l->last;
  if (l->last)
    l->last->next = s;
  else
    l->first = s;
  l->last = s;
  s->listed = true;
}

static void cut_out (links *l, link_state *s) {
  if (!s->listed)
    return;
  s->listed = false;
  if (s->before)
    s->before->next = s->next;
  else
    l->first = s->next;
  if (s->next)
    s->next->before = s->before;
  else
    l->last = s->before;
}

static void touch (links *l, link_state *s) {
  cut_out (l, s);
  if (s->phase != LINK_BUSY)
    append (l, s);
}

static void drop (links *l, link_state *s) {
  cut_out (l, s);
  l->at[s->fd] = NULL;
  l->n--;
  l->n_known -= s->known;
  l->n_leaving -= s->leaves;
  free (s);
}

/* ---- leaving ---- */

static void shut (links *l, link_state *s) {
  if (s->leaves)
    return;
  shutdown (s->fd, SHUT_RDWR);
  s->leaves = true;
  l->n_leaving++;
}

/* One that has only come has time to say what it wants: else it would leave for the next where all
   others are busy. */
static link_state *stillest (const links *l, bool known) {
  int64_t young_ms = now_ms () - YOUNG_MS;
  link_state *s = l->first;
  while (s && (s->leaves || s->known != known || s->born_ms > young_ms))
    s = s->next;
  return s;
}

bool links_have_room (links *l) {
  pthread_mutex_lock (&l->lock);
  bool crowd = l->n - l->n_known - l->n_leaving >= l->most - l->most / KEPT_SHARE;
  bool full = l->n - l->n_leaving >= l->most;
  link_state *s = crowd || full ? stillest (l, false) : NULL;
  if (!s && full)
    s = stillest (l, true);
  if (s)
    shut (l, s);
  bool room = (s || !(crowd || full)) && l->n < l->most + LINKS_LEAVING;
  pthread_mutex_unlock (&l->lock);
  return room;
}

static bool is_slow (const link_state *s, int64_t now) {
  int64_t age = now - s->since_s;
  if (s->phase == LINK_REPLY || age <= PATIENCE_S)
    return false; /* a reply that nobody reads is libmicrohttpd's to end */
  return s->phase == LINK_HEAD || s->bytes < (age - PATIENCE_S) * LEAST_BYTES_PER_S;
}

/* Its client sends no more, and all of its request is not here. libmicrohttpd, which waits for
   edges alone, does not learn of an end that came with the last bytes: a second end wakes it. */
static bool is_left (const link_state *s) {
  struct pollfd end = { s->fd, POLLRDHUP, 0 };
  return (s->phase == LINK_HEAD || s->phase == LINK_BODY) && poll (&end, 1, 0) == 1 &&
         (end.revents & POLLRDHUP);
}

/* Its client has taken more of the reply. */
static bool is_read (link_state *s) {
  struct tcp_info is = { 0 };
  socklen_t size = sizeof is;
  if (s->phase != LINK_REPLY || getsockopt (s->fd, IPPROTO_TCP, TCP_INFO, &is, &size) != 0)
    return false;
  bool more = is.tcpi_bytes_acked != s->acked;
  s->acked = is.tcpi_bytes_acked;
  return more;
}

static void look (links *l) {
  int64_t now = now_s ();
  for (link_state *s = l->first, *next; s; s = next) {
    next = s->next;
    if (is_slow (s, now))
      shut (l, s);
    else if (is_left (s))
      shutdown (s->fd, SHUT_RD); /* bytes that are here can still be read */
    else if (is_read (s) && next)
      touch (l, s);
  }
}

static void *watch (void *context) {
  links *l = context;
  pthread_mutex_lock (&l->lock);
  while (!l->stop) {
    patience_wait (&l->end, &l->lock, SECOND);
    look (l);
  }
  pthread_mutex_unlock (&l->lock);
  return NULL;
}

/* ---- life ---- */

links *links_start (int64_t most, error *err) {
  assert (most > 0);
  links *l = calloc (1, sizeof *l);
  if (l) {
    l->most = most;
    pthread_mutex_init (&l->lock, NULL);
    patience_init (&l->end);
  }
  if (l && pthread_create (&l->thread, NULL, watch, l) == 0)
    return l;
  free (l);
  error_set (err, ERR_internal, "no thread for connections");
  return NULL;
}

void links_stop (links *l) {
  pthread_mutex_lock (&l->lock);
  l->stop = true;
  pthread_cond_signal (&l->end);
  pthread_mutex_unlock (&l->lock);
  pthread_join (l->thread, NULL);
  for (int i = 0; i < l->n_at; i++)
    if (l->at[i])
      drop (l, l->at[i]);
  free (l->at);
  pthread_mutex_destroy (&l->lock);
  pthread_cond_destroy (&l->end);
  free (l);
}

/* True where the descriptor has a place in the table. */
static bool grow (links *l, int fd) {
  int n = max_of (fd + 1, 2 * l->n_at);
  if (fd < l->n_at)
    return true;
  link_state **more = realloc (l->at, (size_t)n * sizeof (link_state *));
  if (!more)
    return false;
  memset (more + l->n_at, 0, (size_t)(n - l->n_at) * sizeof (link_state *));
  l->at = more;
  l->n_at = n;
  return true;
}

bool links_take (links *l, int fd) {
  assert (l && fd >= 0);
  link_state *s = calloc (1, sizeof *s);
  pthread_mutex_lock (&l->lock);
  bool ok = s && grow (l, fd);
  if (ok) {
    if (l->at[fd]) /* libmicrohttpd had no memory for it, and told nobody of its end */
      drop (l, l->at[fd]);
    *s = (link_state){ .fd = fd, .born_ms = now_ms (), .since_s = now_s () };
    l->at[fd] = s;
    l->n++;
    append (l, s);
  }
  pthread_mutex_unlock (&l->lock);
  if (!ok)
    free (s);
  return ok;
}

link_state *links_of (links *l, int fd) {
  pthread_mutex_lock (&l->lock);
  link_state *s = fd >= 0 && fd < l->n_at ? l->at[fd] : NULL;
  pthread_mutex_unlock (&l->lock);
  return s;
}

void links_remove (links *l, link_state *s) {
  if (!s)
    return;
  pthread_mutex_lock (&l->lock);
  drop (l, s);
  pthread_mutex_unlock (&l->lock);
}

void links_busy (links *l, link_state *s, link_phase phase) {
  if (!s)
    return;
  pthread_mutex_lock (&l->lock);
  s->phase = phase;
  s->since_s = now_s ();
  s->bytes = 0;
  touch (l, s);
  pthread_mutex_unlock (&l->lock);
}

void links_bytes (links *l, link_state *s, int64_t bytes) {
  assert (l && bytes >= 0);
  if (!s)
    return;
  pthread_mutex_lock (&l->lock);
  s->bytes += bytes;
  touch (l, s);
  pthread_mutex_unlock (&l->lock);
}

void links_know (links *l, link_state *s) {
  if (!s)
    return;
  pthread_mutex_lock (&l->lock);
  l->n_known += !s->known;
  s->known = true;
  pthread_mutex_unlock (&l->lock);
}
