/* SPDX-License-Identifier: GPL-3.0-or-later */
/* ferry: what a GPU should carry and what the host should hold.

   The whole public library.  A ferry_trace is one training step, a ferry_plan says which tensor
   crosses the link when, a ferry_device is a card and its link.

   - Objects are opaque and never change once made. Threads may use different objects, and one
   object for reading, at the same time; nothing is shared behind them. An object is freed by one
   thread when nobody uses it any more.
   - Every struct begins with its size, so that later versions can add fields: FERRY_INIT (type)
   sets it and all else to 0. Zero stands for the default of each option, and the defaults are those
   of the `ferry` command.
   - What can fail takes a ferry_error, which may be NULL, and returns NULL or false. A NULL that is
     not allowed is such an error, too. Free functions take NULL.
   - Bytes and nanoseconds are int64_t. Texts are UTF-8. */
#ifndef FERRY_H
#define FERRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FERRY_VERSION_MAJOR 0
#define FERRY_VERSION_MINOR 2
#define FERRY_VERSION_PATCH 0
#define FERRY_INIT(type) \
  { sizeof (type) }

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

typedef struct ferry_trace ferry_trace;
typedef struct ferry_plan ferry_plan;
typedef struct ferry_device ferry_device;
typedef struct ferry_curve ferry_curve;
typedef struct ferry_packing ferry_packing;

typedef struct ferry_error {
  size_t size;
  int exit_status; /* 0: nothing happened; else as the command's exit status */
  char text[1024]; /* one line: the file, the place, what is wrong, the next step */
} ferry_error;

/* The version that runs; the macros are the one that was compiled against. */
const char *ferry_version (void);
/* Texts that functions return. */
void ferry_free (void *text);

/* ---- devices ---- */

/* A name that `ferry devices` lists, or a file (with a slash or .json in it). data_folder: where
   devices/NAME.json lie; NULL: where ferry was installed. */
ferry_device *ferry_device_load (const char *name, const char *data_folder, ferry_error *err);
ferry_device *ferry_device_parse (const void *text, size_t size, ferry_error *err);
/* The one that the trace says it was made for, or whose times it has. */
ferry_device *ferry_device_of_trace (const ferry_trace *t, const char *data_folder,
                                     ferry_error *err);
void ferry_device_free (ferry_device *d);

/* ---- traces ---- */

/* gzip and zstd are seen; "-" is standard input. */
ferry_trace *ferry_trace_load (const char *path, ferry_error *err);
ferry_trace *ferry_trace_parse (const void *text, size_t size, ferry_error *err);
bool ferry_trace_store (const ferry_trace *t, const char *path, ferry_error *err);
char *ferry_trace_text (const ferry_trace *t, size_t *size, ferry_error *err);
void ferry_trace_free (ferry_trace *t);

/* A step of a profile that marks none: refused, where its kernels repeat, or all of it. */
typedef enum ferry_marks { FERRY_MARKS_STEPS, FERRY_MARKS_REPEAT, FERRY_MARKS_WHOLE } ferry_marks;

typedef struct ferry_import_options {
  size_t size;
  int64_t step; /* the k of ProfilerStep#k, plus one; 0: the last complete one */
  int32_t gpu;  /* which, plus one; 0: the one with most events */
  ferry_marks marks;
} ferry_import_options;

/* Profiles, as `ferry import`; o may be NULL. report, where not NULL: what was found, as JSON. A
   trace that cannot be planned is returned, too: ferry_solve says why. */
ferry_trace *ferry_import (const char *const *paths, int n_paths, const ferry_import_options *o,
                           char **report, ferry_error *err);

typedef struct ferry_file {
  size_t size;
  const char *name; /* for messages and the report */
  const void *data; /* compressed or not */
  size_t bytes;
} ferry_file;

/* The same of files in memory. */
ferry_trace *ferry_import_memory (const ferry_file *files, int n_files,
                                  const ferry_import_options *o, char **report, ferry_error *err);

