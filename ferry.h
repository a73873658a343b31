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

const char *ferry_version (void);

/* gzip and zstd are seen; "-" is standard input. Free what you get. */
ferry_trace *ferry_trace_load (const char *path, ferry_error *err);
void ferry_trace_free (ferry_trace *t);
int64_t ferry_trace_peak_bytes (const ferry_trace *t); /* without any plan */

ferry_plan *ferry_plan_load (const char *path, ferry_error *err);
bool ferry_plan_store (const ferry_plan *p, const char *path, ferry_error *err);
void ferry_plan_free (ferry_plan *p);

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
