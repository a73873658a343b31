/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The state of a program under ferry.  One lock guards all of it: a scan of parameters, the change
   of tables and the call to the driver happen under it, so that the order of states is the order
   of submission. */
#ifndef FERRY_EXECUTOR_SHIM_SHIM_H
#define FERRY_EXECUTOR_SHIM_SHIM_H

#include <pthread.h>

#include "base/roster.h"
#include "executor/driver/driver.h"
#include "executor/shim/block.h"

/* Streams are bits of a word. The last is for whatever has no bit of its own, such as the stream of
   each thread: who waits for it waits for the whole context. */
enum { STREAM_OUT, STREAM_IN, STREAM_CHECK, COPY_STREAMS, STREAM_LEGACY = COPY_STREAMS };
enum { FIRST_USER_STREAM = STREAM_LEGACY + 1, MANY_STREAMS = 63, STREAMS };
enum { RING = 256, NONE = -1 };

/* The library is there when the program starts, so its threads' own variables have fixed places. */
#define AT_START __attribute__ ((tls_model ("initial-exec")))

typedef enum page_state {
  PAGE_LAZY, /* nothing was written yet */
  PAGE_HERE,
  PAGE_AWAY
} page_state;

/* A piece of address space as large as a chunk. */
typedef struct page {
  int32_t tensor, chunk; /* whose it is; where it lives when it is here; NONE */
  uint8_t state;
  bool mapped;   /* to that chunk */
  int64_t in_op; /* its bytes came from the host before this op; NONE: they did not */
  /* The host's copy of these pages has a digest, which is that of the first one's run; 0: none. */
  int32_t run_first, run_end, run;
} page;

/* A piece of device memory. */
typedef struct chunk {
  CUmemGenericAllocationHandle handle;
  int32_t page;     /* whose bytes it holds; NONE: nobody's */
  int32_t last;     /* the page that had it last, and may still be mapped to it */
  uint64_t pending; /* streams behind whose work so far it may be written */
  int64_t freed_by; /* the number of a copy out, likewise; 0: none */
  int64_t checked_by;
  int64_t came_by; /* of the copy in of what was there */
  bool small;      /* cut up for small tensors; never moves */
} chunk;

typedef struct tensor {
  CUdeviceptr at;
  int64_t bytes, number; /* the number of its allocation */
  int32_t first_page, n_pages;
  bool live, escaped; /* escaped: its address lies in device memory */
  bool checks;        /* a plan lets it leave without a copy, if its digest allows that */
  bool pooled;        /* it was asked for in the order of a stream */
  int32_t holds;      /* calls that wait without the lock */
  uint64_t users;     /* streams that used it since it came */
  uint64_t past;      /* those that used what had this address before */
  int64_t past_in;    /* the numbers of its last copies; 0: none, or over */
  int64_t past_out;
  int64_t last_op, stamp;
  int64_t last_write; /* the last op that is not known to leave its bytes alone */
  int64_t in_copy;    /* the number of its last copy in; 0: none */
  int64_t out_copy;
  int64_t check;   /* of its address: the number of its last digest on the stream of checks; 0 */
  uint64_t behind; /* streams behind whose work its granules may be written for the first time */
  uint64_t behind_seen; /* streams that are */
  int64_t behind_copy[COPY_STREAMS]; /* of these the shim's own: up to which copy, or check */
  int32_t first;        /* the stream of the op that waited for them; NONE: of several */
  int64_t first_beat;
  char *host;      /* pinned; its own as long as the address space is */
  int32_t pair;    /* of digests: its first is that of what was dropped */
  bool kept;       /* it is freed, and another is to be made from it */
  bool dropped;    /* its bytes are nowhere: it is to be made again before anyone uses it */
  int32_t planned; /* its place in the plan that is followed, if it has one; NONE */
  bool reserved;   /* its address space is a plan's */
  bool empty;      /* nobody's, mapped nowhere, and nothing that is queued uses it */
} tensor;

