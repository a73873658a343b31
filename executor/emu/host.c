/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The program's own threads, as the race checker sees them, and what it saw. */
#include <stdlib.h>

#include "executor/emu/core.h"

EXPORT CUresult emuRaces (emu_race *out, int capacity, int *count);
EXPORT CUresult emuHostTouches (const void *at, size_t bytes, int writes);

static _Thread_local struct {
  uint32_t generation;
  int32_t index;
} this_host;

host *machine_host (machine *m) {
  if (this_host.generation == m->generation)
    return m->hosts[this_host.index];
  host **moved = realloc (m->hosts, (size_t)(m->n_hosts + 1) * sizeof *moved);
  if (moved == NULL)
    return NULL;
  m->hosts = moved;
  host *h = calloc (1, sizeof *h);
  if (h == NULL || (h->seen = race_clock_new ()) == NULL) {
    free (h);
    return NULL;
  }
  h->actor = m->n_actors++;
  this_host.generation = m->generation;
  this_host.index = m->n_hosts;
  m->hosts[m->n_hosts++] = h;
  return h;
}

CUresult emuRaces (emu_race *out, int capacity, int *count) {
  machine *m = machine_enter_stuck ();
  if (m == NULL)
    return CUDA_ERROR_NOT_INITIALIZED;
  *count = m->races == NULL ? 0 : race_list (m->races, out, capacity);
  return machine_leave (m, CUDA_SUCCESS);
}

typedef struct host_touch {
  machine *m;
  host *h;
  const char *what;
  bool failed;
} host_touch;

static void host_piece (void *context, const race_range *r) {
  host_touch *t = context;
  race_access by = { t->h->actor, t->h->step, t->what };
  if (!race_touch (t->m->races, t->h->seen, by, r))
    t->failed = true;
}

bool machine_host_touches (machine *m, uint64_t at, int64_t bytes, bool writes, const char *what) {
  if (m->races == NULL)
    return true;
  host *h = machine_host (m);
  if (h == NULL || !race_clock_set (h->seen, h->actor, ++h->step))
    return false;
  host_touch t = { m, h, what, false };
  memory_places (m, &(touch){ .at = at, .bytes = bytes, .how = writes ? EMU_WRITES : 0 },
                 host_piece, &t);
  return !t.failed;
}

CUresult emuHostTouches (const void *at, size_t bytes, int writes) {
  ENTER (m, machine_enter (true, &refused));
  bool done = machine_host_touches (m, (uintptr_t)at, (int64_t)bytes, writes != 0, "the host");
  return machine_leave (m, done ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}
