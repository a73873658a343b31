/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/flow/bound.h"

#include <assert.h>
#include <math.h>
#include <string.h>

int64_t bound_crossing (const gaps *g, const device *dev, int32_t *op) {
  assert (g->n_ops > 0 || g->count == 0);
  int64_t most = 0;
  *op = 0;
  for (int32_t k = 0; k < g->n_ops; k++) {
    int64_t bytes = g->base_bytes[k] - g->unused_bytes - g->room_bytes - g->slack_bytes[k];
    if (bytes > most) {
      most = bytes;
      *op = k;
    }
  }
  int64_t rate = device_rates (&dev->link, dev->share_ppm).in_alone;
  __int128 ns = (__int128)most * 1000000000 / rate;
  return ns > INT64_MAX / 4 ? INT64_MAX / 4 : (int64_t)ns;
}

/* ---- solving ---- */

typedef struct state {
  const gaps *g;
  const bound_options *o;
  arena *a; /* the caller's: what is kept */
  bound *out;
  bool stopped;
  bool settled; /* the last round's program had one class, so it is the last program itself */
} state;

/* The last op at which most is resident. Good plans make nothing again before it; a program that
   may has that much more time for copies. */
static int32_t peak_of (const gaps *g) {
  int32_t peak = 0;
  for (int32_t k = 0; k < g->n_ops; k++)
    if (!gaps_is_loose (g, k) && g->base_bytes[k] >= g->base_bytes[peak])
      peak = k;
  return peak;
}

flow_options bound_flow (const gaps *g, const bound_options *o, int classes, int64_t eps_ppm) {
  assert (classes > 0 && eps_ppm >= 0);
  return (flow_options){ .dev = o->dev,
                         .host_bytes = o->host_bytes,
                         .classes = classes,
                         .latency = !o->any_units,
                         .drops = o->drops,
                         .again = o->again,
                         .fresh = o->fresh,
                         .peak = o->drops == DROPS_ALLOWED && !g->seam ? peak_of (g) : 0,
                         .eps_ppm = eps_ppm };
}

bool bound_program (const flow *f, const bound_options *how, arena *scratch, ilp_result *r,
                    bound_stats *stats, error *err) {
  assert (f->n_rows >= 0 && f->n_columns >= 0 && r);
  const tuning *by = how->tuning;
  ilp_problem p;
  ilp_options o = {
    .method = ILP_INTERIOR, .log = how->log, .stop = how->stop, .stop_context = how->stop_context
  };
  if (!flow_problem (f, scratch, &p, err) ||
      !solved_or_solve (how->solved, &p, &o, scratch, r, err))
    return false;
  stats->solves++;
  stats->ticks += r->work;
  if (r->status == ILP_OPTIMAL || r->status == ILP_STOPPED ||
      f->n_rows > tuned (by, TUNE_flow_small_rows))
    return true;
  stats->failures++;
  o.method = ILP_SIMPLEX;
  o.limit_ms = (int)tuned (by, TUNE_flow_simplex_ms);
  o.limit_ticks = tuned (by, TUNE_flow_simplex_ticks);
  ilp_result again;
  stats->solves++;
  if (!ilp_solve (&p, &o, scratch, &again, err))
    return false;
  stats->ticks += again.work;
  if (again.status == ILP_OPTIMAL)
    *r = again;
  return true;
}

static bool solve (state *s, const flow *f, arena *scratch, ilp_result *r, error *err) {
  if (!bound_program (f, s->o, scratch, r, &s->out->stats, err))
    return false;
  s->stopped |= r->status == ILP_STOPPED;
  return true;
}

bool bound_prove (const flow *f, const double *y, arena *scratch, int64_t *duals, int64_t *stall_ns,
                  error *err) {
  assert (y && duals && stall_ns);
  static const int bits[] = { DUAL_BITS, 24, 20, 16, 12 };
  int64_t *tried = NEW (scratch, f->n_rows, int64_t, err);
  *stall_ns = -1;
  if (!tried)
    return false;
  for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
    int64_t ns;
    bound_duals (f, y, bits[i], tried);
    if (bound_exact (f, tried, &ns) && ns > *stall_ns) {
      *stall_ns = ns;
      memcpy (duals, tried, (size_t)f->n_rows * sizeof *duals);
    }
  }
  return true;
}

