/* ferry: what a GPU should carry and what the host should hold.

   The whole public library.  A ferry_trace is one training step, a ferry_plan says which tensor
   crosses the link when.  Everything is opaque; every function that can fail takes a ferry_error,
   which may be NULL. */
#ifndef FERRY_H
#define FERRY_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

typedef struct ferry_trace ferry_trace;
typedef struct ferry_plan ferry_plan;

typedef struct ferry_error {
  int exit_status; /* 0: nothing happened; else as the command's exit status */
  char text[1024]; /* one line: the file, the place, what is wrong, the next step */
} ferry_error;

typedef struct ferry_result {
  int64_t step_ns, compute_ns, baseline_ns, stall_ns;
  int64_t peak_bytes, host_peak_bytes, d2h_bytes, h2d_bytes;
  bool settled;
} ferry_result;

/* The wishes for a plan; zero stands for the default of each. */
typedef struct ferry_options {
  const char *device_path; /* a device file; must be given */
  int64_t budget_bytes;    /* of the device; default: all that it has to give */
  int64_t host_bytes;      /* default: all that the device file gives */
  int64_t gap_ppm;         /* good enough: this close to the bound, in millionths */
  int64_t limit_ticks;     /* of the search; the same ticks and seed give the same plan */
  uint64_t seed;
  bool keep_proof;              /* the plan carries what `ferry prove` needs */
  bool (*stop) (void *context); /* asked now and then; true keeps the best so far */
  void *stop_context;
} ferry_options;

typedef struct ferry_certificate {
  int64_t lower_bound_ns; /* no plan is faster */
  double gap;             /* step over bound, less one */
  const char *bound_by, *found_by;
  const char *limit_met; /* NULL: the gap that was asked for is reached */
} ferry_certificate;

const char *ferry_version (void);

/* gzip and zstd are seen; "-" is standard input. Free what you get. */
ferry_trace *ferry_trace_load (const char *path, ferry_error *err);
void ferry_trace_free (ferry_trace *t);
int64_t ferry_trace_peak_bytes (const ferry_trace *t); /* without any plan */

ferry_plan *ferry_plan_load (const char *path, ferry_error *err);
bool ferry_plan_store (const ferry_plan *p, const char *path, ferry_error *err);
void ferry_plan_free (ferry_plan *p);

/* The best plan that was found; it passes ferry_check. Where none fits, err names the smallest
   budget, its parts and the op that sets it (exit_status 1). */
ferry_plan *ferry_solve (const ferry_trace *t, const ferry_options *o, ferry_error *err);
/* False where the plan carries none. The texts live as long as the plan. */
bool ferry_plan_certificate (const ferry_plan *p, ferry_certificate *out);
/* True if the plan's proof is worth the bound that it claims. */
bool ferry_prove (const ferry_trace *t, const ferry_plan *p, ferry_error *err);

/* True if the plan is legal for the trace; else err says which rule it breaks, and where. */
bool ferry_check (const ferry_trace *t, const ferry_plan *p, ferry_error *err);
bool ferry_simulate (const ferry_trace *t, const ferry_plan *p, ferry_result *out,
                     ferry_error *err);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
