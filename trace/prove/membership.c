/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/prove/membership.h"

#include <stdio.h>

#include "trace/uses.h"

cover membership_cover (const proof *p, const plan *at_hand) {
  return (cover){
    .swaps = p->drops != PROOF_DROPS_only,
    .drops = !p->drops  ? (at_hand->n_recomputes ? COVER_DROPS_GIVEN : COVER_DROPS_NONE)
             : p->again ? COVER_DROPS_CHEAP
                        : COVER_DROPS_ANY,
    .kept = p->drops && !p->fresh,
    .sections = !p->sections ? (at_hand->n_sections ? COVER_SECTIONS_GIVEN : COVER_SECTIONS_NONE)
                : p->orders == LOOSE_LEVEL ? COVER_SECTIONS_LEVEL
                                           : COVER_SECTIONS_ANY,
    .order = at_hand->n_order ? COVER_ORDER_GIVEN : COVER_ORDER_TRACE,
    .given_units = !p->any_units
  };
}

/* ---- the plan at hand ---- */

typedef struct membership {
  const proof *proof;
  const trace *t; /* with the plan's sections */
  uses u;
  uint8_t *listed; /* per op of the original or, without `of`, of t; NULL: any */
  const rewritten *cut;
  bool by_origin;
} membership;

static bool refuse_entry (int32_t entry, error *err, const char *format, int32_t a, int32_t b) {
  char where[32];
  snprintf (where, sizeof where, "/recompute/%d", entry);
  return error_at (err, ERR_infeasible, where, format, a, b);
}

static int32_t last_writer (const membership *m, int32_t x, int32_t before) {
  for (int32_t i = m->u.offset[x + 1] - 1; i >= m->u.offset[x]; i--)
    if (m->u.at[i].op < before && list_has (&m->t->ops[m->u.at[i].op].writes, x))
      return m->u.at[i].op;
  return NO_OP;
}

/* A tensor that takes another's place was written last by an op whose outputs the proof lets go. */
static bool drops_listed (const membership *m, const recompute *r, int32_t entry, error *err) {
  for (int32_t i = 0; m->listed && i < r->replaces.count; i++) {
    int32_t x = r->replaces.at[i], w = last_writer (m, x, r->before);
    if (w == NO_OP || !m->listed[m->by_origin ? m->cut->ops[w].index : w])
      return refuse_entry (
          entry, err, "tensor %d is dropped, and the proof does not list op %d, which wrote it", x,
          w);
  }
  return true;
}

/* True if a copy before the i-th of an entry has made y. */
static bool made_before (const membership *m, const recompute *r, int32_t i, int32_t y) {
  for (int32_t j = 0; j < i; j++) {
    const op *o = &m->t->ops[r->ops.at[j]];
    if (list_has (&o->writes, y) && !list_has (&o->side, y))
      return true;
  }
  return false;
}

static bool reads_the_living (const membership *m, const recompute *r, int32_t entry, error *err) {
  for (int32_t i = 0; i < r->ops.count; i++) {
    const op *o = &m->t->ops[r->ops.at[i]];
    for (int32_t j = 0; j < o->reads.count; j++) {
      int32_t y = o->reads.at[j];
      const tensor *t = &m->t->tensors[y];
      if (t->persistent || t->pinned || list_has (&o->side, y) ||
          uses_last (&m->u, y) >= r->before || made_before (m, r, i, y))
        continue;
      return refuse_entry (
          entry, err,
          "the copy of op %d reads tensor %d beyond its last use; the proof is about "
          "plans that do not",
          r->ops.at[i], y);
    }
  }
  return true;
}

/* If the proof is about every cut, its ops are the original's and walls between them. */
static bool list_ops (membership *m, const membership_traces *t, arena *a, error *err) {
  if (!m->proof->again)
    return true;
  if (!t->of) {
    m->listed = m->proof->again;
    return true;
  }
  m->by_origin = true;
  m->listed = NEW (a, t->n_ops, uint8_t, err);
  for (int32_t k = 0; m->listed && k < t->n_ops; k++)
    if (t->of[k] != NO_OP)
      m->listed[t->order ? t->order[t->of[k]] : t->of[k]] |= m->proof->again[k];
  return m->listed;
}

bool membership_holds (const proof *proof, const membership_traces *t, const plan *p, arena *a,
                       error *err) {
  membership m = { .proof = proof, .t = t->cut->trace, .cut = t->cut };
  if (proof->drops == PROOF_DROPS_only && p->n_moves)
    return error_at (err, ERR_infeasible, "/moves", "the proof is about plans that move nothing");
  if (proof->sections && !proof->drops && p->n_recomputes)
    return error_at (err, ERR_infeasible, "/recompute",
                     "the proof is about plans that make nothing again");
  for (int32_t i = 0; proof->sections && proof->orders == LOOSE_LEVEL && i < p->n_sections; i++)
    if (p->sections[i].order != SECTION_LEVEL)
      return error_at (err, ERR_infeasible, "/sections", "the proof is about cuts level by level");
  if (!proof->drops || !p->n_recomputes)
    return true;
  if (!uses_of (m.t, a, &m.u, err) || !list_ops (&m, t, a, err))
    return false;
  for (int32_t i = 0; i < p->n_recomputes; i++)
    if (!drops_listed (&m, &p->recomputes[i], i, err) ||
        (proof->fresh && !reads_the_living (&m, &p->recomputes[i], i, err)))
      return false;
  return true;
}
