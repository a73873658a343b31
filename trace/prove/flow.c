/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The sum is taken unit by unit and slot by slot from closed formulas: there is no matrix here. */
#include "base/order.h"
#include "trace/prove/prover.h"

enum { VALUE_BITS = PROOF_COEF_BITS + PROOF_DUAL_BITS };

static void take (prover *v, wide price, wide amount) {
  wide x = 0;
  v->overflow |= __builtin_mul_overflow (price, amount, &x);
  prover_add (v, &v->value, x);
}

/* Grains that an engine carries in a time, rounded up. Times and rates are below 2^54 each, so the
   product is below 2^128. */
wide prover_carried (const prover *v, int64_t ns, int64_t rate) {
  unsigned __int128 x = (unsigned __int128)ns * (unsigned __int128)rate, e9 = 1000000000;
  if (v->proof.shift < 0)
    e9 <<= -v->proof.shift;
  else
    x <<= v->proof.shift;
  return (wide)(x / e9 + (x % e9 > 0));
}

/* ---- amounts that are open ---- */

/* away: this part of it leaves; what is made again can be carried besides. */
static void count_pause (prover *v, const pause *q, int class, wide room, int away) {
  int32_t S = v->proof.slots, due = pause_due_slot (v, q);
  wide *open = v->open + (int64_t) class * S;
  int32_t release = v->slot_of[q->release];
  prover_add (v, &v->seams.due[due], room);
  prover_add (v, &v->released[(int64_t) class * S + release], room);
  if (pause_due_first (v, q))
    prover_add (v, &v->due_first[(int64_t) class * S + due], room);
  prover_add (v, &open[release], away * room);
  prover_add (v, &open[due], -away * room);
  if (q->wraps)
    prover_add (v, &open[0], room);
}

/* First walk: what is open in each slot, and the least weights of each class. */
static bool count_units (prover *v, pause *q, error *err) {
  int64_t cells = (int64_t)v->proof.slots * v->proof.classes;
  if (!ALLOC (v->a, v->open, cells, err) || !ALLOC (v->a, v->released, cells, err) ||
      !ALLOC (v->a, v->due_first, cells, err))
    return false;
  for (int c = 0; c < PROOF_CLASSES; c++)
    v->weight_out[c] = v->weight_in[c] = v->weight_host[c] = INT64_MAX / 4;
  for (int32_t i = 0; i < v->u.count; i++) {
    bool circle, any = false;
    int32_t count = pauses_of (v, i, q, &circle);
    part x[2];
    for (int32_t k = 0; k < count; k++)
      any |= q[k].matters;
    if (!any)
      continue;
    pauses_drop (v, q, count, circle);
    for (int32_t k = 0; v->proof.drops && k < count; k++)
      q[k].again = !q[k].dropped &&
                   again_count (&v->again, i, k, v->slot_of[q[k].release],
                                pause_due_slot (v, &q[k]), v->slot_of[q[k].due] + q[k].late);
    for (int n = parts_of (v, i, x), s = 0; s < n; s++) {
      int c = part_class (v, &x[s]);
      if (c < 0)
        return error_set (err, ERR_input, "the proof has no class for unit %d", i);
      v->weight_out[c] = min_of (v->weight_out[c], x[s].out);
      v->weight_in[c] = min_of (v->weight_in[c], x[s].in);
      v->weight_host[c] = min_of (v->weight_host[c], x[s].host);
      for (int32_t k = 0; k < count; k++)
        if (!q[k].dropped && (q[k].again || v->proof.drops != PROOF_DROPS_only)) {
          bool twice =
              v->proof.drops == PROOF_DROPS_allowed && q[k].again && pause_serves (q, count, k);
          count_pause (v, &q[k], c, prover_up (v, x[s].room_bytes), 1 + twice);
        }
    }
  }
  for (int32_t c = 0; c < v->proof.classes; c++)
    for (int32_t j = 1; j < v->proof.slots; j++)
      prover_add (v, &v->open[(int64_t)c * v->proof.slots + j],
                  v->open[(int64_t)c * v->proof.slots + j - 1]);
  return true;
}

/* ---- the sum ---- */

static void sum_units (prover *v, pause *q) {
  for (int32_t i = 0; i < v->u.count; i++) {
    bool circle;
    int32_t count = pauses_of (v, i, q, &circle);
    part x[2];
    if (!count)
      continue;
    pauses_drop (v, q, count, circle);
    for (int32_t k = 0; v->proof.drops && k < count; k++)
      q[k].again = !q[k].dropped && again_can (&v->again, i, k);
    price_drops (v, i, q, count);
    for (int n = parts_of (v, i, x), s = 0; s < n; s++) {
      int c = part_class (v, &x[s]);
      if (c >= 0)
        take (v, price_least (v, q, count, circle, c), prover_up (v, x[s].room_bytes));
    }
  }
}

/* A column between low and high. */
void prover_column (prover *v, wide price, wide low, wide high) {
  if (high > 0)
    take (v, price, price < 0 ? high : low);
}

