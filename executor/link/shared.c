/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The links that the cards of a machine share.  Cards share one if a card is faster while the other
   one is left out; two levels are told apart: what all cards together fill, and what pairs fill. */
#include <assert.h>
#include <stdio.h>

#include "base/order.h"
#include "base/units.h"
#include "executor/link/inner.h"
#include "trace/host_rates.h"

enum {
  PASSES = 12,            /* the sizes of copies follow the rates that the pass before saw */
  TOGETHER_PPM = 1001000, /* of the first copy's time: the last that still ends with it */
  LEAST_PART = 64,        /* of the largest copy, the smallest */
  NOTICED_PPM = 1030000   /* of a rate: from here on a faster one is no accident */
};

/* The copies of a run: which cards copy which way. */
typedef enum copy_kind { KIND_out, KIND_in, KIND_both, COPY_KINDS } copy_kind;

typedef struct lab {
  const driver *d;
  bool emulated;
  int32_t n;
  driver cards[HOST_MOST_CARDS];
  link_bench benches[HOST_MOST_CARDS];
  int64_t most_bytes, copy_ns;
  int64_t first_ns, last_ns; /* ends of the copies of the last run */
} lab;

/* Bytes a second, by way and card; 0 where nothing is copied. */
typedef struct rates {
  int64_t of[COPY_WAYS][HOST_MOST_CARDS];
} rates;

static bool copies (copy_kind kind, int way) {
  return kind == KIND_both || (int)kind == way;
}

static bool enter (const lab *l, int32_t card, error *err) {
  const driver *d = &l->cards[card];
  return driver_ok (d, d->ctx_set_current (d->context), "cuCtxSetCurrent", err);
}

static bool open_lab (lab *l, error *err) {
  int count = 0;
  if (!driver_ok (l->d, l->d->init (0), "cuInit", err) ||
      !driver_ok (l->d, l->d->device_get_count (&count), "cuDeviceGetCount", err))
    return false;
  if (count > HOST_MOST_CARDS)
    return error_set (err, ERR_device, "%d cards are more than %d", count, HOST_MOST_CARDS);
  for (; l->n < count; l->n++) {
    driver *d = &l->cards[l->n];
    *d = *l->d;
    l->benches[l->n] = (link_bench){ .d = d };
    if (!driver_start (d, l->n, err)) {
      driver_stop (d);
      return false;
    }
    if (!link_open (&l->benches[l->n], l->emulated, l->most_bytes, err)) {
      l->n++; /* it is closed as far as it was opened */
      return false;
    }
  }
  return true;
}

static void close_lab (lab *l) {
  for (int32_t i = 0; i < l->n; i++) {
    l->cards[i].ctx_set_current (l->cards[i].context);
    link_close (&l->benches[i]);
    driver_stop (&l->cards[i]);
  }
}

static bool issue_all (lab *l, uint64_t cards, copy_kind kind, const rates *bytes, error *err) {
  link_bench *first = &l->benches[0];
  if (!enter (l, 0, err) ||
      !kernels_wait (first->d, &first->k, first->gate, (int64_t)LINK_GATE_NS * l->n, err) ||
      !driver_ok (first->d, first->d->event_record (first->open, first->gate), "cuEventRecord",
                  err))
    return false;
  for (int32_t i = 0; i < l->n; i++)
    for (int way = 0; way < COPY_WAYS && cards >> i & 1; way++)
      if (copies (kind, way) && (!enter (l, i, err) || !link_issue (&l->benches[i], first->open,
                                                                    way, bytes->of[way][i], err)))
        return false;
  return true;
}

static bool read_card (lab *l, int32_t card, copy_kind kind, const rates *bytes, rates *out,
                       error *err) {
  const link_bench *b = &l->benches[card];
  if (!enter (l, card, err) || !driver_ok (b->d, b->d->ctx_synchronize (), "cuCtxSynchronize", err))
    return false;
  for (int way = 0; way < COPY_WAYS; way++) {
    float ms = 0;
    if (!copies (kind, way))
      continue;
    if (!driver_ok (b->d, b->d->event_elapsed (&ms, b->begin[way], b->end[way]),
                    "cuEventElapsedTime", err))
      return false;
    int64_t ns = max_of (1, (int64_t)((double)ms * 1e6) - l->copy_ns);
    l->first_ns = min_of (l->first_ns, ns);
    l->last_ns = max_of (l->last_ns, ns);
    out->of[way][card] = units_scale (bytes->of[way][card], 1000000000, ns);
  }
  return true;
}

