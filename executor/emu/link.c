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
  *l = (link_state){ .copy_ns = c->copy_ns };
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

static int64_t rate_of (const link_state *l, int engine) {
  return carries (l, 1 - engine) ? l->both[engine] : l->alone[engine];
}

void link_begin (link_state *l, int engine, int64_t at_ns, int64_t bytes) {
  assert ((engine == 0 || engine == 1) && bytes >= 0 && !l->engine[engine].busy);
  l->engine[engine] = (link_engine){ .busy = true,
                                     .carries_from_ns = at_ns + l->copy_ns,
                                     .left = (__int128)bytes * 1000000000 };
}

int64_t link_next (const link_state *l) {
  int64_t next = INT64_MAX;
  for (int e = 0; e < 2; e++) {
    const link_engine *g = &l->engine[e];
    if (!g->busy)
      continue;
    int64_t at = g->carries_from_ns;
    if (l->now_ns >= at) {
      int64_t rate = rate_of (l, e);
      __int128 end_ns = l->now_ns + (g->left + rate - 1) / rate;
      at = end_ns < LAST_NS ? (int64_t)end_ns : l->now_ns > LAST_NS ? l->now_ns : LAST_NS;
    }
    next = at < next ? at : next;
  }
  return next;
}

void link_carry (link_state *l, int64_t to_ns) {
  assert (to_ns >= l->now_ns);
  __int128 worked[2] = { 0, 0 };
  for (int e = 0; e < 2; e++)
    if (carries (l, e))
      worked[e] = (__int128)rate_of (l, e) * (to_ns - l->now_ns);
  for (int e = 0; e < 2; e++) {
    l->engine[e].left -= worked[e];
    if (l->engine[e].left < 0 || (carries (l, e) && to_ns >= LAST_NS))
      l->engine[e].left = 0;
  }
  l->now_ns = to_ns;
}

bool link_ended (link_state *l, int engine) {
  link_engine *e = &l->engine[engine];
  if (!e->busy || l->now_ns < e->carries_from_ns || e->left > 0)
    return false;
  e->busy = false;
  return true;
}

int64_t link_end_of (const link_state *l, int engine) {
  assert (engine == 0 || engine == 1);
  link_state ahead = *l;
  while (ahead.engine[engine].busy) {
    link_carry (&ahead, link_next (&ahead));
    link_ended (&ahead, 1 - engine);
    if (link_ended (&ahead, engine))
      return ahead.now_ns;
  }
  return ahead.now_ns;
}
