/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Workers that wait for a job, since to start one takes longer than a small plan. Each serves one
   job, so nothing of an owner's is left for the next. */
#pragma once

#include <sys/types.h>

#include "server/service/service.h"

/* A worker's task: its folder, the file there for its answer, and a command of ferry. */
typedef struct errand {
  const char *folder, *answer;
  const char *const *arguments;
  int n;
  int64_t seconds; /* of its processor, about */
  const char *trace_id, *span_id;
} errand;

/* The files that a worker is sent, in this order: its folder, open, and what it reads and writes.
 */
enum { ERRAND_FOLDER, ERRAND_ANSWER, ERRAND_LOG, ERRAND_WORDS, ERRAND_FILES };

/* A process of its own group. progress: a pipe of what it has found; both are the caller's. */
typedef struct worker {
  pid_t pid;
  int pidfd, progress;
} worker;

bool spares_open (service *s, error *err) MUST_CHECK;
/* Sends one on an errand; starts one where none waits. */
bool spares_send (service *s, const errand *e, worker *out, error *err) MUST_CHECK;
/* Starts those that are missing; beside a job one is enough, which leaves it the processors. */
void spares_fill (service *s, bool idle);
/* True: it was a spare one that ended, and it is reaped and forgotten. */
bool spares_lost (service *s, pid_t pid);
/* Ends them. */
void spares_close (service *s);
