/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/link/inner.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/units.h"

enum { SMALLEST = 64 << 10, LAUNCHES = 64 };

bool link_open (link_bench *b, bool emulated, int64_t bytes, error *err) {
  assert (b->d && bytes > 0);
  const driver *d = b->d;
  if (!kernels_load (d, emulated, false, &b->k, err) ||
      !driver_ok (d, d->stream_create (&b->gate, CU_STREAM_NON_BLOCKING), "cuStreamCreate", err) ||
      !driver_ok (d, d->event_create (&b->open, CU_EVENT_DEFAULT), "cuEventCreate", err))
    return false;
  for (int i = 0; i < 2; i++) {
    void *host;
    if (!driver_ok (d, d->stream_create (&b->way[i], CU_STREAM_NON_BLOCKING), "cuStreamCreate",
                    err) ||
        !driver_ok (d, d->event_create (&b->begin[i], CU_EVENT_DEFAULT), "cuEventCreate", err) ||
        !driver_ok (d, d->event_create (&b->end[i], CU_EVENT_DEFAULT), "cuEventCreate", err) ||
        !driver_ok (d, d->mem_alloc (&b->device[i], (size_t)bytes), "cuMemAlloc", err) ||
        !driver_ok (d, d->mem_host_alloc (&host, (size_t)bytes, CU_MEMHOSTALLOC_PORTABLE),
                    "cuMemHostAlloc", err))
      return false;
    b->host[i] = host;
  }
  return true;
}

void link_close (link_bench *b) {
  const driver *d = b->d;
  d->ctx_synchronize ();
  for (int i = 0; i < 2; i++) {
    if (b->host[i] != NULL)
      d->mem_free_host (b->host[i]);
    if (b->device[i] != 0)
      d->mem_free (b->device[i]);
    if (b->begin[i] != NULL)
      d->event_destroy (b->begin[i]);
    if (b->end[i] != NULL)
      d->event_destroy (b->end[i]);
    if (b->way[i] != NULL)
      d->stream_destroy (b->way[i]);
  }
  if (b->open != NULL)
    d->event_destroy (b->open);
  if (b->gate != NULL)
    d->stream_destroy (b->gate);
}

bool link_issue (link_bench *b, CUevent open, int way, int64_t bytes, error *err) {
  assert ((way == 0 || way == 1) && bytes > 0);
  const driver *d = b->d;
  CUstream s = b->way[way];
  return driver_ok (d, d->stream_wait_event (s, open, 0), "cuStreamWaitEvent", err) &&
         driver_ok (d, d->event_record (b->begin[way], s), "cuEventRecord", err) &&
         driver_ok (d,
                    way == 0 ? d->copy_out_async (b->host[0], b->device[0], (size_t)bytes, s)
                             : d->copy_in_async (b->device[1], b->host[1], (size_t)bytes, s),
                    "a copy", err) &&
         driver_ok (d, d->event_record (b->end[way], s), "cuEventRecord", err);
}

/* ways: bit 0 out, bit 1 in. busy_ns: so long a kernel runs beside. */
static bool once (link_bench *b, int ways, int64_t bytes, int64_t busy_ns, int64_t ns[2],
                  error *err) {
  const driver *d = b->d;
  if (!kernels_wait (d, &b->k, b->gate, LINK_GATE_NS, err) ||
      !driver_ok (d, d->event_record (b->open, b->gate), "cuEventRecord", err) ||
      (busy_ns > 0 && !kernels_wait (d, &b->k, b->gate, busy_ns, err)))
    return false;
  for (int i = 0; i < 2; i++)
    if ((ways >> i & 1) != 0 && !link_issue (b, b->open, i, bytes, err))
      return false;
  if (!driver_ok (d, d->ctx_synchronize (), "cuCtxSynchronize", err))
    return false;
  for (int i = 0; i < 2; i++) {
    float ms = 0;
    if ((ways >> i & 1) != 0 &&
        !driver_ok (d, d->event_elapsed (&ms, b->begin[i], b->end[i]), "cuEventElapsedTime", err))
      return false;
    ns[i] = (int64_t)((double)ms * 1e6);
  }
  return true;
}

