/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The door to libmicrohttpd: sockets, bodies, and who waits.  Threads of the library only copy
   bytes, look at heads and answer from memory; whole requests are answered by threads of our own.
   */
#pragma once

#include "server/service/service.h"

typedef struct http http;

/* Takes the listening sockets over. */
http *http_start (service *s, const int *sockets, int n, error *err) MUST_CHECK;
/* Whoever waits is answered, streams say that the service stops; then the work stops, which still
   reports changes, and all ends. */
void http_stop (http *h, void (*stop_work) (service *s));