/* Times are below 2^98, so that 24 bits more fit. */
static wide fits (wide time, int64_t weight, wide room) {
  wide most = weight > 0 ? ((time << PROOF_COEF_BITS) + weight - 1) / weight : room;
  return most < room ? most : room;
}

static int64_t scaled (int64_t x, int64_t y) {
  return prover_weight (((wide)x * y) >> PROOF_COEF_BITS);
}

typedef struct slot_times {
  wide idle_out, idle_in, work_out, work_in;
} slot_times;

static void sum_class (prover *v, int32_t j, int c, wide need, const slot_times *time) {
  const proof *p = &v->proof;
  int32_t S = p->slots, last = j ? j - 1 : S - 1, next = j + 1 < S ? j + 1 : 0;
  int64_t at = (int64_t)c * S + j, then = (int64_t)c * S + next;
  wide open = v->open[at], room = v->open[(int64_t)c * S + last];
  prover_add (v, &room, v->released[at]);
  prover_add (v, &room, v->seams.before_due[j]);
  prover_add (v, &open, v->seams.before_due[j + 1]);
  wide end = j + 1 == S ? p->cycle[c] : 0;
  wide P = p->pending[at], H1 = prover_host_first (v, c, j), H = p->host[at],
       E1 = prover_early_first (v, c, j), E = p->early[at], so = p->stall_out[j],
       si = p->stall_in[j], wo = p->work_out[j], wi = p->work_in[j];
  int64_t out = v->weight_out[c], in = v->weight_in[c];
  wide low = p->classes == 1 && !prover_ends_at_seam (v, j) ? need : 0;
  bool swaps = p->drops != PROOF_DROPS_only;
  prover_column (v, (P - p->pending[then] - end) * PROVE_ONE, 0, swaps ? open : 0);
  prover_column (v,
                 (H - prover_host_first (v, c, next) - end - p->need[j]) * PROVE_ONE -
                     (wide)p->host_limit[j] * v->weight_host[c],
                 low, open);
  prover_column (v, (E - prover_early_first (v, c, next) - end) * PROVE_ONE, 0, swaps ? open : 0);
  if (!prover_is_run (v, j))
    prover_column (v, (H1 - H - p->need_first[j]) * PROVE_ONE, low, open);
  prover_column (v, (E1 - E) * PROVE_ONE, 0, swaps ? room - v->due_first[at] : 0);
  if (room <= 0 || !swaps)
    return;
  int64_t cross_out = scaled (v->out_in_in, out), cross_in = scaled (v->in_in_out, in);
  prover_column (v, (P - H1) * PROVE_ONE - so * out - si * cross_out, 0, room);
  prover_column (v, (H1 - E1) * PROVE_ONE - si * in - so * cross_in, 0, room);
  prover_column (v, (P - H) * PROVE_ONE - wo * out - wi * cross_out, 0,
                 fits (time->work_out + v->seams.before_out[j], out, room));
  prover_column (v, (H - E) * PROVE_ONE - wi * in - wo * cross_in, 0,
                 fits (time->work_in + v->seams.before_in[j], in, room));
  if (v->limited)
    prover_column (v, (E - P) * PROVE_ONE, 0, room);
}

static bool sum_slots (prover *v, error *err) {
  const proof *p = &v->proof;
  for (int32_t j = 0; j < p->slots; j++) {
    int32_t first = p->first[j];
    const op *o = &v->t->ops[first];
    slot_times time = { prover_carried (v, o->gap_ns, v->rates.out_alone),
                        prover_carried (v, o->gap_ns, v->rates.in_alone), v->work_out[j],
                        v->work_in[j] };
    int64_t over = v->excess[first];
    v->overflow |= p->drops && __builtin_sub_overflow (over, v->again.free_bytes[j], &over);
    bool seam = prover_ends_at_seam (v, j);
    over = seam ? v->seams.excess[p->first[j + 1]] : prover_is_run (v, j) ? 0 : over;
    wide need = over < 0 ? 0 : prover_down (v, over);
    wide paid = (wide)p->stall_out[j] * PROVE_ONE + (wide)p->stall_in[j] * v->ratio +
                (wide)p->remake[j] * PROVE_ONE - (wide)prover_cuts (v, j) * PROVE_ONE;
    if (-paid > (wide)1 << VALUE_BITS)
      return error_set (err, ERR_infeasible, "the proof pays more than 1 for a stall before op %d",
                        first);
    take (v, (wide)p->stall_out[j] * PROVE_ONE, time.idle_out);
    take (v, (wide)p->stall_in[j] * PROVE_ONE, time.idle_in);
    take (v, (wide)p->work_out[j] * PROVE_ONE, time.work_out);
    take (v, (wide)p->work_in[j] * PROVE_ONE, time.work_in);
    take (v, ((wide)(seam ? 0 : p->need_first[j]) + p->need[j]) * PROVE_ONE, need);
    take (v, (wide)p->host_limit[j] * PROVE_ONE, prover_up (v, v->p->host_bytes));
    for (int c = 0; c < p->classes; c++)
      sum_class (v, j, c, need, &time);
  }
  return true;
}

