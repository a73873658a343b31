/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From the first call of the driver to the end of the program: the arena starts with the first
   memory that is asked for, and what is to be kept is written at the end. */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "executor/shim/calls/calls.h"
#include "executor/shim/calls/owner.h"
#include "executor/shim/follow/follow.h"
#include "executor/shim/follow/learn.h"
#include "executor/shim/memory/memory.h"
#include "executor/shim/record/last.h"
#include "executor/shim/record/order.h"
#include "executor/shim/record/record.h"
#include "executor/shim/state/wraps.h"

/* A thread that waits for memory of a shared card may have the lock, and the program ends all the
   same. */
static bool lock_to_end (shim *s) {
  enum { PATIENCE_S = 10 };
  struct timespec until;
  clock_gettime (CLOCK_REALTIME, &until);
  until.tv_sec += PATIENCE_S;
  return pthread_mutex_timedlock (&s->lock, &until) == 0;
}

/* The emulated device saw this process only; others may have been before it. */
static void ask_device (shim_block *b) {
  emu_races races = shim_symbol (EMU_RACES);
  CUresult (*usage) (int64_t *) = shim_symbol ("emuHighBytes");
  emu_race first;
  int32_t n = 0;
  int64_t high = 0;
  if (races != NULL && races (&first, 1, &n) == CUDA_SUCCESS && n > 0) {
    b->race = b->races > 0 ? b->race : first;
    b->races += n;
  }
  if (usage != NULL && usage (&high) == CUDA_SUCCESS && high > b->seen.driver_high_bytes)
    b->seen.driver_high_bytes = high;
}

/* A signal's handler may end the program amid a call of this thread: then our tables are half
   changed, and the driver may wait for ever.  Other threads may go on, and what runs behind this is
   served. */
void shim_finish (void) {
  shim *s = shim_of_process ();
  if (s == NULL || s->alone || s->block->ended || abs (s->block->owner) != (int32_t)getpid () ||
      shim_is_inside ())
    return;
  (void)shim_look (shim_real ()->ctx_synchronize ()); /* a fault that no call of ours has met */
  if (!lock_to_end (s))
    return;
  (void)shim_set_inside (true);
  last_write (s);
  if (s->block->config.mode == SHIM_PROFILE)
    learn_settle (s);
  record_finish (s);
  follow_finish (s);
  ask_device (s->block);
  s->block->ended = 1;
  (void)shim_set_inside (false);
  pthread_mutex_unlock (&s->lock);
}

void shim_load (void) {
  if (shim_open ())
    atexit (shim_finish);
}

CUresult wrap_init (unsigned int flags) {
  shim *s = shim_of_process ();
  if (s != NULL && s->second)
    return CUDA_ERROR_NOT_SUPPORTED;
  if (s == NULL || s->alone || shim_is_inside ())
    return shim_real ()->init (flags);
  shim_config *c = &s->block->config;
  pthread_mutex_lock (&s->lock);
  (void)shim_set_inside (true);
  CUresult (*configure) (const emu_config *) = shim_symbol (EMU_CONFIGURE);
  CUresult r = s->begun || ranks_begin (s) ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
  c = &s->block->config;
  if (r == CUDA_SUCCESS && !s->begun && c->emulated && configure != NULL)
    r = configure (&c->emu);
  if (r == CUDA_SUCCESS)
    r = s->real.init (flags);
  s->begun = s->begun || r == CUDA_SUCCESS;
  if (r == CUDA_SUCCESS && s->ranked)
    r = owner_take (s, false);
  (void)shim_set_inside (false);
  pthread_mutex_unlock (&s->lock);
  return r;
}

/* The first call that needs memory starts the arena: only then is there surely a context. */
static bool start (shim *s) {
  if (s->started || s->shut)
    return s->started;
  if (!ranks_settle (s) || owner_take (s, true) != CUDA_SUCCESS || s->alone)
    return false;
  if (owner_is_passed_by (s)) {
    s->block->refused = 1;
    s->alone = s->block->config.mode == SHIM_PROFILE;
    s->shut = !s->alone;
    return false;
  }
  s->order = order_new ();
  /* our end comes before the driver's own, behind which no time is told */
  s->started = s->order != NULL && area_start (s) && record_start (s) && follow_start (s) &&
               atexit (shim_finish) == 0;
  return s->started;
}

bool shim_enter (shim **out) {
  shim *s = shim_of_process ();
  if (s == NULL || s->alone || shim_is_inside ())
    return false;
  shim_begin (s);
  s->block->seen.calls++;
  *out = s;
  if (s->begun && start (s))
    return true;
  (void)shim_leave (s, CUDA_SUCCESS);
  return false;
}