static bool median_of (link_bench *b, int ways, int64_t bytes, int64_t busy_ns, int64_t out[2],
                       error *err) {
  int64_t seen[2][LINK_ROUNDS];
  for (int round = -1; round < LINK_ROUNDS; round++) { /* the first one warms up */
    int64_t ns[2] = { 0, 0 };
    if (!once (b, ways, bytes, busy_ns, ns, err))
      return false;
    for (int i = 0; i < 2 && round >= 0; i++)
      seen[i][round] = ns[i];
  }
  for (int i = 0; i < 2; i++) {
    qsort (seen[i], LINK_ROUNDS, sizeof *seen[i], order_int64);
    if ((ways >> i & 1) != 0)
      out[i] = seen[i][LINK_ROUNDS / 2];
  }
  return true;
}

static bool measure_row (link_bench *b, link_row *r, error *err) {
  int64_t alone[2], both[2], busy[2];
  if (!median_of (b, 1, r->bytes, 0, alone, err) || !median_of (b, 2, r->bytes, 0, alone, err) ||
      !median_of (b, 3, r->bytes, 0, both, err))
    return false;
  int64_t longer = (alone[0] > alone[1] ? alone[0] : alone[1]) * 2;
  if (!median_of (b, 1, r->bytes, longer, busy, err) ||
      !median_of (b, 2, r->bytes, longer, busy, err))
    return false;
  r->out_ns = alone[0];
  r->in_ns = alone[1];
  r->both_out_ns = both[0];
  r->both_in_ns = both[1];
  r->busy_out_ns = busy[0];
  r->busy_in_ns = busy[1];
  return true;
}

/* From the two largest sizes, so that what a copy costs whatever its size drops out. */
static int64_t slope (int64_t bytes_0, int64_t ns_0, int64_t bytes_1, int64_t ns_1) {
  return ns_1 > ns_0 ? units_scale (bytes_1 - bytes_0, 1000000000, ns_1 - ns_0) : 0;
}

/* While both carry: all bytes but those that the slower carried alone at the end. */
static int64_t both_rate (const link_row *r, const int64_t alone[2], int64_t copy_ns) {
  bool out_first = r->both_out_ns < r->both_in_ns;
  int64_t first = out_first ? r->both_out_ns : r->both_in_ns;
  int64_t rest = (out_first ? r->both_in_ns : r->both_out_ns) - first;
  int64_t late = units_scale (alone[out_first ? 1 : 0], rest, 1000000000);
  return first > copy_ns && 2 * r->bytes > late
             ? units_scale (2 * r->bytes - late, 1000000000, first - copy_ns)
             : 0;
}

static bool conclude (link_result *out, error *err) {
  const link_row *last = &out->rows[out->n_rows - 1], *before = last - 1, *first = out->rows;
  device_link *l = &out->device.link;
  l->d2h_bytes_per_s = slope (before->bytes, before->out_ns, last->bytes, last->out_ns);
  l->h2d_bytes_per_s = slope (before->bytes, before->in_ns, last->bytes, last->in_ns);
  if (l->d2h_bytes_per_s < 1000000 || l->h2d_bytes_per_s < 1000000)
    return error_set (err, ERR_device,
                      "larger copies do not take longer here, so no rate can be told; the machine "
                      "may be busy: try again");
  int64_t alone[2] = { l->d2h_bytes_per_s, l->h2d_bytes_per_s };
  int64_t out_cost = first->out_ns - units_scale (first->bytes, 1000000000, alone[0]);
  int64_t in_cost = first->in_ns - units_scale (first->bytes, 1000000000, alone[1]);
  l->copy_ns = (out_cost + in_cost) / 2 > 0 ? (out_cost + in_cost) / 2 : 0;
  int64_t both = both_rate (last, alone, l->copy_ns), sum = alone[0] + alone[1];
  l->both_bytes_per_s = both > 0 && both < sum ? both : sum;
  return true;
}

/* One more section of an op costs at least a launch. */
static bool measure_launch (link_bench *b, int64_t *ns, error *err) {
  const driver *d = b->d;
  float ms;
  if (!driver_ok (d, d->event_record (b->begin[0], b->gate), "cuEventRecord", err))
    return false;
  for (int i = 0; i < LAUNCHES; i++)
    if (!kernels_wait (d, &b->k, b->gate, 0, err))
      return false;
  if (!driver_ok (d, d->event_record (b->end[0], b->gate), "cuEventRecord", err) ||
      !driver_ok (d, d->ctx_synchronize (), "cuCtxSynchronize", err) ||
      !driver_ok (d, d->event_elapsed (&ms, b->begin[0], b->end[0]), "cuEventElapsedTime", err))
    return false;
  *ns = (int64_t)((double)ms * 1e6 / LAUNCHES);
  return true;
}

