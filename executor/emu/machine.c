/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The machine as a whole: made, configured, entered, left. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "executor/emu/core.h"

EXPORT CUresult emuConfigure (const emu_config *c);
EXPORT CUresult emuNow (int64_t *ns);
EXPORT CUresult emuTag (uint64_t owner);
EXPORT CUresult emuHighBytes (int64_t *bytes);

/* A driver is one of a process; so is its emulation. `gate` guards the pointer. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static machine *the_machine;
static uint32_t generations;
static bool is_at_end; /* a driver answers nothing more once the process ends */

static _Thread_local bool in_callback;

static const emu_config usual = {
  .memory_bytes = (int64_t)1 << 30,
  .granule_bytes = 65536,
  .d2h_bytes_per_s = 12000000000,
  .h2d_bytes_per_s = 12000000000,
  .copy_ns = 10000,
};

static void machine_free (machine *m) {
  pthread_mutex_lock (&m->lock);
  m->closing = true;
  pthread_cond_broadcast (&m->changed);
  pthread_mutex_unlock (&m->lock);
  for (int32_t i = 0; i < m->n_streams; i++)
    if (m->streams[i]->has_thread)
      pthread_join (m->streams[i]->thread, NULL);
  graphs_stop (m);
  for (int32_t i = 0; i < m->n_streams; i++) {
    stream *s = m->streams[i];
    while (s->head != NULL)
      command_done (m, s->head);
    command_drop (m, s->last);
    race_clock_free (s->seen);
    free (s->tips);
    free (s);
  }
  for (int32_t i = 0; i < m->n_events; i++) {
    command_drop (m, m->events[i].recorded);
    free (m->events[i].tips);
  }
  for (int32_t i = 0; i < m->n_hosts; i++) {
    race_clock_free (m->hosts[i]->seen);
    free (m->hosts[i]);
  }
  for (int32_t i = 0; i < m->n_kernels; i++)
    free (m->kernels[i]);
  for (int32_t i = 0; i < m->n_blocks; i++)
    free (m->blocks[i]);
  free (m->blocks);
  memory_stop (m);
  race_free (m->races);
  free (m->hosts);
  free (m->kernels);
  free (m->streams);
  free (m->events);
  pthread_cond_destroy (&m->changed);
  pthread_mutex_destroy (&m->lock);
  free (m);
}

static machine *machine_new (const emu_config *c) {
  machine *m = calloc (1, sizeof *m);
  if (m == NULL)
    return NULL;
  m->config = *c;
  m->generation = ++generations;
  m->random = c->fuzz_seed * 2 + 1;
  pthread_mutex_init (&m->lock, NULL);
  pthread_condattr_t a;
  pthread_condattr_init (&a);
  pthread_condattr_setclock (&a, CLOCK_MONOTONIC);
  pthread_cond_init (&m->changed, &a);
  pthread_condattr_destroy (&a);
  m->since_ns = monotonic_ns ();
  m->n_cards = c->cards == 0 ? 1 : c->cards;
  link_start (&m->link, &m->config);
  bool good = memory_start (m) && graphs_start (m);
  if (c->races)
    m->races = race_new ();
  for (int32_t i = 0; good && i < m->n_cards; i++) {
    stream *s = stream_add (m, i, CU_STREAM_DEFAULT);
    good = s != NULL;
    if (good)
      s->legacy = true;
  }
  if (!good || (c->races && m->races == NULL) || (c->bytes == EMU_ALL && !execute_prepare ())) {
    machine_free (m);
    return NULL;
  }
  return m;
}

static bool are_sane (const emu_config *c) {
  const int64_t most = (int64_t)1 << 53;
  bool good = c->cards >= 0 && c->cards <= EMU_CARDS && c->n_groups >= 0 &&
              c->n_groups <= EMU_GROUPS && (c->cards <= 1 || c->shared[0] == 0);
  for (int32_t i = 0; good && i < c->n_groups; i++)
    for (int way = 0; way < 2; way++) {
      int64_t one = c->groups[i].one_way[way], both = c->groups[i].both[way];
      good = good && one > 0 && one <= most && both > 0 && both <= one;
    }
  return good;
}

static bool is_sane (const emu_config *c) {
  const int64_t most = (int64_t)1 << 53;
  return c->memory_bytes > 0 && c->memory_bytes <= most && c->missing_bytes >= 0 &&
         c->missing_bytes <= c->memory_bytes && c->granule_bytes > 0 &&
         c->granule_bytes % (c->bytes == EMU_ALL ? 4096 : 512) == 0 && c->granule_bytes <= most &&
         c->pinned_bytes >= 0 && c->d2h_bytes_per_s > 0 && c->d2h_bytes_per_s <= most &&
         c->h2d_bytes_per_s > 0 && c->h2d_bytes_per_s <= most && c->both_bytes_per_s >= 0 &&
         c->both_bytes_per_s <= 2 * most && c->copy_ns >= 0 && c->copy_ns <= most &&
         c->launch_ns >= 0 && c->launch_ns <= most && c->event_ns >= 0 && c->event_ns <= most &&
         c->map_ns >= 0 && c->map_ns <= most && c->memory_bytes_per_s >= 0 &&
         c->memory_bytes_per_s <= most && c->share_ppm >= 0 && c->share_ppm <= 1000000 &&
         c->fuzz_ns >= 0 && c->failed_copy >= 0 &&
         memchr (c->shared, 0, sizeof c->shared) != NULL && are_sane (c);
}

