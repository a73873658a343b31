/* One step of a simulated plan, drawn in the terminal. */
#ifndef FERRY_CLI_TIMELINE_H
#define FERRY_CLI_TIMELINE_H

#include "cli/call.h"
#include "trace/simulate.h"

bool timeline_print (call *c, const sim_job *job, const timeline *line) MUST_CHECK;

#endif
