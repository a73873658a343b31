/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/random_wishes.h"

typedef struct making {
  const units *u;
  random_state *r;
  arena *arena;
  error *err;
  wish *at;
  int64_t room;
  int32_t count;
} making;

static bool add (making *m, wish w) {
  wish *moved =
      arena_grow (m->arena, m->at, &m->room, (int64_t)m->count + 1, sizeof *m->at, m->err);
  if (!moved)
    return false;
  m->at = moved;
  m->at[m->count++] = w;
  return true;
}

/* Some parts of the gap from op a to op b. */
static bool add_gap (making *m, int32_t unit, int32_t of, int32_t a, int32_t b) {
  for (int32_t part = 0; part < of; part++) {
    wish w = {
      .unit = unit, .part = part, .of = of, .out_after = a, .in_before = b, .in_not_before = NO_WAIT
    };
    if (of > 1 && random_chance (m->r, 300000))
      continue;
    if (random_chance (m->r, 200000))
      w.in_not_before = b;
    else if (a < b && random_chance (m->r, 200000))
      w.in_not_before = (int32_t)random_between (m->r, a + 1, b);
    w.wait_out = random_chance (m->r, 100000);
    if (!add (m, w))
      return false;
  }
  return true;
}

bool random_wishes (const units *u, random_state *r, int64_t move_ppm, arena *a, wish **out,
                    int32_t *count, error *err) {
  making m = { .u = u, .r = r, .arena = a, .err = err };
  for (int32_t i = 0; i < u->count; i++) {
    const unit_info *x = &u->at[i];
    if (x->bytes == 0 || x->pinned)
      continue;
    int32_t of = x->granules > 1 && random_chance (r, 400000)
                     ? (int32_t)random_between (r, 1, x->granules < 4 ? x->granules : 4)
                     : 1;
    int32_t first = u->use_offset[i], end = u->use_offset[i + 1];
    for (int32_t j = first; j + 1 < end; j++)
      if (u->uses[j + 1].op > u->uses[j].op && random_chance (r, move_ppm) &&
          !add_gap (&m, i, of, u->uses[j].op, u->uses[j + 1].op))
        return false;
    if (x->persistent && end > first && random_chance (r, move_ppm) &&
        !add_gap (&m, i, of, u->uses[end - 1].op, u->uses[first].op))
      return false;
  }
  *out = m.at;
  *count = m.count;
  return true;
}
