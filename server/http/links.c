/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "server/http/links.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "base/patience.h"

#define SECOND ((int64_t)1000000000)
enum { PATIENCE_S = 10, LEAST_BYTES_PER_S = 1024 };

struct link_state {
  int fd;
  link_phase phase;
  int64_t since_s, bytes;
  link_state *next, *before;
};

struct links {
  pthread_t thread;
  pthread_mutex_t lock; /* guards all below and every link_state */
  pthread_cond_t end;
  link_state *first;
  bool stop;
};

static int64_t now_s (void) {
  struct timespec t;
  clock_gettime (CLOCK_MONOTONIC, &t);
  return t.tv_sec;
}

static bool is_slow (const link_state *s, int64_t now) {
  int64_t age = now - s->since_s;
  if (s->phase == LINK_BUSY || age <= PATIENCE_S)
    return false;
  return s->phase == LINK_HEAD || s->bytes < (age - PATIENCE_S) * LEAST_BYTES_PER_S;
}

/* Its client sends no more, and all of its request is not here. libmicrohttpd, which waits for
   edges alone, does not learn of an end that came with the last bytes: a second end wakes it. */
static bool is_left (const link_state *s) {
  struct pollfd end = { s->fd, POLLRDHUP, 0 };
  return s->phase != LINK_BUSY && poll (&end, 1, 0) == 1 && (end.revents & POLLRDHUP);
}

static void *watch (void *context) {
  links *l = context;
  pthread_mutex_lock (&l->lock);
  while (!l->stop) {
    patience_wait (&l->end, &l->lock, SECOND);
    int64_t now = now_s ();
    for (link_state *s = l->first; s; s = s->next)
      if (is_slow (s, now))
        shutdown (s->fd, SHUT_RDWR);
      else if (is_left (s))
        shutdown (s->fd, SHUT_RD); /* bytes that are here can still be read */
  }
  pthread_mutex_unlock (&l->lock);
  return NULL;
}

links *links_start (error *err) {
  links *l = calloc (1, sizeof *l);
  if (l) {
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
  pthread_mutex_destroy (&l->lock);
  pthread_cond_destroy (&l->end);
  free (l);
}

link_state *links_add (links *l, int fd) {
  link_state *s = calloc (1, sizeof *s);
  if (!s)
    return NULL;
  s->fd = fd;
  s->since_s = now_s ();
  pthread_mutex_lock (&l->lock);
  s->next = l->first;
  if (s->next)
    s->next->before = s;
  l->first = s;
  pthread_mutex_unlock (&l->lock);
  return s;
}

void links_remove (links *l, link_state *s) {
  if (!s)
    return;
  pthread_mutex_lock (&l->lock);
  if (s->before)
    s->before->next = s->next;
  else
    l->first = s->next;
  if (s->next)
    s->next->before = s->before;
  pthread_mutex_unlock (&l->lock);
  free (s);
}

void links_busy (links *l, link_state *s, link_phase phase) {
  if (!s)
    return;
  pthread_mutex_lock (&l->lock);
  s->phase = phase;
  s->since_s = now_s ();
  s->bytes = 0;
  pthread_mutex_unlock (&l->lock);
}

void links_bytes (links *l, link_state *s, int64_t bytes) {
  if (!s)
    return;
  pthread_mutex_lock (&l->lock);
  s->bytes += bytes;
  pthread_mutex_unlock (&l->lock);
}
