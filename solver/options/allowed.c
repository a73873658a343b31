/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/options/allowed.h"

const char *const recompute_words[] = { "off", "cheap", "auto", "only", NULL };
const char *const order_words[] = { "as-is", "updates", "any", NULL };
const char *const section_order_words[] = { "auto", "level", "depth", NULL };
const char *const places_words[] = { "granules", "arena", "auto", NULL };

int64_t allowed_most_parts (const trace *t) {
  int64_t most = 1;
  for (int32_t k = 0; k < t->n_ops; k++)
    most = t->ops[k].parts > most ? t->ops[k].parts : most;
  return most < t->batch ? most : t->batch;
}

allowed allowed_by (const trace *t) {
  if (trace_knows_only_touches (t))
    return (allowed)SWAPS_ALONE;
  if (trace_has_streams (t))
    return (allowed){ .sections = SECTIONS_OFF, .recompute = RECOMPUTE_AUTO, .order = ORDER_AS_IS };
  return (allowed){ .sections = allowed_most_parts (t) > 1 ? SECTIONS_AUTO : SECTIONS_OFF,
                    .recompute = RECOMPUTE_AUTO,
                    .order = ORDER_ANY };
}

bool allowed_cut (const allowed *x, const allowed *most, allowed *out) {
  *out = *most;
  if (x->sections == SECTIONS_OFF)
    out->sections = SECTIONS_OFF;
  if (x->recompute == RECOMPUTE_OFF)
    out->recompute = RECOMPUTE_OFF;
  if (x->order == ORDER_AS_IS)
    out->order = ORDER_AS_IS;
  return x->recompute != RECOMPUTE_OFF || most->recompute != RECOMPUTE_ONLY;
}

static bool same_sections (const allowed *x, const allowed *y) {
  return x->sections == y->sections &&
         (x->sections == SECTIONS_OFF ||
          (x->section_parts == y->section_parts && x->section_orders == y->section_orders));
}

bool allowed_is_same (const allowed *x, const allowed *y) {
  return same_sections (x, y) && x->recompute == y->recompute && x->order == y->order;
}

bool allowed_is_within (const allowed *x, const allowed *y) {
  return (x->sections == SECTIONS_OFF || same_sections (x, y)) &&
         (x->recompute == y->recompute ||
          (x->recompute == RECOMPUTE_OFF && y->recompute != RECOMPUTE_ONLY)) &&
         x->order <= y->order;
}

bool allowed_rewrites (const allowed *x) {
  return x->sections != SECTIONS_OFF || x->recompute != RECOMPUTE_OFF || x->order != ORDER_AS_IS;
}

cover allowed_cover (const solve_options *o) {
  static const cover_drops drops[] = { COVER_DROPS_NONE, COVER_DROPS_CHEAP, COVER_DROPS_ANY,
                                       COVER_DROPS_ANY };
  return (cover){ .swaps = o->recompute != RECOMPUTE_ONLY,
                  .drops = drops[o->recompute],
                  .kept = o->recompute != RECOMPUTE_OFF,
                  .sections = o->sections == SECTIONS_OFF         ? COVER_SECTIONS_NONE
                              : o->section_orders == ORDERS_LEVEL ? COVER_SECTIONS_LEVEL
                                                                  : COVER_SECTIONS_ANY };
}

void allowed_into (const allowed *x, solve_options *o) {
  o->sections = x->sections;
  o->section_parts = x->section_parts;
  o->section_orders = x->section_orders;
  o->recompute = x->recompute;
  o->order = x->order;
}

allowed allowed_of (const solve_options *o) {
  return (allowed){ o->sections, o->section_parts, o->section_orders, o->recompute, o->order };
}

void allowed_write (json_writer *w, const allowed *x) {
  json_add_object (w, "allowed");
  json_add_text (w, "order", order_words[x->order]);
  json_add_text (w, "recompute", recompute_words[x->recompute]);
  if (x->sections == SECTIONS_FIXED)
    json_add_int (w, "sections", x->section_parts);
  else
    json_add_text (w, "sections", x->sections == SECTIONS_OFF ? "off" : "auto");
  json_close_object (w);
}

const char *allowed_text (const allowed *x, arena *a, error *err) {
  static const char *const drops[] = { "", ", cheap tensors made again", ", tensors made again",
                                       "tensors made again" };
  static const char *const orders[] = { "", ", updates moved up", ", ops in any order" };
  return arena_format (a, err, "%s%s%s%s", x->recompute == RECOMPUTE_ONLY ? "" : "swaps",
                       drops[x->recompute], x->sections == SECTIONS_OFF ? "" : ", ops in parts",
                       orders[x->order]);
}
