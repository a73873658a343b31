/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The service without sockets: what is shared by routes, workers and the HTTP layer.  Made once at
   the start; what changes later has its own lock. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "server/protocol/kinds.h"
#include "server/protocol/message.h"
#include "server/protocol/meter.h"
#include "server/store/store.h"

enum { INVENTORY_BYTES = 1 << 22 };

typedef struct service_options {
  const char *program;        /* ferry itself, for workers */
  const char *folder;         /* of the state, absolute */
  const char *store;          /* as store_open's `where` */
  const char *datadir;        /* FERRY_DATADIR for the workers, or NULL */
  const char *tokens;         /* a file, or NULL */
  const char *const *devices; /* the names of the cards that workers know, or NULL */
  const char *device_files;   /* those cards as a JSON array, or NULL */
  const char *host_files;     /* hosts with several cards, as a JSON array, or NULL */
  const char *inventory;      /* GPU memory of nodes, a JSON file, or NULL */
  int workers;
  unsigned worker_user, worker_group; /* of root's workers; 0: they are the daemon's */
  int workers_lock;                   /* a file that each worker holds open as long as it lives */
  int64_t most_body_bytes, most_decoded_bytes, most_control_bytes;
  int64_t most_queued, most_tries, disk_bytes, most_connections;
  int64_t keep_s;             /* results that nobody looks at; 0: for ever */
  int64_t card_reserve_bytes; /* of a process, where the device of a curve does not say */
  int64_t worker_bytes, job_s;
  FILE *log; /* JSON lines */
} service_options;

typedef enum metric {
#define METRIC(name, kind, labels, says) METRIC_##name,
#include "server/service/metrics.def"
#undef METRIC
  METRICS
} metric;

typedef struct token {
  char digest[65], owner[65];
  role role;
} token;

typedef struct token_list token_list;
typedef struct crew crew;
typedef struct spares spares;

typedef struct service {
  service_options options;
  store *store;
  token_list *tokens; /* NULL: all may do all */
  char worker[64];    /* this replica's name in the store */
  crew *crew;
  spares *spares; /* the crew's */
  atomic_bool stopping;
  _Atomic int64_t metrics[METRICS]; /* those without labels */
  meter *meters[METRICS];           /* the others */
  pthread_mutex_t log_lock;         /* one line at a time */
  /* A job has changed: who waits for it wants to know. */
  void (*changed) (void *context);
  void *changed_context;
} service;

/* One for the process; opens the store. */
service *service_new (const service_options *o, error *err) MUST_CHECK;
void service_free (service *s);

/* Adds to a metric without labels; of one with some, in the order of metrics.def; a duration, or a
   ratio. */
void service_count (service *s, metric m, int64_t n);
void service_count_of (service *s, metric m, const char *a, const char *b, const char *c);
void service_observe (service *s, metric m, const char *a, int64_t nano);
typedef struct metric_row {
  const char *name, *kind, *labels, *says;
} metric_row;
extern const metric_row service_metrics[METRICS];
void service_changed (service *s);

/* The log: one JSON line; the texts come in pairs, NULL ends them. */
void service_log (service *s, const char *level, const char *message, ...)
    __attribute__ ((sentinel));

/* ---- tokens ---- */

/* Lines of digest, owner and role; anybody but the owner of the file must not read it. */
token_list *tokens_open (const char *path, error *err) MUST_CHECK;
void tokens_free (token_list *l);
/* Reads the file once more; what is wrong with it leaves all as it was. */
bool tokens_read (token_list *l, error *err) MUST_CHECK;
/* The same where the file is another than it was; true: it was read. */
bool tokens_follow (token_list *l, error *err);
/* The owner of TOKEN, or of a token with that digest; false: unknown. */
bool tokens_find (token_list *l, const char *text, token *out) MUST_CHECK;
bool tokens_know (token_list *l, const char digest[65]);
/* A new one: `text` for its owner, `line` for the file. */
bool token_make (const char *owner, const char *role_name, char text[80], char line[160],
                 error *err) MUST_CHECK;
