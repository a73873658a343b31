/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/shim/memory/memory.h"
/* The host's side of a tensor: pinned room for all of it, which it keeps as long as its address
   space, so that it is pinned once.  Where no more is allowed, room in which nobody's only bytes
   are is given back: a program whose sizes change needs no more of the host than what is alive. */

static bool is_away (const shim *s, const tensor *t) {
  bool away = false;
  for (int32_t p = t->first_page; p < t->first_page + t->n_pages; p++)
    away = away || s->pages[p].state == PAGE_AWAY;
  return away;
}

/* No copy that is queued uses it. */
void host_drop (shim *s, tensor *t) {
  if (t->host == NULL)
    return;
  s->real.mem_free_host (t->host);
  s->host_bytes -= t->n_pages * s->chunk_bytes;
  t->host = NULL;
  for (int32_t p = t->first_page; p < t->first_page + t->n_pages; p++)
    s->pages[p].in_op = NONE; /* it has to be copied out again */
}

static bool is_allowed (const shim *s, int64_t bytes) {
  int64_t most = s->block->config.host_bytes;
  return most <= 0 || bytes <= most - s->host_bytes;
}

/* Freed tensors give theirs before those that are whole on the device. */
static void make_room (shim *s, int64_t bytes) {
  host_wait_for (s, 1 << STREAM_OUT | 1 << STREAM_IN | 1 << STREAM_CHECK);
  for (int live = 0; live < 2; live++)
    for (int32_t i = 0; i < s->n_tensors && !is_allowed (s, bytes); i++) {
      tensor *t = &s->tensors[i];
      if (t->live == live && !t->dropped && (!live || !is_away (s, t)))
        host_drop (s, t);
    }
}

bool host_take (shim *s, tensor *t) {
  if (t->host != NULL)
    return true;
  int64_t bytes = t->n_pages * s->chunk_bytes, most = s->block->config.host_bytes;
  void *at = NULL;
  if (!is_allowed (s, bytes))
    make_room (s, bytes);
  if (!is_allowed (s, bytes) ||
      s->real.mem_host_alloc (&at, (size_t)bytes, CU_MEMHOSTALLOC_PORTABLE) != CUDA_SUCCESS) {
    shim_say (s,
              "host memory: %lld bytes are pinned and %lld more are needed, %lld allowed; raise "
              "--host or the budget",
              (long long)s->host_bytes, (long long)bytes, (long long)most);
    s->host_full = true;
    return false;
  }
  t->host = at;
  s->host_bytes += bytes;
  if (s->host_bytes > s->block->seen.host_high_bytes)
    s->block->seen.host_high_bytes = s->host_bytes;
  return true;
}
