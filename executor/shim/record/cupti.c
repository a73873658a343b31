/* SPDX-License-Identifier: GPL-3.0-or-later */
/* CUPTI hands over buffers of records, in any order, from threads of its own: what ran under which
   call, and which call happened under which number of ours.  They are joined at the end. */
#include "executor/shim/record/cupti.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "executor/driver/symbols.h"
#include "executor/shim/record/cupti_types.h"

enum { BUFFER_BYTES = 1 << 20 };

typedef struct call_of {
  uint32_t call;
  int64_t op;
} call_of;

typedef struct span {
  uint32_t call;
  int64_t start_ns, end_ns; /* of an op: no end, no record */
} span;

struct cupti {
  void *library, *subscriber;
#define CUPTI(field, symbol, parameters) cupti_result (*field) parameters;
#include "executor/shim/record/cupti.def"
#undef CUPTI
  pthread_mutex_t lock; /* guards all below */
  call_of *calls;
  span *spans;
  int64_t n_calls, calls_room, n_spans, spans_room;
};

static const symbol_row rows[] = {
#define CUPTI(field, symbol, parameters) { offsetof (cupti, field), #symbol, true },
#include "executor/shim/record/cupti.def"
#undef CUPTI
};

/* CUPTI passes nothing of ours to the functions that it calls. */
static cupti *the_cupti;
static void (*saw) (const char *function); /* for an audit */

/* One more than the op whose call is made just now, and the runtime's call around it. */
static _Thread_local int64_t op_at_hand;
static _Thread_local uint32_t runtime_call;

/* ---- records ---- */

static void give (uint8_t **buffer, size_t *bytes, size_t *most_records) {
  *buffer = aligned_alloc (8, BUFFER_BYTES);
  *bytes = *buffer != NULL ? BUFFER_BYTES : 0;
  *most_records = 0;
}

/* Room for one more; a record for which there is none is lost, and its op has no time. */
static void *more (void *list, int64_t n, int64_t *room, size_t size) {
  if (n < *room)
    return list;
  int64_t next = *room > 0 ? 2 * *room : 1024;
  void *moved = realloc (list, (size_t)next * size);
  if (moved != NULL)
    *room = next;
  return moved;
}

static void add_call (cupti *c, uint32_t call, int64_t op) {
  call_of *moved = more (c->calls, c->n_calls, &c->calls_room, sizeof *moved);
  if (moved == NULL)
    return;
  c->calls = moved;
  c->calls[c->n_calls++] = (call_of){ call, op };
}

static void add_outer (cupti *c, const cupti_outer *r) {
  if (r->sort >= CUPTI_CUSTOM)
    add_call (c, r->call, (int64_t)r->number);
}

static void add_span (cupti *c, uint32_t call, uint64_t start_ns, uint64_t end_ns) {
  span *moved = more (c->spans, c->n_spans, &c->spans_room, sizeof *moved);
  if (moved == NULL)
    return;
  c->spans = moved;
  c->spans[c->n_spans++] = (span){ call, (int64_t)start_ns, (int64_t)end_ns };
}

static void take_record (cupti *c, const void *record) {
  const cupti_kernel *k = record;
  const cupti_copy *copy = record;
  switch (k->kind) {
  case CUPTI_KERNEL:
    add_span (c, k->call, k->start_ns, k->end_ns);
    break;
  case CUPTI_COPY:
  case CUPTI_SET:
    add_span (c, copy->call, copy->start_ns, copy->end_ns);
    break;
  case CUPTI_OUTER:
    add_outer (c, record);
    break;
  default:
    break;
  }
}

static void take (void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                  size_t valid_bytes) {
  cupti *c = the_cupti;
  void *record = NULL;
  (void)context, (void)stream, (void)bytes;
  if (c != NULL) { /* else it could not be opened whole */
    pthread_mutex_lock (&c->lock);
    while (valid_bytes > 0 && c->next (buffer, valid_bytes, &record) == 0)
      take_record (c, record);
    pthread_mutex_unlock (&c->lock);
  }
  free (buffer);
}

void cupti_begin (cupti *c, int kind, int64_t op) {
  op_at_hand = op + 1;
  c->push (CUPTI_CUSTOM + kind, (uint64_t)op);
}

void cupti_end (cupti *c, int kind) {
  uint64_t op;
  op_at_hand = 0;
  c->pop (CUPTI_CUSTOM + kind, &op);
}

/* ---- times ---- */

static int by_call (const void *x, const void *y) {
  const call_of *a = x, *b = y;
  return (a->call > b->call) - (a->call < b->call);
}

