/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/room/room.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/units.h"
#include "trace/rewrite/resting.h"

enum { PLACE = 512 };

static int64_t rounded (int64_t bytes, int64_t to) {
  return (bytes + to - 1) / to * to;
}

/* ---- stays and parts ---- */

static bool find_units (room *r, arena *a, error *err) {
  const trace *t = r->rewritten->trace;
  const plan *p = r->plan;
  if (!uses_of (t, a, &r->uses, err) ||
      !units_of (t, p->groups, p->n_groups, p->placement.granule_bytes,
                 p->placement.pool_below_bytes, a, &r->units, err) ||
      (r->pool_place = NEW (a, t->n_tensors, int64_t, err)) == NULL ||
      (r->member_at = NEW (a, t->n_tensors, int64_t, err)) == NULL)
    return false;
  int64_t next = 0;
  for (int32_t x = 0; x < t->n_tensors; x++) {
    bool something = uses_count (&r->uses, x) > 0 || t->tensors[x].persistent;
    bool pooled = something && r->units.group_of[x] < 0 && r->units.at[x].bytes == 0;
    r->pool_place[x] = pooled ? next : -1;
    next += pooled ? rounded (t->tensors[x].bytes, PLACE) : 0;
  }
  for (int32_t g = 0; g < p->n_groups; g++) {
    int64_t at = 0;
    for (int32_t i = 0; i < p->groups[g].count; i++) {
      r->member_at[p->groups[g].at[i]] = at;
      at += rounded (t->tensors[p->groups[g].at[i]].bytes, PLACE);
    }
  }
  return true;
}

/* The address of each stay. */
static bool find_stays (room *r, arena *a, error *err) {
  const placement *l = &r->plan->placement;
  if (!stays_map (&r->units, r->plan, a, &r->stays, err) ||
      (r->stay_at = NEW (a, l->n_stays, CUdeviceptr, err)) == NULL)
    return false;
  for (int32_t i = 0; i < l->n_stays; i++) {
    const stay *s = &l->stays[i];
    if (room_is_arena (r))
      r->stay_at[i] = (CUdeviceptr)(l->runs[s->first_run].first * l->granule_bytes);
    else {
      r->stay_at[i] = (CUdeviceptr)r->space_bytes;
      r->space_bytes += stay_granules (l, s) * l->granule_bytes;
    }
  }
  return true;
}

/* Stays have addresses of their own, and the pool behind them; or an arena is all that there is. */
static void find_sizes (room *r) {
  const placement *l = &r->plan->placement;
  int64_t stays = l->granules * l->granule_bytes, pool = rounded (l->pool_bytes, l->granule_bytes);
  r->device_bytes = rounded (stays + pool, r->plan->device.granule_bytes);
  r->pool_at = (CUdeviceptr)(room_is_arena (r) ? stays : r->space_bytes);
  r->space_bytes = room_is_arena (r) ? r->device_bytes : r->space_bytes + pool;
}

bool room_plan (const driver *d, const rewritten *rw, const plan *p, arena *a, room *out,
                error *err) {
  assert (rw && p && out);
  *out = (room){ .driver = d, .plan = p, .rewritten = rw };
  const placement *l = &p->placement;
  if (!find_units (out, a, err) || !find_stays (out, a, err))
    return false;
  find_sizes (out);
  for (int32_t i = 0; i < p->n_moves; i++) {
    const move *m = &p->moves[i];
    int64_t end = m->host_offset +
                  unit_part_bytes (&out->units.at[m->unit], l->granule_bytes, m->part, m->of);
    out->host_bytes = end > out->host_bytes ? end : out->host_bytes;
  }
  out->host_bytes = rounded (out->host_bytes, PLACE) + resting_bytes (rw->trace, p);
  return true;
}

/* ---- taking it ---- */

/* Granules that every stay takes together or not at all are one handle: a mapping is of a whole
   handle, and calls cost more than bytes. */
static bool find_borders (room *r, arena *a, error *err) {
  const placement *l = &r->plan->placement;
  int32_t *b = NEW (a, 2 * (int64_t)l->n_runs + 2, int32_t, err);
  if (b == NULL)
    return false;
  int32_t n = 0, kept = 1;
  b[n++] = 0;
  b[n++] = l->granules;
  for (int32_t i = 0; i < l->n_runs; i++) {
    b[n++] = l->runs[i].first;
    b[n++] = l->runs[i].first + l->runs[i].count;
  }
  qsort (b, (size_t)n, sizeof *b, order_int32);
  for (int32_t i = 1; i < n; i++)
    if (b[i] != b[kept - 1])
      b[kept++] = b[i];
  r->border = b;
  r->n_borders = kept;
  return true;
}

