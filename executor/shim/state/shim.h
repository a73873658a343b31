/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The state of a program under ferry.  One lock guards all of it: a scan of parameters, the change
   of tables and the call to the driver happen under it, so that the order of states is the order
   of submission. */
#pragma once

#include <pthread.h>

#include "base/roster.h"
#include "executor/driver/driver.h"
#include "executor/shim/step/block.h"

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
  uint64_t behind_seen;              /* streams that are */
  int64_t behind_copy[COPY_STREAMS]; /* of these the shim's own: up to which copy, or check */
  int32_t first; /* the stream of the op that waited for them; NONE: of several */
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
  void (*resizes) (
      struct shim *s); /* before there is another room: whoever follows a plan leaves it */
  int32_t captured;    /* sequences of streams that are recorded for a graph */
  captures *captures;
  graphs *graphs;
} shim;

/* The op at hand, and each one from now on, has this number or a higher one. */
static inline int64_t shim_next_op (const shim *s) {
  return s->ops - s->at_hand;
}

shim *shim_of_process (void);   /* made at the first call; NULL: there is no block */
const driver *shim_real (void); /* the driver's table */
bool shim_open (
    void); /* from the first stub: finds the driver and the block; false: there is none */
shim_block *shim_open_block (const char *path); /* or NULL */
void shim_begin (shim *s); /* locked, with a context, and ferry's own calls pass through */
CUresult shim_leave (shim *s, CUresult r);
void *shim_symbol (const char *name);
void shim_say (shim *s, const char *format, ...) PRINTF_LIKE (2, 3);
CUresult shim_refuse (const char *name, const char *what, const char *next);
void shim_note (shim *s, CUresult r);
bool shim_is_gone (void); /* the process ends, and the driver answers nothing more */
CUcontext shim_primary (const driver *d); /* that the runtime works in, once somebody holds it */
bool shim_is_inside (void);
bool shim_set_inside (bool on); /* returns what it was before */

static inline uint64_t shim_mix (uint64_t h, uint64_t word) {
  h = (h ^ word) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 29;
}
