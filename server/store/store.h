/* SPDX-License-Identifier: GPL-3.0-or-later */
/* All that the service must not forget: traces, jobs, their events, who may see what.  One
   connection writes and some read, each behind its lock; every function may be called from any
   thread.  What is returned lives
   in the given arena.  Files are named by their digest and lie in the state folder; where several
   replicas share a database, it holds them too. */
#pragma once

#include "server/protocol/meter.h"
#include "base/arena.h"

typedef struct store store;

typedef enum job_state {
#define STATE(name) JOB_##name,
#include "server/store/states.def"
#undef STATE
  JOB_STATES
} job_state;

extern const char *const job_state_names[JOB_STATES + 1];

enum { DIGEST_TEXT = 65 };

typedef struct job_row {
  const char *id, *kind, *request;
  const char *outcome, *problem; /* JSON, or NULL */
  const char *trace; /* W3C trace id of who asked first, 32 digits; read by a claim alone */
  job_state state;
  int64_t attempt, tries, events;
  int64_t length_ms;                           /* about; read by store_submit alone */
  int64_t created_ms, started_ms, finished_ms; /* 0: not yet */
} job_row;

typedef struct trace_row {
  const char *id, *info;   /* info: JSON */
  const char *fingerprint; /* the asker's newest name for it, or its id */
} trace_row;

typedef struct event_row {
  int64_t seq;
  const char *type, *data;
} event_row;

/* Jobs of a kind in a state. */
typedef struct kind_count {
  const char *kind, *state;
  int64_t jobs;
} kind_count;
typedef struct store_counts {
  int64_t jobs[JOB_STATES];
  int64_t oldest_queued_ms; /* 0: none */
} store_counts;

typedef enum submit_answer { SUBMIT_NEW, SUBMIT_JOINED, SUBMIT_AGAIN, SUBMIT_FULL } submit_answer;

/* `where` is "sqlite" or "postgres:CONNECTION"; the folder is there. */
store *store_open (const char *where, const char *folder, error *err) MUST_CHECK;
void store_close (store *s);
bool store_is_shared (const store *s);
/* How long statements took, with the label op. */
meter *store_meter (const store *s);
/* For a shared store: `told` is called, by a thread of its own, when a replica has changed
   something.  It ends with store_deafen. */
typedef void store_told (void *context);
bool store_watch (store *s, store_told *told, void *context, error *err) MUST_CHECK;
void store_deafen (store *s);
int64_t store_now_ms (void);

/* ---- files by digest ---- */

/* Takes the file at `path` over: durable and whole, or not there. */
bool store_put_file (store *s, const char *digest, const char *path, error *err) MUST_CHECK;
bool store_put_bytes (store *s, const char *digest, const void *data, int64_t size,
                      error *err) MUST_CHECK;
/* The path at which it can be read; NULL and ERR_file where nobody has it. */
const char *store_file (store *s, const char *digest, arena *a, error *err) MUST_CHECK;

/* ---- pods ---- */

/* Memory of a card that a pod holds on a node. */
typedef struct placed_row {
  const char *node;
  int64_t bytes;
} placed_row;
/* A pod, by its uid, may come to hold `bytes`; it is bound to a node; it has ended. */
bool store_expect (store *s, const char *pod, int64_t bytes, error *err) MUST_CHECK;
bool store_place (store *s, const char *pod, const char *node, error *err) MUST_CHECK;
bool store_release (store *s, const char *pod, error *err) MUST_CHECK;
/* Those that are bound, but that one, by node and in the order in which they came. */
bool store_list_placed (store *s, const char *but, arena *a, placed_row **out, int *count,
                        error *err) MUST_CHECK;

/* ---- traces ---- */

bool store_add_trace (store *s, const trace_row *t, const char *body_digest, error *err) MUST_CHECK;
/* *found is false where there is none, or not for this owner; owner NULL: any. */
bool store_find_trace (store *s, const char *id, const char *owner, arena *a, trace_row *out,
                       bool *found, error *err) MUST_CHECK;
bool store_find_alias (store *s, const char *body_digest, const char *owner, arena *a,
                       trace_row *out, bool *found, error *err) MUST_CHECK;
