/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Requests on their way: a queue for the threads that answer, those that wait for a job, streams of
   events.  Knows no sockets: `ready` tells the door that a request has its reply, or a stream more
   text. */
#pragma once

#include "server/api/routes.h"

typedef struct desk desk;

typedef struct exchange {
  request request;
  reply reply;
  const route *route;
  void *door;   /* of the HTTP layer */
  bool handled; /* the reply is complete */
  /* for a stream, under the desk's lock */
  bytes text;
  int64_t text_at, after, told_ns;
  bool last, waiting; /* nothing follows; the reader sleeps until there is text */
  bool more;          /* than what was looked at: the rest comes once that is read */
  struct exchange *next;
} exchange;

typedef void desk_ready (void *context, exchange *e);

desk *desk_start (service *s, desk_ready *ready, void *context, error *err) MUST_CHECK;
/* It sleeps by calling `sleep` under the lock; false: the service stops, and nobody would wake it.
 */
bool desk_put (desk *d, exchange *e, void (*sleep) (exchange *e)) MUST_CHECK;
/* A stream begins, and ends; between them its text is read. */
bool desk_stream (desk *d, exchange *e) MUST_CHECK;
/* Copies up to `most` bytes; 0: none yet, and the reader sleeps by calling `sleep` under the lock;
   -1: nothing follows. */
int64_t desk_read (desk *d, exchange *e, char *to, int64_t most, void (*sleep) (exchange *e));
void desk_forget (desk *d, exchange *e);
/* All waiters and streams are told that it is over; returns when every request has its reply. A
   stream whose reader is deaf is left after five seconds: it does not sleep. */
void desk_drain (desk *d);
void desk_stop (desk *d);
