/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The best published policy beside ours: nine networks, three links, four budgets.  One line of
   JSON a case; docs/matrix.json keeps them, and results.sh makes the table of it. matrix [NETWORK
   [GB_PER_S [PERCENT]]]: only these cases, `-` for all; TICKS in the environment for another limit
   of our search. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/bench/papers/paper.h"

enum { TICKS = 300000 };

static const zoo_request nets[] = {
  { .name = "vgg16", .batch = 256 },
  { .name = "resnet50", .batch = 256 },
  { .name = "resnet152", .batch = 128 },
  { .name = "unet3d", .batch = 2 },
  { .name = "gpt2-xl", .batch = 8 },
  { .name = "bert-large", .batch = 32 },
  { .name = "densenet121", .batch = 128 },
  { .name = "inception3", .batch = 128 },
  { .name = "charrnn", .batch = 64, .seq = 256 },
};
static const int speeds[] = { 12, 25, 50 };
static const int percents[] = { 80, 60, 50, 40 };

/* Who is fastest of those that only swap, and of all. */
typedef struct best {
  const char *name;
  int64_t step_ns; /* 0: nobody */
} best;

static void keep_faster (best *b, const char *name, int64_t step_ns) {
  if (b->step_ns == 0 || step_ns < b->step_ns)
    *b = (best){ name, step_ns };
}

static double now_s (void) {
  struct timespec t;
  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void run_case (paper *p, const zoo_request *net, int speed, int percent, int64_t ticks) {
  int64_t budget = p->peak_bytes / 100 * percent;
  best swaps = { .name = "" }, any = { .name = "" };
  int fits = 0;
  double start_s = now_s ();
  for (int i = 0; i < POLICIES; i++) {
    const char *name = policy_at ((policy_id)i)->name;
    paper_cost c = paper_policy (p, name, NULL, budget);
    if (!c.fits)
      continue;
    fits++;
    keep_faster (&any, name, c.cost.step_ns);
    if (c.drops == 0)
      keep_faster (&swaps, name, c.cost.step_ns);
  }
  double policies_s = now_s ();
  paper_cost ours = paper_ours (p, budget, ticks);
  double ours_s = now_s ();
  paper_cost mixed = paper_mixed (p, budget, ticks);
  double mixed_s = now_s ();
  int64_t baseline_ns = ours.fits ? ours.cost.baseline_ns : mixed.cost.baseline_ns;
  printf ("{\"network\":\"%s\",\"batch\":%lld,\"gb_per_s\":%d,\"percent\":%d,\"baseline_ns\":%lld,"
          "\"bound_ns\":%lld,\"ours_ns\":%lld,\"best\":\"%s\",\"best_ns\":%lld,"
          "\"ours_any_ns\":%lld,\"best_any\":\"%s\",\"best_any_ns\":%lld,\"fits\":%d}\n",
          net->name, (long long)net->batch, speed, percent, (long long)baseline_ns,
          (long long)ours.bound_ns, (long long)(ours.fits ? ours.cost.step_ns : 0), swaps.name,
          (long long)swaps.step_ns, (long long)(mixed.fits ? mixed.cost.step_ns : 0), any.name,
          (long long)any.step_ns, fits);
  fflush (stdout);
  fprintf (stderr, "%s, %d GB/s, %d %%: policies %.1f s, ferry %.1f s, with recomputing %.1f s\n",
           net->name, speed, percent, policies_s - start_s, ours_s - policies_s, mixed_s - ours_s);
}

static const char *argument (int argc, char **argv, int i) {
  return argc > i && strcmp (argv[i], "-") != 0 ? argv[i] : NULL;
}

int main (int argc, char **argv) {
  const char *network = argument (argc, argv, 1), *speed = argument (argc, argv, 2);
  const char *percent = argument (argc, argv, 3), *ticks = getenv ("TICKS");
  paper p = { 0 };
  device d = { .name = "bench",
               .memory_bytes = (int64_t)1 << 46,
               .granule_bytes = 2 << 20,
               .host_bytes = (int64_t)1 << 46,
               .share_ppm = 1000000,
               .has_roofline = true,
               .roofline = { .fp32_flops = 10970000000000, .memory_bytes_per_s = 480000000000 } };
  for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
    if (network && strcmp (network, nets[i].name) != 0)
      continue;
    paper_workload (&p, &d, &nets[i]);
    for (int s = 0; s < 3; s++)
      for (int b = 0; b < 4; b++) {
        int64_t rate = (int64_t)speeds[s] * 1000000000;
        if ((speed && strtol (speed, NULL, 10) != speeds[s]) ||
            (percent && strtol (percent, NULL, 10) != percents[b]))
          continue;
        p.device.link = (device_link){ rate, rate, 2 * rate, 10000 };
        run_case (&p, &nets[i], speeds[s], percents[b], ticks ? strtoll (ticks, NULL, 10) : TICKS);
      }
  }
  paper_end (&p);
  return 0;
}
