/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A prototype, to be thrown away once its questions are answered: can an unmodified program be
   given its memory by a library that stands in front of the driver, and does that library see every
   call? forward.sh builds it with a table of the driver's exports; the program is started with it
   preloaded under the driver's own SONAME.

   FORWARD_REAL    the driver's file
   FORWARD_REPORT  where the counts go, as JSON, when the program ends
   FORWARD_SERVE   1: allocations on a stream from 1 MiB on come from mapped chunks of our own
   FORWARD_AUDIT   CUPTI's file: its callbacks are counted beside our own entries */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "forward_table.h" /* FORWARD_NAMES, FORWARD_EXTRA */

typedef unsigned int result;
typedef uint64_t address;

/* Of the assembler's: entry i counts and jumps to slot i. */
extern void *forward_slots[], *const forward_entries[];
extern uint64_t forward_counts[];

static const char *names[FORWARD_NAMES + FORWARD_EXTRA] = {
#define NAME(i, name) [i] = #name,
#include "forward_names.h"
#undef NAME
};
static void *reals[FORWARD_NAMES + FORWARD_EXTRA];
static int extras, in_use;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all of this file's state */

static int find_name (const char *name) {
  for (int i = 0; i < FORWARD_NAMES; i++)
    if (strcmp (names[i], name) == 0)
      return i;
  return -1;
}

static void *real_of (const char *name) {
  int i = find_name (name);
  return i < 0 ? NULL : reals[i];
}

/* ---- who asks for an entry gets ours ---- */

static void *entry_of (void *real, const char *name) {
  int i = 0;
  pthread_mutex_lock (&lock);
  while (i < FORWARD_NAMES + extras && reals[i] != real)
    i++;
  if (i == FORWARD_NAMES + extras && extras < FORWARD_EXTRA) { /* another version of it */
    names[i] = strdup (name);
    reals[i] = forward_slots[i] = real;
    extras++;
  }
  pthread_mutex_unlock (&lock);
  return i < FORWARD_NAMES + FORWARD_EXTRA ? forward_entries[i] : real;
}

static result get_old (const char *name, void **out, int version, uint64_t flags) {
  result (*real) (const char *, void **, int, uint64_t) = real_of ("cuGetProcAddress");
  result r = real (name, out, version, flags);
  if (r == 0 && *out != NULL)
    *out = entry_of (*out, name);
  return r;
}

static result get_new (const char *name, void **out, int version, uint64_t flags, void *status) {
  result (*real) (const char *, void **, int, uint64_t, void *) = real_of ("cuGetProcAddress_v2");
  result r = real (name, out, version, flags, status);
  if (r == 0 && *out != NULL)
    *out = entry_of (*out, name);
  return r;
}

/* ---- serving ---- */

typedef struct block {
  address at;
  size_t bytes;
  void *stream; /* that it was freed on: what reuses it comes behind */
  int is_free;
} block;

enum { MOST_BLOCKS = 1 << 16, LEAST = 1 << 20, CHUNK = 2 << 20 };
static block blocks[MOST_BLOCKS];
static int n_blocks;
static uint64_t served, reused, held_bytes;

static result map_block (block *b, size_t bytes) {
  struct {
    unsigned int type, handles, where;
    int id;
    void *meta;
    unsigned char flags[8];
  } prop = { .type = 1, .where = 1 };
  struct {
    unsigned int where;
    int id;
    unsigned int flags;
  } access = { 1, 0, 3 };
  result (*reserve) (address *, size_t, size_t, address, uint64_t) =
      real_of ("cuMemAddressReserve");
  result (*create) (uint64_t *, size_t, const void *, uint64_t) = real_of ("cuMemCreate");
  result (*map) (address, size_t, size_t, uint64_t, uint64_t) = real_of ("cuMemMap");
  result (*allow) (address, size_t, const void *, size_t) = real_of ("cuMemSetAccess");
  uint64_t handle;
  result r = reserve (&b->at, bytes, 0, 0, 0);
  if (r == 0 && (r = create (&handle, bytes, &prop, 0)) == 0 &&
      (r = map (b->at, bytes, 0, handle, 0)) == 0)
    r = allow (b->at, bytes, &access, 1);
  b->bytes = bytes;
  held_bytes += r == 0 ? bytes : 0;
  return r;
}

static result serve (address *out, size_t bytes, void *stream) {
  result r = 0;
  bytes = (bytes + CHUNK - 1) / CHUNK * CHUNK;
  pthread_mutex_lock (&lock);
  int i = 0;
  while (i < n_blocks &&
         !(blocks[i].is_free && blocks[i].bytes == bytes && blocks[i].stream == stream))
    i++;
  if (i == MOST_BLOCKS)
    r = 2;
  else if (i == n_blocks)
    r = map_block (&blocks[i], bytes);
  else
    reused++;
  if (r == 0) {
    n_blocks += i == n_blocks;
    blocks[i].is_free = 0;
    *out = blocks[i].at;
    served++;
  }
  pthread_mutex_unlock (&lock);
  return r;
}

static result alloc (address *out, size_t bytes, void *stream) {
  result (*real) (address *, size_t, void *) = real_of ("cuMemAllocAsync");
  return bytes < LEAST ? real (out, bytes, stream) : serve (out, bytes, stream);
}

