/* SPDX-License-Identifier: GPL-3.0-or-later */
/* libmicrohttpd could do this itself, but not stop it: MHD_quiesce_daemon and a thread that wakes
   at that moment both take the socket off the same set, and the second of them ends the process. */
#include "server/http/accept.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { AT_ONCE = 16, MOMENT_MS = 2, UNSENT_BYTES = 16 << 10 };

struct accepting {
  pthread_t thread;
  accept_to to;
  struct pollfd at[1 + ACCEPT_SOCKETS]; /* the first wakes the thread to stop */
  nfds_t n;
};

/* Few answers are made for a client that reads nothing: else a thread of the library writes
   megabytes for each such client before it turns to the next. What is on its way counts apart, so
   that far clients lose nothing. A unix socket has no such option, and little room. */
static void hold_little (int fd) {
  int most = UNSENT_BYTES;
  setsockopt (fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &most, sizeof most);
}

/* False: no descriptor or no memory is left for it, which some other connection may give back. */
static bool take_one (const accepting *a, int socket, bool *none) {
  struct sockaddr_storage from;
  socklen_t size = sizeof from;
  int fd = accept4 (socket, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  *none = fd < 0;
  if (fd < 0)
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ECONNABORTED;
  hold_little (fd);
  a->to.take (a->to.context, fd, (const struct sockaddr *)&from, size);
  return true;
}

/* A few of each socket at a time, so that a busy one holds up no other, nor one that fails. */
static bool take_some (const accepting *a) {
  bool ok = true;
  for (nfds_t i = 1; i < a->n; i++) {
    bool none = !a->at[i].revents;
    for (int k = 0; !none && k < AT_ONCE && !a->to.is_full (a->to.context); k++)
      ok &= take_one (a, a->at[i].fd, &none);
  }
  return ok;
}

static void *go_on (void *context) {
  accepting *a = context;
  for (bool ok = true;;) {
    bool pause = !ok || a->to.is_full (a->to.context);
    int ready = poll (a->at, pause ? 1 : a->n, pause ? MOMENT_MS : -1);
    if (ready > 0 && a->at[0].revents)
      return NULL;
    ok = pause || ready <= 0 || take_some (a);
  }
}

accepting *accept_start (const int *sockets, int n, const accept_to *to, error *err) {
  assert (n <= ACCEPT_SOCKETS);
  accepting *a = calloc (1, sizeof *a);
  if (!a) {
    error_memory (err);
    return NULL;
  }
  a->to = *to;
  a->at[a->n++] = (struct pollfd){ .fd = eventfd (0, EFD_CLOEXEC), .events = POLLIN };
  for (int i = 0; i < n; i++)
    a->at[a->n++] = (struct pollfd){ .fd = sockets[i], .events = POLLIN };
  if (a->at[0].fd >= 0 && pthread_create (&a->thread, NULL, go_on, a) == 0)
    return a;
  if (a->at[0].fd >= 0)
    close (a->at[0].fd);
  free (a);
  error_set (err, ERR_internal, "no thread for new connections");
  return NULL;
}

void accept_stop (accepting *a) {
  eventfd_write (a->at[0].fd, 1);
  pthread_join (a->thread, NULL);
  close (a->at[0].fd);
  free (a);
}
