/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One worker: a job, its folder, and the process that works on it. */
#pragma once

#include <sys/types.h>

#include "server/ask/asked.h"
#include "server/service/service.h"

/* stranded: it has ended, which the store could not be told. */
typedef enum work_phase { WORK_NONE, WORK_RUNS, WORK_VERIFIES, WORK_STRANDED } work_phase;
typedef enum work_stop { STOP_NONE, STOP_TIME, STOP_CANCEL, STOP_LOST, STOP_DRAIN } work_stop;

/* A checker has its own time; a worker with a limit gets this much more to end by itself. */
enum { VERIFY_S = 600, SPARE_S = 2 };

typedef struct work {
  work_phase phase;
  work_stop stop;
  int signals; /* sent to stop it: each is ruder than the one before */
  arena *arena;
  job_row job;
  const job_kind *kind;
  job_call call;
  char folder[300];
  pid_t pid;
  int pidfd, progress; /* of the process, and the pipe of what it has found; -1: none */
  char line[1024];     /* the last, unfinished one of the pipe */
  size_t line_bytes;
  char found[256]; /* the newest news that no event tells yet; "": none */
  bool finds;      /* they are of an incumbent; else of the parts that are done */
  int64_t told_ns, started_ns, beat_ns, signal_ns;
  int64_t worked_ns;         /* of its processes, all together */
  int64_t step_ns, bound_ns; /* of the last incumbent; 0: none */
  char trace_id[33], span_id[17];
  int status;      /* of the process that did the work */
  int wait_status; /* of the one that runs */
  bool has_status; /* it has ended so; others of its group may not have */
} work;

/* The end of a process of the job. */
typedef struct work_end {
  bool by_signal;
  int number; /* exit status, or signal */
} work_end;

/* Fills the folder and starts the process; false: *err, and nothing runs. */
bool work_start (service *s, work *w, error *err) MUST_CHECK;
bool work_verify (service *s, work *w, error *err) MUST_CHECK;
/* True if there is a plan to verify. */
bool work_has_plan (const work *w);
/* Stores what was found; *held is false where the job is no longer ours. */
bool work_keep (service *s, work *w, bool *held, error *err) MUST_CHECK;
/* The outcome of a job that failed: its log, where it has one; NULL: none, or *err. */
const char *work_keep_log (service *s, work *w, error *err);
/* Why it failed: the last line that it said. */
const char *work_complaint (const work *w, char text[400]);
void work_path (const work *w, const char *name, char path[400]);

/* Begins the next process of the job, or ends it.  Exit status 0: yes; 1: the
   answer is no; 4: a limit ended the search, and what was found is there. */
void work_ended (service *s, work *w, work_end e);
/* Tries, now and then, to put a stranded job back into the queue. */
void work_rescue (service *s, work *w);
/* Ends the job as failed; `type` is a problem's. */
void work_fail (service *s, work *w, const char *type, const char *detail);
