/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How close solve comes to its bound on cells that nobody chose.
   bench_any SEED COUNT [TICKS [TUNE [all|swaps|drops|arena|same|tuning [explain]]]] prints a
   line of JSON a cell, then the distribution of the gaps, of a processor's seconds, of what arenas
   lose beside the bytes that live, and the worst five; TUNE as --tune takes it; `arena`: swaps, in
   an arena alone; `same`: each part always in one place; `tuning`: transformers with much state, on
   cards that people have. With `explain`,
   the worst five are solved again on cards that lack one thing: the latency of copies, granules,
   both; and by a thorough search. What is still left then is the search's or the bound's own.
   Devices come from FERRY_DATADIR. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/any_cell.h"
#include "tests/bench/bench.h"

enum { MOST = 1000, WORST = 5, SMALL_GRANULE = 65536 };

typedef struct row {
  char name[160], why[128];
  int index;
  double gap;
} row;

static int by_gap (const void *x, const void *y) {
  double a = ((const row *)x)->gap, b = ((const row *)y)->gap;
  return (a < b) - (a > b);
}

typedef struct asked {
  uint64_t seed;
  int64_t ticks;
  tuning by;
  bool swaps, drops; /* the cells that are solved */
  bool in_arena, is_same, is_tuning;
  char devices[4096];
} asked;

typedef struct seen {
  row rows[MOST];
  int n;
  double seconds, ticks;
  double took[MOST]; /* seconds of those with a plan */
  double lost[MOST]; /* of those in an arena */
  int n_lost;
} seen;

static bool draw (const asked *q, int index, arena *a, any_cell *out, error *err) {
  return (q->is_tuning ? any_draw_tuning : any_draw) (q->seed, index, q->devices, a, out, err);
}

static bool run (const asked *q, int index, seen *to, error *err) {
  arena *a = arena_made (err);
  any_cell c;
  any_answer x = { 0 };
  bool ok = a && draw (q, index, a, &c, err);
  bool is_wanted = ok && (c.drops ? q->drops : q->swaps);
  c.in_arena = q->in_arena;
  c.same_places = q->is_same;
  ok = ok && (!is_wanted || any_solve (&c, q->ticks, &q->by, &x, err));
  if (ok && is_wanted)
    printf ("{\"bench\":\"any\",\"cell\":\"%s\",\"ops\":%d,\"percent\":%d,\"drops\":%s,\"fits\":%s,"
            "\"step_ns\":%lld,\"lower_bound_ns\":%lld,\"gap_percent\":%.4f,\"ticks\":%lld,"
            "\"seconds\":%.2f,\"in_arena\":%s,\"lost_percent\":%.3f,\"why\":\"%s\"}\n",
            c.name, c.trace->n_ops, c.percent, c.drops ? "true" : "false",
            x.fits ? "true" : "false", (long long)x.step_ns, (long long)x.bound_ns, x.gap,
            (long long)x.ticks, x.seconds, x.in_arena ? "true" : "false", x.lost, x.why);
  fflush (stdout);
  to->seconds += x.seconds;
  to->ticks += (double)x.ticks;
  if (ok && x.fits) {
    to->took[to->n] = x.seconds;
    row *r = &to->rows[to->n++];
    snprintf (r->name, sizeof r->name, "%s, %d %%%s", c.name, c.percent, c.drops ? ", drops" : "");
    snprintf (r->why, sizeof r->why, "%s", x.why);
    r->index = index;
    r->gap = x.gap;
    if (x.in_arena)
      to->lost[to->n_lost++] = x.lost;
  }
  arena_free (a);
  return ok;
}

