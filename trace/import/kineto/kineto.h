/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A Kineto (Chrome) trace of the PyTorch profiler as tables: what ran on the CPU, what it launched,
   what ran on the GPU, and what the allocator did.  Both dialects (2021, and 2022 on) end up here.
   Times are nanoseconds; threads and names are numbers of the two interns. */
#pragma once

#include "trace/import/common/intern.h"
#include "trace/import/common/job.h"

enum { NONE = -1 };

typedef enum op_mark { MARK_NONE, MARK_BACKWARD, MARK_UPDATE } op_mark;

/* A cpu op or a user annotation. */
typedef struct kineto_op {
  int64_t start_ns, end_ns;
  int64_t external_id, record_id; /* -1: not given; record_id 0 means none too */
  int64_t sequence;               /* -1: none */
  int32_t name, thread;
  int32_t parent; /* the op around it on its thread, or NONE */
  bool annotation;
  bool has_forward_thread; /* so it is the backward of `sequence` */
  bool listed;             /* an execution trace beside the file has this call */
  uint8_t mark;            /* op_mark, its own or that of an op around it */
  /* Shapes of its inputs, where the profile has them: padded bytes, in kineto.inputs. */
  int64_t first_input;
  int32_t n_inputs;
  bool has_shapes;
  bool has_list; /* some input is a list of tensors whose shapes are not given */
} kineto_op;

/* A call may order work: with an event of synchronization, where the file has those, or
   the host comes back when what was launched has ended. */
typedef enum launch_effect { EFFECT_NONE, EFFECT_SYNC, EFFECT_BLOCKS } launch_effect;

typedef struct kineto_launch {
  int64_t at_ns, correlation;
  int32_t thread;
  uint8_t effect;
} kineto_launch;

typedef enum sync_kind { SYNC_WAIT, SYNC_EVENT, SYNC_STREAM, SYNC_ALL } sync_kind;

/* A stream (SYNC_WAIT), or the host, waits; below 0: not known. */
typedef struct kineto_sync {
  int64_t at_ns, correlation, stream;
  int64_t record, on_stream; /* the correlation of the event's record, and its stream */
  uint8_t kind;
} kineto_sync;

typedef enum gpu_kind { GPU_KERNEL, GPU_MEMCPY, GPU_MEMSET } gpu_kind;

typedef struct kineto_gpu {
  int64_t start_ns, ns, correlation, bytes; /* correlation below 1: not known */
  int32_t device, name;
  int64_t stream;
  int32_t launch, owner; /* NONE: not found */
  uint8_t kind;
} kineto_gpu;

/* A collective's arguments, as far as its event has them. */
typedef struct kineto_call {
  slice name, type, group, ranks;
  int64_t in, out; /* elements */
} kineto_call;

typedef struct kineto_comm {
  int32_t gpu, group; /* its kernel; a name, or NONE */
  collective_kind kind;
  int64_t bytes; /* 0: not known */
} kineto_comm;

typedef struct kineto_memory {
  int64_t at_ns, address, bytes; /* bytes < 0: a free */
  int64_t total, reserved;       /* -1: not given */
  int32_t thread, device;
  int32_t around; /* the innermost op that holds it, or NONE */
  bool has_address;
} kineto_memory;

/* The file's words on a card. */
typedef struct kineto_card {
  int64_t id, bytes;
  slice name;
} kineto_card;

enum { MOST_CARDS = 64 };

typedef struct kineto_step {
  int64_t start_ns, end_ns, number;
  int32_t thread;
} kineto_step;

