/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/whatif/node.h"

#include <stdlib.h>

#include "base/order.h"
#include "base/units.h"
#include "cli/figures/columns.h"
#include "cli/inputs/hosts.h"
#include "cli/inputs/policies.h"
#include "cli/inputs/stopping.h"
#include "cli/whatif/offline.h"
#include "cli/whatif/rank_rows.h"

enum { POINTS = 8, MOST_ROWS = HOST_MOST_CARDS + RANK_ROWS_MOST };

typedef struct chosen {
  rank_row *row; /* the least that fits so far; or NULL */
  int32_t at;    /* its place in rows */
} chosen;

typedef struct trying {
  rank_rows all;
  node_facts facts;
  node_question asked;
  int64_t budgets[RANK_ROWS_MOST]; /* from the least to the most that a card can give */
  int32_t n_budgets;
  node_row rows[MOST_ROWS];
  int32_t n_rows;
  chosen chosen;
} trying;

bool node_asked (call *c, node_question *out) {
  int64_t ranks = 0;
  *out = (node_question){ .slowdown_ppm = 50000 };
  bool ok = call_quantity (c, "slowdown", &out->slowdown_ppm) &&
            call_quantity (c, "rank-memory", &out->rank_host_bytes) &&
            call_quantity (c, "ranks", &ranks);
  out->ranks = (int32_t)ranks;
  return ok;
}

/* ---- the search ---- */

/* Those of --budget, else evenly from the floor to all that is of use; each once, in order. */
static bool read_budgets (call *c, trying *q) {
  const rank_rows *all = &q->all;
  int64_t has = all->card.memory_bytes - all->card.reserved_bytes, *even;
  int32_t n = 0;
  if (call_text (c, "budget")) {
    if (!policy_asked_budgets (c, &all->card, all->needs_bytes, RANK_ROWS_MOST, q->budgets, &n))
      return false;
  } else if (all->needs_bytes <= all->floor_bytes || has <= all->floor_bytes) {
    q->budgets[n++] = min_of (has, all->needs_bytes);
  } else {
    if (!curve_even (all->floor_bytes, min_of (has, all->needs_bytes), all->card.granule_bytes,
                     POINTS, c->arena, &even, &n, &c->err))
      return false;
    for (int32_t i = 0; i < n; i++)
      q->budgets[i] = min_of (even[i], has);
  }
  qsort (q->budgets, (size_t)n, sizeof *q->budgets, order_int64);
  for (int32_t i = 0; i < n; i++)
    if (!q->n_budgets || q->budgets[i] > q->budgets[q->n_budgets - 1])
      q->budgets[q->n_budgets++] = q->budgets[i];
  return q->n_budgets > 0;
}

static bool try_row (call *c, trying *q, int32_t ranks, int32_t budget, bool *fits) {
  rank_row *row = NEW (c->arena, 1, rank_row, &c->err);
  int64_t most_ns = node_most_ns (&q->facts, &q->asked);
  if (!row)
    return false;
  row->ranks = ranks;
  row->budget_bytes = q->budgets[budget];
  if (!rank_rows_solve (c, &q->all, most_ns, row))
    return false;
  node_row *made = &q->rows[q->n_rows];
  *made = rank_rows_node (row);
  *fits = node_fits (&q->facts, &q->asked, made);
  if (!*fits && made->step_ns >= 0 && made->step_ns <= most_ns) { /* others may pin less */
    if (!rank_rows_solve (c, &q->all, most_ns, row))
      return false;
    *made = rank_rows_node (row);
    *fits = node_fits (&q->facts, &q->asked, made);
  }
  if (*fits)
    q->chosen = (chosen){ row, q->n_rows };
  offline_progress (c, ++q->n_rows, 0, made->step_ns);
  return true;
}

/* The row that is the answer, with the fastest plans there. */
static bool finish_row (call *c, trying *q) {
  rank_row *row = q->chosen.row;
  if (!row || stopping_due (c))
    return true;
  if (!rank_rows_solve (c, &q->all, node_most_ns (&q->facts, &q->asked), row))
    return false;
  node_row faster = rank_rows_node (row);
  if (node_fits (&q->facts, &q->asked, &faster))
    q->rows[q->chosen.at] = faster;
  return true;
}

