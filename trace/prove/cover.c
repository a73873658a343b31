/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/prove/cover.h"

#include <stdio.h>
#include <string.h>

#include "trace/uses.h"

const cover cover_every_plan = { .cuts = COVER_ANY_CUT, .drops = COVER_ALL, .any_order = true };

cover cover_of (const proof *p) {
  return (cover){ .cuts = !p->sections               ? COVER_THIS_CUT
                          : p->orders == LOOSE_LEVEL ? COVER_LEVEL
                                                     : COVER_ANY_CUT,
                  .drops = !p->drops  ? COVER_THESE
                           : p->again ? COVER_LISTED
                                      : COVER_ALL,
                  .fresh = p->fresh,
                  .still = p->drops == PROOF_DROPS_only,
                  .these_units = !p->any_units };
}

/* ---- in words ---- */

static bool is_every_plan (const cover *c) {
  return c->cuts == COVER_ANY_CUT && c->drops == COVER_ALL && !c->fresh && !c->still &&
         !c->these_units;
}

/* But the order of ops. */
static void put_words (const cover *c, const plan *p, char text[COVER_TEXT]) {
  static const char *const drops[] = { "without recompute entries", "with any cheap op made again",
                                       "with any op made again" };
  static const char *const cuts[] = { " and without sections",
                                      ", cut into whatever sections level by level",
                                      ", cut into whatever sections" };
  const char *units = c->these_units ? ", with these groups, pool and granules" : "";
  bool bare = !p->n_sections && !p->n_recomputes;
  if (is_every_plan (c))
    snprintf (text, COVER_TEXT, "every plan, with whatever sections and recompute entries");
  else if (c->cuts == COVER_THIS_CUT && c->drops == COVER_THESE)
    snprintf (text, COVER_TEXT, "every plan %s%s",
              bare ? "without sections and recompute" : "with this cut and these recompute entries",
              units);
  else
    snprintf (text, COVER_TEXT, "every plan %s%s%s%s%s", drops[c->drops],
              c->fresh ? " from what lives anyway" : "", c->still ? " and nothing swapped" : "",
              c->cuts == COVER_THIS_CUT && p->n_sections ? " and this cut" : cuts[c->cuts], units);
}

static const char whatever_order[] = ", in whatever order";
static const char this_order[] = ", with its ops in this order";
static const char given_order[] = ", with its ops in the order of the trace";

const char *cover_text (const cover *c, const plan *p, char text[COVER_TEXT]) {
  put_words (c, p, text);
  size_t length = strlen (text);
  snprintf (text + length, COVER_TEXT - length, "%s",
            c->any_order ? whatever_order
            : p->n_order ? this_order
                         : "");
  return text;
}

/* ---- claims of a file ---- */

/* The plan at hand is in the wider class, so all plans with its own cut and entries are. */
static bool is_within (const cover *narrow, const cover *wide) {
  bool own = narrow->drops == COVER_THESE;
  return narrow->cuts <= wide->cuts && narrow->drops <= wide->drops &&
         (!wide->fresh || narrow->fresh || own) && (!wide->still || narrow->still) &&
         (!wide->these_units || narrow->these_units);
}

static bool ends_with (const char *says, const char *ending, size_t *length) {
  size_t all = strlen (says), end = strlen (ending);
  if (all < end || strcmp (says + all - end, ending) != 0)
    return false;
  *length = all - end;
  return true;
}

/* The words on the order, of which there are none where it is the trace's; *length: of the rest. */
static bool order_allows (const cover *c, const plan *p, const char *says, size_t *length) {
  *length = strlen (says);
  if (ends_with (says, whatever_order, length))
    return c->any_order;
  if (ends_with (says, this_order, length))
    return p->n_order > 0;
  ends_with (says, given_order, length);
  return c->any_order || !p->n_order;
}

bool cover_allows (const cover *c, const plan *p, const char *says) {
  char text[COVER_TEXT];
  size_t length;
  if (!says || !*says)
    return true;
  if (!order_allows (c, p, says, &length))
    return false;
  for (int i = 0; i < 8 * COVER_CUTS * COVER_DROPS; i++) {
    cover said = { .cuts = (cover_cuts)(i / 8 % COVER_CUTS),
                   .drops = (cover_drops)(i / 8 / COVER_CUTS),
                   .fresh = i & 1,
                   .still = i & 2,
                   .these_units = i & 4 };
    if (said.drops == COVER_THESE && (said.fresh || said.still))
      continue; /* its words say neither */
    put_words (&said, p, text);
    if (is_within (&said, c) && strlen (text) == length && strncmp (text, says, length) == 0)
      return true;
  }
  return false;
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

static bool refuse (int32_t entry, error *err, const char *format, int32_t a, int32_t b) {
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
      return refuse (entry, err,
                     "tensor %d is dropped, and the proof does not list op %d, which wrote it", x,
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
      return refuse (entry, err,
                     "the copy of op %d reads tensor %d beyond its last use; the proof is about "
                     "plans that do not",
                     r->ops.at[i], y);
    }
  }
  return true;
}

/* If the proof is about every cut, its ops are the original's and walls between them. */
static bool list_ops (membership *m, const cover_traces *t, arena *a, error *err) {
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

bool cover_has_plan (const proof *proof, const cover_traces *t, const plan *p, arena *a,
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