typedef struct ferry_zoo_request {
  size_t size;
  const char *network; /* must be given, as batch and device */
  int64_t batch;
  const ferry_device *device;
  int64_t image, seq; /* edge in pixels; tokens */
  const char *dtype, *optimizer;
  int64_t width_divisor, depth_divisor, classes;
  bool explicit_attention; /* with its score matrix in memory */
  bool workspaces;         /* convolutions hold column buffers while they run */
} ferry_zoo_request;

ferry_trace *ferry_zoo (const ferry_zoo_request *r, ferry_error *err);
/* NULL behind the last. */
const char *ferry_zoo_name (int i);

int64_t ferry_trace_peak_bytes (const ferry_trace *t); /* of tensors, nothing moved */
int32_t ferry_trace_ops (const ferry_trace *t);
int32_t ferry_trace_tensors (const ferry_trace *t);

typedef struct ferry_op {
  size_t size;
  const char *name, *phase;
  int64_t ns, gap_ns, workspace_bytes;
  const int32_t *reads, *writes; /* tensors */
  int32_t n_reads, n_writes;
} ferry_op;

typedef struct ferry_tensor {
  size_t size;
  const char *name, *kind;
  int64_t bytes;
  bool persistent, pinned;
} ferry_tensor;

bool ferry_trace_op (const ferry_trace *t, int32_t i, ferry_op *out, ferry_error *err);
bool ferry_trace_tensor (const ferry_trace *t, int32_t i, ferry_tensor *out, ferry_error *err);

typedef struct ferry_need {
  size_t size;
  int64_t bytes;         /* of the budget in which nothing has to move; the sum of what follows */
  int64_t tensor_bytes;  /* at the fullest op */
  int64_t granule_bytes; /* of rounding, and of places */
  int64_t reserve_bytes; /* kept free if the trace is not exact */
} ferry_need;

bool ferry_trace_need (const ferry_trace *t, const ferry_device *d, ferry_need *out,
                       ferry_error *err);

/* ---- plans ---- */

/* Freedoms of a plan beside swapping; 0: as far as the trace says that it is safe. */
typedef enum ferry_sections {
  FERRY_SECTIONS_ALLOWED,
  FERRY_SECTIONS_OFF,
  FERRY_SECTIONS_AUTO,
  FERRY_SECTIONS_FIXED /* section_parts */
} ferry_sections;
typedef enum ferry_order { FERRY_ORDER_AUTO, FERRY_ORDER_LEVEL, FERRY_ORDER_DEPTH } ferry_order;
typedef enum ferry_recompute {
  FERRY_RECOMPUTE_ALLOWED,
  FERRY_RECOMPUTE_OFF,
  FERRY_RECOMPUTE_CHEAP,
  FERRY_RECOMPUTE_AUTO,
  FERRY_RECOMPUTE_ONLY /* and nothing is swapped */
} ferry_recompute;

/* Granules that are mapped, one arena in which each stay is one stretch, or whichever is better. */
typedef enum ferry_placement {
  FERRY_PLACEMENT_AUTO, /* no plan's own: one of the others */
  FERRY_PLACEMENT_GRANULES,
  FERRY_PLACEMENT_ARENA
} ferry_placement;

typedef enum ferry_op_order {
  FERRY_OPS_ALLOWED,
  FERRY_OPS_AS_IS,
  FERRY_OPS_UPDATES, /* updates may run earlier or later */
  FERRY_OPS_ANY      /* every op may */
} ferry_op_order;

/* How hard a search tries, where limit_ticks is 0. */
typedef enum ferry_effort {
  FERRY_EFFORT_NORMAL,
  FERRY_EFFORT_QUICK,
  FERRY_EFFORT_THOROUGH
} ferry_effort;