/* The least budget in which these ranks fit, by halving: in the most they do. */
static bool find_least (call *c, trying *q, int32_t ranks) {
  int32_t none = -1, good = q->n_budgets - 1;
  while (good - none > 1 && !stopping_due (c)) {
    int32_t at = none + (good - none) / 2;
    bool fits;
    if (!try_row (c, q, ranks, at, &fits))
      return false;
    *(fits ? &good : &none) = at;
  }
  return finish_row (c, q);
}

/* From all cards down, in all that a card has, until they fit. */
static bool find_ranks (call *c, trying *q) {
  int32_t most = q->asked.ranks ? q->asked.ranks : q->all.host.n_cards;
  int32_t least = q->asked.ranks ? q->asked.ranks : 1;
  for (int32_t n = most; n >= least && !stopping_due (c); n--) {
    bool fits;
    if (!try_row (c, q, n, q->n_budgets - 1, &fits))
      return false;
    if (fits)
      return find_least (c, q, n);
  }
  return true;
}

/* ---- answers ---- */

static const column heads[] = {
  { "ranks", 0, false }, { "budget", 0, false }, { "step", 0, false }, { "slower", 1, false },
  { "bound", 3, false }, { "pinned", 2, false }, { "fits", 4, true },
};

static bool add_row (columns *table, const trying *q, const node_row *row) {
  columns_put (table, "%d", row->ranks);
  columns_bytes (table, row->budget_bytes);
  if (row->step_ns < 0)
    return columns_end_with (table, "%s", row->why);
  columns_time (table, row->step_ns);
  columns_put (table, "%+.1f %%", offline_slower (row->step_ns, q->facts.baseline_ns));
  columns_time (table, row->bound_ns);
  columns_bytes (table, row->pinned_bytes);
  columns_put (table, node_fits (&q->facts, &q->asked, row) ? "yes" : "no");
  return columns_end (table);
}

static bool print_rows (call *c, const trying *q) {
  columns *table = COLUMNS (c, heads);
  for (int32_t i = 0; table && i < q->n_rows; i++)
    if (!add_row (table, q, &q->rows[i]))
      return false;
  return columns_print (table);
}

void node_print (const node_facts *f, const node_question *q, const node_answer *a) {
  char budget[UNITS_TEXT], host[UNITS_TEXT], has[UNITS_TEXT], step[UNITS_TEXT];
  const node_row *row = a->row;
  if (!row)
    return;
  printf ("\n%d of %d ranks fit %s: %s of each card, %s of the host's %s", row->ranks,
          q->ranks ? q->ranks : f->cards, f->host,
          units_bytes (budget, row->budget_bytes + f->reserved_bytes),
          units_bytes (host, node_host_bytes (q, row)), units_bytes (has, f->host_bytes));
  printf ("; a step of all together takes %s, %+.1f %%, at least %+.1f %%\n",
          units_time (step, row->step_ns), offline_slower (row->step_ns, f->baseline_ns),
          offline_slower (row->bound_ns, f->baseline_ns));
}

bool node_advise (call *c, bool shows, bytes *out) {
  trying *q = NEW (c->arena, 1, trying, &c->err);
  json_writer w;
  if (!q || !rank_rows_read (c, &q->all) || !node_asked (c, &q->asked) ||
      (q->asked.ranks && !host_has (c, &q->all.host, q->asked.ranks)) || !read_budgets (c, q))
    return false;
  node_answer found;
  q->facts = rank_rows_facts (&q->all);
  if (!find_ranks (c, q))
    return false;
  node_choose (&q->facts, &q->asked, q->rows, q->n_rows, &found);
  if (shows && !print_rows (c, q))
    return false;
  if (shows)
    node_print (&q->facts, &q->asked, &found);
  json_begin (&w, 2);
  node_answer_write (&w, &q->facts, &q->asked, &found,
                     &(node_source){ .rows = q->rows, .n_rows = q->n_rows });
  return json_finish (&w, out, &c->err);
}