/* Ops run again: the levels of work that is ready and that is made, and the work itself. */
static void sum_work (prover *v) {
  const proof *p = &v->proof;
  const again *g = &v->again;
  wide open = 0;
  for (int32_t j = 0; j < p->slots; j++) {
    wide room = open;
    prover_add (v, &room, g->released[j]);
    prover_add (v, &room, v->seams.before_work[j]);
    prover_add (v, &open, g->open[j]);
    wide level = open;
    prover_add (v, &level, v->seams.before_work[j + 1]);
    wide ready = j + 1 < p->slots ? p->ready[j + 1] : 0;
    wide made = j + 1 < p->slots ? p->made[j + 1] : 0;
    prover_column (v,
                   ((wide)p->ready[j] - p->made[j] - p->remake[j] + prover_cuts (v, j)) * PROVE_ONE,
                   0, room);
    prover_column (v, (p->ready[j] - ready) * PROVE_ONE, 0, level);
    prover_column (v, (p->made[j] - made) * PROVE_ONE, 0, level);
  }
  for (int32_t k = 0; k < 2 * v->t->n_ops; k++) {
    const again_op *o = &g->ops[k];
    if (o->tensors < 2)
      continue;
    wide price = (wide)p->made[o->end_slot] - p->ready[o->first_slot];
    for (int32_t i = 0; i < o->tensors; i++)
      price -= p->shares[o->first_row + i];
    prover_column (v, price * PROVE_ONE, 0, (wide)o->grains * o->most);
  }
}

static bool set_times (prover *v, error *err) {
  v->work_out = NEW (v->a, v->proof.slots, wide, err);
  v->work_in = NEW (v->a, v->proof.slots, wide, err);
  for (int32_t j = 0; v->work_out && v->work_in && j < v->proof.slots; j++) {
    int32_t first = v->proof.first[j];
    int64_t ns = v->t->ops[first].ns;
    for (int32_t k = first + 1; k < v->proof.first[j + 1]; k++)
      ns += v->t->ops[k].ns + v->t->ops[k].gap_ns;
    v->work_out[j] = prover_carried (v, ns, v->rates.out_alone);
    v->work_in[j] = prover_carried (v, ns, v->rates.in_alone);
  }
  return v->work_out && v->work_in;
}

bool prove_flow (prover *v, int64_t *stall_ns, error *err) {
  int32_t n = v->t->n_ops;
  pause *q = NEW (v->a, (int64_t)n + 1, pause, err);
  if (!ALLOC (v->a, v->slot_of, n, err) || !q)
    return false;
  for (int32_t j = 0; j < v->proof.slots; j++) {
    if (loose_follows (v->loose, v->proof.first[j]) && !v->proof.seams)
      return error_set (err, ERR_input, "slot %d begins between ops that may change their order",
                        j);
    v->limited |= v->proof.host_limit[j] != 0;
    for (int32_t k = v->proof.first[j]; k < v->proof.first[j + 1]; k++)
      v->slot_of[k] = j;
  }
  if (v->limited && v->proof.seams)
    return error_set (err, ERR_input, "a proof with seams cannot lean on the host's limit");
  if (!set_times (v, err) || !seams_begin (v, err))
    return false;
  again *g = &v->again;
  *g = (again){ .t = v->t, .u = &v->u, .p = &v->proof, .loose = v->loose };
  g->section_ns = v->p->device.section_ns;
  g->peak = v->proof.peak == NO_OP ? -1 : v->slot_of[v->proof.peak];
  if (g->peak >= 0 && prover_is_run (v, g->peak))
    return error_set (err, ERR_input, "the peak has no slot of its own");
  if (v->proof.drops && !again_begin (g, v->rates, v->a, err))
    return false;
  if (!count_units (v, q, err) || (v->proof.drops && !again_number (&v->again, err)) ||
      !seams_sum (v, err) || !sum_slots (v, err))
    return false;
  sum_units (v, q);
  seams_sum_work (v);
  if (v->proof.drops)
    sum_work (v);
  seams_price (v);
  if (v->overflow || g->overflow)
    return error_set (err, ERR_input, "the proof's figures do not fit in 128 bits");
  *stall_ns = 0;
  if (v->value <= 0)
    return true;
  unsigned __int128 ns;
  if (__builtin_mul_overflow ((unsigned __int128)(v->value >> 34), (unsigned __int128)1000000000,
                              &ns))
    return error_set (err, ERR_input, "the proof's figures do not fit in 128 bits");
  ns /= (unsigned __int128)v->rates.out_alone << (VALUE_BITS - 34 + v->proof.shift);
  *stall_ns = ns > INT64_MAX / 4 ? INT64_MAX / 4 : (int64_t)ns;
  *stall_ns = *stall_ns > g->saved_ns ? *stall_ns - g->saved_ns : 0;
  return true;
}
