/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Is more never worse? bench_more [SEED [COUNT [PART [KIND]]]]: so many pairs of each kind (200) of
   more_pair.h, with one part of the usual effort (8); a line of JSON for each, and a table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/bench.h"
#include "tests/more_pair.h"

typedef struct seen {
  int pairs, worse, too_much; /* worse by more than the gap that was asked for */
  int64_t worst_ppm;
  char worst[240];
} seen;

static void count (seen *s, const more_pair *p) {
  s->pairs++;
  s->worse += p->worse_ppm > 0;
  s->too_much += p->worse_ppm > MORE_GAP_PPM;
  if (p->worse_ppm <= s->worst_ppm)
    return;
  s->worst_ppm = p->worse_ppm;
  snprintf (s->worst, sizeof s->worst, "%s", p->what);
}

static bool run (more_kind kind, uint64_t seed, int index, int part, seen *to, error *err) {
  more_pair p;
  double from = bench_cpu_s ();
  if (!more_pair_of (kind, seed, index, part, false, &p, err))
    return false;
  printf ("{\"bench\":\"more\",\"kind\":\"%s\",\"index\":%d,\"what\":\"%s\",\"less_ns\":%lld,"
          "\"more_ns\":%lld,\"bound_ns\":%lld,\"worse_percent\":%.4f,\"seconds\":%.2f}\n",
          more_kinds[kind], index, p.what, (long long)p.less_ns, (long long)p.more_ns,
          (long long)p.bound_ns, (double)p.worse_ppm / 10000, bench_cpu_s () - from);
  fflush (stdout);
  count (to, &p);
  return true;
}

int main (int argc, char **argv) {
  static seen all[MORE_KINDS];
  const char *seed = bench_argument (argc, argv, 1), *many = bench_argument (argc, argv, 2);
  const char *share = bench_argument (argc, argv, 3), *only = bench_argument (argc, argv, 4);
  int pairs = many ? (int)strtol (many, NULL, 10) : 200;
  int part = share ? (int)strtol (share, NULL, 10) : 8;
  error err = { 0 };
  char line[sizeof (error)];
  bool ok = part > 0;
  for (more_kind kind = 0; kind < MORE_KINDS; kind++)
    for (int i = 0; ok && i < pairs && (!only || strcmp (only, more_kinds[kind]) == 0); i++)
      ok = run (kind, seed ? strtoull (seed, NULL, 10) : 1, i, part, &all[kind], &err);
  if (!ok) {
    fprintf (stderr, "%s\n", error_line (&err, line, sizeof line));
    return EXIT_FAILURE;
  }
  printf ("%-8s %6s %6s %10s %9s\n", "more", "pairs", "worse", "by > gap", "worst");
  for (more_kind kind = 0; kind < MORE_KINDS; kind++)
    printf ("%-8s %6d %6d %10d %8.2f%%  %s\n", more_kinds[kind], all[kind].pairs, all[kind].worse,
            all[kind].too_much, (double)all[kind].worst_ppm / 10000, all[kind].worst);
  return EXIT_SUCCESS;
}
