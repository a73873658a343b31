/* What the commands that plan without a card have in common: options, progress, one row a budget.
 */
#ifndef FERRY_CLI_OFFLINE_H
#define FERRY_CLI_OFFLINE_H

#include "cli/call.h"
#include "solver/curve.h"

/* clang-format off */
#define OPTION_HOST { 0, "host", "SIZE", "host memory that may be used; without it, all that the " \
  "device file gives" }
#define OPTION_TICKS { 0, "ticks", "N", "effort of the search behind each plan; without it, 2000000" }
#define OPTION_TSV { 0, "tsv", NULL, "print the result as tab-separated values" }
/* clang-format on */

/* --host, --ticks, and progress on a terminal. `d` and `c` must outlive *out. */
bool offline_options (call *c, const device *d, curve_options *out) MUST_CHECK;
/* The trace of the first operand, which must be plannable. */
trace *offline_trace (call *c, const char *path) MUST_CHECK;

bool offline_share (call *c, const char *option, int64_t *ppm) MUST_CHECK;
double offline_slower (int64_t step_ns, int64_t baseline_ns); /* in percent */

#endif
