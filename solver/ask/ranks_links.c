/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/ask/ranks_links.h"

#include "base/order.h"
#include "trace/host_rates.h"

static device_link clamped (device_link l) {
  l.d2h_bytes_per_s = max_of (l.d2h_bytes_per_s, DEVICE_LEAST_RATE);
  l.h2d_bytes_per_s = max_of (l.h2d_bytes_per_s, DEVICE_LEAST_RATE);
  l.both_bytes_per_s = max_of (l.both_bytes_per_s, DEVICE_LEAST_RATE);
  return l;
}

sharing sharing_all (const ranks_question *r) {
  return (sharing){ r, r->ranks == 64 ? UINT64_MAX : ((uint64_t)1 << r->ranks) - 1 };
}

device_link sharing_both (const sharing *s, int32_t rank) {
  const ranks_question *r = s->r;
  uint64_t copying = s->copying | (uint64_t)1 << rank;
  host_flows f = { .carries = { copying, copying } };
  link_rates own = device_rates (&r->host->link, 1000000);
  host_rates (r->host, &own, &f);
  int64_t out = f.rate[WAY_out][rank], in = f.rate[WAY_in][rank];
  device_link l = r->host->link;
  if (out < own.out_both)
    l.d2h_bytes_per_s = out;
  if (in < own.in_both)
    l.h2d_bytes_per_s = in;
  if (out < own.out_both || in < own.in_both)
    l.both_bytes_per_s = out + in;
  return clamped (l);
}

/* The number of ranks on cards of the same groups: their rates are equal while they do the same. */
static int32_t alike (const sharing *s, int32_t rank) {
  const ranks_question *r = s->r;
  int32_t n = 0;
  for (int32_t i = 0; i < r->ranks; i++) {
    bool same = i == rank || s->copying >> i & 1;
    for (int32_t g = 0; g < r->host->n_groups; g++)
      same &= (r->host->groups[g].cards >> i & 1) == (r->host->groups[g].cards >> rank & 1);
    n += same;
  }
  return n;
}

/* The highest rate of a rank one way while n ranks of the group copy both ways. */
static int64_t most_both (const host_group *g, copy_way way, int64_t n, int64_t against) {
  int64_t left = g->both[WAY_out] + g->both[WAY_in] - n * against;
  return min_of (g->one_way[way], max_of (g->both[way], left)) / n;
}

device_link sharing_one_way (const sharing *s, int32_t rank) {
  const ranks_question *r = s->r;
  device_link l = r->host->link;
  link_rates own = device_rates (&l, 1000000);
  int64_t n = alike (s, rank), both = 0, most[COPY_WAYS] = { own.out_both, own.in_both };
  for (int32_t i = 0; i < r->host->n_groups; i++) {
    const host_group *g = &r->host->groups[i];
    if (!(g->cards >> rank & 1))
      continue;
    l.d2h_bytes_per_s = min_of (l.d2h_bytes_per_s, g->one_way[WAY_out] / n);
    l.h2d_bytes_per_s = min_of (l.h2d_bytes_per_s, g->one_way[WAY_in] / n);
    most[WAY_out] = min_of (most[WAY_out], most_both (g, WAY_out, n, own.in_both));
    most[WAY_in] = min_of (most[WAY_in], most_both (g, WAY_in, n, own.out_both));
  }
  both = 2 * max_of (most[WAY_out], most[WAY_in]);
  l.both_bytes_per_s = min_of (l.d2h_bytes_per_s + l.h2d_bytes_per_s, both);
  return clamped (l);
}

static device_link mean (const device_link *a, const device_link *b) {
  return (device_link){ (a->d2h_bytes_per_s + b->d2h_bytes_per_s) / 2,
                        (a->h2d_bytes_per_s + b->h2d_bytes_per_s) / 2,
                        (a->both_bytes_per_s + b->both_bytes_per_s) / 2, a->copy_ns };
}

device_link sharing_link (const sharing *s, ranks_kind kind, int32_t rank) {
  const device_link *alone = &s->r->host->link;
  if (kind == RANKS_alone)
    return *alone;
  if (kind == RANKS_one_way)
    return sharing_one_way (s, rank);
  device_link both = sharing_both (s, rank);
  return kind == RANKS_both ? both : mean (alone, &both);
}

bool sharing_same (const device_link *a, const device_link *b) {
  return a->d2h_bytes_per_s == b->d2h_bytes_per_s && a->h2d_bytes_per_s == b->h2d_bytes_per_s &&
         a->both_bytes_per_s == b->both_bytes_per_s;
}
