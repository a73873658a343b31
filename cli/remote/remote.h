/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Commands that ask a `ferry serve` instead of working themselves. */
#pragma once

#include "base/json.h"
#include "cli/call/call.h"
#include "server/client/client.h"
#include "solver/solve.h"
#include "trace/trace.h"

#define SERVICE_URL "http://127.0.0.1:8077"

/* clang-format off */
#define OPTION_SERVER { 0, "server", "URL", "a running `ferry serve`: http://HOST:PORT or " \
  "unix:PATH; FERRY_TOKEN has the token for it" }
#define OPTION_SERVICE { 0, "server", "URL", "a running `ferry serve`: http://HOST:PORT or " \
  "unix:PATH; default: " SERVICE_URL "; FERRY_TOKEN has the token for it" }
/* clang-format on */

/* ERR_usage for what only a command that works here has: said before the question is read. */
bool remote_can (call *c) MUST_CHECK;

/* A question of `ferry solve` that was read, and found to be right, here. */
typedef struct remote_question {
  const trace *trace;
  const device *device;
  int64_t budget_bytes;
  bool by_policy;
} remote_question;
/* `ferry solve --server`: the same plan, made there. */
int remote_solve (call *c, const remote_question *q);

/* ERR_usage where --server is given and names nothing that could be one. */
bool remote_named (call *c) MUST_CHECK;
/* The plan of the trace in a file, as `o` asks for it, to the file `output`. */
bool remote_step (call *c, const char *path, const solve_options *o, const char *output) MUST_CHECK;

/* ERR_usage unless the text is a fingerprint. */
bool remote_fingerprint (call *c, const char *text) MUST_CHECK;

/* ---- jobs ---- */

/* Asks for a schedule and waits for it; job: "/v1/schedules/ID", exit_status: the command's. */
bool remote_work (call *c, client *it, const char *request, client_told *told, char job[256],
                  int *exit_status) MUST_CHECK;
/* The end of a job by its status: done with an exit status, or the problem as an error. */
bool remote_ended (call *c, const bytes *status, int *exit_status) MUST_CHECK;
/* A file of a finished job, "/v1/KIND/ID". */
bool remote_fetch (call *c, client *it, const char *job, const char *file, bytes *out) MUST_CHECK;
/* The reason of a result without a plan, as an error. */
bool remote_fits (call *c, const json *result, int exit_status) MUST_CHECK;
/* The plan that answers a request for a schedule, to a file. */
bool remote_make_plan (call *c, client *it, const char *request, const char *output) MUST_CHECK;

/* A point of a curve that the server has, whose plan is wanted. */
typedef struct remote_point {
  const char *curve; /* the id of its job */
  int64_t memory_bytes;
} remote_point;
/* Lets the server make the plan of that memory, if it has none yet, and writes it to `output`. */
bool remote_plan (call *c, client *it, const remote_point *p, const char *output) MUST_CHECK;
