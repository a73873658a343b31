/* SPDX-License-Identifier: GPL-3.0-or-later */
/* tvDNN (PPoPP 2018, of which only the abstract is public): VGG-16 at batch 256 and 512 in a few GB
   without much loss, by copying parts of tensors.  Here parts are sections: ops run in parts of the
   batch. */
#include <stdio.h>

#include "tests/bench/papers/paper.h"

int main (void) {
  static const int64_t batches[] = { 256, 512 };
  static const int budgets[] = { 6, 4, 2 };
  paper p = { 0 };
  char measured[900];
  size_t n = 0;
  bool cheap = true;
  device d = paper_device ("titanx-pascal");
  d.host_bytes = (int64_t)1 << 40;
  for (int i = 0; i < 2; i++) {
    paper_workload (&p, &d, &(zoo_request){ .name = "vgg16", .batch = batches[i] });
    n += (size_t)snprintf (measured + n, sizeof measured - n,
                           "%sbatch %lld (%.1f GB): ", i ? "; " : "", (long long)batches[i],
                           (double)p.peak_bytes / 1e9);
    for (int b = 0; b < 3; b++) {
      int64_t budget = (int64_t)budgets[b] << 30;
      paper_cost whole = paper_ours (&p, budget, 300000);
      paper_cost cut = paper_cut (&p, budget, 300000);
      paper_cost greedy = paper_policy (&p, "greedy-largest", NULL, budget);
      char text[3][32] = { "no plan", "no plan", "no plan" };
      const paper_cost *costs[] = { &cut, &whole, &greedy };
      for (int k = 0; k < 3; k++)
        if (costs[k]->fits)
          snprintf (text[k], sizeof text[k], "+%.1f %%", paper_loss (costs[k]));
      cheap &= cut.fits && paper_loss (&cut) < 5;
      n += (size_t)snprintf (measured + n, sizeof measured - n,
                             "%s%d GiB: %s in sections, %s without, greedy %s", b ? ", " : "",
                             budgets[b], text[0], text[1], text[2]);
    }
  }
  paper_row (
      "tvDNN (PPoPP 2018)", "VGG-16, batch 256 and 512, in 6, 4 and 2 GiB at 12 GB/s",
      "\"in a few GB\" without significant loss (abstract; its exact figures are not public)",
      measured,
      cheap ? "below 5 % at each of them with sections; without them it does not fit or costs "
              "several times as much"
            : "not at each of them",
      "ferry zoo vgg16 --batch 256 --device titanx-pascal -o t; "
      "ferry solve t --budget 2GiB --sections auto");
  paper_end (&p);
  return 0;
}
