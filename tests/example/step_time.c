/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a plan costs, by the installed library: step_time TRACE PLAN */
#include <ferry.h>
#include <stdio.h>

int main (int argc, char **argv) {
  ferry_error err = FERRY_INIT (ferry_error);
  if (argc != 3) {
    fprintf (stderr, "usage: step_time TRACE PLAN\n");
    return 2;
  }
  ferry_trace *trace = ferry_trace_load (argv[1], &err);
  ferry_plan *plan = trace ? ferry_plan_load (argv[2], &err) : NULL;
  ferry_result result = FERRY_INIT (ferry_result);
  if (plan && ferry_check (trace, plan, &err) && ferry_simulate (trace, plan, &result, &err))
    printf ("ferry %s: without a plan %lld bytes; with it %lld bytes, a step takes %lld ns\n",
            ferry_version (), (long long)ferry_trace_peak_bytes (trace),
            (long long)result.peak_bytes, (long long)result.step_ns);
  else
    fprintf (stderr, "step_time: %s\n", err.text);
  ferry_plan_free (plan);
  ferry_trace_free (trace);
  return err.exit_status;
}