static result alloc_from_pool (address *out, size_t bytes, void *pool, void *stream) {
  result (*real) (address *, size_t, void *, void *) = real_of ("cuMemAllocFromPoolAsync");
  return bytes < LEAST ? real (out, bytes, pool, stream) : serve (out, bytes, stream);
}

static result release (address at, void *stream) {
  result (*real) (address, void *) = real_of ("cuMemFreeAsync");
  pthread_mutex_lock (&lock);
  int i = 0;
  while (i < n_blocks && (blocks[i].at != at || blocks[i].is_free))
    i++;
  int ours = i < n_blocks;
  if (ours) {
    blocks[i].is_free = 1;
    blocks[i].stream = stream;
  }
  pthread_mutex_unlock (&lock);
  return ours ? 0 : real (at, stream);
}

/* ---- the audit ---- */

enum { MOST_CALLBACKS = 2048, DRIVER_CALLS = 1 };
static uint64_t seen_by_cupti[MOST_CALLBACKS];
static void *cupti;

static void on_call (void *user, int domain, uint32_t id, const int *site) {
  (void)user;
  if (domain == DRIVER_CALLS && *site == 0 && id < MOST_CALLBACKS)
    __atomic_fetch_add (&seen_by_cupti[id], 1, __ATOMIC_RELAXED);
}

static void start_audit (const char *path) {
  static void *subscriber;
  int (*subscribe) (void **, void *, void *), (*enable) (uint32_t, void *, int);
  cupti = dlopen (path, RTLD_NOW);
  if (cupti == NULL)
    return;
  subscribe = dlsym (cupti, "cuptiSubscribe");
  enable = dlsym (cupti, "cuptiEnableDomain");
  if (subscribe == NULL || enable == NULL || subscribe (&subscriber, on_call, NULL) != 0 ||
      enable (1, subscriber, DRIVER_CALLS) != 0) {
    cupti = NULL;
    return;
  }
  memset (forward_counts, 0, (FORWARD_NAMES + FORWARD_EXTRA) * sizeof *forward_counts);
}

static result start (unsigned int flags) {
  result (*real) (unsigned int) = real_of ("cuInit");
  result r = real (flags);
  const char *audit = getenv ("FORWARD_AUDIT");
  if (r == 0 && !__atomic_exchange_n (&in_use, 1, __ATOMIC_RELAXED) && audit != NULL)
    start_audit (audit);
  return r;
}

/* ---- beginning and end ---- */

static void put_in_front (const char *name, void *ours) {
  int i = find_name (name);
  if (i >= 0 && reals[i] != NULL)
    forward_slots[i] = ours;
}

static void __attribute__ ((constructor)) begin (void) {
  const char *path = getenv ("FORWARD_REAL"), *serving = getenv ("FORWARD_SERVE");
  void *driver = path == NULL ? NULL : dlopen (path, RTLD_NOW | RTLD_LOCAL);
  if (driver == NULL)
    return; /* a child that does not use the GPU: an entry would fault */
  for (int i = 0; i < FORWARD_NAMES; i++)
    forward_slots[i] = reals[i] = dlsym (driver, names[i]);
  put_in_front ("cuInit", start);
  put_in_front ("cuGetProcAddress", get_old);
  put_in_front ("cuGetProcAddress_v2", get_new);
  if (serving == NULL || serving[0] != '1')
    return;
  put_in_front ("cuMemAllocAsync", alloc);
  put_in_front ("cuMemAllocAsync_ptsz", alloc);
  put_in_front ("cuMemAllocFromPoolAsync", alloc_from_pool);
  put_in_front ("cuMemAllocFromPoolAsync_ptsz", alloc_from_pool);
  put_in_front ("cuMemFreeAsync", release);
  put_in_front ("cuMemFreeAsync_ptsz", release);
}

static void put_cupti (FILE *f) {
  int (*name_of) (int, uint32_t, const char **) = dlsym (cupti, "cuptiGetCallbackName");
  const char *comma = "", *name;
  for (uint32_t i = 0; i < MOST_CALLBACKS && name_of != NULL; i++)
    if (seen_by_cupti[i] > 0 && name_of (DRIVER_CALLS, i, &name) == 0) {
      fprintf (f, "%s\"%s\": %llu", comma, name, (unsigned long long)seen_by_cupti[i]);
      comma = ", ";
    }
}

static void __attribute__ ((destructor)) end (void) {
  const char *path = getenv ("FORWARD_REPORT"), *comma = "";
  FILE *f = path == NULL || !in_use ? NULL : fopen (path, "w");
  if (f == NULL)
    return;
  fprintf (f, "{\"calls\": {");
  for (int i = 0; i < FORWARD_NAMES + extras; i++)
    if (forward_counts[i] > 0) {
      fprintf (f, "%s\"%s%s\": %llu", comma, names[i], i < FORWARD_NAMES ? "" : "@other",
               (unsigned long long)forward_counts[i]);
      comma = ", ";
    }
  fprintf (f, "}, \"cupti\": {");
  if (cupti != NULL)
    put_cupti (f);
  fprintf (f, "}, \"held_bytes\": %llu, \"reused\": %llu, \"served\": %llu}\n",
           (unsigned long long)held_bytes, (unsigned long long)reused, (unsigned long long)served);
  fclose (f);
}
