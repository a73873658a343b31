/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The emulated machine: its devices, their memory, their streams.  One lock guards everything here
   but where a comment says otherwise; kernels and copies of the real clock run without it. */
#pragma once

#include <pthread.h>

#include "base/roster.h"
#include "executor/emu/emu.h"
#include "executor/emu/link.h"
#include "executor/emu/race.h"

#define EXPORT __attribute__ ((visibility ("default")))
#define DRIVER(field, symbol, must, parameters) EXPORT CUresult symbol parameters;
#include "executor/driver/driver.def"
#undef DRIVER

typedef enum command_kind {
  COMMAND_WAIT,   /* for another command to be done */
  COMMAND_RECORD, /* nothing by itself: an event points at it */
  COMMAND_KERNEL,
  COMMAND_COPY,
  COMMAND_SET,
  COMMAND_HOST,
  COMMAND_FREE
} command_kind;

typedef enum copy_direction {
  COPY_OUT,
  COPY_IN,
  COPY_BESIDE /* not over the link */
} copy_direction;

typedef struct touch {
  uint64_t at;
  int64_t bytes;
  unsigned int how; /* EMU_WRITES, EMU_BEGINS */
  uint64_t tag;     /* for the race checker: whose pinned memory is */
} touch;

typedef struct kernel {
  emu_kernel told;
  int64_t param_bytes;
} kernel;

typedef struct stream stream;

/* Planes of rows of bytes that lie apart. */
typedef struct box {
  int64_t width, rows, planes;
  int64_t to_pitch, from_pitch, to_slice, from_slice;
} box;

/* The room that nearly all commands need is in them: a step of a large network is a million of
   them. */
enum { FEW_TOUCHES = 2, FEW_PARAM_BYTES = 48 };

/* Held by its stream until done, by the event that recorded it, and by those who wait for it. */
typedef struct command {
  struct command *next;
  stream *stream;
  int32_t refs, sequence;
  int64_t number; /* of its call */
  uint8_t kind, direction;
  bool started, executed, done;
  bool awaited; /* real clock: a thread sleeps until it is done */
  int64_t issued_ns, not_before_ns, start_ns, end_ns;
  int64_t nominal_ns; /* real clock: when it should have ended */
  touch *touches;     /* `few` or, where they are more, an array of its own */
  int32_t n_touches, touches_capacity;
  touch few[FEW_TOUCHES];
  race_clock *seen; /* a record's: all that is ordered before it */
  union {
    struct command *target;
    struct {
      const kernel *kernel;
      emu_launch launch;
      void *params; /* `few_params` or an array of its own */
      char few_params[FEW_PARAM_BYTES];
      int64_t ns;
    } run;
    struct {
      uint64_t to, from;
      int64_t bytes, ticket; /* bytes: of all rows */
      box box;
      void *staged; /* pageable memory, taken at the call; or NULL */
    } copy;
    struct {
      uint64_t to;
      int64_t count;
      uint32_t value;
      int width;
    } set;
    struct {
      CUhostFn function;
      CUstreamCallback callback;
      void *user;
    } host;
    uint64_t freed;
  } as;
} command;

struct stream {
  int32_t card;  /* its device */
  int32_t actor; /* its number for the race checker, and the order in which streams are visited */
  unsigned int flags;
  bool legacy, held, closing;
  bool idle;            /* real clock: its thread sleeps until there is something to do */
  command *head, *tail; /* not yet done */
  command *last;        /* the newest, done or not; NULL: none yet */
  int32_t issued;
  int64_t copies; /* of these */
  int64_t nominal_ns;
  race_clock *seen;
  pthread_t thread; /* real clock */
  bool has_thread;
  struct capture *capture; /* its work becomes nodes, the next behind these; NULL: it runs */
  struct node **tips;
  int32_t n_tips;
};

typedef struct event {
  command *recorded; /* NULL: never */
  uint32_t generation;
  bool live, timed;
  uint64_t captured; /* its last record is in this capture, behind these nodes; 0: it is not */
  struct node **tips;
  int32_t n_tips;
} event;

typedef struct handle {
  int32_t card;
  int64_t bytes, place; /* in device memory; places are used once */
  int32_t maps;
  bool live, released;
} handle;

typedef enum range_kind {
  RANGE_RESERVED, /* of address space; mappings lie in it */
  RANGE_ALLOC,    /* cuMemAlloc */
  RANGE_ASYNC,    /* cuMemAllocAsync */
  RANGE_HOST,     /* pinned by cuMemHostAlloc */
  RANGE_REGISTERED
} range_kind;

typedef struct range {
  uint64_t at;
  int64_t bytes;
  range_kind kind;
  int32_t card; /* whose memory it is; of a reservation and on the host: whose thread asked */
  bool freed;   /* cuMemFreeAsync was called and has not run yet */
} range;

