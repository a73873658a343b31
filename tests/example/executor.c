/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An executor of one's own: it walks a plan by the installed library and carries out two steps with
   plain memory for device and host: executor TRACE PLAN.  Each of the three queues goes on as soon
   as what its next item waits for has ended; here one item at a time. */
#include <ferry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 2 };

static ferry_error err = FERRY_INIT (ferry_error);

static void carry (const ferry_trace *t, const ferry_plan *p, ferry_queue queue, int i,
                   char *device, char *host, int64_t granule) {
  ferry_move m = FERRY_INIT (ferry_move);
  if (!ferry_plan_move (t, p, queue, i, &m, &err))
    return;
  char *away = host + m.host_offset;
  for (int64_t k = 0, left = m.bytes; k < m.n_granules && left > 0; k++) {
    char *here = device + m.granules[2 * k] * granule;
    int64_t bytes = m.granules[2 * k + 1] * granule < left ? m.granules[2 * k + 1] * granule : left;
    memcpy (queue == FERRY_OUTS ? away : here, queue == FERRY_OUTS ? here : away, (size_t)bytes);
    away += bytes;
    left -= bytes;
  }
}

int main (int argc, char **argv) {
  ferry_steps n = FERRY_INIT (ferry_steps);
  ferry_trace *original = argc == 3 ? ferry_trace_load (argv[1], &err) : NULL;
  ferry_plan *plan = original ? ferry_plan_load (argv[2], &err) : NULL;
  ferry_trace *step = plan ? ferry_plan_trace (original, plan, &err) : NULL;
  if (step && ferry_check (original, plan, &err) && ferry_plan_steps (original, plan, &n, &err)) {
    char *device = calloc ((size_t)n.granules + 1, (size_t)n.granule_bytes);
    char *host = calloc (1, (size_t)n.host_bytes + 1);
    int64_t each[] = { n.ops, n.outs, n.ins }, done[3] = { 0 }, moved = 0, waits = 0;
    for (int64_t before = -1; before != done[0] + done[1] + done[2] && !err.exit_status;) {
      before = done[0] + done[1] + done[2];
      for (int q = FERRY_OPS; q <= FERRY_INS; q++) {
        ferry_wait w = FERRY_INIT (ferry_wait);
        int64_t in_step = each[q] ? done[q] / each[q] : STEPS;
        if (in_step >= STEPS ||
            !ferry_plan_wait (step, plan, (ferry_queue)q, (int)(done[q] % each[q]), &w, &err))
          continue;
        int64_t counts[] = { w.ops, w.outs, w.ins };
        int ready = 1;
        for (int k = 0; k < 3; k++)
          ready &= counts[k] == FERRY_NO_WAIT || done[k] >= in_step * each[k] + counts[k];
        waits += !ready;
        if (ready && q != FERRY_OPS) /* an op would launch its kernel here */
          carry (step, plan, (ferry_queue)q, (int)(done[q] % each[q]), device, host,
                 n.granule_bytes);
        moved += ready && q != FERRY_OPS;
        done[q] += ready;
      }
    }
    printf ("%d steps: %lld ops, %lld copies, %lld waits\n", STEPS, (long long)done[0],
            (long long)moved, (long long)waits);
    if (done[0] < STEPS * each[0])
      err.exit_status = 1; /* it would hang */
    free (device);
    free (host);
  } else
    fprintf (stderr, "executor: %s\n", err.text);
  ferry_trace_free (step);
  ferry_plan_free (plan);
  ferry_trace_free (original);
  return err.exit_status;
}
