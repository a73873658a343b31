/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The least price of leaving, by the duals. */
#include "trace/prove/prover.h"

static wide price_back (const prover *v, const pause *q, int c) {
  int32_t due = pause_due_slot (v, q);
  int64_t at = (int64_t)c * v->proof.slots + due;
  wide price = pause_due_first (v, q) ? v->proof.early_first[at] : v->proof.early[at];
  return q->wraps ? price + v->proof.cycle[c] : price;
}

static wide price_by_copy (const prover *v, const pause *q, int c) {
  int64_t at = (int64_t)c * v->proof.slots + v->slot_of[q->release];
  return (price_back (v, q, c) - v->proof.pending[at]) * PROVE_ONE;
}

static wide price_clean (const prover *v, const pause *q, int c) {
  int32_t S = v->proof.slots, slot = v->slot_of[q->release];
  wide price = (price_back (v, q, c) - prover_host_first (v, c, slot)) * PROVE_ONE;
  if (v->limited && v->proof.first[slot] == q->release && !q->within)
    price -= (wide)v->proof.host_limit[slot ? slot - 1 : S - 1] * v->weight_host[c];
  return price;
}

void price_drops (prover *v, int32_t unit, pause *q, int32_t count) {
  part x[2];
  int c = parts_of (v, unit, x) == 1 ? part_class (v, &x[0]) : -1;
  wide room = prover_up (v, prover_room (v, unit));
  for (int32_t i = 0; i < count; i++) {
    int32_t release = v->slot_of[q[i].release], due = pause_due_slot (v, &q[i]);
    if (!q[i].again || c < 0)
      continue;
    wide back = pause_due_first (v, &q[i]) ? prover_host_first (v, c, due)
                                           : v->proof.host[(int64_t)c * v->proof.slots + due];
    q[i].price = (back - prover_host_first (v, c, release)) * PROVE_ONE;
    prover_add (v, &q[i].price, again_price (&v->again, unit, i, release, due, room));
  }
}

/* Prices are below 2^104, and the sum of all that a file may have rows for below 2^127; where it is
   not, the proof is refused. */
static wide sum (prover *v, wide a, wide b) {
  prover_add (v, &a, b);
  return a;
}

wide price_least (prover *v, const pause *q, int32_t count, bool circle, int c) {
  wide total = 0, bare = 0, kept = 0;
  bool can_keep = false;
  for (int32_t i = 0; v->proof.drops == PROOF_DROPS_only && i < count; i++)
    prover_add (v, &total, q[i].again && q[i].price < 0 ? q[i].price : 0);
  if (v->proof.drops == PROOF_DROPS_only)
    return total;
  for (int32_t i = 0; i <= count; i++) {
    if (i == count || (!q[i].linked && !circle)) { /* behind a write the host's copy is stale */
      prover_add (v, &total, can_keep && kept < bare ? kept : bare);
      bare = kept = 0;
      can_keep = false;
    }
    if (i == count || q[i].dropped)
      continue;
    if (circle) {
      wide best = price_clean (v, &q[i], c), copy = v->limited ? price_by_copy (v, &q[i], c) : best;
      best = copy < best ? copy : best;
      prover_add (v, &bare, best < 0 ? best : 0);
      continue;
    }
    wide copy = price_by_copy (v, &q[i], c), again = q[i].again && q[i].price < 0 ? q[i].price : 0;
    if (pause_serves (
            q, count,
            i)) /* an amount that was made again may be carried besides, for a later one */
      prover_add (v, &total, again);
    else if (again < copy)
      copy = again;
    wide best = sum (v, bare, copy);
    if (can_keep) {
      wide clean = sum (v, kept, price_clean (v, &q[i], c)), copied = sum (v, kept, copy);
      best = clean < best ? clean : best;
      best = kept < best ? kept : best;
      best = copied < best ? copied : best;
    }
    kept = best;
    can_keep = true;
  }
  return total;
}
