/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "server/http/watchdog.h"

#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/patience.h"

enum { MOST_THREADS = 16, TRIES = 64, NS_PER_MS = 1000000 };

typedef struct probe {
  int fd;      /* our end; -1: none is open */
  int waiting; /* moments since it asked; 0: it has its answer */
} probe;

struct watchdog {
  pthread_t thread;
  watchdog_care care;
  probe probes[MOST_THREADS];
  pthread_mutex_t lock; /* guards stop */
  pthread_cond_t end;
  bool stop;
};

/* A copy of the descriptor whose number leads to that thread. */
static int numbered (int fd, int thread, int threads) {
  int kept[TRIES], n = 0;
  while (fd >= 0 && fd % threads != thread && n < TRIES) {
    kept[n++] = fd;
    fd = fcntl (fd, F_DUPFD_CLOEXEC, fd + 1);
  }
  while (n > 0)
    close (kept[--n]);
  return fd;
}

static void open_probe (watchdog *w, int thread) {
  int ends[2];
  if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
    return;
  int theirs = numbered (ends[1], thread, w->care.threads);
  if (theirs >= 0 && w->care.open (w->care.context, theirs))
    w->probes[thread].fd = ends[0];
  else
    close (ends[0]);
}

/* An answer ends as its body does. */
static bool has_answer (probe *p) {
  static const char end[] = "alive\n";
  char text[2048];
  ssize_t n = recv (p->fd, text, sizeof text, 0);
  if (n == 0) {
    close (p->fd);
    p->fd = -1;
  }
  return n >= (ssize_t)sizeof end && memcmp (text + n - (sizeof end - 1), end, sizeof end - 1) == 0;
}

/* True: it is not late. */
static bool ask (watchdog *w, int thread) {
  static const char question[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
  probe *p = &w->probes[thread];
  if (p->waiting && p->fd >= 0 && has_answer (p))
    p->waiting = 0;
  bool open = p->fd >= 0;
  if (!open)
    open_probe (w, thread);
  if ((!p->waiting || !open) && p->fd >= 0 &&
      send (p->fd, question, sizeof question - 1, MSG_NOSIGNAL) < 0) {
    close (p->fd);
    p->fd = -1;
  }
  return p->waiting++ < w->care.patience;
}

static void *watch (void *context) {
  watchdog *w = context;
  pthread_mutex_lock (&w->lock);
  while (!w->stop) {
    bool well = true;
    pthread_mutex_unlock (&w->lock);
    for (int i = 0; i < w->care.threads; i++)
      well &= ask (w, i);
    if (well)
      w->care.answered (w->care.context);
    else
      w->care.late (w->care.context);
    pthread_mutex_lock (&w->lock);
    if (!well)
      break;
    if (!w->stop)
      patience_wait (&w->end, &w->lock, (int64_t)w->care.moment_ms * NS_PER_MS);
  }
  pthread_mutex_unlock (&w->lock);
  return NULL;
}

watchdog *watchdog_start (const watchdog_care *care, error *err) {
  assert (care->threads > 0 && care->threads <= MOST_THREADS);
  watchdog *w = calloc (1, sizeof *w);
  if (!w) {
    error_memory (err);
    return NULL;
  }
  w->care = *care;
  for (int i = 0; i < MOST_THREADS; i++)
    w->probes[i].fd = -1;
  pthread_mutex_init (&w->lock, NULL);
  patience_init (&w->end);
  if (pthread_create (&w->thread, NULL, watch, w) == 0)
    return w;
  free (w);
  error_set (err, ERR_internal, "no thread that watches the others");
  return NULL;
}

void watchdog_stop (watchdog *w) {
  pthread_mutex_lock (&w->lock);
  w->stop = true;
  pthread_cond_signal (&w->end);
  pthread_mutex_unlock (&w->lock);
  pthread_join (w->thread, NULL);
  for (int i = 0; i < w->care.threads; i++)
    if (w->probes[i].fd >= 0)
      close (w->probes[i].fd);
  pthread_mutex_destroy (&w->lock);
  pthread_cond_destroy (&w->end);
  free (w);
}