static bool keep (state *s, const flow *f, const ilp_result *r, arena *scratch, error *err) {
  int64_t stall_ns, *duals = NEW (scratch, f->n_rows, int64_t, err);
  bound *b = s->out;
  if (!duals || !bound_prove (f, r->y, scratch, duals, &stall_ns, err))
    return false;
  double ns =
      ldexp (r->value, FLOW_UNIT_BITS - f->link.shift) * 1e9 / (double)f->link.rates.out_alone;
  b->stats.slots = f->n_slots;
  b->stats.rows = f->n_rows;
  b->stats.columns = f->n_columns;
  b->stats.entries = f->n_entries;
  b->stats.value_ns = (double)b->compute_ns + ns;
  log_say (s->o->log, LOG_PROGRESS, "bound: %d slots, %d rows, %s, program %.6g s, proved %.6g s",
           f->n_slots, f->n_rows, ilp_status_name (r->status), b->stats.value_ns / 1e9,
           (double)(b->compute_ns + stall_ns) / 1e9);
  if (stall_ns < 0 || b->compute_ns + stall_ns <= b->lower_bound_ns)
    return true;
  b->lower_bound_ns = b->compute_ns + stall_ns;
  b->by = "flow-lp";
  if (s->o->any_units && !f->drops)
    b->prices = bound_prices_of (f, duals, stall_ns);
  if (s->o->keep_proof &&
      !(b->proof = bound_proof (f, duals, s->o->any_units, s->o->again, s->a, err)))
    return false;
  return true;
}

/* Somebody wants it to end, or knows enough. */
static bool is_over (const state *s) {
  return s->stopped || (s->o->beat_ns && s->out->lower_bound_ns >= s->o->beat_ns);
}

/* ---- refinement ---- */

/* How wrong each run looks: memory that it left out, bytes that leave or return inside it, and
   traffic both ways in one stall, which a finer cut could forbid. */
static bool scores (const flow *f, const double *x, arena *a, double *score, error *err) {
  const gaps *g = f->source;
  int32_t S = f->n_slots;
  double *sum[COLUMN_KINDS];
  for (int k = 0; k < COLUMN_KINDS; k++)
    if (!(sum[k] = NEW (a, S, double, err)))
      return false;
  for (int32_t c = 0; c < f->n_columns && f->column_kind[c] < COLUMN_gap_out; c++)
    if (f->column_kind[c] < COLUMN_stall)
      sum[f->column_kind[c]][f->column_at[c] / f->n_classes] += ldexp (x[c], FLOW_UNIT_BITS);
  for (int32_t j = 0; j < S; j++) {
    score[j] = 0;
    if (!slots_can_split (f->slots, j))
      continue;
    int32_t last = j ? j - 1 : S - 1;
    int64_t need = 0;
    for (int32_t k = f->slots->first[j]; k < f->slots->first[j + 1]; k++) {
      int64_t over = g->base_bytes[k] - g->unused_bytes - g->room_bytes;
      need = over > need ? over : need;
    }
    double host = fmax (sum[COLUMN_host][last], sum[COLUMN_host][j]);
    double out = sum[COLUMN_stall_out][j] + sum[COLUMN_work_out][j];
    double in = sum[COLUMN_stall_in][j] + sum[COLUMN_work_in][j];
    score[j] += fmax (0, (double)flow_grains_down (&f->link, need) - host);
    score[j] += fmax (0, out - sum[COLUMN_pending][last]) + fmax (0, in - sum[COLUMN_early][j]);
    score[j] += fmin (sum[COLUMN_stall_out][j], sum[COLUMN_stall_in][j]);
    if (score[j] < 1e-6 * ldexp (1, GRAIN_BITS) / S)
      score[j] = 0;
  }
  return true;
}

/* One round of the refinement: build, solve, prove, and cut what looks wrong. *go_on is false where
   nothing is left to do. */