static bool once (lab *l, uint64_t cards, copy_kind kind, const rates *bytes, rates *out,
                  error *err) {
  *out = (rates){ 0 };
  l->first_ns = INT64_MAX;
  l->last_ns = 0;
  if (!issue_all (l, cards, kind, bytes, err))
    return false;
  for (int32_t i = 0; i < l->n; i++)
    if (cards >> i & 1 && !read_card (l, i, kind, bytes, out, err))
      return false;
  return true;
}

/* Copies that end together had their rates all the time: each pass deals out bytes by the rates
   that the one before saw. */
static bool run (lab *l, uint64_t cards, copy_kind kind, rates *out, error *err) {
  rates bytes;
  for (int way = 0; way < COPY_WAYS; way++)
    for (int32_t i = 0; i < l->n; i++)
      bytes.of[way][i] = l->most_bytes;
  for (int pass = 0; pass < PASSES; pass++) {
    int64_t fastest = 1;
    if (!once (l, cards, kind, &bytes, out, err))
      return false;
    if ((__int128)l->last_ns * 1000000 <= (__int128)l->first_ns * TOGETHER_PPM)
      return true;
    for (int way = 0; way < COPY_WAYS; way++)
      for (int32_t i = 0; i < l->n; i++)
        fastest = max_of (fastest, out->of[way][i]);
    for (int way = 0; way < COPY_WAYS; way++)
      for (int32_t i = 0; i < l->n; i++)
        bytes.of[way][i] = max_of (l->most_bytes / LEAST_PART,
                                   units_scale (l->most_bytes, out->of[way][i], fastest));
  }
  return true;
}

/* ---- the cards that share ---- */

static uint64_t bit (int32_t card) {
  return (uint64_t)1 << card;
}

static uint64_t every (int32_t n) {
  return n == 64 ? UINT64_MAX : bit (n) - 1;
}

static bool is_faster (int64_t than, int64_t rate) {
  return (__int128)rate * 1000000 > (__int128)than * NOTICED_PPM;
}

/* Marks the cards that are faster in `b` than in `a`. */
static uint64_t faster (const lab *l, const rates *a, const rates *b) {
  uint64_t cards = 0;
  for (int32_t i = 0; i < l->n; i++)
    for (int way = 0; way < COPY_WAYS; way++)
      if (a->of[way][i] && is_faster (a->of[way][i], b->of[way][i]))
        cards |= bit (i);
  return cards;
}

typedef struct shares {
  uint64_t with[HOST_MOST_CARDS]; /* by card: those that it shares a link with */
} shares;

static void note (shares *s, uint64_t cards, int32_t with) {
  s->with[with] |= cards;
  for (uint64_t at = cards; at; at &= at - 1)
    s->with[__builtin_ctzll (at)] |= bit (with);
}

/* Each card is left out in turn: the others of its links are faster. */
static bool leave_out (lab *l, shares *s, error *err) {
  for (int kind = 0; kind < COPY_KINDS; kind++) {
    rates all, rest;
    if (!run (l, every (l->n), (copy_kind)kind, &all, err))
      return false;
    for (int32_t i = 0; i < l->n; i++) {
      if (!run (l, every (l->n) & ~bit (i), (copy_kind)kind, &rest, err))
        return false;
      note (s, faster (l, &all, &rest) & ~bit (i), i);
    }
  }
  return true;
}

/* The rates of two cards, as far as the groups that were found explain them. */
static rates explained (const lab *l, const gpu_host *h, uint64_t cards, copy_kind kind) {
  link_rates own = device_rates (&h->link, 1000000);
  host_flows f = { .carries = { copies (kind, WAY_out) ? cards : 0,
                                copies (kind, WAY_in) ? cards : 0 } };
  rates out = { 0 };
  host_rates (h, &own, &f);
  for (int way = 0; way < COPY_WAYS; way++)
    for (int32_t i = 0; i < l->n; i++)
      out.of[way][i] = f.rate[way][i];
  return out;
}

