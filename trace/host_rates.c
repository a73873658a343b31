/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/host_rates.h"

#include <assert.h>

#include "base/order.h"

/* The rate that the card's own link would give it. */
static int64_t of_link (const link_rates *link, const host_flows *f, copy_way way, int32_t card) {
  bool both = f->carries[WAY_out] & f->carries[WAY_in] & (uint64_t)1 << card;
  if (way == WAY_out)
    return both ? link->out_both : link->out_alone;
  return both ? link->in_both : link->in_alone;
}

static int64_t wanted (const link_rates *link, const host_flows *f, copy_way way, uint64_t cards) {
  int64_t sum = 0; /* 64 rates of at most 2^53 */
  for (cards &= f->carries[way]; cards; cards &= cards - 1)
    sum += of_link (link, f, way, __builtin_ctzll (cards));
  return sum;
}

/* A group is sure of its rate for both ways, and of whatever the other way cannot use. */
static int64_t capacity (const host_group *g, const link_rates *link, const host_flows *f,
                         copy_way way) {
  copy_way other = way == WAY_out ? WAY_in : WAY_out;
  int64_t against = wanted (link, f, other, g->cards);
  if (!against)
    return g->one_way[way];
  int64_t left = g->both[WAY_out] + g->both[WAY_in] - against;
  return min_of (g->one_way[way], max_of (g->both[way], left));
}

typedef struct dealing {
  const gpu_host *h;
  uint64_t rising;
  int64_t left[HOST_MOST_GROUPS]; /* of each group's capacity, what those that stopped leave */
} dealing;

static void stop (dealing *d, uint64_t cards, int64_t rate, int64_t *rates) {
  d->rising &= ~cards;
  for (uint64_t at = cards; at; at &= at - 1)
    rates[__builtin_ctzll (at)] = rate;
  for (int32_t g = 0; g < d->h->n_groups; g++)
    d->left[g] -= rate * __builtin_popcountll (d->h->groups[g].cards & cards);
}

/* The group that is full first, the first of equals; *level is the rate at which it is. */
static int32_t fullest (const dealing *d, int64_t *level) {
  int32_t best = -1;
  for (int32_t g = 0; g < d->h->n_groups; g++) {
    int n = __builtin_popcountll (d->h->groups[g].cards & d->rising);
    int64_t at = n ? max_of (1, d->left[g] / n) : 0;
    if (n && (best < 0 || at < *level)) {
      best = g;
      *level = at;
    }
  }
  return best;
}

/* All rates rise together; a card stops at its link's, or when a group of it is full. */
static void deal (const gpu_host *h, const link_rates *link, host_flows *f, copy_way way) {
  dealing d = { .h = h, .rising = f->carries[way] };
  for (int32_t g = 0; g < h->n_groups; g++)
    d.left[g] = capacity (&h->groups[g], link, f, way);
  while (d.rising) {
    int64_t level = 0, least = INT64_MAX;
    int32_t full = fullest (&d, &level);
    uint64_t at_link = 0;
    for (uint64_t at = d.rising; at; at &= at - 1) {
      int32_t card = __builtin_ctzll (at);
      int64_t own = of_link (link, f, way, card);
      if (own < least)
        at_link = 0;
      least = min_of (least, own);
      if (own == least)
        at_link |= (uint64_t)1 << card;
    }
    if (full < 0 || least <= level)
      stop (&d, at_link, least, f->rate[way]);
    else
      stop (&d, h->groups[full].cards & d.rising, level, f->rate[way]);
  }
}

void host_rates (const gpu_host *h, const link_rates *link, host_flows *flows) {
  assert (h->n_cards <= HOST_MOST_CARDS && h->n_groups <= HOST_MOST_GROUPS);
  for (int way = 0; way < COPY_WAYS; way++) {
    for (int32_t card = 0; card < h->n_cards; card++)
      flows->rate[way][card] = 0;
    deal (h, link, flows, (copy_way)way);
  }
}