CUresult emuConfigure (const emu_config *c) {
  if (c == NULL || !is_sane (c))
    return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock (&gate);
  if (the_machine != NULL)
    machine_free (the_machine);
  contexts_forget ();
  the_machine = machine_new (c);
  CUresult result = the_machine == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  pthread_mutex_unlock (&gate);
  return result;
}

machine *machine_enter_stuck (void) {
  pthread_mutex_lock (&gate);
  machine *m = the_machine;
  pthread_mutex_unlock (&gate);
  if (m != NULL)
    pthread_mutex_lock (&m->lock);
  return m;
}

int32_t machine_card_of (const void *context) {
  int32_t it = -1;
  pthread_mutex_lock (&gate);
  for (int32_t i = 0; the_machine != NULL && i < the_machine->n_cards; i++)
    if (context == &the_machine->cards[i])
      it = i;
  pthread_mutex_unlock (&gate);
  return it;
}

static bool has_context (const machine *m) {
  return m->cards[contexts_card (m)].retained + m->made > 0;
}

machine *machine_enter (bool needs_context, CUresult *refused) {
  if (in_callback) {
    *refused = CUDA_ERROR_NOT_PERMITTED;
    return NULL;
  }
  machine *m = machine_enter_stuck ();
  *refused = __atomic_load_n (&is_at_end, __ATOMIC_RELAXED) ? CUDA_ERROR_DEINITIALIZED
             : m == NULL || !m->initialised                 ? CUDA_ERROR_NOT_INITIALIZED
             : m->stuck != CUDA_SUCCESS                     ? m->stuck
             : needs_context && !contexts_any ()            ? CUDA_ERROR_INVALID_CONTEXT
             : needs_context && !has_context (m)            ? CUDA_ERROR_INVALID_CONTEXT
                                                            : CUDA_SUCCESS;
  if (*refused == CUDA_SUCCESS)
    return m;
  if (m != NULL)
    pthread_mutex_unlock (&m->lock);
  return NULL;
}

machine *machine_enter_uncaptured (CUresult *refused) {
  machine *m = machine_enter (true, refused);
  if (m == NULL || !capture_forbids (m))
    return m;
  *refused = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  machine_leave (m, CUDA_SUCCESS);
  return NULL;
}

CUresult machine_leave (machine *m, CUresult result) {
  pthread_mutex_unlock (&m->lock);
  return result;
}

int64_t machine_now (const machine *m) {
  return m->config.clock == EMU_VIRTUAL ? m->now_ns : monotonic_ns () - m->since_ns;
}

void machine_spend (machine *m, int64_t ns) {
  assert (ns >= 0);
  m->host_ns += ns;
}

void machine_catch_up (machine *m) {
  if (m->host_ns < m->now_ns)
    m->host_ns = m->now_ns;
}

void machine_fail (machine *m, CUresult error) {
  if (m->stuck == CUDA_SUCCESS)
    m->stuck = error;
}

void machine_in_callback (bool on) {
  in_callback = on;
}

/* splitmix64, of the machine's own: the seed must mean the same, also where others draw. */
uint64_t machine_random (machine *m) {
  uint64_t z = m->random += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

CUresult emuNow (int64_t *ns) {
  machine *m = machine_enter_stuck ();
  if (m == NULL)
    return CUDA_ERROR_NOT_INITIALIZED;
  *ns = machine_now (m);
  return machine_leave (m, CUDA_SUCCESS);
}

static _Thread_local uint64_t own_tag; /* other threads name their own bytes */

uint64_t machine_tag (void) {
  return own_tag;
}

CUresult emuTag (uint64_t owner) {
  ENTER (m, machine_enter (true, &refused));
  own_tag = owner;
  return machine_leave (m, CUDA_SUCCESS);
}

CUresult emuHighBytes (int64_t *bytes) {
  machine *m = machine_enter_stuck ();
  if (m == NULL || bytes == NULL)
    return m == NULL ? CUDA_ERROR_NOT_INITIALIZED : machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  *bytes = m->cards[contexts_card (m)].high_bytes;
  return machine_leave (m, CUDA_SUCCESS);
}

/* ---- start ---- */

static void end_comes (void) {
  __atomic_store_n (&is_at_end, true, __ATOMIC_RELAXED);
}

CUresult cuInit (unsigned int flags) {
  static bool knows_end;
  if (flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock (&gate);
  knows_end = knows_end || atexit (end_comes) == 0;
  if (the_machine == NULL)
    the_machine = machine_new (&usual);
  machine *m = the_machine;
  if (m != NULL)
    m->initialised = true;
  pthread_mutex_unlock (&gate);
  return m == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult cuDriverGetVersion (int *version) {
  if (version == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  *version = 13000;
  return CUDA_SUCCESS;
}

CUresult machine_device (CUdevice d, bool there) {
  ENTER (m, machine_enter (false, &refused));
  return machine_leave (m, !there                     ? CUDA_ERROR_INVALID_VALUE
                           : d < 0 || d >= m->n_cards ? CUDA_ERROR_INVALID_DEVICE
                                                      : CUDA_SUCCESS);
}
