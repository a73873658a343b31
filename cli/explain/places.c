/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/explain/places.h"

#include "base/units.h"
#include "trace/simulate/lost.h"
#include "trace/unit.h"

typedef struct looking {
  const trace *t;
  const plan *p;
  const timeline *line;
  units u;
  int64_t *born_bytes; /* per op: granules that are there from its start on */
} looking;

static bool look (call *c, const sim_job *job, const timeline *line, looking *x) {
  const placement *pl = &job->plan->placement;
  *x = (looking){ .t = job->rewritten->trace, .p = job->plan, .line = line };
  if (!units_of (x->t, x->p->groups, x->p->n_groups, pl->granule_bytes, pl->pool_below_bytes,
                 c->arena, &x->u, &c->err))
    return false;
  if (!ALLOC (c->arena, x->born_bytes, x->t->n_ops, &c->err))
    return false;
  for (int32_t i = 0; i < pl->n_stays; i++) {
    const stay *s = &pl->stays[i];
    int32_t unit = s->kind == STAY_GROUP ? x->t->n_tensors + s->index : s->index;
    if (s->kind == STAY_WORKSPACE)
      x->born_bytes[s->index] += stay_granules (pl, s) * pl->granule_bytes;
    else if (s->kind != STAY_MOVE && !x->u.at[unit].persistent)
      x->born_bytes[x->u.at[unit].first] += stay_granules (pl, s) * pl->granule_bytes;
  }
  return true;
}

/* In [from, to), how long that many bytes more would have fitted. What the timeline says of a step
   repeats. */
static int64_t fitted_ns (const looking *x, int64_t from_ns, int64_t to_ns, int64_t bytes) {
  const timeline *l = x->line;
  int64_t most = x->p->budget_bytes, sum = 0;
  for (int turn = -1; turn <= 1; turn++)
    for (int32_t i = 0; i < l->n_memory; i++) {
      int64_t zero = turn * l->period_ns;
      int64_t low = zero + l->memory[i].at_ns;
      int64_t high = zero + (i + 1 < l->n_memory ? l->memory[i + 1].at_ns : l->period_ns);
      low = low > from_ns ? low : from_ns;
      high = high < to_ns ? high : to_ns;
      if (high > low && l->memory[i].bytes + bytes <= most)
        sum += high - low;
    }
  return sum;
}

bool places_of (call *c, const sim_job *job, const timeline *line, const wait *waits,
                int32_t n_waits, int64_t peak_bytes, places_told *out) {
  const placement *pl = &job->plan->placement;
  int64_t live_bytes;
  looking x;
  *out = (places_told){ .kind = pl->kind, .granule_bytes = pl->granule_bytes };
  if (!look (c, job, line, &x))
    return false;
  if (!lost_live (job, line, c->arena, &live_bytes, &c->err))
    return false;
  out->rounding_bytes = line->peak_bytes - live_bytes;
  out->lost_bytes = peak_bytes - live_bytes;
  for (int32_t i = 0; i < n_waits; i++) {
    int64_t start_ns = line->ops[waits[i].op].start_ns;
    if (waits[i].by_out)
      out->waited_ns += fitted_ns (&x, start_ns - waits[i].ns, start_ns, x.born_bytes[waits[i].op]);
  }
  return true;
}

void places_print (const places_told *x) {
  char granule[UNITS_TEXT], lost[UNITS_TEXT], waited[UNITS_TEXT];
  bool one = x->kind == PLACEMENT_ARENA;
  if (one)
    printf ("\nplaces: one arena loses %s beside the bytes that live at its peak",
            units_bytes (lost, x->lost_bytes));
  else
    printf ("\nplaces: granules of %s lose %s to rounding at the peak",
            units_bytes (granule, x->granule_bytes), units_bytes (lost, x->rounding_bytes));
  if (x->waited_ns)
    printf ("; ops wait %s for %s while as many others are free", units_time (waited, x->waited_ns),
            one ? "bytes" : "granules");
  puts ("");
}

void places_put (json_writer *w, const places_told *x) {
  json_add_object (w, "places");
  json_add_int (w, "granule_bytes", x->granule_bytes);
  json_add_text (w, "kind", placement_names[x->kind]);
  json_add_int (w, "lost_bytes", x->lost_bytes);
  json_add_int (w, "rounding_bytes", x->rounding_bytes);
  json_add_int (w, "wait_ns", x->waited_ns);
  json_close_object (w);
}
