/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The places of bytes that outlive a step, in the moment between two steps. */
#include "executor/room/room.h"

static bool is_cyclic_before (const move *a, const move *b) {
  return a->out_after < b->out_after;
}

/* Does the host hold this move's bytes when a step begins? A wrapping move's own; a clean one's if
   the out that made them came in the step before, or there is none. */
static bool is_held_between (const plan *p, const move *m) {
  if (!m->clean || m->in_before <= m->out_after)
    return m->in_before <= m->out_after;
  for (int32_t i = 0; i < p->n_moves; i++) {
    const move *o = &p->moves[i];
    if (o->unit == m->unit && o->part == m->part && !o->clean && is_cyclic_before (o, m))
      return false;
  }
  return true;
}

static bool each_part (const room *r, int32_t unit, room_stretch *on_device, void *context,
                       error *err) {
  for (int32_t part = 0; part < r->stays.of[unit]; part++) {
    int32_t away, stay = stays_between (&r->stays, unit, part, &away);
    if (stay >= 0 && !room_part (r, unit, part, (int64_t)r->stay_at[stay], on_device, context, err))
      return false;
  }
  return true;
}

static bool on_the_device (const room *r, room_stretch *each, void *context, error *err) {
  const trace *t = r->rewritten->trace;
  for (int32_t u = 0; u < r->units.count; u++)
    if (r->units.at[u].persistent && r->units.at[u].bytes > 0 &&
        !each_part (r, u, each, context, err))
      return false;
  for (int32_t x = 0; x < t->n_tensors; x++)
    if (r->pool_place[x] >= 0 && t->tensors[x].persistent &&
        !room_find (r, x, 0, each, context, err))
      return false;
  return true;
}

static bool on_the_host (const room *r, room_stretch *each, void *context, error *err) {
  for (int32_t i = 0; i < r->plan->n_moves; i++) {
    const move *m = &r->plan->moves[i];
    if (r->units.at[m->unit].persistent && is_held_between (r->plan, m) &&
        !room_part (r, m->unit, m->part, (int64_t)(intptr_t)r->host + m->host_offset, each, context,
                    err))
      return false;
  }
  return true;
}

bool room_between (const room *r, room_stretch *on_device, room_stretch *on_host, void *context,
                   error *err) {
  return (on_device == NULL || on_the_device (r, on_device, context, err)) &&
         (on_host == NULL || on_the_host (r, on_host, context, err));
}