typedef struct kineto {
  intern names, threads;
  kineto_op *ops;
  kineto_launch *launches;
  kineto_gpu *gpu;
  kineto_comm *comms; /* in the order of their kernels */
  kineto_sync *syncs;
  kineto_memory *memory; /* of devices; sorted by time, ties in order of the file */
  kineto_step *steps;    /* ProfilerStep#, sorted by time */
  int64_t *inputs;       /* of all ops */
  int64_t n_inputs;
  kineto_card cards[MOST_CARDS];
  int32_t n_cards;
  int64_t rank; /* of distributedInfo; -1: not given */
  int32_t n_ops, n_launches, n_gpu, n_comms, n_syncs, n_memory, n_steps;
  int32_t n_annotations; /* of n_ops, without ProfilerStep# */
  int64_t n_events, cpu_memory_events;
  int64_t unfinished;      /* calls without an end */
  int64_t timeless;        /* GPU events without a time, left out */
  int64_t unsorted_breaks; /* Total Allocated against Bytes, in order of the file */
  bool old_dialect;        /* 2021: Operator, Kernel, ... */
  bool fractions;          /* 2024 on: times with decimals */
  bool unsorted;           /* the memory events were not in order of time */
  bool has_shapes;         /* some op has */
  bool paired;             /* an execution trace says which ops are listed */
} kineto;

/* The members "Input Dims" and "Input type" of one op, in either order. */
enum { MOST_SHAPES = 64 };
typedef struct kineto_shapes {
  int64_t elements[MOST_SHAPES]; /* -1: a list of shapes */
  slice types[MOST_SHAPES];
  int32_t n_elements, n_types;
  bool given, more;
} kineto_shapes;

bool kineto_read_dims (stream *s, kineto_shapes *out) MUST_CHECK;
bool kineto_read_types (stream *s, kineto_shapes *out) MUST_CHECK;
/* Appends the inputs of the op, with the bytes that a caching allocator gives them. */
bool kineto_keep_shapes (import_job *job, kineto *k, int64_t *room, const kineto_shapes *from,
                         slice name, kineto_op *o) MUST_CHECK;
/* The members `deviceProperties` and `distributedInfo` of the file. */
bool kineto_read_cards (stream *s, kineto *k) MUST_CHECK;
bool kineto_read_rank (stream *s, kineto *k) MUST_CHECK;

/* The arguments are of the kernel that was added last, if it is a collective. */
bool kineto_keep_call (import_job *job, kineto *k, int64_t *room,
                       const kineto_call *call) MUST_CHECK;

bool kineto_keep_sync (import_job *job, kineto *k, int64_t *room, slice name,
                       kineto_sync s) MUST_CHECK;
launch_effect kineto_effect (slice name);

bool kineto_read (import_job *job, const import_text *file, kineto *out) MUST_CHECK;
/* Launches and owners of GPU events, what is around memory events, parents and marks of ops.  Ids
   are not trusted: an op owns what was launched, on its thread, during its closed interval. */
bool kineto_nest (import_job *job, kineto *k) MUST_CHECK;

/* ---- one iteration on one stream ---- */

/* One owner's kernels on the compute stream without another's in between: an op of the trace. */
typedef struct kineto_run {
  int64_t start_ns, ns, gap_ns;
  int64_t first_launch_ns, last_launch_ns;
  int32_t owner; /* NONE: a kernel that nobody owns */
  int32_t name;
  int32_t thread; /* of the first launch, or NONE */
  int32_t part;   /* which run of its owner this is, from 0 */
  int32_t gpu;    /* its first kernel */
  /* With several streams: */
  int64_t begin_ns, end_ns; /* as its kernels were seen, whatever else ran on its stream */
  int32_t stream, place;    /* its number, 0 is compute; its place among all runs as found */
  bool launched;            /* the launches of all its kernels are known */
} kineto_run;

typedef struct kineto_side {
  int64_t start_ns, end_ns;
  int32_t owner;
} kineto_side;

typedef struct kineto_window {
  int64_t start_ns, end_ns; /* by the time of the launch */
  const char *name;
} kineto_window;

typedef struct kineto_iteration {
  kineto_window window;
  int32_t device;
  int64_t stream;
  kineto_run *runs; /* in order of start; they do not overlap */
  int32_t n_runs;
  kineto_side *sides; /* work on other streams, in order of start */
  int32_t n_sides;
  int64_t first_ns, span_ns;     /* of the compute stream, or of all */
  bool all;                      /* runs are of all streams, and there are no sides */
  int64_t streams[MOST_STREAMS]; /* if so: as the file names them, by number */
  int32_t n_streams;
  int32_t *run_of; /* per GPU event its run as found, or NONE */
  /* Per run and stream: the last run there that had ended when it began, and that which it waits
     for; why these are the same, or NULL. */
  int32_t *seen, *waits;
  const char *untold;
  int32_t unexplained;          /* ops whose tensors need more waits than the file tells */
  int32_t beside;               /* uses that no wait can have ordered */
  int32_t *after_first, *after; /* per run those of other streams that it waits for, and an end */
  int64_t overlap_ns;           /* cut from kernels that began before the one before had ended */
  int64_t unlaunched, unowned;
  int64_t unlaunched_ns;
  int64_t before, before_ns; /* left out: launched before the profile began */
  int64_t aside_ns;          /* on other streams */
  int64_t busy_ns;           /* on the compute stream, overlaps counted once */
} kineto_iteration;

