/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The worth of each strategy and each layout: the search without it, over cells that nobody chose.
   bench_ablation SEED COUNT [TICKS [swaps|drops]] prints a table in Markdown, a row for each that
   is switched off alone and for some groups. SEED "solve" stands for bench_solve's cases, COUNT of
   them spread over all. Strategies that only cells with drops run are tried on those alone. One
   that did nothing in the full search is not run again. Devices come from FERRY_DATADIR. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/any_cell.h"
#include "tests/bench/bench.h"

enum { MOST = 200, LAYOUT_ROWS = 6 };

/* One strategy or one layout is switched off, or what a text says. */
typedef struct ablation {
  int id; /* of the strategy, if it may be one that did nothing; else -1 */
  char name[64];
  char tune[256];
  bool swaps, drops; /* on which cells it is tried */
} ablation;

typedef struct column {
  double gap[MOST], seconds;
  int n, lost, worse, better; /* lost: a plan where the full search has one */
} column;

/* Strategies whose candidates are their only effect. */
static bool counts_all (int id) {
  const char *stage = strategy_rows[id].stage;
  return strcmp (stage, "DROPS") == 0 ||
         (strcmp (stage, "ATTEMPT") == 0 && id != STRATEGY_ATTEMPT_layouts);
}

static bool did_nothing (const search_stats *s, int id) {
  return id >= 0 && !s->of[id].tried && !s->of[id].spent && !s->of[id].won;
}

static int list_ablations (ablation *list) {
  static const char *const layouts[LAYOUT_ROWS] = {
    "layout_tight", "layout_state", "layout_close", "layout_large", "layout_many", "layout_small"
  };
  static const ablation groups[] = {
    { -1, "every layout but two",
      "layout_tight=0,layout_state=0,layout_close=0,"
      "layout_large=0,layout_many=0",
      true, false },
    { -1, "all but first and walk", "layouts=0,every=0,others=0", true, false },
    { -1, "climb, room", "climb=0,room=0", false, true },
  };
  int n = 0;
  for (int i = 0; i < STRATEGIES; i++) {
    const strategy_row *r = &strategy_rows[i];
    ablation *x = &list[n];
    if (i == STRATEGY_ATTEMPT_still || i == STRATEGY_ATTEMPT_follow || i == STRATEGY_SEARCH_cuts)
      continue; /* these run where nothing moves, near a known plan, and with sections */
    *x = (ablation){ .id = counts_all (i) ? i : -1, .swaps = strcmp (r->stage, "ATTEMPT") == 0 };
    x->drops = !x->swaps;
    snprintf (x->name, sizeof x->name, "%s", r->name);
    snprintf (x->tune, sizeof x->tune, "%s=0", r->name);
    n++;
  }
  for (int i = 0; i < LAYOUT_ROWS; i++, n++) {
    list[n] = (ablation){ .id = -1, .swaps = true };
    snprintf (list[n].name, sizeof list[n].name, "%s", layouts[i]);
    snprintf (list[n].tune, sizeof list[n].tune, "%s=0", layouts[i]);
  }
  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
    list[n++] = groups[i];
  return n;
}

static void add (column *to, const any_answer *x, const any_answer *full) {
  to->seconds += x->seconds;
  if (!full->fits)
    return;
  if (!x->fits) {
    to->lost++;
    return;
  }
  to->gap[to->n++] = x->gap;
  to->worse += x->gap > full->gap + 0.01;
  to->better += x->gap < full->gap - 0.01;
}

static double mean (const column *c) {
  double sum = 0;
  for (int i = 0; i < c->n; i++)
    sum += c->gap[i];
  return c->n ? sum / c->n : 0;
}

static void tell (const char *name, column *c, const column *full) {
  double average = mean (c);
  if (!c->n && !c->lost)
    return;
  printf ("| %s | %d | %.3f | %.3f | %.3f | %.2f | %d | %d | %d |\n", name, c->n,
          any_percentile (c->gap, c->n, 50), any_percentile (c->gap, c->n, 90), average,
          full->seconds > 0 ? c->seconds / full->seconds : 1, c->worse, c->better, c->lost);
}

static bool try_cell (const any_cell *c, int64_t ticks, const ablation *list, int n,
                      column *columns, column *full, error *err) {
  any_answer all, x;
  if (!any_solve (c, ticks, NULL, &all, err))
    return false;
  add (full, &all, &all);
  fprintf (stderr, "%s, %d %%%s: %.3f %% in %.1f s\n", c->name, c->percent,
           c->drops ? ", drops" : "", all.gap, all.seconds);
  for (int i = 0; i < n; i++) {
    tuning by = tuning_shipped;
    if (c->drops ? !list[i].drops : !list[i].swaps)
      continue;
    if (did_nothing (&all.stats, list[i].id))
      x = all;
    else if (!tuning_read (&by, list[i].tune, err) || !any_solve (c, ticks, &by, &x, err))
      return false;
    add (&columns[i], &x, &all);
    fprintf (stderr,
             "{\"bench\":\"ablation\",\"cell\":\"%s\",\"percent\":%d,\"without\":\"%s\","
             "\"gap_percent\":%.4f,\"full_percent\":%.4f,\"seconds\":%.3f}\n",
             c->name, c->percent, list[i].name, x.gap, all.gap, x.seconds);
  }
  return true;
}

int main (int argc, char **argv) {
  enum { ROOM = 80 };
  static ablation list[ROOM];
  static column columns[ROOM], full[2];
  const char *seed = bench_argument (argc, argv, 1), *many = bench_argument (argc, argv, 2);
  const char *limit = bench_argument (argc, argv, 3), *only = bench_argument (argc, argv, 4);
  const char *data = getenv ("FERRY_DATADIR");
  int n = list_ablations (list), count = many ? (int)strtol (many, NULL, 10) : 4;
  char devices[4096], line[sizeof (error)];
  error err = { 0 };
  bool ok = true;
  snprintf (devices, sizeof devices, "%s/devices", data ? data : "data");
  bool fixed = seed && strcmp (seed, "solve") == 0;
  int most = fixed ? any_fixed_count () : MOST;
  count = count < 1 ? 1 : count > most ? most : count;
  for (int i = 0; ok && i < count; i++) {
    any_cell c;
    arena *a = arena_made (&err);
    ok = a && (fixed ? any_fixed (i * most / count, a, &c, &err)
                     : any_draw (seed ? strtoull (seed, NULL, 10) : 1, i, devices, a, &c, &err));
    bool wanted = !only || strcmp (only, c.drops ? "drops" : "swaps") == 0;
    ok = ok && (!wanted || try_cell (&c, limit ? strtoll (limit, NULL, 10) : 0, list, n, columns,
                                     &full[c.drops], &err));
    arena_free (a);
  }
  if (!ok) {
    fprintf (stderr, "%s\n", error_line (&err, line, sizeof line));
    return EXIT_FAILURE;
  }
  puts ("| without | cells | median | 90th | mean | time | worse | better | lost |\n"
        "|---|---|---|---|---|---|---|---|---|");
  tell ("nothing, swaps alone", &full[0], &full[0]);
  for (int i = 0; i < n; i++)
    if (list[i].swaps)
      tell (list[i].name, &columns[i], &full[0]);
  tell ("nothing, with drops", &full[1], &full[1]);
  for (int i = 0; i < n; i++)
    if (list[i].drops)
      tell (list[i].name, &columns[i], &full[1]);
  return EXIT_SUCCESS;
}
