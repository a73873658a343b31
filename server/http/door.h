/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A request on its connection: shared by the files that take it in and send its reply. */
#pragma once

#include <microhttpd.h>

#include "server/http/accept.h"
#include "server/http/answers.h"
#include "server/http/desk.h"
#include "server/http/http.h"
#include "server/http/links.h"
#include "server/http/upload.h"
#include "server/http/watchdog.h"

struct http {
  service *service;
  desk *desk;
  links *links;
  struct MHD_Daemon *daemon;
  accepting *accepting;
  watchdog *watchdog;
  uint64_t salt;
  _Atomic uint64_t requests;
  answers *kept;
};

typedef struct door {
  exchange e;
  http *http;
  struct MHD_Connection *connection;
  link_state *link; /* NULL: the watchdog asks, or it is not watched */
  upload body;
  char key[400];      /* of an answer that is kept */
  int64_t sent_bytes; /* of the reply's body, where it is no stream */
  bool put;
  bool unsure; /* nobody knows for sure where the next request begins */
} door;

/* For the desk. */
void door_sleep (exchange *e);
/* Sends what stands in the exchange. */
enum MHD_Result door_reply (door *r);
/* Answered here and now, where the answer is in memory. */
bool door_reply_kept (door *r, enum MHD_Result *result) MUST_CHECK;
