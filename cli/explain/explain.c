/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry explain`: a plan in words: the peak and who holds it, which op waits for which copy and
   why, what crosses the link, and what more memory or a faster link would buy. */
#include <stdlib.h>

#include "base/order.h"
#include "base/units.h"
#include "cli/explain/closing.h"
#include "cli/explain/cuts.h"
#include "cli/explain/drops.h"
#include "cli/explain/order.h"
#include "cli/explain/places.h"
#include "cli/explain/prices.h"
#include "cli/inputs/inputs.h"
#include "cli/figures/pictures.h"
#include "trace/check/check.h"
#include "trace/rewrite/order.h"
#include "trace/simulate/simulate.h"
#include "trace/simulate/waits.h"

enum { SHOWN = 6, NAME = 48 };

/* The traffic of one unit in a step. */
typedef struct crossing {
  int32_t unit, copies_out, copies_in, times; /* times: different idle times that are used */
  int64_t out_bytes, in_bytes;
} crossing;

/* The contents of the device at the peak. */
typedef struct holder {
  int32_t unit; /* or an op, where it is its workspace */
  bool workspace;
  int64_t bytes;
} holder;

typedef struct told {
  const trace *original, *ordered, *trace; /* as given, in the plan's order, and rewritten */
  plan *plan;
  rewritten rewritten;
  predicted cost;
  timeline line;
  holder *holders;
  int32_t n_holders;
  wait *waits; /* the longest first */
  int32_t n_waits;
  int64_t waited_ns;
  crossing *crossings; /* the most bytes first */
  int32_t n_crossings;
  order_told order;
  cuts_told cuts;
  dropped_list drops;
  places_told places;
  prices prices;
  closing end;
} told;

/* ---- names ---- */

static const char *op_text (const told *t, int32_t op, char text[NAME + 24]) {
  const char *name = t->trace->ops[op].name;
  snprintf (text, NAME + 24, name && *name ? "op %d (%.*s)" : "op %d", op, NAME, name);
  return text;
}

static const char *unit_text (const told *t, int32_t unit, char text[NAME + 32]) {
  int32_t group = unit - t->trace->n_tensors;
  int32_t x = group < 0 ? unit : t->plan->groups[group].at[0];
  const char *name = t->trace->tensors[x].name;
  char bare[24];
  snprintf (bare, sizeof bare, "tensor %d", x);
  if (group < 0)
    snprintf (text, NAME + 32, "%.*s", NAME, name && *name ? name : bare);
  else
    snprintf (text, NAME + 32, "%.*s and %d more", NAME, name && *name ? name : bare,
              t->plan->groups[group].count - 1);
  return text;
}

/* ---- figures ---- */

static int longest_first (const void *a, const void *b) {
  const wait *x = a, *y = b;
  return ORDER (y->ns, x->ns) ?: ORDER (x->op, y->op);
}

static int most_first (const void *a, const void *b) {
  const crossing *x = a, *y = b;
  int64_t p = x->out_bytes + x->in_bytes, q = y->out_bytes + y->in_bytes;
  return ORDER (q, p) ?: ORDER (x->unit, y->unit);
}

static int largest_first (const void *a, const void *b) {
  const holder *x = a, *y = b;
  return ORDER (y->bytes, x->bytes) ?: ORDER (x->workspace, y->workspace)
         ?: ORDER (x->unit, y->unit);
}

static bool count_crossings (call *c, told *t) {
  const plan *p = t->plan;
  units u;
  if (!units_of (t->trace, p->groups, p->n_groups, p->placement.granule_bytes,
                 p->placement.pool_below_bytes, c->arena, &u, &c->err))
    return false;
  if (!ALLOC (c->arena, t->crossings, u.count, &c->err))
    return false;
  for (int32_t i = 0; i < u.count; i++)
    t->crossings[i].unit = i;
  for (int32_t i = 0; i < p->n_moves; i++) {
    const move *m = &p->moves[i];
    crossing *x = &t->crossings[m->unit];
    int64_t bytes = unit_part_bytes (&u.at[m->unit], p->placement.granule_bytes, m->part, m->of);
    x->in_bytes += bytes;
    x->copies_in++;
    x->out_bytes += m->clean ? 0 : bytes;
    x->copies_out += !m->clean;
    x->times += m->part == 0;
  }
  qsort (t->crossings, (size_t)u.count, sizeof *t->crossings, most_first);
  while (t->n_crossings < u.count && t->crossings[t->n_crossings].copies_in)
    t->n_crossings++;
  return true;
}

static int32_t stay_unit (const told *t, const stay *s) {
  return s->kind == STAY_MOVE    ? t->plan->moves[s->index].unit
         : s->kind == STAY_GROUP ? t->trace->n_tensors + s->index
                                 : s->index;
}

/* The holders of the peak, parts of one unit together, the most bytes first. */
static bool find_holders (call *c, told *t) {
  const placement *pl = &t->plan->placement;
  t->holders = NEW (c->arena, t->line.n_holders, holder, &c->err);
  int32_t *place =
      NEW (c->arena, (int64_t)t->trace->n_tensors + t->plan->n_groups, int32_t, &c->err);
  if (!t->holders || !place)
    return false;
  for (int32_t i = 0; i < t->line.n_holders; i++) {
    const stay *s = &pl->stays[t->line.holders[i]];
    bool work = s->kind == STAY_WORKSPACE;
    int32_t unit = stay_unit (t, s);
    if (work || !place[unit]) {
      t->holders[t->n_holders++] = (holder){ .unit = unit, .workspace = work };
      if (!work)
        place[unit] = t->n_holders;
    }
    t->holders[work ? t->n_holders - 1 : place[unit] - 1].bytes +=
        stay_granules (pl, s) * pl->granule_bytes;
  }
  qsort (t->holders, (size_t)t->n_holders, sizeof *t->holders, largest_first);
  return true;
}

static bool find_all (call *c, told *t) {
  sim_job job = { t->original, &t->rewritten, t->plan };
  sim_options o = { .timeline_arena = c->arena };
  if (!simulate (&job, 1, &o, c->arena, &t->cost, &t->line, &c->err) ||
      !waits_of (&job, &t->line, c->arena, &t->waits, &t->n_waits, &c->err) ||
      !count_crossings (c, t) || !find_holders (c, t) ||
      !order_of (c, t->original, t->plan, &t->order) ||
      !cuts_of (c, t->ordered, t->plan, &t->cuts) ||
      !dropped_of (c, t->original, t->plan, &t->drops) ||
      !places_of (c, &job, &t->line, t->waits, t->n_waits, t->cost.peak_bytes, &t->places))
    return false;
  for (int32_t i = 0; i < t->n_waits; i++)
    t->waited_ns += t->waits[i].ns;
  qsort (t->waits, (size_t)t->n_waits, sizeof *t->waits, longest_first);
  return prices_find (c, t->plan, t->trace, &t->prices);
}

/* ---- in words ---- */

/* The op that runs at a moment, or the last one before it. */
static int32_t op_at (const told *t, int64_t at_ns) {
  int32_t op = 0;
  for (int32_t k = 0; k < t->trace->n_ops; k++)
    if (t->line.ops[k].start_ns <= at_ns)
      op = k;
  return op;
}

static void tell_peak (const told *t) {
  char peak[UNITS_TEXT], budget[UNITS_TEXT], at[UNITS_TEXT], bytes[UNITS_TEXT];
  char op[NAME + 24], unit[NAME + 32];
  printf ("it takes %s of %s; fullest %s into the step, at %s: %s, held by\n",
          units_bytes (peak, t->cost.peak_bytes), units_bytes (budget, t->plan->budget_bytes),
          units_time (at, t->line.peak_ns), op_text (t, op_at (t, t->line.peak_ns), op),
          units_bytes (bytes, t->line.peak_bytes));
  int64_t small_bytes =
      units_div_up (t->plan->placement.pool_bytes, t->plan->placement.granule_bytes) *
      t->plan->placement.granule_bytes;
  int64_t rest_bytes = t->line.peak_bytes - small_bytes;
  for (int32_t i = 0; i < t->n_holders && i < SHOWN; i++) {
    const holder *h = &t->holders[i];
    printf ("  %10s  %s%s\n", units_bytes (bytes, h->bytes), h->workspace ? "workspace of " : "",
            h->workspace ? op_text (t, h->unit, op) : unit_text (t, h->unit, unit));
    rest_bytes -= h->bytes;
  }
  if (t->n_holders > SHOWN)
    printf ("  %10s  in %d more\n", units_bytes (bytes, rest_bytes), t->n_holders - SHOWN);
  if (small_bytes)
    printf ("  %10s  of tensors too small to move\n", units_bytes (bytes, small_bytes));
}

/* Why the copy, or the first of those right before it, did not start earlier. */
static void tell_cause (const told *t, const wait *w) {
  char op[NAME + 24], other[NAME + 32];
  switch (w->cause) {
  case COPY_link:
    printf ("the link never rests");
    break;
  case COPY_op:
    printf (w->by_out ? "after its last use, %s" : "as %s made room", op_text (t, w->cause_op, op));
    break;
  case COPY_out:
    printf ("as %s had left", unit_text (t, t->plan->moves[w->cause_move].unit, other));
    break;
  case COPY_free:
    printf ("as soon as it may");
    break;
  }
}

static void tell_wait (const told *t, const wait *w) {
  char ns[UNITS_TEXT], op[NAME + 24], unit[NAME + 32];
  printf ("  %10s  %s ", units_time (ns, w->ns), op_text (t, w->op, op));
  if (w->move < 0) {
    printf ("waits; this step is unlike the one before, so no copy is named\n");
    return;
  }
  unit_text (t, t->plan->moves[w->move].unit, unit);
  printf (w->by_out ? "needs the room that %s leaves\n" : "waits for %s to be back\n", unit);
  printf ("  %10s  its copy %s ", "", w->by_out ? "out" : "in");
  if (w->behind > 0)
    printf ("stands behind %d other%s without a pause; the first began ", w->behind,
            w->behind > 1 ? "s" : "");
  else
    printf ("began ");
  tell_cause (t, w);
  putchar ('\n');
}

static void tell_waits (const told *t) {
  char all[UNITS_TEXT], rest[UNITS_TEXT];
  int64_t left_ns = t->waited_ns;
  if (!t->n_waits) {
    printf ("\nno op waits for a copy\n");
    return;
  }
  printf ("\nwaits %s in all, at %d of %d ops; the longest\n", units_time (all, t->waited_ns),
          t->n_waits, t->trace->n_ops);
  for (int32_t i = 0; i < t->n_waits && i < SHOWN; i++) {
    tell_wait (t, &t->waits[i]);
    left_ns -= t->waits[i].ns;
  }
  if (t->n_waits > SHOWN)
    printf ("  %10s  at %d more\n", units_time (rest, left_ns), t->n_waits - SHOWN);
}

static void tell_crossings (const told *t) {
  char out[UNITS_TEXT], in[UNITS_TEXT], unit[NAME + 32];
  if (!t->n_crossings) {
    printf ("\nnothing crosses the link\n");
    return;
  }
  printf ("\nacross the link in a step: %s out and %s in, of %d tensors or groups; the most\n",
          units_bytes (out, t->cost.d2h_bytes), units_bytes (in, t->cost.h2d_bytes),
          t->n_crossings);
  for (int32_t i = 0; i < t->n_crossings && i < SHOWN; i++) {
    const crossing *x = &t->crossings[i];
    printf ("  %10s  out and %s in of %s, in %d and %d copies\n", units_bytes (out, x->out_bytes),
            units_bytes (in, x->in_bytes), unit_text (t, x->unit, unit), x->copies_out,
            x->copies_in);
  }
}

/* A plan without a certificate gets the bound that was found here, of plans cut as it is. */
static bool find_closing (call *c, told *t) {
  plan *p = t->plan;
  p->predicted = t->cost;
  if (!p->has_certificate) {
    p->has_certificate = true;
    p->certificate = (certificate){ .lower_bound_ns = t->prices.now_ns,
                                    .has_cover = true,
                                    .cover = t->trace == t->original ? cover_swaps : cover_given };
  }
  return closing_of_plan (t->original, p, &t->end, &c->err);
}

/* ---- JSON ---- */

static void put_waits (json_writer *w, const told *t) {
  static const char *const causes[] = { "link", "op", "out", "unknown" };
  json_add_array (w, "waits");
  for (int32_t i = 0; i < t->n_waits; i++) {
    const wait *at = &t->waits[i];
    json_open_object (w);
    json_add_int (w, "behind", at->behind);
    json_add_bool (w, "by_out", at->by_out);
    json_add_text (w, "cause", causes[at->cause]);
    json_add_int (w, "cause_move", at->cause_move);
    json_add_int (w, "cause_op", at->cause_op);
    json_add_int (w, "move", at->move);
    json_add_int (w, "ns", at->ns);
    json_add_int (w, "op", at->op);
    json_close_object (w);
  }
  json_close_array (w);
}

static void put_crossings (json_writer *w, const told *t) {
  json_add_array (w, "crossings");
  for (int32_t i = 0; i < t->n_crossings; i++) {
    const crossing *x = &t->crossings[i];
    json_open_object (w);
    json_add_int (w, "copies_in", x->copies_in);
    json_add_int (w, "copies_out", x->copies_out);
    json_add_int (w, "d2h_bytes", x->out_bytes);
    json_add_int (w, "h2d_bytes", x->in_bytes);
    json_add_int (w, "times", x->times);
    json_add_int (w, "unit", x->unit);
    json_close_object (w);
  }
  json_close_array (w);
}

static bool print_json (call *c, const told *t) {
  json_writer w;
  json_begin_object (&w, 2);
  prices_put_bounds (&w, &t->prices);
  put_crossings (&w, t);
  dropped_put (&w, &t->drops);
  json_add_fixed (&w, "gap",
                  t->plan->certificate.lower_bound_ns > 0
                      ? (double)t->cost.step_ns / (double)t->plan->certificate.lower_bound_ns - 1
                      : 0,
                  6);
  order_put (&w, &t->order);
  closing_put (&w, &t->end);
  json_add_object (&w, "peak");
  json_add_int (&w, "at_ns", t->line.peak_ns);
  json_add_int (&w, "bytes", t->line.peak_bytes);
  json_add_int (&w, "op", op_at (t, t->line.peak_ns));
  json_close_object (&w);
  places_put (&w, &t->places);
  predicted_write (&w, "predicted", &t->cost);
  prices_put (&w, &t->prices);
  cuts_put (&w, &t->cuts);
  json_add_int (&w, "waited_ns", t->waited_ns);
  put_waits (&w, t);
  json_close_object (&w);
  return call_print_json (c, &w);
}

static int run (call *c) {
  told t = { 0 };
  int32_t *order;
  trace *original = call_trace (c, c->operands[0]);
  t.plan = original ? call_plan (c, c->operands[1]) : NULL;
  if (!t.plan)
    return call_failed (c);
  if (!check_plan (original, t.plan, c->arena, NULL, &c->err) ||
      !trace_reorder (original, t.plan->order, t.plan->n_order, c->arena, &t.ordered, &order,
                      &c->err) ||
      !plan_rewrite (original, t.plan, c->arena, &t.rewritten, &c->err)) {
    error_in_file (&c->err, c->operands[1]);
    return call_failed (c);
  }
  t.original = original;
  t.trace = t.rewritten.trace;
  if (!find_all (c, &t) || !find_closing (c, &t) || (c->json && !print_json (c, &t)))
    return call_failed (c);
  if (c->json)
    return EXIT_YES;
  sim_job job = { original, &t.rewritten, t.plan };
  if (!picture_step (c, &job, &t.line))
    return call_failed (c);
  putchar ('\n');
  tell_peak (&t);
  tell_waits (&t);
  places_print (&t.places);
  tell_crossings (&t);
  order_print (&t.order);
  cuts_print (&t.cuts);
  dropped_print (&t.drops);
  prices_print (&t.prices);
  closing_print (stdout, &t.end);
  return EXIT_YES;
}

const cli_command command_explain = {
  .name = "explain",
  .says = "say why a plan costs what it costs",
  .operands = "TRACE PLAN",
  .least = 2,
  .most = 2,
  .about =
      "Describes a plan, with a picture of one step: where the peak is and who holds it; which "
      "ops wait, for which copy, and what held that copy up; which tensors cross the link, how "
      "often, with how many bytes; what is dropped and made again, and at what cost; and what one "
      "more GiB, or one more GB/s each way, would take off the bound: at most, by the dual prices "
      "of the certified program, and by the difference to a second certified bound. What the best "
      "plans gain lies near it, and is not promised.\n",
  .json = true,
  .draws = true,
  .run = run,
};
