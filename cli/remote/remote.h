/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Commands that ask a `ferry serve` instead of working themselves. */
#ifndef FERRY_CLI_REMOTE_REMOTE_H
#define FERRY_CLI_REMOTE_REMOTE_H

#include "cli/call/call.h"
#include "server/client/client.h"
#include "solver/solve.h"

/* clang-format off */
#define OPTION_SERVER { 0, "server", "URL", "a running `ferry serve`: http://HOST:PORT or " \
  "unix:PATH; a token for it is taken from FERRY_TOKEN" }
/* clang-format on */

/* `ferry solve --server`: the same plan, made there. */
int remote_solve (call *c);

/* The plan of the trace in a file, as `o` asks for it, to the file `output`. */
bool remote_step (call *c, const char *trace, const solve_options *o,
                  const char *output) MUST_CHECK;

/* The end of a job by its status: done with an exit status, or the problem as an error. */
bool remote_ended (call *c, const bytes *status, int *exit_status) MUST_CHECK;
/* A file of a finished job, "/v1/KIND/ID". */
bool remote_fetch (call *c, client *it, const char *job, const char *file, bytes *out) MUST_CHECK;

/* A point of a curve that the server has, whose plan is wanted. */
typedef struct remote_point {
  const char *curve; /* the id of its job */
  int64_t memory_bytes;
} remote_point;
/* Lets the server make the plan of that memory, if it has none yet, and writes it to `output`. */
bool remote_plan (call *c, client *it, const remote_point *p, const char *output) MUST_CHECK;

#endif