/* ---- several streams ---- */

/* The start or the end of an event; `other`: the next moment of another stream, in order of time.
 */
typedef struct kineto_moment {
  int64_t at_ns;
  int32_t stream, other;
} kineto_moment;

typedef struct kineto_moments {
  kineto_moment *starts, *ends;
  int32_t count;
} kineto_moments;

void kineto_sort_moments (kineto_moment *rows, int32_t n);
/* Work of another stream begins or ends between the last event (its start, its end) and this. */
bool kineto_is_cut (const kineto_moments *m, int32_t stream, const kineto_moment last[2],
                    int64_t start_ns, int64_t end_ns);
/* Compute first, then in order of their first events. */
bool kineto_number_streams (import_job *job, const kineto *k, kineto_iteration *it) MUST_CHECK;
int32_t kineto_stream_number (const kineto_iteration *it, int64_t stream);
/* The runs of all streams as one list, in order of their starts, with waits and gaps. */
bool kineto_list_streams (import_job *job, const kineto *k, kineto_iteration *it) MUST_CHECK;
/* Lists and gaps by it->waits. */
bool kineto_list_waits (import_job *job, kineto_iteration *it) MUST_CHECK;
/* By the file's events of synchronization, per run and stream: the last run that it comes behind.
   it->untold: they do not say. */
bool kineto_exact_waits (import_job *job, const kineto *k, kineto_iteration *it,
                         const int32_t *run_of, int32_t *exact) MUST_CHECK;
/* The stream of a run, for the op that was begun last, and what collective it is. */
bool kineto_put_stream (import_job *job, const kineto *k, const kineto_iteration *it, int32_t run,
                        op *o) MUST_CHECK;
/* The waits of all ops, and of the report. */
bool kineto_put_waits (import_job *job, const kineto *k, kineto_iteration *it, trace *t) MUST_CHECK;
bool kineto_put_collective (import_job *job, const kineto *k, const kineto_run *run,
                            op *o) MUST_CHECK;

/* Which iteration, device and stream; the report gets what was chosen. */
bool kineto_choose (import_job *job, const kineto *k, kineto_iteration *out) MUST_CHECK;
/* Runs of a window; out->device and ->stream say which. */
bool kineto_runs (import_job *job, const kineto *k, kineto_window window,
                  kineto_iteration *out) MUST_CHECK;
/* The windows of all complete iterations, in order. */
bool kineto_windows (import_job *job, const kineto *k, int32_t device, kineto_window **out,
                     int32_t *n) MUST_CHECK;
/* The same of a profile without marks, by the option for those; *n stays where there are none. */
bool kineto_unmarked_windows (import_job *job, const kineto *k, int32_t device, kineto_window **out,
                              int32_t *n) MUST_CHECK;
/* Says so, and what could be done. */
bool kineto_refuse_unmarked (import_job *job, const kineto *k, int32_t device) MUST_CHECK;

/* When the event was launched, or began where no launch is known; whether that is in the window. */
int64_t kineto_launched_at (const kineto *k, const kineto_gpu *g);
bool kineto_in_window (const kineto *k, const kineto_gpu *g, kineto_window w);

op_phase kineto_phase (const kineto *k, int32_t op);
/* The op is listed, or one around it. */
bool kineto_is_listed (const kineto *k, int32_t op);
const char *kineto_name (import_job *job, const kineto *k, int32_t name);
/* "aten::add", or "aten::add (2)" for a second run. */
const char *kineto_run_name (import_job *job, const kineto *k, const kineto_run *run);
/* Durations of the same ops in other iterations, where the names agree. */
bool kineto_samples (import_job *job, const kineto *k, const kineto_iteration *it,
                     trace_builder *b) MUST_CHECK;
