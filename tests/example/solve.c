/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A plan for a budget, by the installed library: solve TRACE DEVICE BYTES PLAN. DEVICE is a name or
   a file, 0 bytes are all that it has to give. */
#include <ferry.h>
#include <inttypes.h>
#include <stdio.h>

int main (int argc, char **argv) {
  ferry_error err = FERRY_INIT (ferry_error);
  ferry_options options = FERRY_INIT (ferry_options);
  ferry_certificate proof = FERRY_INIT (ferry_certificate);
  ferry_result cost = FERRY_INIT (ferry_result);
  if (argc != 5 || sscanf (argv[3], "%" SCNd64, &options.budget_bytes) != 1) {
    fprintf (stderr, "usage: solve TRACE DEVICE BYTES PLAN\n");
    return 2;
  }
  ferry_trace *trace = ferry_trace_load (argv[1], &err);
  ferry_device *device = trace ? ferry_device_load (argv[2], NULL, &err) : NULL;
  options.device = device;
  options.keep_proof = true;
  ferry_plan *plan = device ? ferry_solve (trace, &options, &err) : NULL;
  if (plan && ferry_simulate (trace, plan, &cost, &err) && ferry_prove (trace, plan, &err) &&
      ferry_plan_certificate (plan, &proof, &err) && ferry_plan_store (plan, argv[4], &err))
    printf ("a step takes %lld ns in %lld bytes; no plan takes less than %lld ns\n",
            (long long)cost.step_ns, (long long)cost.peak_bytes, (long long)proof.lower_bound_ns);
  else
    fprintf (stderr, "solve: %s\n", err.text);
  ferry_plan_free (plan);
  ferry_device_free (device);
  ferry_trace_free (trace);
  return err.exit_status;
}
