/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/forger_proof.h"

#include <string.h>

#include "base/json.h"

static const char *const names[FORGED_SERIES] = {
  "pending",   "host_first", "host",    "early_first", "early",       "stall_out",
  "stall_in",  "work_out",   "work_in", "need_first",  "need",        "host_limit",
  "ready",     "made",       "remake",  "cuts",        "inner_first", "inner_end",
  "carry_out", "carry_in",   "owed",    "owed_work"
};

#define MOST_DUAL ((int64_t)1 << 40)

/* ---- from and to text ---- */

bool forged_of (const proof *p, int32_t n_ops, forged *out) {
  int64_t *const from[] = { p->pending,     p->host_first, p->host,      p->early_first,
                            p->early,       p->stall_out,  p->stall_in,  p->work_out,
                            p->work_in,     p->need_first, p->need,      p->host_limit,
                            p->ready,       p->made,       p->remake,    p->cuts,
                            p->inner_first, p->inner_end,  p->carry_out, p->carry_in,
                            p->owed,        p->owed_work };
  *out = (forged){ .kind = (int)p->kind,
                   .drops = (int)p->drops,
                   .orders = (int)p->orders,
                   .shift = p->shift,
                   .any_units = p->any_units,
                   .fresh = p->fresh,
                   .sections = p->sections,
                   .has_again = p->again,
                   .seams = p->seams,
                   .n_reach = p->n_reach,
                   .op = p->op,
                   .peak = p->peak,
                   .slots = p->slots,
                   .classes = p->classes,
                   .n_shares = p->n_shares };
  if (p->kind != PROOF_flow || p->slots > FORGED_SLOTS || p->classes > FORGED_CLASSES ||
      p->n_shares > FORGED_SHARES || p->n_reach > FORGED_REACH || n_ops > FORGED_SLOTS)
    return false;
  for (int32_t j = 0; j < p->slots; j++)
    out->first[j] = p->first[j];
  for (int32_t c = 0; c < p->classes; c++) {
    out->class_from[c] = p->class_from[c];
    out->cycle[c] = p->cycle[c];
  }
  for (int s = 0; s < FORGED_SERIES; s++)
    for (int32_t c = 0; from[s] && c < (s < FORGED_PER_CLASS ? p->classes : 1); c++)
      memcpy (out->dual[s][c], from[s] + (int64_t)c * p->slots,
              (size_t)p->slots * sizeof (int64_t));
  for (int32_t i = 0; i < p->n_shares; i++)
    out->shares[i] = p->shares[i];
  for (int32_t i = 0; i < p->n_reach; i++) {
    out->reach[0][i] = p->reach_inner[i];
    out->reach[1][i] = p->reach_next[i];
  }
  for (int32_t k = 0; p->again && k < n_ops; k++)
    out->again |= (unsigned)p->again[k] << k;
  return true;
}

static void put_list (json_writer *w, const int64_t *at, int32_t count) {
  json_open_array (w);
  for (int32_t i = 0; i < count; i++)
    json_put_int (w, at[i]);
  json_close_array (w);
}

static void put_series (json_writer *w, const forged *f, int s) {
  json_put_key (w, names[s]);
  if (s >= FORGED_PER_CLASS) {
    put_list (w, f->dual[s][0], f->slots);
    return;
  }
  json_open_array (w);
  for (int32_t c = 0; c < f->classes; c++)
    put_list (w, f->dual[s][c], f->slots);
  json_close_array (w);
}

static void put_again (json_writer *w, const forged *f) {
  json_add_array (w, "again");
  for (int32_t k = 0; f->again >> k; k++)
    if (f->again >> k & 1)
      json_put_int (w, k);
  json_close_array (w);
}

static void put_named (json_writer *w, const char *key, const int64_t *at, int32_t count) {
  json_put_key (w, key);
  put_list (w, at, count);
}

/* The writer wants its keys in order. */
static void put_flow (json_writer *w, const forged *f) {
  int64_t first[FORGED_SLOTS];
  for (int32_t j = 0; j < f->slots; j++)
    first[j] = f->first[j];
  if (f->drops)
    put_series (w, f, FORGED_made);
  put_series (w, f, FORGED_need);
  put_series (w, f, FORGED_need_first);
  for (int s = FORGED_owed; f->seams && s <= FORGED_owed_work; s++)
    put_series (w, f, s);
  if (f->peak != NO_OP)
    json_add_int (w, "peak", f->peak);
  put_series (w, f, FORGED_pending);
  if (f->seams) {
    put_named (w, "reach_inner", f->reach[0], f->n_reach);
    put_named (w, "reach_next", f->reach[1], f->n_reach);
  }
  if (f->drops) {
    put_series (w, f, FORGED_ready);
    put_series (w, f, FORGED_remake);
  }
  if (f->sections)
    json_add_text (w, "sections", loose_order_names[f->orders]);
  if (f->drops)
    put_named (w, "shares", f->shares, f->n_shares);
  json_add_int (w, "shift", f->shift);
  put_named (w, "slots", first, f->slots);
  put_series (w, f, FORGED_stall_in);
  put_series (w, f, FORGED_stall_out);
  put_series (w, f, FORGED_work_in);
  put_series (w, f, FORGED_work_out);
}

