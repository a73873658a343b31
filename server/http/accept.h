/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Takes connections from sockets and hands them on, in a thread of its own. Those that it has not
   taken when it stops wait in the sockets' queues, for the next who listens there. */
#pragma once

#include "base/error.h"

#include <sys/socket.h>

enum { ACCEPT_SOCKETS = 8 };

typedef struct accepting accepting;
typedef struct accept_to {
  bool (*is_full) (void *context); /* then none is taken for a moment */
  void (*take) (void *context, int fd, const struct sockaddr *from, socklen_t size);
  void *context;
} accept_to;

accepting *accept_start (const int *sockets, int n, const accept_to *to, error *err) MUST_CHECK;
/* None is taken any more when it returns. The sockets stay open. */
void accept_stop (accepting *a);
