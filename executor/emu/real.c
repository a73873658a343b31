/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The real clock: a thread a stream.  What a command should take is paced by its nominal time,
   which follows from the nominal ends of what it waited for; a thread that wakes late does not push
   back what follows, unless it is later than a busy machine makes it.  Times told are those that
   were. */
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/clock.h"
#include "base/order.h"
#include "executor/emu/core.h"

/* A scheduler with more to run than processors keeps a thread waiting for some of its slices. */
enum { FORGIVEN_NS = 25000000 };

/* The nominal end, or the real one where that is too late to be forgiven. */
static int64_t settle_end (const machine *m, int64_t nominal_ns) {
  int64_t now = machine_now (m);
  return now > nominal_ns + FORGIVEN_NS ? now : nominal_ns;
}

static struct timespec moment (const machine *m, int64_t at_ns) {
  int64_t ns = at_ns + m->since_ns;
  return (struct timespec){ .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
}

/* Without the lock. */
static void sleep_until (const machine *m, int64_t at_ns) {
  struct timespec t = moment (m, at_ns);
  while (machine_now (m) < at_ns)
    clock_nanosleep (CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void run (machine *m, command *c) {
  if (m->stuck != CUDA_SUCCESS)
    return;
  CUresult r = execute_check (m, c);
  if (r == CUDA_SUCCESS) {
    pthread_mutex_unlock (&m->lock);
    r = execute_run (m, c);
    pthread_mutex_lock (&m->lock);
  }
  if (r != CUDA_SUCCESS)
    machine_fail (m, r);
}

static void work_kernel (machine *m, command *c) {
  const emu_kernel *k = &c->as.run.kernel->told;
  c->as.run.launch.start_ns = c->start_ns;
  c->as.run.ns = k->ns == NULL ? 0 : k->ns (&c->as.run.launch);
  run (m, c);
  int64_t end = c->stream->nominal_ns + c->as.run.ns;
  if (m->stuck == CUDA_SUCCESS && c->as.run.ns > 0) {
    pthread_mutex_unlock (&m->lock);
    sleep_until (m, end);
    pthread_mutex_lock (&m->lock);
  }
  c->stream->nominal_ns = settle_end (m, end);
}

static void free_ended (machine *m) {
  for (int e = 0; e < 2 * m->n_cards; e++)
    if (m->link.engine[e].busy && link_ended (&m->link, e))
      m->free_ns[e] = m->link.now_ns;
}

/* The link's state is carried to nominal moments only, so that late threads do not slow it. */
static void work_copy (machine *m, command *c) {
  int d = link_engine_of (c->stream->card, c->direction);
  int64_t ticket = m->tickets[d]++;
  while (m->turn[d] != ticket)
    pthread_cond_wait (&m->changed, &m->lock);
  if (++m->copies == m->config.failed_copy)
    machine_fail (m, CUDA_ERROR_ECC_UNCORRECTABLE);
  c->start_ns = machine_now (m);
  int64_t begins = max_of (c->stream->nominal_ns, m->free_ns[d]);
  if (c->start_ns > begins + FORGIVEN_NS)
    begins = c->start_ns;
  begins = max_of (begins, m->link.now_ns);
  while (link_next (&m->link) < begins && m->stuck == CUDA_SUCCESS) {
    /* Another engine changes before this one begins; its own thread takes it off. */
    link_carry (&m->link, link_next (&m->link));
    free_ended (m);
  }
  link_carry (&m->link, begins);
  link_begin (&m->link, d, begins, c->as.copy.bytes);
  pthread_cond_broadcast (&m->changed);
  run (m, c);
  while (m->link.engine[d].busy && m->stuck == CUDA_SUCCESS) {
    int64_t end = link_end_of (&m->link, d);
    if (machine_now (m) < end) {
      struct timespec t = moment (m, end);
      pthread_cond_timedwait (&m->changed, &m->lock, &t);
      continue;
    }
    while (m->link.engine[d].busy) {
      link_carry (&m->link, link_next (&m->link));
      free_ended (m);
    }
  }
  m->link.engine[d].busy = false;
  m->turn[d]++;
  pthread_cond_broadcast (&m->changed);
  c->stream->nominal_ns = m->free_ns[d] = settle_end (m, m->free_ns[d]);
}

static void work (machine *m, command *c) {
  if (c->kind == COMMAND_WAIT)
    while (!c->as.target->done && !m->closing) {
      c->as.target->awaited = true;
      pthread_cond_wait (&m->changed, &m->lock);
    }
  c->stream->nominal_ns =
      max_of (c->stream->nominal_ns, c->kind == COMMAND_WAIT ? c->as.target->nominal_ns : 0);
  c->stream->nominal_ns = max_of (c->stream->nominal_ns, c->issued_ns);
  if (m->config.fuzz_ns > 0 && c->kind != COMMAND_WAIT && c->kind != COMMAND_RECORD) {
    int64_t until = machine_now (m) + (int64_t)(machine_random (m) % (uint64_t)m->config.fuzz_ns);
    pthread_mutex_unlock (&m->lock);
    sleep_until (m, until);
    pthread_mutex_lock (&m->lock);
    c->stream->nominal_ns = max_of (c->stream->nominal_ns, until);
  }
  c->started = true;
  c->start_ns = machine_now (m);
  if (c->kind == COMMAND_KERNEL)
    work_kernel (m, c);
  else if (c->kind == COMMAND_COPY && c->direction != COPY_BESIDE)
    work_copy (m, c);
  else
    run (m, c);
  if (c->kind == COMMAND_FREE)
    memory_free_now (m, c->as.freed);
  c->nominal_ns = c->stream->nominal_ns;
}

void *real_work (void *both) {
  machine *m = ((void **)both)[0];
  stream *s = ((void **)both)[1];
  free (both);
  prctl (PR_SET_TIMERSLACK, 1UL);
  pthread_mutex_lock (&m->lock);
  for (;;) {
    while ((s->head == NULL || s->held) && !s->closing && !m->closing) {
      s->idle = true;
      pthread_cond_wait (&m->changed, &m->lock);
    }
    s->idle = false;
    if (s->head == NULL || m->closing)
      break;
    command *c = s->head;
    work (m, c);
    command_done (m, c);
  }
  pthread_mutex_unlock (&m->lock);
  return NULL;
}