static void put_cheap (json_writer *w, const forged *f) {
  if (f->op != NO_OP)
    json_add_int (w, "op", f->op);
  if (f->peak != NO_OP)
    json_add_int (w, "peak", f->peak);
  if (f->sections)
    json_add_text (w, "sections", loose_order_names[f->orders]);
}

const char *forged_text (const forged *f, arena *a, error *err) {
  static const char *const kinds[] = { "compute", "crossing", "flow" };
  static const char *const drops[] = { "none", "allowed", "only" };
  bool flow = f->kind == PROOF_flow;
  json_writer w;
  bytes text = { 0 };
  json_begin (&w, 0);
  json_open_object (&w);
  if (flow && f->drops && f->has_again)
    put_again (&w, f);
  json_add_bool (&w, "any_units", f->any_units);
  for (int s = FORGED_carry_in; flow && f->seams && s >= FORGED_carry_out; s--)
    put_series (&w, f, s);
  if (flow) {
    put_named (&w, "classes", f->class_from, f->classes);
    if (f->seams)
      put_series (&w, f, FORGED_cuts);
    put_named (&w, "cycle", f->cycle, f->classes);
  }
  if (f->drops)
    json_add_text (&w, "drops", drops[f->drops]);
  for (int s = FORGED_early; flow && s >= FORGED_early_first; s--)
    put_series (&w, f, s);
  json_add_text (&w, "format", "ferry-proof/1");
  if (f->fresh)
    json_add_bool (&w, "fresh", true);
  if (flow) {
    put_series (&w, f, FORGED_host);
    put_series (&w, f, FORGED_host_first);
    put_series (&w, f, FORGED_host_limit);
  }
  for (int s = FORGED_inner_end; flow && f->seams && s >= FORGED_inner_first; s--)
    put_series (&w, f, s);
  json_add_text (&w, "kind", kinds[f->kind]);
  if (flow)
    put_flow (&w, f);
  else
    put_cheap (&w, f);
  json_close_object (&w);
  const char *out = NULL;
  if (json_finish (&w, &text, err))
    out = arena_string_n (a, text.data, (size_t)text.size, err);
  bytes_free (&text);
  return out;
}

/* ---- changes ---- */

static int64_t within (int s, int64_t x) {
  bool below = s == FORGED_stall_out || s == FORGED_stall_in || s == FORGED_work_out ||
               s == FORGED_work_in || s == FORGED_host_limit || s == FORGED_remake ||
               s > FORGED_cuts;
  bool above = s == FORGED_need || s == FORGED_need_first || s == FORGED_cuts;
  if ((below && x > 0) || (above && x < 0))
    x = -x;
  return x > MOST_DUAL ? MOST_DUAL : x < -MOST_DUAL ? -MOST_DUAL : x;
}

/* What duals are mostly made of, and what they may be at most. */
static int64_t special (random_state *r) {
  const int64_t one = (int64_t)1 << 30;
  int64_t sign = random_chance (r, 500000) ? 1 : -1;
  switch (random_between (r, 0, 7)) {
  case 0:
    return 0;
  case 1:
    return sign * one;
  case 2:
    return sign * MOST_DUAL;
  case 3:
    return sign * (one * random_between (r, 1, 8) / random_between (r, 1, 8));
  case 4:
    return sign;
  case 5:
    return sign * (MOST_DUAL >> random_between (r, 0, 40));
  default:
    return sign * random_between (r, 0, 2 * one);
  }
}

static int64_t *any_dual (forged *f, random_state *r, int *s) {
  if (f->seams && random_chance (r, 400000))
    *s = (int)random_between (r, FORGED_cuts, FORGED_SERIES - 1);
  else
    *s = (int)random_between (r, 0, (f->drops ? FORGED_cuts : FORGED_ready) - 1);
  int32_t c = *s < FORGED_PER_CLASS ? (int32_t)random_between (r, 0, f->classes - 1) : 0;
  return &f->dual[*s][c][random_between (r, 0, f->slots - 1)];
}

static void change_dual (forged *f, random_state *r) {
  int s;
  int64_t *at = any_dual (f, r, &s), x = *at;
  switch (random_between (r, 0, 4)) {
  case 0:
    x = special (r);
    break;
  case 1:
    x = -x;
    break;
  case 2:
    x = f->dual[s][0][random_between (r, 0, f->slots - 1)];
    break;
  case 3:
    x = x * random_between (r, 0, 8) / random_between (r, 1, 8);
    break;
  default:
    x += special (r) >> random_between (r, 0, 12);
  }
  *at = within (s, x);
}

static void scale (forged *f, int from, int end, int64_t by, int64_t over) {
  for (int s = from; s < end; s++)
    for (int c = 0; c < FORGED_CLASSES; c++)
      for (int j = 0; j < FORGED_SLOTS; j++)
        f->dual[s][c][j] = within (s, f->dual[s][c][j] * by / over);
}

