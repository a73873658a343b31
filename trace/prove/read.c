/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <assert.h>
#include <string.h>

#include "base/json.h"
#include "trace/prove/proof.h"

#define MOST_DUAL ((int64_t)1 << 40)

static const char *const keys[] = {
  "again",      "any_units", "carry_in",    "carry_out", "classes", "cuts",        "cycle",
  "drops",      "early",     "early_first", "format",    "fresh",   "host",        "host_first",
  "host_limit", "inner_end", "inner_first", "kind",      "made",    "need",        "need_first",
  "op",         "owed",      "owed_work",   "peak",      "pending", "reach_inner", "reach_next",
  "ready",      "remake",    "sections",    "shares",    "shift",   "slots",       "stall_in",
  "stall_out",  "work_in",   "work_out",    NULL
};

/* A list of exactly n ints. */
static bool get_list (const json *j, size_t count, int64_t low, int64_t high, int64_t *out,
                      error *err) {
  if (!json_want_array (j, err))
    return false;
  if (json_count (j) != count)
    return json_error (j, err, "%zu figures where %zu are due", json_count (j), count);
  return json_get_ints (j, low, high, high, out, count, err);
}

typedef struct series {
  const char *key;
  int64_t **to;
  bool per_class;
  int64_t low, high;
} series;

static bool get_series (const json *root, const series *s, const proof *p, arena *a, error *err) {
  json list;
  if (!json_need (root, s->key, &list, err))
    return false;
  size_t slots = (size_t)p->slots;
  if (!ALLOC (a, *s->to, (int64_t)p->slots * (s->per_class ? p->classes : 1), err))
    return false;
  if (!s->per_class)
    return get_list (&list, slots, s->low, s->high, *s->to, err);
  if (!json_want_array (&list, err))
    return false;
  if (json_count (&list) != (size_t)p->classes)
    return json_error (&list, err, "%zu lists where there are %d classes", json_count (&list),
                       p->classes);
  for (int32_t c = 0; c < p->classes; c++) {
    json row = json_element (&list, (size_t)c);
    if (!get_list (&row, slots, s->low, s->high, *s->to + (int64_t)c * p->slots, err))
      return false;
  }
  return true;
}

static bool get_slots (const json *root, int32_t n_ops, arena *a, proof *p, error *err) {
  json list;
  if (!json_need (root, "slots", &list, err) || !json_want_array (&list, err))
    return false;
  size_t n = json_count (&list);
  if (n < 1 || n > (size_t)n_ops)
    return json_error (&list, err, "%zu slots for %d ops", n, n_ops);
  p->slots = (int32_t)n;
  p->first = NEW (a, (int64_t)n + 1, int32_t, err);
  int64_t *wide = NEW (a, (int64_t)n, int64_t, err);
  if (!p->first || !wide || !get_list (&list, n, 0, n_ops - 1, wide, err))
    return false;
  for (size_t j = 0; j < n; j++) {
    p->first[j] = (int32_t)wide[j];
    if (j == 0 ? p->first[j] != 0 : p->first[j] <= p->first[j - 1])
      return json_error (&list, err, "slots do not begin at op 0 and ascend");
  }
  p->first[n] = n_ops;
  return true;
}

static bool get_classes (const json *root, proof *p, error *err) {
  json classes, cycle;
  if (!json_need (root, "classes", &classes, err) || !json_need (root, "cycle", &cycle, err) ||
      !json_want_array (&classes, err))
    return false;
  size_t n = json_count (&classes);
  if (n < 1 || n > PROOF_CLASSES)
    return json_error (&classes, err, "%zu classes; there are 1 to %d", n, PROOF_CLASSES);
  p->classes = (int32_t)n;
  if (!get_list (&classes, n, 0, INT64_MAX / 4, p->class_from, err) ||
      !get_list (&cycle, n, -MOST_DUAL, MOST_DUAL, p->cycle, err))
    return false;
  for (size_t c = 1; c < n; c++)
    if (p->class_from[c] <= p->class_from[c - 1])
      return json_error (&classes, err, "classes do not ascend");
  return true;
}