typedef struct mapping {
  uint64_t at;
  int64_t bytes, place;
  int32_t handle; /* -1: an allocation's own */
  unsigned int access;
} mapping;

/* Things sorted by their address, the first member. */
typedef struct table {
  char *rows;
  int64_t count, capacity;
  size_t size;
} table;

/* A host thread, as the race checker sees it. */
typedef struct host {
  int32_t actor, step;
  race_clock *seen;
} host;

/* One device; its address is the handle of its primary context. */
typedef struct card {
  int retained; /* holds on that context */
  int64_t used_bytes, high_bytes;
} card;

typedef struct machine {
  emu_config config;
  int32_t n_cards;
  card cards[EMU_CARDS];
  uint32_t generation; /* tells a thread that its `host` is of an older machine */
  pthread_mutex_t lock;
  pthread_cond_t changed; /* a command was added or done, or an engine changed hands */
  bool initialised, closing;
  int made;       /* contexts beside the primary ones */
  CUresult stuck; /* an error that stays; 0: none */

  int64_t now_ns;   /* virtual clock: the device */
  int64_t host_ns;  /* likewise the host, whose calls may cost time */
  int64_t since_ns; /* real clock: the system's time at the start */
  link_state link;
  /* By engine of the link. */
  command *carried[LINK_ENGINES];                    /* the command whose copy it carries */
  int64_t turn[LINK_ENGINES], tickets[LINK_ENGINES]; /* its copies take turns */
  int64_t free_ns[LINK_ENGINES]; /* real clock: nominally, since when it is free */
  int64_t copies, commands;      /* since the start */
  uint64_t random;

  stream **streams;
  int32_t n_streams, n_actors;
  host **hosts;
  int32_t n_hosts;
  event *events;
  int32_t n_events;
  int64_t events_capacity;
  kernel **kernels;
  int32_t n_kernels;
  command *spare;   /* dropped ones, to be used again */
  command **blocks; /* their storage */
  int32_t n_blocks;

  int memory; /* a memfd; -1: --bytes none */
  int64_t next_place, pinned_bytes;
  roster shared; /* with other processes' memory */
  uint64_t next_fake;
  handle *handles;
  int32_t n_handles;
  int64_t handles_capacity;
  table ranges, mappings;
  int64_t pool_used, pool_used_high, pool_reserved_high, pool_threshold;
  int pool_reuse[3];
  race_state *races;
  struct graphs *graphs;
} machine;

/* machine.c */
/* Locked, or NULL and the reason. */
machine *machine_enter (bool needs_context, CUresult *refused);
/* A call about device `d`; `there`: the places for its answers are. */
CUresult machine_device (CUdevice d, bool there);
/* For a call that a driver forbids while a stream is captured: it ends the capture. */
machine *machine_enter_uncaptured (CUresult *refused);
machine *machine_enter_stuck (void); /* even where an error stays; NULL: no machine */
/* How a call of the driver begins: with `m` locked by one of the above, which are given `&refused`,
   or with its return. */
#define ENTER(m, how) \
  CUresult refused;   \
  machine *m = how;   \
  if (m == NULL)      \
  return refused
/* The device whose primary context this is; -1: none of this process. */
int32_t machine_card_of (const void *context);
CUresult machine_leave (machine *m, CUresult result);
/* The owner, by the calling thread, of pinned memory that its calls name. */
uint64_t machine_tag (void);
int64_t machine_now (const machine *m);
void machine_spend (machine *m, int64_t ns);    /* virtual clock: the host is busy for so long */
void machine_catch_up (machine *m);             /* the host has waited until the device's now */
void machine_fail (machine *m, CUresult error); /* from here on every call says so */
void machine_in_callback (bool on);             /* this thread runs a host function */
uint64_t machine_random (machine *m);

/* host.c */
host *machine_host (machine *m); /* the calling thread; NULL: no memory */
/* An access by the calling thread itself, for the race checker. false: no memory. */
bool machine_host_touches (machine *m, uint64_t at, int64_t bytes, bool writes, const char *what);

/* context.c */
bool contexts_any (void);                 /* the calling thread is in one */
int32_t contexts_card (const machine *m); /* of which device; 0 where it is in none */
void contexts_forget (void);              /* none of an older machine */

/* table.c */
bool table_insert (table *t, const void *row);
void *table_find (const table *t, uint64_t at); /* the row with the largest address not above */
void table_remove (table *t, void *row, int64_t count);

/* memory.c */
range *memory_range (const machine *m, uint64_t at);     /* around the address; NULL: none */
mapping *memory_mapping (const machine *m, uint64_t at); /* likewise */
/* True if all of it is mapped with the access; in device or pinned memory. */
bool memory_reachable (const machine *m, uint64_t at, int64_t bytes, bool writes);
bool memory_is_device (const machine *m, uint64_t at);
bool memory_is_pinned (const machine *m, uint64_t at);
/* Calls back for each piece of one place; host addresses are their own places. */
void memory_places (const machine *m, const touch *t,
                    void (*piece) (void *context, const race_range *r), void *context);