static void change_scale (forged *f, random_state *r) {
  int64_t by = random_between (r, 0, 16), over = random_between (r, 1, 16);
  int s = (int)random_between (r, 0, FORGED_SERIES - 1);
  bool all = random_chance (r, 300000);
  scale (f, all ? 0 : s, all ? FORGED_SERIES : s + 1, by, over);
  for (int32_t i = 0; all && i < f->n_shares; i++)
    f->shares[i] = f->shares[i] * by / over;
  for (int32_t i = 0; all && i < f->n_reach; i++)
    for (int w = 0; w < 2; w++)
      f->reach[w][i] = within (FORGED_owed, f->reach[w][i] * by / over);
  for (int32_t c = 0; all && c < f->classes; c++)
    f->cycle[c] = within (FORGED_pending, f->cycle[c] * by / over);
}

/* Another class of plans than the duals were made for. */
static void change_class (forged *f, int32_t n_ops, random_state *r) {
  switch (random_between (r, 0, 9)) {
  case 0:
    f->any_units = !f->any_units;
    break;
  case 9:
    f->seams = !f->seams;
    break;
  case 1:
    f->fresh = !f->fresh;
    break;
  case 2:
    f->drops = (int)random_between (r, 0, 2);
    break;
  case 3:
    f->sections = !f->sections;
    break;
  case 4:
    f->orders = !f->orders;
    break;
  case 5:
    f->kind = random_chance (r, 100000) ? (int)random_between (r, 0, 1) : PROOF_flow;
    break;
  case 6:
    f->op = (int32_t)random_between (r, NO_OP, n_ops - 1);
    break;
  case 7:
    f->peak = random_chance (r, 400000) ? NO_OP : (int32_t)random_between (r, 0, n_ops - 1);
    break;
  default:
    f->has_again = random_chance (r, 600000);
    f->again =
        (unsigned)random_between (r, 0, (1 << n_ops) - 1) & (random_chance (r, 300000) ? 0 : ~0u);
  }
  if (f->drops || f->sections)
    f->any_units = true;
  f->fresh &= f->drops && !f->sections;
  if (f->drops != PROOF_DROPS_allowed)
    f->peak = NO_OP;
}

/* A slot less, or one more with the duals of its neighbour. */
static void change_slots (forged *f, int32_t n_ops, random_state *r) {
  int32_t j = (int32_t)random_between (r, 0, f->slots - 1);
  int32_t end = j + 1 < f->slots ? f->first[j + 1] : n_ops;
  bool more = random_chance (r, 500000) && end - f->first[j] > 1 && f->slots < FORGED_SLOTS;
  if (!more && j == 0)
    return;
  int32_t from = more ? j : j + 1, to = more ? j + 1 : j;
  int32_t middle = more ? (int32_t)random_between (r, f->first[j] + 1, end - 1) : 0;
  size_t rest = (size_t)(f->slots - from);
  for (int s = 0; s < FORGED_SERIES; s++)
    for (int c = 0; c < FORGED_CLASSES; c++)
      memmove (&f->dual[s][c][to], &f->dual[s][c][from], rest * sizeof (int64_t));
  memmove (&f->first[to], &f->first[from], rest * sizeof *f->first);
  f->slots += more ? 1 : -1;
  if (more)
    f->first[j + 1] = middle;
}

static void change_weights (forged *f, random_state *r) {
  int32_t c = (int32_t)random_between (r, 0, f->classes - 1);
  if (random_chance (r, 200000) && f->classes < FORGED_CLASSES) {
    f->classes++;
    f->class_from[f->classes - 1] = f->class_from[f->classes - 2] + 1 +
                                    (int64_t)(random_next (r) >> random_between (r, 36, 63));
    f->cycle[f->classes - 1] = 0;
  } else if (random_chance (r, 200000) && f->classes > 1)
    f->classes--;
  else if (random_chance (r, 500000))
    f->class_from[c] = random_chance (r, 500000) ? 0 : f->class_from[c] + random_between (r, -9, 9);
  else
    f->cycle[c] = within (FORGED_pending, special (r));
}

/* Mostly as many as there are seams and slots before them. */
static void change_reach (forged *f, random_state *r) {
  if (random_chance (r, 100000))
    f->n_reach = (int32_t)random_between (r, 0, FORGED_REACH);
  else if (f->n_reach > 0)
    f->reach[random_between (r, 0, 1)][random_between (r, 0, f->n_reach - 1)] =
        within (FORGED_owed, special (r));
}

void forged_change (forged *f, int32_t n_ops, random_state *r) {
  int64_t what = random_between (r, 0, f->seams ? 119 : 99);
  if (what < 60)
    change_dual (f, r);
  else if (what > 99)
    change_reach (f, r);
  else if (what < 72)
    change_scale (f, r);
  else if (what < 82)
    change_class (f, n_ops, r);
  else if (what < 87)
    change_slots (f, n_ops, r);
  else if (what < 91)
    change_weights (f, r);
  else if (what < 94)
    f->shift = (int)random_between (r, -20, 20);
  else if (f->n_shares > 0)
    f->shares[random_between (r, 0, f->n_shares - 1)] = within (FORGED_need, special (r));
}