typedef struct function {
  const void *handle; /* NULL: an empty row */
  int32_t name;
  uint64_t name_hash;
  int32_t n_params;
  uint32_t *offsets, *sizes;
  bool clean;     /* it ran under strict mode */
  bool has_lists; /* its parameters may name tensors that it does not use */
} function;

typedef enum op_kind { OP_LAUNCH = 1, OP_COPY, OP_SET } op_kind;

typedef struct trial trial;

typedef struct op {
  op_kind kind;
  CUstream stream;
  int32_t stream_bit;
  bool waits; /* the call itself waits for the device */
  bool apart; /* it may, so it is made without the lock */
  function *function;
  int32_t name;
  uint64_t token;
  int32_t *refs; /* tensors */
  int32_t n_refs, capacity;
  int32_t few[64];
  int64_t number;
  bool told;            /* to CUPTI */
  int64_t link_bytes;   /* of a copy over the link: to the device, or less than 0: to the host */
  CUdeviceptr to, from; /* of a copy or a fill: where its bytes go, and whence; 0: unknown */
  int64_t bytes;        /* of these; 0: they lie apart */
  uint32_t value;       /* of a fill, and its size; 0: it is no fill of elements in a row */
  int32_t value_bytes;
  const uint8_t *facts; /* of its tensors, by the plan that is followed; NULL: nothing is known */
  struct step_again *again; /* a plan makes it again */
  trial *trial;             /* it is put to the test */
  bool captured;            /* it is recorded for a graph, and not done yet */
  bool loose;               /* its tensors are not all its own */
  bool may_repeat;    /* it can be made again from what it was told, and was not refused before */
  int32_t learn_slot; /* of its first digest, in a round of learning; NONE: none */
  int32_t learn_round;
} op;

typedef struct slab slab;
typedef struct follow follow;
typedef struct record record;
typedef struct order order;
typedef struct last last;
typedef struct learn learn;
typedef struct clean clean;
typedef struct again again;
typedef struct again_ops again_ops;
typedef struct captures captures;
typedef struct graphs graphs;
typedef struct pairs pairs;

typedef struct own_kernels {
  bool tried;
  CUfunction digest; /* NULL: none is there */
  CUfunction copy_unless;
} own_kernels;

typedef struct shim {
  pthread_mutex_t lock; /* guards everything below but what `alone` says */
  driver real;
  shim_block *block;
  bool alone;    /* this process is the owner's child, or not the owner: pass everything on */
  bool begun;    /* with the driver, by its cuInit */
  bool ranked;   /* the block is the rank's own, or there is one rank */
  bool second;   /* another copy, in a namespace of its own: nothing is passed on */
  bool started;  /* the arena is there */
  bool shut;     /* it cannot be: nothing is allocated, since that would be beside the budget */
  bool over;     /* the program ended the context, and what may come after was not said yet */
  int32_t holds; /* of the program on the primary context */
  bool strict, said_short;
  bool placed;    /* a plan says which granule belongs to which address */
  bool host_full; /* so the op at hand has no room: that was said */
  CUresult fault; /* the result of a wait of ferry's own */
  uint64_t generation;

  CUcontext context; /* whose memory it is */
  CUdeviceptr base;
  int64_t chunk_bytes, space_bytes;
  int32_t n_pages, next_page;
  page *pages;
  chunk *chunks;
  int32_t n_chunks, most_chunks, chunks_capacity, free_chunks;
  int32_t allow_first, allow_end; /* pages that are mapped and not allowed yet */
  int32_t all_chunks; /* of the budget; fewer are the program's own while it shares it */
  roster group;       /* of those who share it; at NULL: nobody does */
  int64_t room_bytes;
  tensor *tensors;
  int32_t n_tensors, tensors_capacity;
  int32_t *free_tensors, n_free, free_capacity;
  int32_t spare_rows; /* without pages */
  int64_t allocations, live_bytes, host_bytes, live_tensors;
  int64_t pool_bytes, pool_used_high, pool_reserved_high; /* small ones are in it */

  CUstream out, in, check;
  CUevent ring[COPY_STREAMS][RING], scratch;
  /* A number for each stream that grows with its work: of the shim's own those of copies, each of
     which has an event for a while. `behind` [a][b]: a has waited for so much of b. */
  int64_t work[STREAMS], behind[STREAMS][STREAMS];
  CUstream streams[STREAMS];
  int32_t n_streams;
  uint64_t fence, fence_seen; /* streams that all others have to wait for; those that have */
  int32_t apart;   /* calls that other threads make without the lock; changed without it */
  int64_t repeats; /* launches again, each a number less than 0 */
  uint64_t small_pending, small_seen; /* streams that freed small ones; those behind all of them */
  slab *slabs;
  int32_t n_slabs;

  own_kernels own;
  function *functions;
  int32_t n_functions, functions_capacity;
  char **names;
  int32_t n_names, names_capacity;
  int64_t ops;
  int32_t at_hand; /* of these: counted, and not done yet */
  record *record;
  order *order;
  last *last;
  learn *learn;
  clean *clean;
  again *again;
  again_ops *again_ops;
  pairs *pairs;
  follow *follow;
  int32_t captured; /* sequences of streams that are recorded for a graph */
  captures *captures;
  graphs *graphs;
} shim;

