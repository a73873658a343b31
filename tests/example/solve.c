/* A plan for a budget, by the installed library: solve TRACE DEVICE BYTES PLAN */
#include <ferry.h>
#include <inttypes.h>
#include <stdio.h>

int main (int argc, char **argv) {
  ferry_error err = { 0 };
  ferry_options options = { 0 };
  ferry_certificate proof;
  ferry_result cost;
  if (argc != 5 || sscanf (argv[3], "%" SCNd64, &options.budget_bytes) != 1) {
    fprintf (stderr, "usage: solve TRACE DEVICE BYTES PLAN\n");
    return 2;
  }
  options.device_path = argv[2];
  options.keep_proof = true;
  ferry_trace *trace = ferry_trace_load (argv[1], &err);
  ferry_plan *plan = trace ? ferry_solve (trace, &options, &err) : NULL;
  if (plan && ferry_simulate (trace, plan, &cost, &err) && ferry_prove (trace, plan, &err) &&
      ferry_plan_certificate (plan, &proof) && ferry_plan_store (plan, argv[4], &err))
    printf ("a step takes %lld ns in %lld bytes; no plan takes less than %lld ns\n",
            (long long)cost.step_ns, (long long)cost.peak_bytes, (long long)proof.lower_bound_ns);
  else
    fprintf (stderr, "solve: %s\n", err.text);
  ferry_plan_free (plan);
  ferry_trace_free (trace);
  return err.exit_status;
}