static bool is_taken (const room *r, CUresult result, const char *call, error *err) {
  char all[UNITS_TEXT];
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    return error_set (err, ERR_device,
                      "the device has no room for the plan's %s; free it, or solve again with a "
                      "smaller --budget",
                      units_bytes (all, r->device_bytes));
  return driver_ok (r->driver, result, call, err);
}

static bool make_handle (room *r, int64_t bytes, error *err) {
  const driver *d = r->driver;
  CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .location = { CU_MEM_LOCATION_TYPE_DEVICE, d->device } };
  if (!is_taken (r, d->mem_create (&r->handles[r->made], (size_t)bytes, &prop, 0), "cuMemCreate",
                 err))
    return false;
  r->made++;
  return true;
}

static bool map (const room *r, CUdeviceptr at, int32_t handle, int64_t bytes, error *err) {
  return driver_ok (r->driver, r->driver->mem_map (at, (size_t)bytes, 0, r->handles[handle], 0),
                    "cuMemMap", err);
}

bool room_map (const room *r, int32_t stay, CUdeviceptr at, int64_t *bytes, error *err) {
  assert (stay >= 0 && stay < r->plan->placement.n_stays && bytes);
  const placement *l = &r->plan->placement;
  *bytes = 0;
  for (int32_t k = 0; k < l->stays[stay].n_runs; k++) {
    granule_run run = l->runs[l->stays[stay].first_run + k];
    const int32_t *from =
        bsearch (&run.first, r->border, (size_t)r->n_borders, sizeof *r->border, order_int32);
    for (int32_t h = (int32_t)(from - r->border); r->border[h] < run.first + run.count; h++) {
      int64_t some = (r->border[h + 1] - r->border[h]) * l->granule_bytes;
      if (!map (r, at + (CUdeviceptr)*bytes, h, some, err))
        return false;
      *bytes += some;
    }
  }
  return true;
}

/* Addresses ascend, so what is mapped is always a beginning of the space. */
static bool map_all (room *r, error *err) {
  const placement *l = &r->plan->placement;
  for (int32_t i = 0; i < l->n_stays; i++) {
    int64_t bytes;
    bool mapped = room_map (r, i, r->stay_at[i], &bytes, err);
    r->mapped_bytes += bytes;
    if (!mapped)
      return false;
  }
  int64_t pool = rounded (l->pool_bytes, l->granule_bytes);
  if (pool > 0 && !map (r, r->pool_at, r->n_handles - 1, pool, err))
    return false;
  r->mapped_bytes += pool;
  CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, r->driver->device },
                             CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
  return r->space_bytes == 0 ||
         driver_ok (r->driver,
                    r->driver->mem_set_access (r->base, (size_t)r->space_bytes, &access, 1),
                    "cuMemSetAccess", err);
}

static bool check_granule (const room *r, error *err) {
  CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .location = { CU_MEM_LOCATION_TYPE_DEVICE, r->driver->device } };
  size_t need = 0;
  if (!driver_ok (r->driver,
                  r->driver->mem_granularity (&need, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                  "cuMemGetAllocationGranularity", err))
    return false;
  if (r->plan->placement.granule_bytes % (int64_t)need != 0)
    return error_set (err, ERR_infeasible,
                      "the plan's granule is %lld bytes and this driver maps %zu at a time; solve "
                      "again for a device with that granule_bytes",
                      (long long)r->plan->placement.granule_bytes, need);
  return true;
}

static bool open_host (room *r, error *err) {
  void *host = NULL;
  CUresult result = r->host_bytes == 0 ? CUDA_SUCCESS
                                       : r->driver->mem_host_alloc (&host, (size_t)r->host_bytes,
                                                                    CU_MEMHOSTALLOC_PORTABLE);
  r->host = host;
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    char need[UNITS_TEXT];
    return error_set (
        err, ERR_device,
        "out of memory on the host: the plan needs %s pinned and the driver refuses it; "
        "raise the limit on locked memory, or solve again with a smaller --host",
        units_bytes (need, r->host_bytes));
  }
  return driver_ok (r->driver, result, "cuMemHostAlloc", err);
}

