/* SPDX-License-Identifier: GPL-3.0-or-later */
/* vDNN (MICRO 2016): VGG-16 at batch 256, 28 GB of it, in a 12 GB Titan X at 12.8 GB/s, 18 % slower
   than a card with enough memory. */
#include <stdio.h>

#include "tests/bench/papers/paper.h"

int main (void) {
  static const char *const names[] = { "vdnn-conv", "vdnn-all", "vdnn-dyn" };
  paper p = { .reaches = true };
  char measured[600];
  device d = paper_device ("titanx-maxwell");
  d.link.d2h_bytes_per_s = d.link.h2d_bytes_per_s = 12800000000;
  d.link.both_bytes_per_s = 25600000000;
  paper_workload (&p, &d,
                  &(zoo_request){ .name = "vgg16", .batch = 256, .optimizer = ZOO_MOMENTUM });
  int64_t budget = d.memory_bytes - d.reserved_bytes;
  size_t n =
      (size_t)snprintf (measured, sizeof measured, "peak %.1f GB;", (double)p.peak_bytes / 1e9);
  double best = 1e9;
  for (int i = 0; i < 3; i++) {
    paper_cost c = paper_policy (&p, names[i], NULL, budget);
    double loss = paper_loss (&c);
    if (c.fits)
      best = loss < best ? loss : best;
    n += (size_t)snprintf (measured + n, sizeof measured - n,
                           c.fits ? " %s +%.1f %%," : " %s does not fit (+%.1f %% where it does),",
                           names[i], loss);
  }
  paper_cost ours = paper_ours (&p, budget, 0);
  snprintf (measured + n, sizeof measured - n, " ferry +%.1f %% (bound +%.1f %%)",
            paper_loss (&ours), 100 * ((double)ours.bound_ns / (double)ours.cost.baseline_ns - 1));
  paper_row ("vDNN (MICRO 2016)", "VGG-16, batch 256, on a 12 GB Titan X at 12.8 GB/s",
             "28 GB in 12 GB, 18 % slower than with enough memory", measured,
             ours.fits && paper_loss (&ours) <= best
                 ? "it runs; ferry's plan is no slower than vDNN's on the same machine"
                 : "ferry's plan is slower than vDNN's",
             "ferry zoo vgg16 --batch 256 --device titanx-maxwell -o t; ferry compare t");
  paper_end (&p);
  return 0;
}
