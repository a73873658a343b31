/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The program's tensors: their addresses, the granules in which they live, and their copies. */
#pragma once

#include "executor/shim/state/shim.h"

/* area.c: address space, tensors in it */
bool area_start (shim *s);
int32_t area_tensor_at (const shim *s, CUdeviceptr at); /* around the address; NONE */
static inline bool area_has (const shim *s, CUdeviceptr at) {
  return at - s->base < (uint64_t)s->space_bytes;
}
int32_t area_allocate (shim *s, int64_t bytes,
                       int32_t slot); /* that one or any; a tensor, or NONE */
void area_free (shim *s, int32_t t, uint64_t stream_bits, bool keeps); /* keeps: its granules too */
int32_t area_row (shim *s);
void area_own (shim *s, int32_t t, int32_t first, int32_t end); /* without granules; NONE: nobody */
void area_lay (shim *s, int32_t t, int32_t first, int32_t pages); /* that row, at these pages */
CUdeviceptr small_allocate (shim *s, int64_t bytes, CUstream stream, bool waits);
bool small_has_room (const shim *s, int64_t bytes); /* to spare, for ferry */
bool small_make_room (shim *s); /* likewise, by a granule of a budget that has many */
bool small_free (shim *s, CUdeviceptr at, uint64_t stream_bits);
void pool_took (shim *s, int64_t bytes); /* less than 0: they are back */
int64_t small_bytes_at (const shim *s, CUdeviceptr at, CUdeviceptr *first);

/* chunks.c: device memory and its mappings */
int32_t chunk_new (shim *s); /* within the budget, or NONE */
/* Back to the driver; nobody's bytes are in it. The last chunk takes its number. */
void chunk_quiet (shim *s, const chunk *c); /* returns when nothing that is queued uses it */
bool chunk_drop (shim *s, int32_t chunk);
/* A page can be used behind pages_allow, which allows a whole run of them at once: that call is
   what mapping costs. */
bool page_map (shim *s, int32_t page, int32_t chunk);
bool pages_allow (shim *s);
bool page_unmap (shim *s, int32_t page);
int32_t stream_bit (shim *s, CUstream stream);
/* `stream`, whose bit is `who`, waits for the work on those streams so far, where it has not yet.
 */
void wait_for (shim *s, CUstream stream, int32_t who, uint64_t bits);
/* Likewise, for a copy on one of COPY_STREAMS, or a check; 0: for none. */
void wait_for_copy (shim *s, CUstream stream, int32_t who, int32_t of, int64_t copy);
void host_wait_for (shim *s, uint64_t bits);
void host_wait_for_copy (shim *s, int32_t of, int64_t copy);
int64_t copy_issued (shim *s, int32_t of); /* the number of the copy that was issued last there */

/* vacant.c */
int32_t vacant_take (shim *s, int32_t pages); /* a tensor of freed ones' space, or NONE */
int32_t vacant_page (shim *s);                /* nobody's from now on, or NONE */

/* pinned.c */
bool host_take (shim *s, tensor *t); /* room on the host; false: that was said */
void host_drop (shim *s, tensor *t);

/* residency.c */
bool pages_out (shim *s, int32_t t, int32_t first, int32_t end); /* of a tensor's pages */
bool pages_in (shim *s, int32_t t, int32_t first, int32_t end);
bool tensor_settle (shim *s, int32_t t); /* out, and unmapped */
bool op_make_room (shim *s, op *o);      /* all its tensors are here, and its stream knows it */
void strict_begin (shim *s);
int32_t chunk_take (shim *s, const op *o); /* somebody else's, if need be */