static bool open_granules (room *r, arena *a, error *err) {
  const placement *l = &r->plan->placement;
  int64_t granule = l->granule_bytes, pool = rounded (l->pool_bytes, granule);
  if (!find_borders (r, a, err) ||
      (r->handles = NEW (a, (int64_t)r->n_borders, CUmemGenericAllocationHandle, err)) == NULL)
    return false;
  for (int32_t i = 0; i + 1 < r->n_borders; i++)
    if (!make_handle (r, (r->border[i + 1] - r->border[i]) * granule, err))
      return false;
  if (pool > 0 && !make_handle (r, pool, err))
    return false;
  r->n_handles = r->made;
  return r->space_bytes == 0 ||
         driver_ok (r->driver,
                    r->driver->mem_reserve (&r->base, (size_t)r->space_bytes, (size_t)0, 0, 0),
                    "cuMemAddressReserve", err);
}

/* One allocation for all, and nothing is mapped. */
static bool open_arena (room *r, error *err) {
  return r->space_bytes == 0 ||
         is_taken (r, r->driver->mem_alloc (&r->base, (size_t)r->space_bytes), "cuMemAlloc", err);
}

bool room_open (room *r, arena *a, error *err) {
  bool one = room_is_arena (r);
  if ((!one && !check_granule (r, err)) || !open_host (r, err) ||
      !(one ? open_arena (r, err) : open_granules (r, a, err)))
    return false;
  for (int32_t i = 0; i < r->plan->placement.n_stays; i++)
    r->stay_at[i] += r->base;
  r->pool_at += r->base;
  return one || map_all (r, err);
}

/* Results do not matter: where a step went wrong, the driver refuses everything and its process
   ends. */
void room_close (room *r) {
  if (r->mapped_bytes > 0)
    r->driver->mem_unmap (r->base, (size_t)r->mapped_bytes);
  if (r->base != 0 && room_is_arena (r))
    r->driver->mem_free (r->base);
  else if (r->base != 0)
    r->driver->mem_address_free (r->base, (size_t)r->space_bytes);
  for (int32_t i = 0; i < r->made; i++)
    r->driver->mem_release (r->handles[i]);
  if (r->host != NULL)
    r->driver->mem_free_host (r->host);
  r->mapped_bytes = r->made = 0;
  r->base = 0;
  r->host = NULL;
}

/* ---- finding things ---- */

/* The part [first, end) of bytes [from, to) of the unit that is tensor x's. */
static bool overlap (const room *r, int32_t x, int64_t from, int64_t to, int64_t at,
                     room_stretch *each, void *context, error *err) {
  int64_t begin = r->units.group_of[x] < 0 ? 0 : r->member_at[x];
  int64_t end = begin + r->rewritten->trace->tensors[x].bytes;
  int64_t low = begin > from ? begin : from, high = end < to ? end : to;
  if (low >= high)
    return true;
  stretch s = { .at = at + low - from, .bytes = high - low, .offset = low - begin };
  return each (context, x, &s, err);
}

static void part_range (const room *r, int32_t unit, int32_t part, int64_t *from, int64_t *to) {
  const unit_info *u = &r->units.at[unit];
  int64_t granule = r->plan->placement.granule_bytes;
  *from = unit_part_first (u, part, r->stays.of[unit]) * granule;
  *to = unit_part_first (u, part + 1, r->stays.of[unit]) * granule;
}

bool room_find (const room *r, int32_t tensor, int32_t op, room_stretch *each, void *context,
                error *err) {
  assert (tensor >= 0 && tensor < r->rewritten->trace->n_tensors && op >= 0 && each);
  if (r->pool_place[tensor] >= 0) {
    stretch s = { .at = (int64_t)r->pool_at + r->pool_place[tensor],
                  .bytes = r->rewritten->trace->tensors[tensor].bytes };
    return each (context, tensor, &s, err);
  }
  int32_t group = r->units.group_of[tensor];
  int32_t unit = group < 0 ? tensor : r->rewritten->trace->n_tensors + group;
  for (int32_t p = 0; p < r->stays.of[unit]; p++) {
    int64_t from, to;
    part_range (r, unit, p, &from, &to);
    if (!overlap (r, tensor, from, to, (int64_t)r->stay_at[stays_at (&r->stays, unit, p, op)], each,
                  context, err))
      return false;
  }
  return true;
}

bool room_part (const room *r, int32_t unit, int32_t part, int64_t at, room_stretch *each,
                void *context, error *err) {
  assert (unit >= 0 && unit < r->units.count && part >= 0 && part < r->stays.of[unit]);
  int32_t n_tensors = r->rewritten->trace->n_tensors;
  int64_t from, to;
  part_range (r, unit, part, &from, &to);
  if (unit < n_tensors)
    return overlap (r, unit, from, to, at, each, context, err);
  const index_list *g = &r->plan->groups[unit - n_tensors];
  for (int32_t i = 0; i < g->count; i++)
    if (!overlap (r, g->at[i], from, to, at, each, context, err))
      return false;
  return true;
}
