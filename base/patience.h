/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Waiting for a condition, with a limit. By the monotonic clock: if the time of day is set back,
   the wait does not grow. */
#pragma once

#include <pthread.h>
#include <stdint.h>
#include <time.h>

static inline void patience_init (pthread_cond_t *c) {
  pthread_condattr_t how;
  pthread_condattr_init (&how);
  pthread_condattr_setclock (&how, CLOCK_MONOTONIC);
  pthread_cond_init (c, &how);
  pthread_condattr_destroy (&how);
}

/* Returns when the condition is signalled or the nanoseconds are over. patience_init made the
 * condition. */
static inline void patience_wait (pthread_cond_t *c, pthread_mutex_t *lock, int64_t ns) {
  enum { SECOND_NS = 1000000000 };
  struct timespec until;
  clock_gettime (CLOCK_MONOTONIC, &until);
  ns += until.tv_nsec;
  until.tv_sec += ns / SECOND_NS;
  until.tv_nsec = ns % SECOND_NS;
  pthread_cond_timedwait (c, lock, &until);
}