typedef struct ferry_options {
  size_t size;
  const ferry_device *device; /* must be given */
  int64_t budget_bytes;       /* of the device, reserve included; 0: all that it has to give */
  int64_t host_bytes;         /* 0: all that the device file gives */
  bool has_reserve;           /* false: as the trace's confidence wants */
  int64_t reserve_bytes;
  ferry_sections sections;
  int64_t section_parts;
  ferry_order section_order;
  ferry_recompute recompute;
  int64_t gap_ppm;     /* good enough: this close to the bound, in millionths */
  int64_t limit_ticks; /* of the search; the same ticks and seed give the same plan */
  uint64_t seed;       /* 0: 1 */
  int32_t noise_percent;
  bool same_places;
  bool keep_proof;            /* the plan carries what ferry_prove needs */
  const char *policy;         /* a published one decides; then only the budget and the host count */
  const char *policy_options; /* "key=value,key=value" */
  bool (*stop) (void *context); /* asked now and then; true keeps the best so far */
  void *stop_context;
  void (*progress) (void *context, const char *line); /* a line on the search, now and then */
  void *progress_context;
  ferry_op_order op_order;
  ferry_placement placement; /* not looked at with same_places */
  ferry_effort effort;
  const struct ferry_plan *const *starts; /* known plans: one that is legal here is never given up
                                             for a slower one */
  int32_t n_starts;
} ferry_options;

/* The best plan that was found; it passes ferry_check. Where none fits, err names the smallest
   budget, its parts and the op that sets it (exit_status 1). */
ferry_plan *ferry_solve (const ferry_trace *t, const ferry_options *o, ferry_error *err);

ferry_plan *ferry_plan_load (const char *path, ferry_error *err);
ferry_plan *ferry_plan_parse (const void *text, size_t size, ferry_error *err);
bool ferry_plan_store (const ferry_plan *p, const char *path, ferry_error *err);
char *ferry_plan_text (const ferry_plan *p, size_t *size, ferry_error *err);
void ferry_plan_free (ferry_plan *p);

typedef struct ferry_certificate {
  size_t size;
  int64_t lower_bound_ns; /* no plan of the sort in `covers` is faster */
  double gap;             /* step over bound, less one */
  const char *bound_by, *covers, *found_by;
  const char *limit_met; /* NULL: the gap that was asked for is reached */
} ferry_certificate;

/* False where the plan carries none. The texts live as long as the plan. */
bool ferry_plan_certificate (const ferry_plan *p, ferry_certificate *out, ferry_error *err);
/* True if the plan's proof is worth the bound that it claims. */
bool ferry_prove (const ferry_trace *t, const ferry_plan *p, ferry_error *err);
/* True if the plan is legal for the trace; else err says which rule it breaks, and where. */
bool ferry_check (const ferry_trace *t, const ferry_plan *p, ferry_error *err);

typedef struct ferry_result {
  size_t size;
  int64_t step_ns, compute_ns, baseline_ns, stall_ns;
  int64_t peak_bytes, host_peak_bytes, d2h_bytes, h2d_bytes;
  bool settled;
} ferry_result;

bool ferry_simulate (const ferry_trace *t, const ferry_plan *p, ferry_result *out,
                     ferry_error *err);
/* The same and the certificate, as JSON. */
char *ferry_simulate_json (const ferry_trace *t, const ferry_plan *p, ferry_error *err);

/* ---- walking a plan: for an executor of one's own ----

   A step has three queues, each carried out in its order: ops 0, 1, ..., copies out, copies in. An
   item waits until its counts are met: ops, outs and ins of its step that have ended. A count below
   0 is met in the step before (-1: all of it but one), FERRY_NO_WAIT always. Ops and tensors are
   those of ferry_plan_trace, the step with its sections and recomputes. docs/machine-model.md
   defines it. */

#define FERRY_NO_WAIT INT64_MIN

typedef struct ferry_steps {
  size_t size;
  int32_t ops, outs, ins; /* items of each queue */
  int32_t granules;
  int64_t granule_bytes;
  int64_t pool_bytes;        /* of tensors too small to move; behind the granules */
  int64_t host_bytes;        /* the host arena's size */
  ferry_placement placement; /* an arena: its steps are the granules, and nothing is mapped */
} ferry_steps;