/* The one line about durations + gaps = span, and what was cut. */
bool kineto_check_span (import_job *job, const kineto_iteration *it) MUST_CHECK;

/* NULL, or why the file cannot be planned: of most GPU work nothing says who launched it, and when.
   The report gets what to do. */
const char *kineto_lacks_launches (import_job *job, const kineto *k, int32_t device);
/* The facts of an iteration that the checks want to know, and the card for the report. */
void kineto_facts (import_job *job, const kineto *k, const kineto_iteration *it);

/* ---- memory events ---- */

typedef struct kineto_block {
  int64_t bytes;
  int32_t alloc, release; /* memory events; NONE: before the file, or never */
} kineto_block;

typedef struct kineto_blocks {
  kineto_block *at; /* in order of their first event */
  int32_t count;
  int64_t unpaired_frees, unpaired_allocs, lost_frees, breaks, size_mismatches;
  bool by_address, has_totals;
} kineto_blocks;

/* Pairs of one device's allocs and frees. */
bool kineto_pair (import_job *job, const kineto *k, int32_t device, kineto_blocks *out) MUST_CHECK;

typedef struct kineto_peak {
  int64_t allocs, frees, allocated_bytes, largest_bytes;
  int64_t above_bytes, end_bytes; /* greatest running sum, and the last */
  int64_t baseline_bytes;         /* -1: not known */
  int64_t peak_total_bytes, peak_reserved_bytes;
} kineto_peak;

/* The peak by running totals where the file has them, which no lost event falsifies. */
int64_t kineto_peak_bytes (const kineto_peak *peak);
/* Sums over the events of a window. */
void kineto_sum (const kineto *k, int32_t device, kineto_window window, kineto_peak *out);

/* The smallest tensor, padded to 512 bytes, for which the allocator may have taken such a
   block. */
int64_t kineto_least_held (int64_t block_bytes);

/* How the allocator of a file was set: rounding up to one of `divisions` steps between powers of
   two (0: none), blocks of more than 20 MiB left whole. */
typedef struct kineto_slack {
  int64_t divisions;
  bool unsplit;
} kineto_slack;

/* From the sizes of inputs and of blocks, which are sorted here. */
kineto_slack kineto_slack_of (const int64_t *inputs, int32_t n_inputs, int64_t *blocks,
                              int32_t n_blocks);
/* The smallest tensor again, so set. */
int64_t kineto_least_slack (kineto_slack s, int64_t block_bytes);

/* Additions to an alloc by a memory snapshot of the same run: the size as requested and the
   line. */
typedef struct kineto_detail {
  int64_t bytes; /* 0: nothing is known */
  const char *line;
} kineto_detail;

/* The allocs of the iteration among those of the snapshot, by their sizes in order; one row a
   memory event.  NULL without an error where they are not there. */
kineto_detail *kineto_match_snapshot (import_job *job, const kineto *k, const kineto_iteration *it,
                                      const import_text *snapshot);

/* ---- possible readers ---- */

/* The ops between which nothing says that a saved tensor is read: it counts as used by all from its
   birth to `last_forward`, and by all from `first_backward` to its death. */
typedef struct kineto_spell {
  int32_t last_forward, first_backward;
} kineto_spell;

typedef struct kineto_readers kineto_readers;

kineto_readers *kineto_readers_new (import_job *job, const kineto *k, const kineto_iteration *it,
                                    const kineto_blocks *blocks) MUST_CHECK;
/* A block of `bytes` that is born at one run and dies at another; alloc is its event. */
kineto_spell kineto_readers_of (const kineto_readers *r, const kineto_memory *alloc, int64_t bytes,
                                int32_t birth, int32_t death);

/* Ops of the iteration, and tensors where there are memory events, all appended to the builder. */
bool kineto_tensors (import_job *job, const kineto *k, const kineto_iteration *it,
                     const kineto_detail *details, trace_builder *b) MUST_CHECK;
