/* Large model support (2018, 2019): 4.7 to 4.9 times the batch of ResNet-50, on a card whose link
   is NVLink; what the same rule costs on PCIe. */
#include <stdio.h>

#include "tests/bench/papers/paper.h"

enum { STEP = 16, MOST = 4096 };

static int64_t largest_batch (paper *p, const device *d, int64_t budget, const char *policy) {
  int64_t low = 0, high = MOST / STEP;
  while (high - low > 1) {
    int64_t middle = (low + high) / 2;
    paper_workload (p, d, &(zoo_request){ .name = "resnet50", .batch = middle * STEP });
    bool fits = p->peak_bytes <= budget;
    if (!fits && policy) {
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
  static const char *const cards[] = { "v100-nvlink", "v100" };
  paper p = { .reaches = true };
  char measured[600];
  size_t n = 0;
  double times = 0;
  for (int i = 0; i < 2; i++) {
    device d = paper_device (cards[i]);
    d.host_bytes = (int64_t)1 << 40;
    int64_t budget = (int64_t)16 * 1000000000 - d.reserved_bytes;
    int64_t plain = largest_batch (&p, &d, budget, NULL);
    int64_t v1 = largest_batch (&p, &d, budget, "tflms-v1");
    int64_t v2 = largest_batch (&p, &d, budget, "tflms-v2");
    int64_t batch = v1 > v2 ? v1 : v2;
    times = (double)batch / (double)plain > times ? (double)batch / (double)plain : times;
    paper_workload (&p, &d, &(zoo_request){ .name = "resnet50", .batch = batch });
    paper_cost c1 = paper_policy (&p, "tflms-v1", NULL, budget);
    paper_cost c2 = paper_policy (&p, "tflms-v2", NULL, budget);
    paper_cost ours = paper_ours (&p, budget, 2000000);
    n += (size_t)snprintf (measured + n, sizeof measured - n,
                           "%s%s: %lld to %lld (v1) and %lld (v2); at %lld: v1 +%.0f %%%s, "
                           "v2 +%.0f %%%s, ferry +%.0f %%",
                           i ? "; " : "", cards[i], (long long)plain, (long long)v1, (long long)v2,
                           (long long)batch, paper_loss (&c1), c1.fits ? "" : " (over the budget)",
                           paper_loss (&c2), c2.fits ? "" : " (over the budget)",
                           paper_loss (&ours));
  }
  paper_row ("TFLMS (2018, 2019)", "Largest batch of ResNet-50 in 16 GB, NVLink and PCIe",
             "4.7 to 4.9 times", measured,
             times >= 4.7 ? "reached" : "not reached in the machine model's memory",
             "ferry zoo resnet50 --batch 800 --device v100-nvlink -o t; "
             "ferry compare t --budget 14GiB --policies ferry,tflms-v1,tflms-v2");
  paper_end (&p);
  return 0;
}
