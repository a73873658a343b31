/* SPDX-License-Identifier: GPL-3.0-or-later */
/* SwapAdvisor (ASPLOS 2020): a genetic search over the order of the ops, with a planner for each;
   up to 12 times the memory at 53 to 99 % of the throughput without limit.  The order that a trace
   has, its planner with another order, and ours with the order that it has. */
#include <stdio.h>

#include "tests/bench/papers/paper.h"

int main (void) {
  static const zoo_request nets[] = { { .name = "resnet50", .batch = 64 },
                                      { .name = "inception3", .batch = 32 } };
  paper p = { 0 };
  char measured[900];
  size_t n = 0;
  bool least = true;
  int better = 0, cases = 0;
  device d = paper_device ("v100");
  d.granule_bytes = 65536;
  for (int i = 0; i < 2; i++) {
    paper_workload (&p, &d, &nets[i]);
    n += (size_t)snprintf (measured + n, sizeof measured - n, "%s%s:", i ? "; " : "", nets[i].name);
    for (int percent = 60; percent >= 45; percent -= 15) {
      int64_t budget = p.peak_bytes * percent / 100;
      paper_cost planner = paper_policy (&p, "swapadvisor-planner", NULL, budget);
      paper_cost genetic = paper_policy (&p, "swapadvisor-planner", "evaluations=96", budget);
      paper_cost ours = paper_ours (&p, budget, 300000);
      cases += planner.fits && genetic.fits;
      better += planner.fits && genetic.fits && genetic.cost.step_ns < planner.cost.step_ns;
      least &= !genetic.fits || (ours.fits && ours.cost.step_ns <= genetic.cost.step_ns);
      n += (size_t)snprintf (measured + n, sizeof measured - n, "%s %d %%: planner",
                             percent < 60 ? "," : "", percent);
      const paper_cost *costs[] = { &planner, &genetic, &ours };
      static const char *const names[] = { " ", ", genetic ", ", ferry " };
      for (int k = 0; k < 3; k++)
        n += costs[k]->fits
                 ? (size_t)snprintf (measured + n, sizeof measured - n, "%s+%.1f %%", names[k],
                                     paper_loss (costs[k]))
                 : (size_t)snprintf (measured + n, sizeof measured - n, "%sno plan", names[k]);
    }
  }
  char verdict[200];
  snprintf (verdict, sizeof verdict,
            "another order helps its planner in %d of %d cases where both have a plan; %s", better,
            cases,
            least ? "ferry is faster with the order that the trace has"
                  : "somewhere the other order is faster than ferry with the trace's");
  paper_row ("SwapAdvisor (ASPLOS 2020)",
             "Two networks at 60 and 45 % of their memory on a V100; 96 orders are judged",
             "up to 12 times the memory of a V100 at 53 to 99 % of the throughput without limit",
             measured, verdict,
             "ferry zoo resnet50 --batch 64 --device v100 -o t; ferry solve t --budget 60% "
             "--policy swapadvisor-planner --policy-opt evaluations=96");
  paper_end (&p);
  return 0;
}
