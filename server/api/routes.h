/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From a request to a reply: who may ask, and which function answers.  No sockets here. */
#pragma once

#include "server/service/service.h"

typedef enum body_kind { BODY_NONE, BODY_CONTROL, BODY_EXTENDER, BODY_UPLOAD } body_kind;

typedef void route_function (service *s, request *q, reply *p);

typedef struct route {
  const char *method, *path;
  role role;
  body_kind body;
  const char *query; /* members that it may have, by blanks; NULL: any */
  route_function *run;
} route;

extern const route routes[];
extern const int n_routes;

/* Looks at the request's head: its route, or NULL and the reply that it gets. Never waits. */
const route *routes_begin (service *s, request *q, reply *p) MUST_CHECK;
int64_t routes_most_bytes (const service *s, const route *r);
/* The reply to a whole request; may read the store. */
void routes_answer (service *s, const route *r, request *q, reply *p);
/* `line`: the events of `job` behind `after` as text/event-stream; *last: nothing follows. */
bool routes_events (service *s, const char *job, const char *owner, int64_t *after, bytes *out,
                    bool *last, error *err) MUST_CHECK;

#define ROUTE(method, path, role, body, query, function) route_function function;
#include "server/api/routes.def"
#undef ROUTE
