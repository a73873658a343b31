/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The virtual clock: one engine that nobody waits for.  Host calls take the time that the
   configuration says, all threads' one behind the other; nothing begins before its call was over.
   Work is done, in the order of its ends, when the host synchronises.  Time is whole nanoseconds,
   ties are broken by the order in which streams were made, for copies over the link by that of
   their calls, so a program's times are the same in every run. */
#include "executor/emu/core.h"

/* Under the fuzzer a command may take effect when it starts or when it ends: who relies on one of
   them alone has a race. */
static void take_effect (machine *m, command *c) {
  if (m->stuck != CUDA_SUCCESS)
    return;
  CUresult r = execute_check (m, c);
  if (r == CUDA_SUCCESS)
    r = execute_run (m, c);
  if (r != CUDA_SUCCESS)
    machine_fail (m, r);
}

static void finish (machine *m, command *c) {
  if (!c->executed)
    take_effect (m, c);
  if (c->kind == COMMAND_FREE)
    memory_free_now (m, c->as.freed);
  command_done (m, c);
}

static void begin_command (machine *m, command *c) {
  c->started = true;
  c->start_ns = m->now_ns;
  if (m->config.fuzz_ns > 0 && machine_random (m) % 2 == 0 &&
      (c->kind == COMMAND_KERNEL || c->kind == COMMAND_COPY)) {
    c->executed = true;
    take_effect (m, c);
  }
}

/* Other than of copies over the link. */
static int64_t length (const machine *m, const command *c) {
  int64_t rate = m->config.memory_bytes_per_s;
  int64_t bytes = c->kind == COMMAND_SET    ? c->as.set.count * c->as.set.width
                  : c->kind == COMMAND_COPY ? 2 * c->as.copy.bytes /* read and written */
                                            : 0;
  if (c->kind == COMMAND_KERNEL)
    return c->as.run.ns;
  return rate == 0 ? 0 : (int64_t)((__int128)bytes * 1000000000 / rate);
}

static bool crosses (const command *c) {
  return c != NULL && c->kind == COMMAND_COPY && c->direction != COPY_BESIDE;
}

static bool may_begin (const machine *m, const stream *s) {
  const command *c = s->head;
  return !c->started && !s->held && m->now_ns >= c->not_before_ns && m->now_ns >= c->issued_ns;
}

/* It runs, and ends by itself. */
static bool is_running (const command *c) {
  return c->started && !crosses (c);
}

static bool begin_copy (machine *m, command *c) {
  int d = link_engine_of (c->stream->card, c->direction);
  if (m->carried[d] != NULL || c->as.copy.ticket != m->turn[d] + 1)
    return false;
  if (++m->copies == m->config.failed_copy)
    machine_fail (m, CUDA_ERROR_ECC_UNCORRECTABLE);
  m->carried[d] = c;
  link_begin (&m->link, d, m->now_ns, c->as.copy.bytes);
  begin_command (m, c);
  return true;
}

/* Copies of one engine take turns in the order in which they became ready; those of one moment, in
   that of their calls. */
static void queue_copies (machine *m) {
  command *next;
  do {
    next = NULL;
    for (int32_t i = 0; i < m->n_streams; i++) {
      command *c = m->streams[i]->head;
      if (crosses (c) && may_begin (m, m->streams[i]) && c->as.copy.ticket == 0 &&
          (next == NULL || c->number < next->number))
        next = c;
    }
    if (next != NULL)
      next->as.copy.ticket = ++m->tickets[link_engine_of (next->stream->card, next->direction)];
  } while (next != NULL);
}

/* Once nothing else can happen at this moment. */
static bool begin_copies (machine *m) {
  bool changed = false;
  queue_copies (m);
  for (int32_t i = 0; i < m->n_streams; i++) {
    command *c = m->streams[i]->head;
    if (crosses (c) && may_begin (m, m->streams[i]) && begin_copy (m, c))
      changed = true;
  }
  return changed;
}

/* True if something changed: the command began, or was done. */
static bool move (machine *m, stream *s) {
  command *c = s->head;
  if (c == NULL || c->started || s->held)
    return false;
  if (c->kind == COMMAND_WAIT && !c->as.target->done)
    return false;
  if (m->config.fuzz_ns > 0 && c->not_before_ns == 0 && c->kind != COMMAND_WAIT &&
      c->kind != COMMAND_RECORD)
    c->not_before_ns = m->now_ns + 1 + (int64_t)(machine_random (m) % (uint64_t)m->config.fuzz_ns);
  if (!may_begin (m, s) || crosses (c))
    return false;
  if (c->kind == COMMAND_KERNEL) {
    c->as.run.launch.start_ns = m->now_ns;
    const emu_kernel *k = &c->as.run.kernel->told;
    c->as.run.ns = k->ns == NULL ? 0 : k->ns (&c->as.run.launch);
    begin_command (m, c);
  } else
    c->start_ns = m->now_ns;
  if (length (m, c) > 0) {
    c->started = true;
    return true;
  }
  finish (m, c);
  return true;
}

static bool settle (machine *m) {
  bool changed = false;
  int32_t first =
      m->config.fuzz_ns > 0 ? (int32_t)(machine_random (m) % (uint64_t)m->n_streams) : 0;
  for (int32_t i = 0; i < m->n_streams; i++)
    while (move (m, m->streams[(i + first) % m->n_streams]))
      changed = true;
  return changed;
}

static int64_t next_moment (const machine *m) {
  int64_t next = link_next (&m->link);
  for (int32_t i = 0; i < m->n_streams; i++) {
    const command *c = m->streams[i]->head;
    if (c == NULL || m->streams[i]->held)
      continue;
    int64_t begin = c->not_before_ns > c->issued_ns ? c->not_before_ns : c->issued_ns;
    int64_t at = is_running (c)                     ? c->start_ns + length (m, c)
                 : !c->started && begin > m->now_ns ? begin
                                                    : INT64_MAX;
    next = at < next ? at : next;
  }
  return next;
}

bool virtual_step (machine *m) {
  if (settle (m) || begin_copies (m))
    return true;
  int64_t next = next_moment (m);
  if (next == INT64_MAX)
    return false;
  link_carry (&m->link, next);
  m->now_ns = next;
  for (int d = 0; d < 2 * m->n_cards; d++)
    if (m->carried[d] != NULL && link_ended (&m->link, d)) {
      command *c = m->carried[d];
      m->carried[d] = NULL;
      m->turn[d]++;
      finish (m, c);
    }
  for (int32_t i = 0; i < m->n_streams; i++) {
    command *c = m->streams[i]->head;
    if (c != NULL && is_running (c) && c->start_ns + length (m, c) == next)
      finish (m, c);
  }
  return true;
}