/* Two cards are slower together than what is known explains. */
static bool pair_up (lab *l, const gpu_host *known, shares *s, error *err) {
  for (int kind = 0; kind < COPY_KINDS; kind++)
    for (int32_t i = 0; i < l->n; i++)
      for (int32_t k = i + 1; k < l->n; k++) {
        uint64_t cards = bit (i) | bit (k);
        rates seen, expected = explained (l, known, cards, (copy_kind)kind);
        if (!run (l, cards, (copy_kind)kind, &seen, err))
          return false;
        if (faster (l, &seen, &expected))
          note (s, bit (k), i);
      }
  return true;
}

/* All that are connected with the card. */
static uint64_t component (const shares *s, int32_t card) {
  uint64_t in = bit (card), seen = 0;
  while (in != seen) {
    uint64_t next = in & ~seen;
    seen = in;
    for (; next; next &= next - 1)
      in |= s->with[__builtin_ctzll (next)];
  }
  return in;
}

/* ---- the groups ---- */

static bool measure_group (lab *l, uint64_t cards, host_group *out, error *err) {
  out->cards = cards;
  for (int kind = 0; kind < COPY_KINDS; kind++) {
    rates r;
    if (!run (l, cards, (copy_kind)kind, &r, err))
      return false;
    for (int way = 0; way < COPY_WAYS; way++) {
      int64_t sum = 0;
      for (int32_t i = 0; i < l->n; i++)
        sum += r.of[way][i];
      sum = max_of (sum, DEVICE_LEAST_RATE);
      if (kind == KIND_both)
        out->both[way] = min_of (sum, out->one_way[way]);
      else if (copies ((copy_kind)kind, way))
        out->one_way[way] = sum;
    }
  }
  return true;
}

static bool add_groups (lab *l, const shares *s, host_kind kind, arena *a, gpu_host *out,
                        error *err) {
  int32_t named = 0;
  for (int32_t i = 0; i < l->n; i++) {
    uint64_t cards = component (s, i);
    bool old = cards == bit (i) || cards & (bit (i) - 1); /* alone, or with an earlier card */
    for (int32_t g = 0; g < out->n_groups; g++)
      old |= out->groups[g].cards == cards;
    if (old || out->n_groups == HOST_MOST_GROUPS)
      continue;
    host_group *g = &out->groups[out->n_groups++];
    char name[32];
    g->kind = cards == every (l->n) ? HOST_whole : kind;
    snprintf (name, sizeof name, g->kind == HOST_whole ? "%s" : "%s %d", host_kinds[g->kind],
              named++);
    if (!(g->name = arena_string (a, name, err)) || !measure_group (l, cards, g, err))
      return false;
  }
  return true;
}

static bool find_groups (lab *l, arena *a, gpu_host *out, error *err) {
  shares all = { 0 }, pairs = { 0 };
  return ALLOC (a, out->groups, HOST_MOST_GROUPS, err) && (l->n < 2 || leave_out (l, &all, err)) &&
         add_groups (l, &all, HOST_cpu, a, out, err) && pair_up (l, out, &pairs, err) &&
         add_groups (l, &pairs, HOST_switch, a, out, err);
}

bool link_measure_host (const driver *d, bool emulated, int64_t most_bytes, arena *a, gpu_host *out,
                        error *err) {
  assert (d && most_bytes >= 0 && out);
  lab *l = NEW (a, 1, lab, err);
  if (l == NULL)
    return false;
  l->d = d;
  l->emulated = emulated;
  l->copy_ns = out->link.copy_ns;
  l->most_bytes = most_bytes == 0 ? LINK_USUAL_MOST : most_bytes;
  bool good = open_lab (l, err);
  out->n_cards = l->n;
  good = good && find_groups (l, a, out, err);
  close_lab (l);
  return good;
}