/* From the first that ran of an op to the end of the last. */
static void join (const cupti *c, int64_t ops, span *out) {
  for (int64_t i = 0; i < c->n_spans; i++) {
    const span *s = &c->spans[i];
    const call_of wanted = { .call = s->call };
    const call_of *of = bsearch (&wanted, c->calls, (size_t)c->n_calls, sizeof wanted, by_call);
    if (of == NULL || of->op < 0 || of->op >= ops)
      continue;
    span *o = &out[of->op];
    o->start_ns = o->end_ns == 0 || s->start_ns < o->start_ns ? s->start_ns : o->start_ns;
    o->end_ns = s->end_ns > o->end_ns ? s->end_ns : o->end_ns;
  }
}

int64_t cupti_times (cupti *c, int64_t ops, cupti_told *told, void *context) {
  span *out = calloc ((size_t)ops + 1, sizeof *out);
  int64_t n = 0;
  if (out == NULL)
    return 0;
  c->flush (CUPTI_FORCED);
  pthread_mutex_lock (&c->lock);
  if (c->n_calls > 0)
    qsort (c->calls, (size_t)c->n_calls, sizeof *c->calls, by_call);
  join (c, ops, out);
  pthread_mutex_unlock (&c->lock);
  for (int64_t i = 0; i < ops; i++)
    if (out[i].end_ns > 0) {
      told (context, i, out[i].start_ns, out[i].end_ns);
      n++;
    }
  free (out);
  return n;
}

/* ---- calls ---- */

/* An op that the runtime asks for is told under the number of the runtime's call, which no number
   of ours stands beside: it began before we were asked. */
static void called (void *user, int32_t domain, uint32_t number, const void *data) {
  const cupti_call *call = data;
  cupti *c = the_cupti;
  (void)user, (void)number;
  if (domain == CUPTI_RUNTIME_CALLS) {
    runtime_call = call->site == 0 ? call->call : 0;
    return;
  }
  if (domain != CUPTI_DRIVER_CALLS || call->site != 0)
    return;
  if (c != NULL && op_at_hand > 0) {
    pthread_mutex_lock (&c->lock);
    add_call (c, call->call, op_at_hand - 1);
    if (runtime_call != 0)
      add_call (c, runtime_call, op_at_hand - 1);
    pthread_mutex_unlock (&c->lock);
  }
  if (saw != NULL)
    saw (call->function);
}

bool cupti_watch (cupti *c, void (*then) (const char *function), const char **why) {
  saw = then;
  *why = "another profiler in the program has it";
  return c->subscriber != NULL;
}

/* ---- life ---- */

/* A program's own CUPTI comes first: the loader knows it by its name. */
static void *find (const char *path) {
  static const char *const names[] = { "libcupti.so.13", "libcupti.so.12", "libcupti.so",
                                       "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
                                       "/usr/local/cuda/lib64/libcupti.so" };
  if (strcmp (path, CUPTI_ANY) != 0)
    return dlopen (path, RTLD_NOW | RTLD_LOCAL);
  void *found = NULL;
  for (size_t i = 0; found == NULL && i < sizeof names / sizeof *names; i++)
    found = dlopen (names[i], RTLD_NOW | RTLD_LOCAL);
  return found;
}

/* Numbers of ours are told before the records of driver calls, so those are asked for too. */
static bool record_all (cupti *c) {
  static const int32_t kinds[] = { CUPTI_OUTER, CUPTI_CALL, CUPTI_KERNEL, CUPTI_COPY, CUPTI_SET };
  bool good = c->on_buffers (give, take) == 0;
  if (good && (c->subscribe (&c->subscriber, called, NULL) != 0 ||
               c->enable_domain (1, c->subscriber, CUPTI_DRIVER_CALLS) != 0 ||
               c->enable_domain (1, c->subscriber, CUPTI_RUNTIME_CALLS) != 0))
    c->subscriber =
        NULL; /* ops that the driver is asked for directly have their times all the same */
  for (size_t i = 0; good && i < sizeof kinds / sizeof *kinds; i++)
    good = c->enable (kinds[i]) == 0;
  return good;
}

cupti *cupti_open (const char *path, const char **why) {
  cupti *c = calloc (1, sizeof *c);
  *why = "there is no memory for it";
  if (c == NULL)
    return NULL;
  pthread_mutex_init (&c->lock, NULL);
  the_cupti = c;
  *why = "it is not there";
  bool good = (c->library = find (path)) != NULL;
  if (good) {
    *why = "its version lacks what is needed";
    good = symbols_take (c->library, rows, sizeof rows / sizeof *rows, c) == NULL;
  }
  if (good) {
    *why = "it records nothing here";
    good = record_all (c);
  }
  if (good)
    return c;
  the_cupti = NULL;
  pthread_mutex_destroy (&c->lock);
  free (c);
  return NULL;
}