bool memory_in_use (const machine *m, uint64_t at, int64_t bytes); /* by a queued command */

/* space.c */
enum { EMU_PAGE = 4096 };
bool memory_start (machine *m); /* false: no bytes, or no way to count them with others' */
void memory_stop (machine *m);
int64_t space_round (int64_t bytes, int64_t to);
bool space_has_bytes (const machine *m);
/* Inaccessible address space, aligned. 0: none. */
uint64_t space_take (machine *m, int64_t bytes, int64_t align);
void space_give (const machine *m, uint64_t at, int64_t bytes);
bool space_map (const machine *m, uint64_t at, int64_t bytes, int64_t place, int protection);
bool space_unmap (const machine *m, uint64_t at, int64_t bytes);
int64_t place_take (machine *m, int32_t of, int64_t bytes); /* of a device, or -1 */
void place_give (machine *m, int32_t of, int64_t place, int64_t bytes);

/* alloc.c */
CUresult memory_allocate (machine *m, int64_t bytes, range_kind kind, uint64_t *out);
void memory_allocation_drop (machine *m, uint64_t at);
CUresult memory_finish_all (machine *m, int32_t on); /* the host waits for a device; -1: for all */

/* pool.c */
void memory_free_now (machine *m, uint64_t at); /* for cuMemFreeAsync */

/* stream.c */
stream *stream_of (machine *m, CUstream handle); /* NULL: there is no such stream */
stream *stream_add (machine *m, int32_t on, unsigned int flags);
void stream_remove (machine *m, stream *s); /* once its work is done */

/* command.c */
command *command_new (machine *m, stream *s, command_kind kind);
command *command_take (machine *m, stream *s,
                       command_kind kind); /* the host's call costs nothing */
/* The same once more; pageable memory is staged as it is now. */
command *command_again (machine *m, stream *s, const command *of);
/* Room for the parameters of its kernel, to be filled in. false: no memory. */
bool command_params (command *c);
/* Its reads and writes, for the mapping check and the race checker. false: no memory. */
bool command_touch (command *c, const touch *t);
/* Queued, with what the legacy stream's rule adds; the race checker sees it now. */
CUresult command_issue (machine *m, command *c);
/* The stream goes on when the target is done. */
CUresult command_await (machine *m, stream *s, command *target);
void command_hold (command *c);
void command_drop (machine *m, command *c);     /* NULL is allowed */
CUresult stream_finish (machine *m, stream *s); /* the host waits */
CUresult command_finish (machine *m, command *c);
void command_done (machine *m, command *c); /* the head of its stream: taken off */
/* Is it done? A question lets the virtual clock go on by one step, or a loop of questions would
   never end. */
bool command_asked (machine *m, const command *c);
CUresult command_host_sees (machine *m, const race_clock *seen); /* the calling thread is behind */

/* code.c, copy.c: the command of a call's parameters, to be issued or kept */
CUresult kernel_command (machine *m, stream *s, const CUlaunchConfig *l, CUfunction f,
                         void **params, void **extra, command **out);
CUresult box_command (machine *m, stream *s, const CUDA_MEMCPY3D *p, command **out);
CUresult set_command (machine *m, stream *s, uint64_t to, uint32_t value, size_t count, int width,
                      command **out);
bool copy_stage (command *c); /* pageable memory that it reads. false: no memory */

/* event.c */
event *event_of (machine *m, CUevent handle); /* NULL: there is none */
CUresult event_record_on (machine *m, CUevent handle, stream *s);
CUresult event_wait_on (machine *m, CUevent handle, stream *s);

/* capture.c, for a stream that is captured */
CUresult capture_take (machine *m, command *c); /* in place of its issue */
CUresult capture_allocation (machine *m, stream *s, uint64_t at);
CUresult capture_free (machine *m, stream *s, uint64_t at);
CUresult capture_record (machine *m, stream *s, event *e);
CUresult capture_wait (machine *m, stream *s, const event *e); /* or for an event that is */
bool capture_keeps (const machine *m, uint64_t at); /* a graph does, when the program frees it */
bool capture_forbids (const machine *m);
bool capture_any (const machine *m, bool end);
bool capture_is_implicit (const machine *m, const stream *s);

/* exec.c */
bool graphs_exec_keeps (const machine *m, uint64_t at);
bool graphs_start (machine *m);
void graphs_stop (machine *m);

/* execute.c: what a command does, without the time it takes */
bool execute_prepare (void); /* catches bad addresses from here on */
CUresult execute_check (const machine *m, const command *c); /* are its addresses mapped? */
/* Without the lock on the real clock. */
CUresult execute_run (const machine *m, command *c);

/* virtual.c */
bool virtual_step (
    machine *m); /* to the next moment at which something ends; false: nothing does */

/* real.c */
void *real_work (void *s); /* the thread of one stream */