typedef struct ferry_wait {
  size_t size;
  int64_t ops, outs, ins;
} ferry_wait;

/* One copy; it carries part `part` of `of` of a unit: a tensor, or a group of tensors. */
typedef struct ferry_move {
  size_t size;
  int32_t move;           /* an out and its in have the same */
  const int32_t *tensors; /* of the unit */
  int32_t n_tensors, part, of;
  int64_t bytes;       /* of the part; rounded up to granules where it is not the last */
  int64_t unit_offset; /* of the part in the unit */
  int64_t host_offset;
  bool clean;              /* it has no copy out: the host has the bytes */
  const int32_t *granules; /* pairs: first, count; where it lies, or will lie, on the device */
  int32_t n_granules;      /* pairs */
} ferry_move;

ferry_trace *ferry_plan_trace (const ferry_trace *t, const ferry_plan *p, ferry_error *err);
bool ferry_plan_steps (const ferry_trace *t, const ferry_plan *p, ferry_steps *out,
                       ferry_error *err);
typedef enum ferry_queue { FERRY_OPS, FERRY_OUTS, FERRY_INS } ferry_queue;
/* The items that item i of a queue waits for. */
bool ferry_plan_wait (const ferry_trace *rewritten, const ferry_plan *p, ferry_queue queue,
                      int32_t i, ferry_wait *out, ferry_error *err);
/* Items of FERRY_OUTS or FERRY_INS. `rewritten` is ferry_plan_trace's. */
bool ferry_plan_move (const ferry_trace *rewritten, const ferry_plan *p, ferry_queue queue,
                      int32_t i, ferry_move *out, ferry_error *err);

/* ---- the worth of memory ---- */

typedef struct ferry_point {
  size_t size;
  int64_t budget_bytes;
  int64_t lower_bound_ns; /* -1: no plan fits, that is proved */
  int64_t step_ns;        /* -1: no plan was found */
  int64_t host_peak_bytes, d2h_bytes, h2d_bytes;
  double gap;
} ferry_point;

/* Every budget as ferry_solve would, and never worse than a smaller one; budgets NULL: n_budgets
   even ones from the smallest to what the step needs. */
ferry_curve *ferry_curve_of (const ferry_trace *t, const ferry_options *o, const int64_t *budgets,
                             int n_budgets, ferry_error *err);
int ferry_curve_count (const ferry_curve *c);
bool ferry_curve_point (const ferry_curve *c, int i, ferry_point *out, ferry_error *err);
char *ferry_curve_json (const ferry_curve *c, ferry_error *err);
void ferry_curve_free (ferry_curve *c);

/* The plan of the smallest budget that is at most this slower than without swaps; none_below_bytes,
   where not NULL: below it none is, that is proved. */
ferry_plan *ferry_min_memory (const ferry_trace *t, const ferry_options *o, int64_t slowdown_ppm,
                              int64_t *none_below_bytes, ferry_error *err);

/* ---- several jobs on several cards ---- */

typedef struct ferry_place {
  size_t size;
  int card; /* -1: left out, and `reason` says why */
  int64_t budget_bytes, share_ppm, together_ns, baseline_ns;
  const char *reason;
} ferry_place;

/* The options' budget is of each card, for all jobs together; the device is not looked at. */
ferry_packing *ferry_pack (const ferry_trace *const *jobs, int n_jobs,
                           const ferry_device *const *cards, int n_cards, const ferry_options *o,
                           ferry_error *err);
bool ferry_pack_place (const ferry_packing *p, int job, ferry_place *out, ferry_error *err);
/* A copy of a job's plan; NULL where it has no place. */
ferry_plan *ferry_pack_plan (const ferry_packing *p, int job, ferry_error *err);
void ferry_pack_free (ferry_packing *p);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