static bool refine_once (state *s, slots *now, arena *slot_arena, int *idle_rounds, bool *go_on,
                         error *err) {
  int64_t before_ns = s->out->lower_bound_ns;
  int32_t most_rows = s->o->limit_rows ? s->o->limit_rows : 20000;
  flow_options fo = bound_flow (s->g, s->o, s->o->classes == 1 ? 1 : 2, 0);
  flow f;
  ilp_result r;
  bool ok = false;
  *go_on = false;
  arena *scratch = arena_made (err);
  if (!scratch)
    return false;
  if (!flow_build (s->g, now, &fo, scratch, &f, err) || !solve (s, &f, scratch, &r, err) ||
      !keep (s, &f, &r, scratch, err))
    goto out;
  double *score = NEW (scratch, f.n_slots, double, err);
  if (!score || !scores (&f, r.x, scratch, score, err))
    goto out;
  ok = true;
  s->out->stats.rounds++;
  double gain = (double)(s->out->lower_bound_ns - before_ns) / (double)s->out->lower_bound_ns;
  const tuning *by = s->o->tuning;
  *idle_rounds = gain < (double)tuned (by, TUNE_flow_idle_ppm) / 1e6 ? *idle_rounds + 1 : 0;
  int32_t runs = 0;
  for (int32_t j = 0; j < f.n_slots; j++)
    runs += score[j] > 0;
  if (runs && *idle_rounds < tuned (by, TUNE_flow_idle_rounds) && f.n_rows < most_rows) {
    slots finer;
    int64_t cut_ppm = tuned (by, TUNE_flow_split_ppm); /* rounded up */
    int32_t cut = (int32_t)(((int64_t)runs * cut_ppm + 999999) / 1000000);
    error split = { 0 };
    *go_on = slots_split (s->g, now, score, cut, slot_arena, &finer, &split);
    if (*go_on)
      *now = finer;
    else if (split.code != ERR_none)
      ok = error_set (err, split.code, "%s", split.text);
  }
  s->settled = f.n_classes == 1 && !*go_on;
out:
  if (arena_peak_bytes (scratch) > s->out->stats.peak_bytes)
    s->out->stats.peak_bytes = arena_peak_bytes (scratch);
  arena_free (scratch);
  return ok;
}

/* If tensors are few, memory before the peak may tell more than when things are made again. */
static bool prove_without_peak (state *s, const slots *now, arena *scratch, error *err) {
  enum { FEW_OPS = 200 };
  arena_mark here = arena_here (scratch);
  flow_options fo = bound_flow (s->g, s->o, s->o->classes ? s->o->classes : 3, 0);
  flow f;
  ilp_result r;
  if (!fo.peak || s->g->n_ops > FEW_OPS || is_over (s) || s->o->shares_only)
    return true;
  fo.peak = 0;
  bool ok = flow_build (s->g, now, &fo, scratch, &f, err) && solve (s, &f, scratch, &r, err) &&
            keep (s, &f, &r, scratch, err);
  arena_back (scratch, here);
  return ok;
}

/* The last program, with classes: once for the bound, once with a price on every byte for the plan.
 */
static bool finish_up (state *s, const slots *now, error *err) {
  bool ok = false;
  arena *scratch = arena_made (err);
  if (!scratch)
    return false;
  int64_t last_ppm = s->o->bound_only ? 0 : 1000;
  for (int64_t eps_ppm = s->o->shares_only ? 1000 : 0; eps_ppm <= last_ppm && !is_over (s);
       eps_ppm += 1000) {
    flow_options fo = bound_flow (s->g, s->o, s->o->classes ? s->o->classes : 3, eps_ppm);
    arena_mark here = arena_here (scratch);
    flow f;
    ilp_result r;
    bool known = !eps_ppm && s->settled, last = eps_ppm > 0;
    int64_t before = s->out->stats.ticks;
    if ((!known || s->o->program) && !flow_build (s->g, now, &fo, scratch, &f, err))
      goto out;
    if (!known && !solve (s, &f, scratch, &r, err))
      goto out;
    if (!eps_ppm && !known && !keep (s, &f, &r, scratch, err))
      goto out;
    if (!eps_ppm && s->o->program && !flow_write_lp (&f, s->o->program, err))
      goto out;
    if (!known && s->o->dear_ticks && s->out->stats.ticks - before >= s->o->dear_ticks)
      last = true;
    /* even if the solver lost its footing at the end: its last point is a guide all the same */
    if (last)
      bound_shares (&f, r.x, s->out->share, s->out->dropped);
    arena_back (scratch, here);
    if (last)
      break;
  }
  ok = prove_without_peak (s, now, scratch, err);
out:
  if (arena_peak_bytes (scratch) > s->out->stats.peak_bytes)
    s->out->stats.peak_bytes = arena_peak_bytes (scratch);
  arena_free (scratch);
  return ok;
}

