/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Meng et al. (2017), Tesla M40 with 12 GB: ResNet-50 from batch 144 to 664; ResNet-200 at batch 32
   from 10662 to 3052 MB. */
#include <stdio.h>

#include "tests/bench/papers/paper.h"

enum { STEP = 8, MOST = 2048 };

static int64_t largest_batch (paper *p, const device *d, int64_t budget, const char *policy) {
  int64_t low = 0, high = MOST / STEP; /* in steps: low fits, high does not */
  while (high - low > 1) {
    int64_t middle = (low + high) / 2;
    paper_workload (p, d, &(zoo_request){ .name = "resnet50", .batch = middle * STEP });
    bool fits = p->peak_bytes <= budget;
    if (policy) {
      paper_cost c = paper_policy (p, policy, NULL, budget);
      fits = c.fits;
    }
    if (fits)
      low = middle;
    else
      high = middle;
  }
  return low * STEP;
}

int main (void) {
  enum { PUBLISHED = 664 };
  paper p = { .reaches = true };
  char measured[400];
  device d = paper_device ("m40");
  d.host_bytes = (int64_t)1 << 40;
  int64_t budget = d.memory_bytes - d.reserved_bytes;
  int64_t plain = largest_batch (&p, &d, budget, NULL);
  int64_t swapped = largest_batch (&p, &d, budget, "meng");
  paper_workload (&p, &d, &(zoo_request){ .name = "resnet50", .batch = PUBLISHED });
  paper_cost c = paper_policy (&p, "meng", NULL, budget), ours = paper_ours (&p, budget, 0);
  double bound = 100 * ((double)ours.bound_ns / (double)ours.cost.baseline_ns - 1);
  snprintf (measured, sizeof measured,
            "%lld to %lld (%.1f times); at 664 +%.0f %%%s, ferry +%.0f %%, and no plan that only "
            "swaps below +%.0f %%",
            (long long)plain, (long long)swapped, (double)swapped / (double)plain, paper_loss (&c),
            c.fits ? "" : " (over the budget)", paper_loss (&ours), bound);
  paper_row ("Meng et al. 2017", "Largest batch of ResNet-50 in 12 GB",
             "144 to 664 (4.6 times), less than 10 % slower", measured,
             c.fits && paper_loss (&c) < 10 ? "reproduced"
             : swapped < PUBLISHED          ? "neither batch nor loss"
             : bound > 10 ? "the batch is reached, the loss is not: at the roofline's speed of "
                            "compute this link cannot do it, as the bound says"
                          : "the batch is reached, the loss is not",
             "ferry zoo resnet50 --batch 664 --device m40 -o t; ferry compare t");
  d.memory_bytes = (int64_t)1 << 38;
  paper_workload (&p, &d, &(zoo_request){ .name = "resnet200", .batch = 32 });
  paper_cost least = paper_policy (&p, "meng", NULL, 1);
  snprintf (measured, sizeof measured, "%.0f to %.0f MB", (double)p.peak_bytes / 1e6,
            (double)least.reached_bytes / 1e6);
  paper_row ("Meng et al. 2017", "Memory of ResNet-200 at batch 32", "10662 to 3052 MB", measured,
             least.reached_bytes < 3052000000 ? "it reaches less than published"
                                              : "it does not reach what was published",
             "ferry zoo resnet200 --batch 32 --device m40 -o t; "
             "ferry solve t --policy meng --budget 1GiB");
  paper_end (&p);
  return 0;
}
