/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/emu/link.h"

#include <assert.h>

/* The end of time: nothing measures longer, and all that is on its way has ended. */
#define LAST_NS ((int64_t)1 << 62)

/* Half rates are doubled so that the minimum stays exact until the share is taken. */
static int64_t shared_rate (int64_t own, int64_t other, int64_t both, int64_t share_ppm) {
  int64_t twice = both > 2 * (both - other) ? both : 2 * (both - other);
  if (twice > 2 * own)
    twice = 2 * own;
  int64_t rate = (int64_t)((__int128)twice * share_ppm / 2000000);
  return rate < 1 ? 1 : rate;
}

void link_start (link_state *l, const emu_config *c) {
  int64_t share = c->share_ppm == 0 ? 1000000 : c->share_ppm;
  int64_t rate[2] = { c->d2h_bytes_per_s, c->h2d_bytes_per_s };
  int64_t both = c->both_bytes_per_s == 0 ? rate[0] + rate[1] : c->both_bytes_per_s;
  *l = (link_state){ .copy_ns = c->copy_ns, .n_groups = c->n_groups, .groups = c->groups };
  l->n_engines = c->cards == 0 ? 2 : 2 * c->cards;
  for (int e = 0; e < 2; e++) {
    int64_t alone = (int64_t)((__int128)rate[e] * share / 1000000);
    l->alone[e] = alone < 1 ? 1 : alone;
    l->both[e] = shared_rate (rate[e], rate[1 - e], both, share);
  }
}

static bool carries (const link_state *l, int engine) {
  const link_engine *e = &l->engine[engine];
  return e->busy && l->now_ns >= e->carries_from_ns && e->left > 0;
}

/* ---- rates ---- */

/* By the link of its own device. */
static int64_t wanted (const link_state *l, int engine) {
  return carries (l, engine ^ 1) ? l->both[engine & 1] : l->alone[engine & 1];
}

static bool is_in (const emu_group *g, int engine) {
  return g->cards >> (engine / 2) & 1;
}

static int64_t capacity (const link_state *l, const emu_group *g, int way) {
  int64_t against = 0;
  for (int e = 1 - way; e < l->n_engines; e += 2)
    if (is_in (g, e) && carries (l, e))
      against += wanted (l, e);
  if (against == 0)
    return g->one_way[way];
  int64_t left = g->both[0] + g->both[1] - against;
  int64_t sure = left > g->both[way] ? left : g->both[way];
  return sure < g->one_way[way] ? sure : g->one_way[way];
}

/* The rate up to which these can rise together before the group is full; 0: none of them rises. */
static int64_t level (const link_state *l, const emu_group *g, int way, const bool *rises) {
  int64_t left = capacity (l, g, way), n = 0;
  for (int e = way; e < l->n_engines; e += 2)
    if (is_in (g, e) && carries (l, e)) {
      n += rises[e];
      left -= rises[e] ? 0 : l->engine[e].rate;
    }
  return n == 0 ? 0 : left < n ? 1 : left / n;
}

/* Stops the rates that can rise no further; false: there were none. */
static bool stop_some (link_state *l, int way, bool *rises) {
  const emu_group *full = NULL;
  int64_t least = INT64_MAX, lowest = INT64_MAX;
  for (int e = way; e < l->n_engines; e += 2)
    if (rises[e] && wanted (l, e) < least)
      least = wanted (l, e);
  for (int32_t g = 0; g < l->n_groups; g++) {
    int64_t at = level (l, &l->groups[g], way, rises);
    if (at > 0 && at < lowest) {
      lowest = at;
      full = &l->groups[g];
    }
  }
  bool any = false, at_link = least <= lowest;
  for (int e = way; e < l->n_engines; e += 2) {
    if (!rises[e] || (at_link ? wanted (l, e) != least : !is_in (full, e)))
      continue;
    l->engine[e].rate = at_link ? least : lowest;
    rises[e] = false;
    any = true;
  }
  return any;
}

static void deal (link_state *l) {
  bool rises[LINK_ENGINES];
  for (int e = 0; e < l->n_engines; e++) {
    rises[e] = carries (l, e);
    l->engine[e].rate = l->n_groups == 0 && rises[e] ? wanted (l, e) : 0;
  }
  for (int way = 0; way < 2 && l->n_groups > 0; way++)
    while (stop_some (l, way, rises))
      ;
}

/* ---- time ---- */

void link_begin (link_state *l, int engine, int64_t at_ns, int64_t bytes) {
  assert (engine >= 0 && engine < l->n_engines && bytes >= 0 && !l->engine[engine].busy);
  l->engine[engine] = (link_engine){ .busy = true,
                                     .carries_from_ns = at_ns + l->copy_ns,
                                     .left = (__int128)bytes * 1000000000 };
  deal (l);
}

int64_t link_next (const link_state *l) {
  int64_t next = INT64_MAX;
  for (int e = 0; e < l->n_engines; e++) {
    const link_engine *g = &l->engine[e];
    if (!g->busy)
      continue;
    int64_t at = g->carries_from_ns;
    if (l->now_ns >= at) {
      __int128 end_ns = l->now_ns + (g->left > 0 ? (g->left + g->rate - 1) / g->rate : 0);
      at = end_ns < LAST_NS ? (int64_t)end_ns : l->now_ns > LAST_NS ? l->now_ns : LAST_NS;
    }
    next = at < next ? at : next;
  }
  return next;
}

void link_carry (link_state *l, int64_t to_ns) {
  assert (to_ns >= l->now_ns);
  for (int e = 0; e < l->n_engines; e++) {
    link_engine *g = &l->engine[e];
    if (!carries (l, e))
      continue;
    __int128 worked = (__int128)g->rate * (to_ns - l->now_ns);
    g->left = worked >= g->left || to_ns >= LAST_NS ? 0 : g->left - worked;
  }
  l->now_ns = to_ns;
  deal (l);
}

bool link_ended (link_state *l, int engine) {
  assert (engine >= 0 && engine < (int)(sizeof l->engine / sizeof *l->engine));
  link_engine *e = &l->engine[engine];
  if (!e->busy || l->now_ns < e->carries_from_ns || e->left > 0)
    return false;
  e->busy = false;
  return true;
}

int64_t link_end_of (const link_state *l, int engine) {
  assert (engine >= 0 && engine < l->n_engines);
  link_state ahead = *l;
  while (ahead.engine[engine].busy) {
    link_carry (&ahead, link_next (&ahead));
    for (int e = 0; e < ahead.n_engines; e++)
      if (e != engine)
        link_ended (&ahead, e);
    if (link_ended (&ahead, engine))
      return ahead.now_ns;
  }
  return ahead.now_ns;
}