/* The same cell, if its card had no latency, smaller granules, or for a thorough search. */
static bool explain (const asked *q, const row *r, error *err) {
  static const struct {
    const char *says;
    bool latency, granules, thorough;
  } without[] = { { "no latency", false, true, false },
                  { "granules of 64 KiB", true, false, false },
                  { "neither", false, false, false },
                  { "thorough", true, true, true } };
  bool ok = true;
  for (size_t i = 0; ok && i < sizeof without / sizeof *without; i++) {
    arena *a = arena_made (err);
    any_cell c;
    any_answer x = { 0 };
    ok = a && draw (q, r->index, a, &c, err);
    if (ok) {
      c.device.link.copy_ns = without[i].latency ? c.device.link.copy_ns : 0;
      c.device.granule_bytes = without[i].granules ? c.device.granule_bytes : SMALL_GRANULE;
      c.level = without[i].thorough ? LEVEL_THOROUGH : LEVEL_NORMAL;
      ok = any_solve (&c, without[i].thorough ? 0 : q->ticks, &q->by, &x, err);
    }
    if (ok && x.fits)
      printf ("      %s: %.3f %%\n", without[i].says, x.gap);
    fflush (stdout);
    arena_free (a);
  }
  return ok;
}

int main (int argc, char **argv) {
  static seen all;
  static asked q;
  static double gaps[MOST];
  const char *seed = bench_argument (argc, argv, 1), *many = bench_argument (argc, argv, 2);
  const char *limit = bench_argument (argc, argv, 3), *tune = bench_argument (argc, argv, 4);
  const char *which = bench_argument (argc, argv, 5), *why = bench_argument (argc, argv, 6);
  const char *data = getenv ("FERRY_DATADIR");
  int count = many ? (int)strtol (many, NULL, 10) : 10;
  error err = { 0 };
  char line[sizeof (error)];
  q.seed = seed ? strtoull (seed, NULL, 10) : 1;
  q.ticks = limit ? strtoll (limit, NULL, 10) : 0;
  q.by = tuning_shipped;
  q.swaps = !which || strcmp (which, "drops") != 0;
  q.in_arena = which && strcmp (which, "arena") == 0;
  q.is_same = which && strcmp (which, "same") == 0;
  q.is_tuning = which && strcmp (which, "tuning") == 0;
  q.drops = !which || (strcmp (which, "swaps") != 0 && !q.in_arena);
  snprintf (q.devices, sizeof q.devices, "%s/devices", data ? data : "data");
  count = count > MOST ? MOST : count;
  bool ok = !tune || tuning_read (&q.by, tune, &err);
  for (int i = 0; ok && i < count; i++)
    ok = run (&q, i, &all, &err);
  if (!ok) {
    fprintf (stderr, "%s\n", error_line (&err, line, sizeof line));
    return EXIT_FAILURE;
  }
  for (int i = 0; i < all.n; i++)
    gaps[i] = all.rows[i].gap;
  printf ("%d cells, %d have a plan, %.4g ticks, %.1f s; gaps: median %.3f %%, 90th %.3f %%, "
          "worst %.3f %%\n",
          count, all.n, all.ticks, all.seconds, any_percentile (gaps, all.n, 50),
          any_percentile (gaps, all.n, 90), any_percentile (gaps, all.n, 100));
  printf ("seconds a plan: median %.1f, 90th %.1f, worst %.1f\n",
          any_percentile (all.took, all.n, 50), any_percentile (all.took, all.n, 90),
          any_percentile (all.took, all.n, 100));
  if (all.n_lost)
    printf ("%d in an arena, which loses: median %.3f %%, 90th %.3f %%, worst %.3f %%\n",
            all.n_lost, any_percentile (all.lost, all.n_lost, 50),
            any_percentile (all.lost, all.n_lost, 90), any_percentile (all.lost, all.n_lost, 100));
  qsort (all.rows, (size_t)all.n, sizeof *all.rows, by_gap);
  for (int i = 0; ok && i < all.n && i < WORST; i++) {
    printf ("  %.3f %%  %s: %s\n", all.rows[i].gap, all.rows[i].name, all.rows[i].why);
    ok = !why || explain (&q, &all.rows[i], &err);
  }
  return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