/* Which outputs may be dropped, and the duals of the rows that several outputs of an op share. */
static bool get_drops (const json *root, int32_t n_ops, arena *a, proof *p, error *err) {
  json again = json_member (root, "again"), shares;
  if (!json_need (root, "shares", &shares, err) || !json_want_array (&shares, err))
    return false;
  size_t n = json_count (&shares);
  if (n > INT32_MAX / 4)
    return json_error (&shares, err, "%zu shares", n);
  p->n_shares = (int32_t)n;
  p->shares = NEW (a, (int64_t)n, int64_t, err);
  if (!p->shares || !get_list (&shares, n, 0, MOST_DUAL, p->shares, err))
    return false;
  for (int32_t j = 0; j < p->slots; j++)
    if (p->host_limit[j])
      return json_error (root, err, "a proof about drops cannot lean on the host's limit");
  if (!again.value)
    return true;
  if (!json_want_array (&again, err))
    return false;
  n = json_count (&again);
  if (n > (size_t)n_ops)
    return json_error (&again, err, "%zu ops of %d", n, n_ops);
  int64_t *ops = NEW (a, (int64_t)n, int64_t, err);
  if (!ALLOC (a, p->again, n_ops, err) || !ops || !get_list (&again, n, 0, n_ops - 1, ops, err))
    return false;
  for (size_t i = 0; i < n; i++)
    p->again[ops[i]] = 1;
  return true;
}

static bool get_reach (const json *root, const char *key, arena *a, int64_t **out, int32_t *count,
                       error *err) {
  json list;
  if (!json_need (root, key, &list, err) || !json_want_array (&list, err))
    return false;
  size_t n = json_count (&list);
  if (n > INT32_MAX / 4)
    return json_error (&list, err, "%zu figures", n);
  *count = (int32_t)n;
  return ALLOC (a, *out, (int64_t)n, err) && get_list (&list, n, -MOST_DUAL, 0, *out, err);
}

/* The duals of chains over seams, where the proof has any. */
static bool get_seams (const json *root, arena *a, proof *p, error *err) {
  const series all[] = { { "cuts", &p->cuts, false, 0, MOST_DUAL },
                         { "inner_first", &p->inner_first, false, -MOST_DUAL, 0 },
                         { "inner_end", &p->inner_end, false, -MOST_DUAL, 0 },
                         { "carry_out", &p->carry_out, false, -MOST_DUAL, 0 },
                         { "carry_in", &p->carry_in, false, -MOST_DUAL, 0 },
                         { "owed", &p->owed, false, -MOST_DUAL, 0 },
                         { "owed_work", &p->owed_work, false, -MOST_DUAL, 0 } };
  json cuts = json_member (root, "cuts");
  int32_t next;
  p->seams = !json_is_absent (&cuts);
  for (size_t i = 0; p->seams && i < sizeof all / sizeof *all; i++)
    if (!get_series (root, &all[i], p, a, err))
      return false;
  if (p->seams && (!get_reach (root, "reach_inner", a, &p->reach_inner, &p->n_reach, err) ||
                   !get_reach (root, "reach_next", a, &p->reach_next, &next, err)))
    return false;
  if (p->seams && next != p->n_reach)
    return json_error (root, err, "reach_inner and reach_next differ in length");
  return true;
}