/* The op at hand, and each one from now on, has this number or a higher one. */
static inline int64_t shim_next_op (const shim *s) {
  return s->ops - s->at_hand;
}

/* state.c */
shim *shim_get (void);          /* NULL: pass the call on */
shim *shim_of_process (void);   /* made at the first call; NULL: there is no block */
const driver *shim_real (void); /* the driver's table */
bool shim_enter (shim **s);     /* locked, and the device is ours; false: pass the call on */
void shim_begin (shim *s);      /* the same again, by whoever has let go of it for a while */
CUresult shim_leave (shim *s, CUresult r);
void shim_load (void); /* from the first stub */
void *shim_symbol (const char *name);
void shim_say (shim *s, const char *format, ...) PRINTF_LIKE (2, 3);
bool shim_is_gone (void);           /* the process ends, and the driver answers nothing more */
CUresult shim_started (CUresult r); /* after cuInit */
void shim_finish (void);            /* writes what is to be kept; once */
shim_block *shim_open_block (const char *path); /* or NULL */
/* Before the driver is asked anything, and with the first memory: the block becomes that of the
   process's rank. False: it has none. */
bool ranks_begin (shim *s);
bool ranks_settle (shim *s);
CUcontext shim_primary (const driver *d); /* that the runtime works in, once somebody holds it */
bool shim_is_inside (void);
bool shim_set_inside (bool on); /* returns what it was before */

/* area.c: address space, tensors in it */
bool area_start (shim *s);
int32_t area_tensor_at (const shim *s, CUdeviceptr at); /* around the address; NONE */
static inline bool area_has (const shim *s, CUdeviceptr at) {
  return at - s->base < (uint64_t)s->space_bytes;
}
int32_t area_allocate (shim *s, int64_t bytes,
                       int32_t slot); /* that one or any; a tensor, or NONE */
void area_free (shim *s, int32_t t, uint64_t stream_bits);
int32_t area_row (shim *s);
void area_own (shim *s, int32_t t, int32_t first, int32_t end); /* without granules; NONE: nobody */
void area_lay (shim *s, int32_t t, int32_t first, int32_t pages); /* that row, at these pages */
CUdeviceptr small_allocate (shim *s, int64_t bytes, CUstream stream, bool waits);
bool small_has_room (const shim *s, int64_t bytes); /* to spare, for ferry */
bool small_make_room (shim *s); /* likewise, by a granule of a budget that has many */
bool small_free (shim *s, CUdeviceptr at, uint64_t stream_bits);
void pool_took (shim *s, int64_t bytes); /* less than 0: they are back */
int64_t small_bytes_at (const shim *s, CUdeviceptr at, CUdeviceptr *first);

