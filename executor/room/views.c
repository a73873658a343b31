/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/room/views.h"

#include <assert.h>

typedef struct making {
  views *v;
  arena *arena;
  int64_t capacity;
  int32_t count;
} making;

static bool is_met (const room *r, const view *x, int32_t unit, int32_t op) {
  for (int32_t p = 0; p < r->stays.of[unit]; p++)
    if (x->stays[p] != stays_at (&r->stays, unit, p, op))
      return false;
  return true;
}

static bool is_known (const making *m, int32_t unit, int32_t op) {
  for (int32_t i = m->v->first[unit]; i < m->count; i++)
    if (is_met (m->v->room, &m->v->at[i], unit, op))
      return true;
  return false;
}

static bool add (making *m, int32_t unit, int32_t op, error *err) {
  views *v = m->v;
  const room *r = v->room;
  int32_t *stays = NEW (m->arena, r->stays.of[unit], int32_t, err);
  view *moved =
      arena_grow (m->arena, v->at, &m->capacity, (int64_t)m->count + 1, sizeof *v->at, err);
  if (stays == NULL || moved == NULL)
    return false;
  for (int32_t p = 0; p < r->stays.of[unit]; p++)
    stays[p] = stays_at (&r->stays, unit, p, op);
  v->at = moved;
  v->at[m->count++] = (view){ stays, v->space_bytes };
  v->space_bytes += r->units.at[unit].granules * r->plan->placement.granule_bytes;
  return true;
}

static bool collect (making *m, error *err) {
  const room *r = m->v->room;
  const units *u = &r->units;
  for (int32_t i = 0; i < u->count; i++) {
    m->v->first[i] = m->count;
    if (room_is_arena (r))
      continue; /* the parts that an op finds lie side by side there */
    for (int32_t k = u->use_offset[i]; k < u->use_offset[i + 1] && r->stays.of[i] > 1; k++)
      if (!is_known (m, i, u->uses[k].op) && !add (m, i, u->uses[k].op, err))
        return false;
  }
  m->v->first[u->count] = m->count;
  return true;
}

static bool map_all (views *v, error *err) {
  const room *r = v->room;
  for (int32_t u = 0; u < r->units.count; u++)
    for (int32_t i = v->first[u]; i < v->first[u + 1]; i++)
      for (int32_t p = 0; p < r->stays.of[u]; p++) {
        int64_t bytes;
        assert (p > 0 || v->at[i].offset == v->mapped_bytes);
        bool mapped =
            room_map (r, v->at[i].stays[p], v->base + (CUdeviceptr)v->mapped_bytes, &bytes, err);
        v->mapped_bytes += bytes;
        if (!mapped)
          return false;
      }
  CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, r->driver->device },
                             CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
  return driver_ok (r->driver,
                    r->driver->mem_set_access (v->base, (size_t)v->space_bytes, &access, 1),
                    "cuMemSetAccess", err);
}

bool views_open (const room *r, arena *a, views *out, error *err) {
  assert (r && out);
  *out = (views){ .room = r };
  making m = { .v = out, .arena = a };
  if (!ALLOC (a, out->first, (int64_t)r->units.count + 1, err) || !collect (&m, err))
    return false;
  return out->space_bytes == 0 ||
         (driver_ok (r->driver,
                     r->driver->mem_reserve (&out->base, (size_t)out->space_bytes, (size_t)0, 0, 0),
                     "cuMemAddressReserve", err) &&
          map_all (out, err));
}

void views_close (views *v) {
  if (v->mapped_bytes > 0)
    v->room->driver->mem_unmap (v->base, (size_t)v->mapped_bytes);
  if (v->base != 0)
    v->room->driver->mem_address_free (v->base, (size_t)v->space_bytes);
  v->mapped_bytes = 0;
  v->base = 0;
}

CUdeviceptr views_at (const views *v, int32_t tensor, int32_t op) {
  const room *r = v->room;
  if (r->pool_place[tensor] >= 0)
    return r->pool_at + (CUdeviceptr)r->pool_place[tensor];
  int32_t group = r->units.group_of[tensor];
  int32_t unit = group < 0 ? tensor : r->rewritten->trace->n_tensors + group;
  int64_t within = group < 0 ? 0 : r->member_at[tensor];
  if (r->stays.of[unit] == 1 || room_is_arena (r))
    return r->stay_at[stays_at (&r->stays, unit, 0, op)] + (CUdeviceptr)within;
  int32_t i = v->first[unit];
  while (i < v->first[unit + 1] && !is_met (r, &v->at[i], unit, op))
    i++;
  assert (i < v->first[unit + 1]);
  return v->base + (CUdeviceptr)(v->at[i].offset + within);
}
