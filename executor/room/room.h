/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The memory of a replay: the plan's granules on the device and not a byte more, every stay mapped
   to its granules once, or one arena in which nothing is mapped; the pool, and one pinned arena on
   the host. */
#pragma once

#include "executor/driver/driver.h"
#include "trace/rewrite/rewrite.h"
#include "trace/walk/stays.h"

typedef struct room {
  const driver *driver;
  const plan *plan;
  const rewritten *rewritten;
  units units;
  stay_map stays;
  uses uses;
  int64_t device_bytes, host_bytes; /* as taken */
  CUdeviceptr base;                 /* of all stays' addresses, then the pool's */
  int64_t space_bytes;
  int64_t mapped_bytes;
  CUdeviceptr *stay_at; /* of each stay */
  CUdeviceptr pool_at;
  int64_t *pool_place; /* of a tensor in the pool; -1: it is not there */
  int64_t *member_at;  /* of a grouped tensor: its bytes' place in the group */
  char *host;
  CUmemGenericAllocationHandle
      *handles; /* handle i: the granules from border[i] to border[i + 1] */
  int32_t *border, n_borders;
  int32_t n_handles, made;
} room;

static inline bool room_is_arena (const room *r) {
  return r->plan->placement.kind == PLACEMENT_ARENA;
}

/* How much each side needs; nothing is taken yet. */
bool room_plan (const driver *d, const rewritten *rw, const plan *p, arena *a, room *out,
                error *err) MUST_CHECK;
/* Takes it. What was taken before an error goes with room_close. */
bool room_open (room *r, arena *a, error *err) MUST_CHECK;
void room_close (room *r);
/* Maps a stay's granules at a reserved address; *bytes is what they are. Not of an arena. */
bool room_map (const room *r, int32_t stay, CUdeviceptr at, int64_t *bytes, error *err) MUST_CHECK;

typedef struct stretch {
  int64_t at;            /* address, on the device or on the host */
  int64_t bytes, offset; /* offset in the tensor */
} stretch;

typedef bool room_stretch (void *context, int32_t tensor, const stretch *s, error *err);

/* The stretches of a tensor as op `op` finds them. */
bool room_find (const room *r, int32_t tensor, int32_t op, room_stretch *each, void *context,
                error *err) MUST_CHECK;
/* The stretches of all tensors in part `part` of `unit`, if the part lies at `at`. */
bool room_part (const room *r, int32_t unit, int32_t part, int64_t at, room_stretch *each,
                void *context, error *err) MUST_CHECK;
/* All stretches of persistent tensors between two steps: on the device, then what the host holds of
   them. Either may be NULL. */
bool room_between (const room *r, room_stretch *on_device, room_stretch *on_host, void *context,
                   error *err) MUST_CHECK;