/* memory.c */
CUresult memory_serve (shim *s, CUdeviceptr *out, size_t bytes, CUstream stream, bool waits);
CUresult memory_release (shim *s, CUdeviceptr at, uint64_t stream_bits);
uint64_t stream_all (const shim *s); /* the program's */
/* The stream of copies in waits for all that it has done, and stands for it from now on. */
void stream_hand_over (shim *s, CUstream stream);

/* chunks.c: device memory and its mappings */
int32_t chunk_new (shim *s); /* within the budget, or NONE */
/* Back to the driver; nobody's bytes are in it. The last chunk takes its number. */
void chunk_quiet (shim *s, const chunk *c); /* returns when nothing that is queued uses it */
bool chunk_drop (shim *s, int32_t chunk);
/* A page can be used behind pages_allow, which allows a whole run of them at once: that call is
   what mapping costs. */
bool page_map (shim *s, int32_t page, int32_t chunk);
bool pages_allow (shim *s);
bool page_unmap (shim *s, int32_t page);
int32_t stream_bit (shim *s, CUstream stream);
/* `stream`, whose bit is `who`, waits for the work on those streams so far, where it has not yet.
 */
void wait_for (shim *s, CUstream stream, int32_t who, uint64_t bits);
/* Likewise, for a copy on one of COPY_STREAMS, or a check; 0: for none. */
void wait_for_copy (shim *s, CUstream stream, int32_t who, int32_t of, int64_t copy);
void host_wait_for (shim *s, uint64_t bits);
void host_wait_for_copy (shim *s, int32_t of, int64_t copy);
int64_t copy_issued (shim *s, int32_t of); /* the number of the copy that was issued last there */

/* vacant.c */
int32_t vacant_take (shim *s, int32_t pages); /* a tensor of freed ones' space, or NONE */
int32_t vacant_page (shim *s);                /* nobody's from now on, or NONE */

/* pinned.c */
bool host_take (shim *s, tensor *t); /* room on the host; false: that was said */
void host_drop (shim *s, tensor *t);

/* residency.c */
bool pages_out (shim *s, int32_t t, int32_t first, int32_t end); /* of a tensor's pages */
bool pages_in (shim *s, int32_t t, int32_t first, int32_t end);
bool tensor_settle (shim *s, int32_t t); /* out, and unmapped */
bool op_make_room (shim *s, op *o);      /* all its tensors are here, and its stream knows it */
void strict_begin (shim *s);
int32_t chunk_take (shim *s, const op *o); /* somebody else's, if need be */

/* ops.c */
bool op_enter (op *o, op_kind kind, CUstream stream, bool waits);
void op_touch (op *o, CUdeviceptr at);
void op_touch_all (shim *s, op *o, const CUdeviceptr *at, int32_t n); /* of many */
void op_mix (op *o, uint64_t word);                                   /* into the token */
CUresult op_prepare (op *o);
CUresult op_leave (op *o, CUresult r);
enum { PAYLOAD_BYTES = 65536 }; /* longer ones are data, no list of addresses */
void op_payload (op *o, CUdeviceptr to, const void *from, size_t bytes);
void shim_note (shim *s, CUresult r);
CUresult shim_look (CUresult r); /* at what a call that waits returned */
uint64_t shim_mix (uint64_t h, uint64_t word);

/* functions.c */
int32_t shim_name (shim *s, const char *text);
function *function_of (shim *s, CUfunction f, CUresult *why); /* NULL: and why */
void functions_forget (shim *s);
/* Each stretch of a launch's parameters. */
void function_params (const function *f, void **params, void **extra,
                      void (*see) (void *context, const void *from, size_t bytes), void *context);

/* copies.c */
void op_carried (op *o, const CUDA_MEMCPY3D *c); /* addresses in what it copies */

/* refuse.c */
CUresult shim_refuse (const char *name, const char *what, const char *next);

#endif
