/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Slots that meet inside a run of loose ops, and the chains that cross such a seam: "Seams" in
   trace/prove/evaluation.md. */
#include "base/units.h"
#include "trace/prove/prover.h"

enum { SEAM_BITS = 42, SEAM_PARTS = 2, SEAM_HALVES = 1 << 24 };

/* ---- memory ---- */

/* Bytes that live on both sides of the place before each op of a run, over what there is. */
static bool set_excess (prover *v, error *err) {
  struct prover_seams *s = &v->seams;
  int32_t n = v->t->n_ops;
  bool fits = true;
  int64_t sum = 0;
  if (!ALLOC (v->a, s->excess, (int64_t)n + 1, err) || !ALLOC (v->a, s->tight, (int64_t)n + 1, err))
    return false;
  for (int32_t i = 0; i < v->u.count; i++) {
    const unit_info *x = &v->u.at[i];
    if (!x->bytes || (x->first == NO_OP && !x->pinned))
      continue;
    int32_t from = x->persistent ? 0 : x->first + 1, to = x->persistent ? n : x->last + 1;
    fits &= !__builtin_add_overflow (s->excess[from], prover_room (v, i), &s->excess[from]) &&
            !__builtin_sub_overflow (s->excess[to], prover_room (v, i), &s->excess[to]);
  }
  for (int32_t k = 0; k < n; k++) {
    fits &= !__builtin_add_overflow (sum, s->excess[k], &sum) &&
            !__builtin_sub_overflow (sum, v->room_bytes, &s->excess[k]);
    s->tight[k + 1] = s->tight[k] + (loose_follows (v->loose, k) && s->excess[k] > 0);
  }
  return fits || error_set (err, ERR_input, "what lives across a seam does not fit in 2^63 bytes");
}

bool seams_begin (prover *v, error *err) {
  struct prover_seams *s = &v->seams;
  int32_t S = v->proof.slots;
  if (!ALLOC (v->a, s->at, (int64_t)S + 1, err) || !ALLOC (v->a, s->first, S, err) ||
      !ALLOC (v->a, s->due, S, err) || !ALLOC (v->a, s->before_due, (int64_t)S + 1, err) ||
      !ALLOC (v->a, s->before_work, (int64_t)S + 1, err) ||
      !ALLOC (v->a, s->before_out, (int64_t)S + 1, err) ||
      !ALLOC (v->a, s->before_in, (int64_t)S + 1, err))
    return false;
  for (int32_t j = 0; j < S; j++) {
    s->at[j] = loose_follows (v->loose, v->proof.first[j]);
    s->first[j] = s->at[j] ? s->first[j - 1] : j;
  }
  return !v->proof.seams || set_excess (v, err);
}

/* ---- sums ---- */

/* The larger of the two parts of a tensor that is cut in the middle of the batch. */
static int64_t half_of (const prover *v, int64_t bytes) {
  int64_t batch = v->t->batch;
  return (int64_t)(((wide)bytes * (batch - batch / 2) + batch - 1) / batch);
}

/* A tensor used at op a and next at op b lives across the seams between. */
static void add_halves (prover *v, int32_t tensor, int32_t a, int32_t b) {
  struct prover_seams *s = &v->seams;
  int32_t slot = v->slot_of[a];
  for (int32_t j = slot + 1; s->at[j] && v->proof.first[j] <= b; j++)
    prover_add (v, &s->half[s->half_from[j] + j - 1 - slot],
                prover_up (v, half_of (v, v->t->tensors[tensor].bytes)));
}

static bool number_halves (prover *v, error *err) {
  struct prover_seams *s = &v->seams;
  int64_t count = 0;
  if (!ALLOC (v->a, s->half_from, v->proof.slots, err))
    return false;
  for (int32_t j = 0; j < v->proof.slots; j++) {
    s->half_from[j] = (int32_t)count;
    count += s->at[j] ? j - s->first[j] : 0;
    if (count > SEAM_HALVES)
      return error_set (err, ERR_input, "the proof has too many seams");
  }
  if (count != v->proof.n_reach)
    return error_set (err, ERR_input, "the proof's chains reach over %d slots; %lld are due",
                      v->proof.n_reach, (long long)count);
  return ALLOC (v->a, s->half, count + 1, err);
}

/* The cost of a further part, rounded down. Times and rates are below 2^54 each. */
static wide section_grains (const prover *v) {
  unsigned __int128 most = INT64_MAX / 4, e9 = 1000000000;
  unsigned __int128 x =
      (unsigned __int128)v->p->device.section_ns * (unsigned __int128)v->rates.out_alone;
  if (v->proof.shift < 0)
    e9 <<= -v->proof.shift;
  else
    x <<= v->proof.shift;
  x /= e9;
  return (wide)(x < most ? x : most);
}