/* A page of what an owner has, by id behind `after`. */
typedef struct store_page {
  const char *owner, *after;
  const char *only; /* of this fingerprint, or kind; NULL: all */
  int limit;
} store_page;
bool store_list_traces (store *s, const store_page *page, arena *a, trace_row **out, int *count,
                        error *err) MUST_CHECK;
/* An owner's name for a trace; one of theirs may stand for several, and one have several. */
bool store_name_trace (store *s, const char *id, const char *owner, const char *fingerprint,
                       int64_t at_ms, error *err) MUST_CHECK;
/* Everyone who uploaded the profile owns its trace, under the name that they gave, or NULL. */
bool store_give_trace (store *s, const job_row *import, const char *id, const char *fingerprint,
                       error *err) MUST_CHECK;
bool store_own (store *s, const char *object, const char *owner, error *err) MUST_CHECK;
bool store_disown (store *s, const char *object, const char *owner, error *err) MUST_CHECK;

/* ---- jobs ---- */

/* A name that the owner gives a request once; *kept is false where it stands for another job. */
bool store_promise (store *s, const char *owner, const char *name, const char *job, bool *kept,
                    error *err) MUST_CHECK;
/* `shares`: an owner has at most as many in the queue as there are places left in it. */
typedef struct queue_limit {
  int64_t most;
  bool shares;
} queue_limit;
bool store_submit (store *s, const job_row *job, const char *owner, queue_limit limit,
                   submit_answer *answer, error *err) MUST_CHECK;
/* Owners take turns, and imports go before other jobs of theirs; `only`: of that kind, or NULL. */
bool store_claim (store *s, const char *worker, int64_t lease_ms, const char *only, arena *a,
                  job_row *out, bool *found, error *err) MUST_CHECK;
/* *held is false where the lease was lost: what was found is of no use to anybody. */
bool store_beat (store *s, const job_row *job, int64_t lease_ms, bool *held, error *err) MUST_CHECK;
bool store_event (store *s, const job_row *job, const char *type, const char *data, bool *held,
                  error *err) MUST_CHECK;
bool store_finish (store *s, const job_row *job, job_state state, const char *outcome,
                   const char *problem, bool *held, error *err) MUST_CHECK;
/* Back into the queue; `blamed` counts it as a try. */
bool store_requeue (store *s, const job_row *job, bool blamed, error *err) MUST_CHECK;
/* The owner's claim goes; the job too where nobody is left. */
bool store_cancel (store *s, const char *id, const char *owner, bool *stopped,
                   error *err) MUST_CHECK;
bool store_find_job (store *s, const char *id, const char *owner, arena *a, job_row *out,
                     bool *found, error *err) MUST_CHECK;
bool store_list_jobs (store *s, const store_page *page, arena *a, job_row **out, int *count,
                      error *err) MUST_CHECK;
/* The next ones; where there are STORE_EVENTS, more may follow. */
enum { STORE_EVENTS = 1000 };
bool store_events (store *s, const char *id, int64_t after, arena *a, event_row **out, int *count,
                   error *err) MUST_CHECK;
/* An answer of a kind, of a trace that its owner calls so. */
typedef struct curve_wanted {
  const char *kind, *fingerprint;
  const char *owner; /* "": anybody */
  const char *host;  /* that its request names, or "" */
} curve_wanted;
typedef struct curve_row {
  const char *job, *trace, *outcome, *request;
} curve_row;
/* The newest. */
bool store_find_curve (store *s, const curve_wanted *w, arena *a, curve_row *out, bool *found,
                       error *err) MUST_CHECK;
/* How many are begun before it, if owners take turns. */
bool store_position (store *s, const job_row *job, int64_t *out, error *err) MUST_CHECK;
/* Jobs of leases that ran out are queued again, or failed after `most_tries`. */
bool store_reap (store *s, int64_t most_tries, error *err) MUST_CHECK;
/* Somebody has looked at an ended job. */
bool store_saw (store *s, const char *job, error *err) MUST_CHECK;
/* Jobs that ended, and were last looked at, longer ago go, with the files that nothing names then.
   */
bool store_sweep (store *s, int64_t keep_ms, error *err) MUST_CHECK;
bool store_count (store *s, store_counts *out, error *err) MUST_CHECK;
bool store_count_kinds (store *s, arena *a, kind_count **out, int *n, error *err) MUST_CHECK;