static bool cheap_bounds (state *s, error *err) {
  bound *b = s->out;
  int32_t op;
  int64_t crossing_ns = bound_crossing (s->g, s->o->dev, &op);
  bool crossing = !s->o->drops && crossing_ns > b->compute_ns;
  b->by = crossing ? "crossing" : "compute";
  b->lower_bound_ns = crossing ? crossing_ns : b->compute_ns;
  if (crossing)
    b->prices = (bound_prices){
      .memory_ns = 1e9 / (double)device_rates (&s->o->dev->link, s->o->dev->share_ppm).in_alone,
      .link_ns = (double)crossing_ns,
    };
  if (!s->o->keep_proof)
    return true;
  b->proof = bound_cheap_proof (b->by, crossing ? op : NO_OP, s->o->any_units, s->o->drops,
                                s->g->loosened, s->a, err);
  return b->proof;
}

/* Bytes over the budget must be somewhere. */
static bool host_can_hold (const gaps *g, const bound_options *o, int32_t op, int64_t over,
                           error *err) {
  int64_t away_bytes = over - g->slack_bytes[op];
  if (o->drops || away_bytes <= o->host_bytes)
    return true;
  return error_set (err, ERR_infeasible,
                    "at op %d the host has to hold %lld bytes, of its %lld that may be used", op,
                    (long long)away_bytes, (long long)o->host_bytes);
}

/* The slots of the last program, in their own arena; refined where ops are many. */
static bool refine (state *s, arena *slot_arena, slots *now, error *err) {
  const gaps *g = s->g;
  const bound_options *o = s->o;
  int32_t whole = o->whole_ops ? o->whole_ops : 600, blocks = o->blocks ? o->blocks : 300;
  int32_t most_rounds = o->limit_rounds ? o->limit_rounds : 12;
  bool go_on = g->n_ops > whole;
  int idle_rounds = 0;
  if (g->n_ops > whole
          ? !slots_blocks (g, o->dev, blocks, s->out->lower_bound_ns, slot_arena, now, err)
          : !slots_each (g, slot_arena, now, err))
    return false;
  while (go_on && !is_over (s) && s->out->stats.rounds < most_rounds)
    if (!refine_once (s, now, slot_arena, &idle_rounds, &go_on, err))
      return false;
  return true;
}

/* *tight: something has to move. */
static bool start_bound (state *s, const gaps *g, const bound_options *o, arena *a, bound *out,
                         bool *tight, error *err) {
  *s = (state){ .g = g, .o = o, .a = a, .out = out };
  *out = (bound){ .compute_ns = trace_total_ns (g->units->trace) };
  out->share = NEW (a, g->count, double, err);
  if (!out->share || !cheap_bounds (s, err))
    return false;
  if (o->drops && !(out->dropped = NEW (a, g->count, double, err)))
    return false;
  *tight = false;
  for (int32_t k = 0; k < g->n_ops; k++) {
    int64_t over = g->base_bytes[k] - g->unused_bytes - g->room_bytes;
    if (over > g->movable_bytes[k])
      return gaps_too_small (g, g->room_bytes + g->pool_bytes, err);
    if (!host_can_hold (g, o, k, over, err))
      return false;
    *tight |= over > 0 || gaps_over_across (g, k);
  }
  return true;
}

bool bound_of (const gaps *g, const bound_options *o, arena *a, bound *out, error *err) {
  assert (g->units && o->dev && o->host_bytes >= 0);
  assert (o->drops == DROPS_NONE || o->any_units);
  state s;
  slots now;
  bool tight;
  if (!start_bound (&s, g, o, a, out, &tight, err))
    return false;
  if (!tight) /* everything fits: compute is the bound */
    return true;
  arena *slot_arena = arena_made (err);
  bool ok = slot_arena && refine (&s, slot_arena, &now, err) && finish_up (&s, &now, err);
  arena_free (slot_arena);
  return ok;
}

bool bound_slots (const gaps *g, const bound_options *o, arena *a, bound *out, slots *now,
                  bool *tight, error *err) {
  assert (now && tight && o->dev);
  state s;
  return start_bound (&s, g, o, a, out, tight, err) && (!*tight || refine (&s, a, now, err));
}