static bool get_flow (const json *root, int32_t n_ops, arena *a, proof *p, error *err) {
  const int64_t most = MOST_DUAL;
  const series all[] = { { "pending", &p->pending, true, -most, most },
                         { "host_first", &p->host_first, true, -most, most },
                         { "host", &p->host, true, -most, most },
                         { "early_first", &p->early_first, true, -most, most },
                         { "early", &p->early, true, -most, most },
                         { "stall_out", &p->stall_out, false, -most, 0 },
                         { "stall_in", &p->stall_in, false, -most, 0 },
                         { "work_out", &p->work_out, false, -most, 0 },
                         { "work_in", &p->work_in, false, -most, 0 },
                         { "need_first", &p->need_first, false, 0, most },
                         { "need", &p->need, false, 0, most },
                         { "host_limit", &p->host_limit, false, -most, 0 } };
  json shift;
  int64_t bits = 0;
  if (!json_need (root, "shift", &shift, err) || !json_get_int (&shift, -20, 20, &bits, err) ||
      !get_slots (root, n_ops, a, p, err) || !get_classes (root, p, err))
    return false;
  const series drops[] = { { "made", &p->made, false, -most, most },
                           { "ready", &p->ready, false, -most, most },
                           { "remake", &p->remake, false, -most, 0 } };
  p->shift = (int)bits;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (!get_series (root, &all[i], p, a, err))
      return false;
  if (!get_seams (root, a, p, err))
    return false;
  if (p->seams && (!p->sections || p->classes != 1 || p->peak != NO_OP))
    return json_error (root, err, "seams are of every cut, one class, and no peak");
  if (!p->drops)
    return (p->remake = NEW (a, p->slots, int64_t, err));
  for (size_t i = 0; i < sizeof drops / sizeof *drops; i++)
    if (!get_series (root, &drops[i], p, a, err))
      return false;
  return get_drops (root, n_ops, a, p, err);
}

bool proof_read (const char *text, const proof_ops *n, arena *a, proof *out, error *err) {
  assert (text && n && out);
  static const char *const drop_words[] = { "none", "allowed", "only", NULL };
  static const char *const kinds[] = { "compute", "crossing", "flow", NULL };
  static const char *const formats[] = { "ferry-proof/1", NULL };
  json_document *d = json_open (text, (int64_t)strlen (text), err);
  if (!d)
    return false;
  json root = json_root (d), format, kind, op = json_member (&root, "op"),
       drops = json_member (&root, "drops"), peak = json_member (&root, "peak"),
       sections = json_member (&root, "sections"), fresh = json_member (&root, "fresh");
  int which = 0, version, dropped = 0, orders = LOOSE_ANY;
  *out = (proof){ .op = NO_OP, .peak = NO_OP };
  bool ok = json_want_object (&root, err) && json_known (&root, keys, true, NULL, err) &&
            json_need (&root, "format", &format, err) &&
            json_get_word (&format, formats, &version, err) &&
            json_need (&root, "kind", &kind, err) && json_get_word (&kind, kinds, &which, err) &&
            json_read_bool (&root, "any_units", &out->any_units, err) &&
            json_get_bool (&fresh, &out->fresh, err) &&
            json_get_word (&drops, drop_words, &dropped, err) &&
            json_get_word (&sections, loose_order_names, &orders, err);
  out->kind = (proof_kind)which;
  out->drops = (proof_drops)dropped;
  out->sections = !json_is_absent (&sections);
  out->orders = (loose_orders)orders;
  int32_t n_ops = out->sections ? n->loosened[orders] : dropped ? n->cut : n->rewritten;
  ok = ok && json_get_int32 (&op, 0, n_ops - 1, &out->op, err) &&
       json_get_int32 (&peak, 0, n_ops - 1, &out->peak, err);
  if (ok && out->sections && !out->any_units)
    ok = json_error (&root, err, "a proof about every cut has any_units");
  if (ok && dropped && (!out->any_units || out->kind == PROOF_crossing))
    ok = json_error (&root, err, "a proof about drops is no crossing, and has any_units");
  if (ok && out->fresh && (!dropped || out->sections))
    ok =
        json_error (&fresh, err, "only a proof about drops in one cut says what their copies read");
  if (ok && out->peak != NO_OP && (out->drops != PROOF_DROPS_allowed || out->kind != PROOF_flow))
    ok = json_error (&peak, err, "only a program with copies and drops has a peak");
  if (ok && out->kind == PROOF_crossing && out->op == NO_OP)
    ok = json_error (&root, err, "a crossing names its op");
  if (ok && out->kind == PROOF_flow)
    ok = get_flow (&root, n_ops, a, out, err);
  json_close (d);
  return ok;
}
