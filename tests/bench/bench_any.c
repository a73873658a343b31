/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How close solve comes to its bound on cells that nobody chose.
   bench_any SEED COUNT [TICKS] prints a line of JSON a cell, then the distribution of the gaps and
   the worst five. Devices come from FERRY_DATADIR. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/bench/any_cell.h"
#include "tests/bench/bench.h"

enum { MOST = 1000, WORST = 5 };

typedef struct row {
  char name[160], why[128];
  double gap;
} row;

static int by_gap (const void *x, const void *y) {
  double a = ((const row *)x)->gap, b = ((const row *)y)->gap;
  return (a < b) - (a > b);
}

static bool run (uint64_t seed, int index, int64_t ticks, const char *devices, row *rows, int *n,
                 double *seconds, error *err) {
  arena *a = arena_made (err);
  any_cell c;
  any_answer x = { 0 };
  bool ok =
      a && any_draw (seed, index, devices, a, &c, err) && any_solve (&c, ticks, NULL, &x, err);
  if (ok)
    printf ("{\"bench\":\"any\",\"cell\":\"%s\",\"ops\":%d,\"percent\":%d,\"drops\":%s,\"fits\":%s,"
            "\"step_ns\":%lld,\"lower_bound_ns\":%lld,\"gap_percent\":%.4f,\"seconds\":%.2f,"
            "\"why\":\"%s\"}\n",
            c.name, c.trace->n_ops, c.percent, c.drops ? "true" : "false",
            x.fits ? "true" : "false", (long long)x.step_ns, (long long)x.bound_ns, x.gap,
            x.seconds, x.why);
  fflush (stdout);
  *seconds += x.seconds;
  if (ok && x.fits) {
    row *r = &rows[(*n)++];
    snprintf (r->name, sizeof r->name, "%s, %d %%%s", c.name, c.percent, c.drops ? ", drops" : "");
    snprintf (r->why, sizeof r->why, "%s", x.why);
    r->gap = x.gap;
  }
  arena_free (a);
  return ok;
}

int main (int argc, char **argv) {
  static row rows[MOST];
  static double gaps[MOST];
  const char *seed = bench_argument (argc, argv, 1), *many = bench_argument (argc, argv, 2);
  const char *limit = bench_argument (argc, argv, 3), *data = getenv ("FERRY_DATADIR");
  char devices[4096];
  int count = many ? (int)strtol (many, NULL, 10) : 10, n = 0;
  double seconds = 0;
  snprintf (devices, sizeof devices, "%s/devices", data ? data : "data");
  count = count > MOST ? MOST : count;
  for (int i = 0; i < count; i++) {
    error err = { 0 };
    char line[sizeof (error)];
    if (!run (seed ? strtoull (seed, NULL, 10) : 1, i, limit ? strtoll (limit, NULL, 10) : 0,
              devices, rows, &n, &seconds, &err)) {
      fprintf (stderr, "%s\n", error_line (&err, line, sizeof line));
      return EXIT_FAILURE;
    }
  }
  for (int i = 0; i < n; i++)
    gaps[i] = rows[i].gap;
  printf ("%d cells, %d have a plan, %.1f s; gaps: median %.3f %%, 90th %.3f %%, worst %.3f %%\n",
          count, n, seconds, any_percentile (gaps, n, 50), any_percentile (gaps, n, 90),
          any_percentile (gaps, n, 100));
  qsort (rows, (size_t)n, sizeof *rows, by_gap);
  for (int i = 0; i < n && i < WORST; i++)
    printf ("  %.3f %%  %s: %s\n", rows[i].gap, rows[i].name, rows[i].why);
  return EXIT_SUCCESS;
}