static bool describe (const driver *d, arena *a, int64_t host_bytes, device *out, error *err) {
  char name[128] = "";
  size_t left, total, granule;
  CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .location = { CU_MEM_LOCATION_TYPE_DEVICE, d->device } };
  if (!driver_ok (d, d->device_get_name (name, sizeof name, d->device), "cuDeviceGetName", err) ||
      !driver_ok (d, d->mem_get_info (&left, &total), "cuMemGetInfo", err) ||
      !driver_ok (d, d->mem_granularity (&granule, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                  "cuMemGetAllocationGranularity", err))
    return false;
  *out = (device){ .name = arena_string (a, name, err),
                   .memory_bytes = (int64_t)total,
                   .reserved_bytes = (int64_t)(total - left),
                   .granule_bytes = (int64_t)granule,
                   .host_bytes = host_bytes,
                   .share_ppm = 1000000 };
  return out->name != NULL;
}

void link_set_host (emu_config *c, const gpu_host *h) {
  c->d2h_bytes_per_s = h->link.d2h_bytes_per_s;
  c->h2d_bytes_per_s = h->link.h2d_bytes_per_s;
  c->both_bytes_per_s = h->link.both_bytes_per_s;
  c->copy_ns = h->link.copy_ns;
  c->share_ppm = 0;
  c->n_groups = h->n_groups;
  if (c->pinned_bytes == 0)
    c->pinned_bytes = h->pinned_bytes;
  for (int32_t i = 0; i < h->n_groups; i++) {
    emu_group *g = &c->groups[i];
    g->cards = h->groups[i].cards;
    memcpy (g->one_way, h->groups[i].one_way, sizeof g->one_way);
    memcpy (g->both, h->groups[i].both, sizeof g->both);
  }
}

bool link_emulate (const driver *d, const device *dev, const gpu_host *h, error *err) {
  if (dev->memory_bytes <= 0)
    return error_set (err, ERR_input, "%s has no memory to copy from", dev->name);
  emu_config c = { .memory_bytes = dev->memory_bytes,
                   .granule_bytes = dev->granule_bytes,
                   .d2h_bytes_per_s = dev->link.d2h_bytes_per_s,
                   .h2d_bytes_per_s = dev->link.h2d_bytes_per_s,
                   .both_bytes_per_s = dev->link.both_bytes_per_s,
                   .copy_ns = dev->link.copy_ns,
                   .share_ppm = dev->share_ppm,
                   .clock = EMU_VIRTUAL,
                   .bytes = EMU_NONE };
  if (h != NULL) {
    c.cards = h->n_cards;
    link_set_host (&c, h);
  }
  emu_configure configure = NULL;
  void *entry = driver_symbol (d, EMU_CONFIGURE);
  if (entry == NULL)
    return error_set (err, ERR_unreachable, "%s is not the emulator: it has no %s", d->path,
                      EMU_CONFIGURE);
  memcpy (&configure, &entry, sizeof entry);
  return driver_ok (d, configure (&c), EMU_CONFIGURE, err);
}

bool link_measure (const driver *d, bool emulated, int64_t most_bytes, int64_t host_bytes, arena *a,
                   link_result *out, error *err) {
  assert (d && most_bytes >= 0 && out);
  link_bench b = { .d = d };
  *out = (link_result){ .n_rows = 0 };
  if (d->event_elapsed == NULL)
    return error_set (err, ERR_unreachable,
                      "the driver has no cuEventElapsedTime_v2; CUDA 12.8 or later is needed");
  if (!describe (d, a, host_bytes, &out->device, err))
    return false;
  int64_t most = most_bytes == 0 ? LINK_USUAL_MOST : most_bytes;
  if (most < 4 * SMALLEST)
    return error_set (err, ERR_usage, "copies of at least %d bytes are needed to tell a rate",
                      4 * SMALLEST);
  bool good = link_open (&b, emulated, most, err);
  for (int64_t bytes = SMALLEST; good && bytes <= most && out->n_rows < LINK_SIZES; bytes *= 4) {
    out->rows[out->n_rows].bytes = bytes;
    good = measure_row (&b, &out->rows[out->n_rows++], err);
  }
  good = good && measure_launch (&b, &out->device.section_ns, err) && conclude (out, err);
  link_close (&b);
  return good;
}
