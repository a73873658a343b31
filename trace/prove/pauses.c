/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Amounts that may leave: the memory that is short, the pauses of a unit, its parts. */
#include "base/units.h"

#include <assert.h>

#include "trace/prove/prover.h"

/* ---- memory ---- */

int64_t prover_room (const prover *v, int32_t unit) {
  assert (unit >= 0 && unit < v->u.count);
  return v->u.at[unit].granules * v->granule_bytes;
}

/* Bytes that are there at each op, in whole granules; false: they do not fit in 64 bits. */
static bool add_rooms (prover *v) {
  int32_t n = v->t->n_ops;
  bool fits = true;
  for (int32_t i = 0; i < v->u.count; i++) {
    const unit_info *x = &v->u.at[i];
    bool untouched = x->first == NO_OP;
    /* a unit that no op touches may be away at any op: it proves nothing, and is left out */
    if (!x->bytes || (untouched && !x->pinned))
      continue;
    int32_t from = x->persistent ? 0 : x->first, to = x->persistent ? n : x->last + 1;
    int64_t room = prover_room (v, i);
    fits &= !__builtin_add_overflow (v->excess[from], room, &v->excess[from]) &&
            !__builtin_sub_overflow (v->excess[to], room, &v->excess[to]);
  }
  for (int32_t k = 1; k < n; k++)
    fits &= !__builtin_add_overflow (v->excess[k], v->excess[k - 1], &v->excess[k]);
  return fits;
}

bool prover_resident (prover *v, error *err) {
  int32_t n = v->t->n_ops;
  bool fits = true;
  int64_t pool = units_div_up (v->u.pool_bytes, v->granule_bytes) * v->granule_bytes;
  if (!ALLOC (v->a, v->excess, (int64_t)n + 1, err) || !ALLOC (v->a, v->tight, (int64_t)n + 1, err))
    return false;
  v->room_bytes = v->p->budget_bytes / v->granule_bytes * v->granule_bytes - pool;
  fits = add_rooms (v);
  for (int32_t k = 0; k < n; k++) {
    int64_t over = units_div_up (v->t->ops[k].workspace_bytes, v->granule_bytes) * v->granule_bytes;
    fits &= !__builtin_sub_overflow (over, v->room_bytes, &over) &&
            !__builtin_add_overflow (v->excess[k], over, &v->excess[k]);
    if (v->loose && v->loose[k])
      v->excess[k] = 0;
    v->tight[k + 1] = v->tight[k] + (v->excess[k] > 0);
  }
  return fits ||
         error_set (err, ERR_input,
                    "the tensors of this trace, in whole granules, do not fit in 2^63 bytes");
}

/* ---- pauses ---- */

int32_t pauses_of (const prover *v, int32_t unit, pause *to, bool *circle) {
  assert (unit >= 0 && unit < v->u.count);
  const unit_info *x = &v->u.at[unit];
  const use *uses = v->u.uses + v->u.use_offset[unit];
  int32_t m = v->u.use_offset[unit + 1] - v->u.use_offset[unit], n = v->t->n_ops;
  *circle = false;
  if (!x->bytes || x->pinned || m == 0)
    return 0;
  int32_t count = x->persistent ? m : m - 1, start = 0;
  if (x->persistent) {
    while (start < m && !uses[start].writes)
      start++;
    *circle = start == m;
    start = *circle ? 0 : start;
  }
  for (int32_t i = 0; i < count; i++) {
    int32_t from = (start + i) % m, a = uses[from].op, b = uses[(from + 1) % m].op;
    bool begins = !x->persistent && i == 0;
    to[i] = (pause){ .release = (a + 1) % n, .due = b };
    to[i].wraps = b < to[i].release;
    if (v->loose && v->loose[a]) {
      to[i].within = true;
      to[i].release = a;
      to[i].wraps = b <= a;
    }
    to[i].linked = !begins && !uses[from].writes;
    to[i].tight =
        b > a ? v->tight[b] > v->tight[a + 1] : v->tight[n] - v->tight[a + 1] + v->tight[b] > 0;
    const int32_t *place = v->seams.tight;
    if (place) /* the place before its own end is one that it spans */
      to[i].tight |=
          b > a ? place[b + 1] > place[a + 1] : place[n] - place[a + 1] + place[b + 1] > 0;
  }
  bool kept = v->proof.drops && count > 0 && again_ends_life (v->t, &v->u, unit, count - 1);
  if (kept)
    to[count - 1].late = true;
  bool later = false; /* a later pause along the links spans a tight op */
  for (int32_t round = 0; round < (*circle ? 2 : 1); round++)
    for (int32_t i = count - 1; i >= 0; i--) {
      to[i].matters = to[i].tight || later || kept;
      later = to[i].matters && to[i].linked;
    }
  return count;
}

void pauses_drop (const prover *v, pause *q, int32_t count, bool circle) {
  for (int32_t i = 0; i < count; i++) {
    int32_t slot = v->slot_of[q[i].release];
    q[i].dropped = !q[i].matters;
    if (q[i].wraps || q[i].late || slot != v->slot_of[q[i].due])
      continue;
    const pause *next = i + 1 < count ? &q[i + 1] : circle ? &q[0] : NULL;
    bool serves = next && next->linked && next->matters;
    q[i].dropped |= !serves || v->slot_of[next->release] == slot;
  }
}

bool pause_serves (const pause *q, int32_t count, int32_t i) {
  assert (i >= 0 && i < count);
  for (int32_t k = i + 1; k < count && q[k].linked; k++)
    if (!q[k].dropped)
      return true;
  return false;
}

int32_t pause_due_slot (const prover *v, const pause *q) {
  return v->slot_of[q->late ? v->t->n_ops - 1 : q->due];
}

bool pause_due_first (const prover *v, const pause *q) {
  int32_t op = q->late ? v->t->n_ops - 1 : q->due;
  return v->proof.first[pause_due_slot (v, q)] == op && !(v->loose && v->loose[op]);
}

/* ---- pieces ---- */

int parts_of (const prover *v, int32_t unit, part to[2]) {
  int64_t room = prover_room (v, unit), bytes = v->u.at[unit].bytes, g = v->granule_bytes;
  int64_t rounding = room - bytes;
  int64_t ns = v->shared || v->proof.any_units ? 0 : v->p->device.link.copy_ns;
  wide lost_out = (wide)ns * v->rates.out_alone / 1000000000;
  wide lost_in = (wide)ns * v->rates.in_alone / 1000000000;
  bool whole = room == g || rounding == 0;
  if (whole || (rounding <= lost_out && rounding <= lost_in)) {
    to[0] = (part){ room, prover_over (bytes + lost_out, room), prover_over (bytes + lost_in, room),
                    whole ? prover_over (bytes, room) : prover_over (g - rounding, g) };
    return 1;
  }
  int64_t full = room - g, last = prover_over (g - rounding, g);
  to[0] = (part){ full, prover_over (full + lost_out, full), prover_over (full + lost_in, full),
                  PROVE_ONE };
  to[1] = (part){ g, last, last, last };
  return 2;
}

int part_class (const prover *v, const part *x) {
  int c = v->proof.classes - 1;
  while (c >= 0 && v->proof.class_from[c] > x->out)
    c--;
  return c;
}