bool seams_sum (prover *v, error *err) {
  struct prover_seams *s = &v->seams;
  const units *u = &v->u;
  if (!v->proof.seams)
    return true;
  if (!number_halves (v, err))
    return false;
  for (int32_t x = 0; x < v->t->n_tensors; x++) {
    const use *uses = u->uses + u->use_offset[x];
    int32_t m = u->use_offset[x + 1] - u->use_offset[x];
    bool lasts = v->t->tensors[x].persistent;
    for (int32_t i = 0; v->t->tensors[x].split && i < m; i++)
      if (i + 1 < m || lasts)
        add_halves (v, x, uses[i].op, i + 1 < m ? uses[i + 1].op : v->t->n_ops - 1);
  }
  for (int32_t j = 1; j < v->proof.slots; j++) {
    if (!s->at[j])
      continue;
    s->before_due[j] = s->before_due[j - 1] + s->due[j - 1];
    s->before_out[j] = s->before_out[j - 1] + v->work_out[j - 1];
    s->before_in[j] = s->before_in[j - 1] + v->work_in[j - 1];
  }
  s->section = section_grains (v);
  return true;
}

void seams_sum_work (prover *v) {
  struct prover_seams *s = &v->seams;
  for (int32_t j = 1; v->proof.drops && j < v->proof.slots; j++)
    if (s->at[j])
      s->before_work[j] = s->before_work[j - 1] + v->again.due[j - 1];
}

/* ---- columns ---- */

static wide down (wide grains) {
  return grains >> (SEAM_BITS - PROOF_COEF_BITS);
}

static wide up (wide grains) {
  return -down (-grains);
}

/* price += dual x coefficient */
static void charge (prover *v, wide *price, int64_t dual, wide coefficient) {
  wide x;
  v->overflow |= __builtin_mul_overflow ((wide)dual, coefficient, &x);
  prover_add (v, price, x);
}

static void chain_column (prover *v, wide price) {
  prover_column (v, price, 0, (wide)SEAM_PARTS << SEAM_BITS);
}

/* A chain over seam j leaves these to its further parts: those of one slot, or of all before it. */
static void charge_left (prover *v, wide *price, int32_t j, wide out, wide in, wide due,
                         wide work) {
  const proof *p = &v->proof;
  charge (v, price, p->carry_out[j], up (out));
  charge (v, price, p->carry_in[j], up (in));
  charge (v, price, p->owed[j], up (due));
  charge (v, price, p->owed_work[j], up (work));
}

static void price_crossed (prover *v, int32_t j) {
  const proof *p = &v->proof;
  const struct prover_seams *s = &v->seams;
  wide price = 0;
  charge (v, &price, prover_cuts (v, j), down (2 * s->section));
  charge (v, &price, p->inner_first[j], PROVE_ONE);
  charge (v, &price, p->inner_end[j - 1], PROVE_ONE);
  charge (v, &price, -p->need[j - 1], up (s->half[s->half_from[j]]));
  charge_left (v, &price, j, v->work_out[j - 1], v->work_in[j - 1], s->due[j - 1],
               p->drops ? v->again.due[j - 1] : 0);
  chain_column (v, price);
}

static void price_inner (prover *v, int32_t i) {
  const proof *p = &v->proof;
  const struct prover_seams *s = &v->seams;
  wide price = 0;
  charge (v, &price, prover_cuts (v, i), down ((p->first[i + 1] - p->first[i] - 2) * s->section));
  charge (v, &price, -p->inner_first[i], PROVE_ONE);
  charge (v, &price, -p->inner_end[i], PROVE_ONE);
  charge_left (v, &price, i + 1, s->before_out[i], s->before_in[i], s->before_due[i],
               s->before_work[i]);
  for (int32_t j = i + 1; s->at[j]; j++)
    charge (v, &price, p->reach_inner[s->half_from[j] + j - i], PROVE_ONE);
  chain_column (v, price);
}

static void price_reach (prover *v, int32_t j, int32_t i) {
  const proof *p = &v->proof;
  const struct prover_seams *s = &v->seams;
  int32_t at = s->half_from[j] + j - 1 - i;
  wide price = 0;
  charge (v, &price, -p->need[j - 1], up (s->half[at]));
  charge (v, &price, -p->reach_inner[at], PROVE_ONE);
  charge (v, &price, i + 2 < j ? -p->reach_next[at] : 0, PROVE_ONE);
  charge (v, &price, i > s->first[j] ? p->reach_next[at + 1] : 0, PROVE_ONE);
  chain_column (v, price);
}

static void price_left (prover *v, int32_t j) {
  const proof *p = &v->proof;
  const struct prover_seams *s = &v->seams;
  if (p->drops != PROOF_DROPS_only) {
    prover_column (v, ((wide)p->work_out[j] - p->work_out[j - 1] - p->carry_out[j]) * PROVE_ONE, 0,
                   s->before_out[j]);
    prover_column (v, ((wide)p->work_in[j] - p->work_in[j - 1] - p->carry_in[j]) * PROVE_ONE, 0,
                   s->before_in[j]);
    prover_column (v,
                   ((wide)prover_early_first (v, 0, j) - p->early[j - 1] - p->owed[j]) * PROVE_ONE,
                   0, s->before_due[j]);
  }
  if (p->drops)
    prover_column (v, ((wide)p->made[j] - p->made[j - 1] - p->owed_work[j]) * PROVE_ONE, 0,
                   s->before_work[j]);
}

void seams_price (prover *v) {
  const struct prover_seams *s = &v->seams;
  for (int32_t j = 1; v->proof.seams && j < v->proof.slots; j++) {
    if (!s->at[j])
      continue;
    price_crossed (v, j);
    price_left (v, j);
    if (s->at[j + 1])
      price_inner (v, j);
    for (int32_t i = s->first[j]; i + 1 < j; i++)
      price_reach (v, j, i);
  }
}
