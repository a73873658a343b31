/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How a command gets from a call into its stream, and off it when it is done. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "executor/emu/core.h"

enum { BLOCK_COMMANDS = 256 };

void command_hold (command *c) {
  c->refs++;
}

void command_drop (machine *m, command *c) {
  assert (c == NULL || c->refs > 0);
  if (c == NULL || --c->refs > 0)
    return;
  if (c->kind == COMMAND_WAIT)
    command_drop (m, c->as.target);
  if (c->kind == COMMAND_KERNEL && c->as.run.params != c->as.run.few_params)
    free (c->as.run.params);
  if (c->kind == COMMAND_COPY)
    free (c->as.copy.staged);
  race_clock_free (c->seen);
  if (c->touches != c->few)
    free (c->touches);
  c->next = m->spare;
  m->spare = c;
}

static bool more_commands (machine *m) {
  command **moved = realloc (m->blocks, (size_t)(m->n_blocks + 1) * sizeof (command *));
  if (moved == NULL)
    return false;
  m->blocks = moved;
  command *block = malloc (BLOCK_COMMANDS * sizeof *block);
  if (block == NULL)
    return false;
  m->blocks[m->n_blocks++] = block;
  for (int i = 0; i < BLOCK_COMMANDS; i++) {
    block[i].next = m->spare;
    m->spare = &block[i];
  }
  return true;
}

/* The time that the host's call takes. */
static int64_t call_ns (const machine *m, command_kind kind) {
  switch (kind) {
  case COMMAND_KERNEL:
  case COMMAND_COPY:
  case COMMAND_SET:
    return m->config.launch_ns;
  case COMMAND_RECORD:
    return m->config.event_ns / 2;
  default:
    return 0;
  }
}

command *command_new (machine *m, stream *s, command_kind kind) {
  machine_spend (m, call_ns (m, kind));
  return command_take (m, s, kind);
}

command *command_take (machine *m, stream *s, command_kind kind) {
  if (m->spare == NULL && !more_commands (m))
    return NULL;
  command *c = m->spare;
  m->spare = c->next;
  memset (c, 0, sizeof *c);
  c->kind = (uint8_t)kind;
  c->stream = s;
  c->refs = 1; /* the queue's */
  c->number = ++m->commands;
  c->issued_ns = m->config.clock == EMU_VIRTUAL ? m->host_ns : machine_now (m);
  c->touches = c->few;
  c->touches_capacity = FEW_TOUCHES;
  return c;
}

bool command_touch (command *c, const touch *t) {
  if (c->n_touches == c->touches_capacity) {
    bool few = c->touches == c->few;
    touch *moved =
        realloc (few ? NULL : c->touches, 2 * (size_t)c->touches_capacity * sizeof *moved);
    if (moved == NULL)
      return false;
    if (few)
      memcpy (moved, c->few, sizeof c->few);
    c->touches = moved;
    c->touches_capacity *= 2;
  }
  c->touches[c->n_touches++] = *t;
  return true;
}

bool command_params (command *c) {
  size_t bytes = (size_t)c->as.run.kernel->param_bytes;
  c->as.run.params = bytes <= FEW_PARAM_BYTES ? c->as.run.few_params : malloc (bytes);
  c->as.run.launch.params = c->as.run.params;
  return c->as.run.params != NULL;
}

command *command_again (machine *m, stream *s, const command *of) {
  command *c = command_take (m, s, (command_kind)of->kind);
  if (c == NULL)
    return NULL;
  c->direction = of->direction;
  c->as = of->as;
  bool good = of->kind != COMMAND_KERNEL || command_params (c);
  if (good && of->kind == COMMAND_KERNEL && of->as.run.kernel->param_bytes > 0)
    memcpy (c->as.run.params, of->as.run.params, (size_t)of->as.run.kernel->param_bytes);
  if (of->kind == COMMAND_COPY && of->as.copy.staged != NULL)
    good = copy_stage (c);
  for (int32_t i = 0; good && i < of->n_touches; i++)
    good = command_touch (c, &of->touches[i]);
  if (good)
    return c;
  command_drop (m, c);
  return NULL;
}

static void queue (machine *m, stream *s, command *c) {
  c->sequence = ++s->issued;
  if (s->tail != NULL)
    s->tail->next = c;
  else
    s->head = c;
  s->tail = c;
  command_drop (m, s->last);
  command_hold (c);
  s->last = c;
}

static command *wait_for (machine *m, stream *s, command *target) {
  command *w = command_new (m, s, COMMAND_WAIT);
  if (w == NULL)
    return NULL;
  w->as.target = target;
  command_hold (target);
  return w;
}

static bool queue_wait (machine *m, stream *s, command *target) {
  command *w = wait_for (m, s, target);
  if (w != NULL)
    queue (m, s, w);
  return w != NULL;
}

/* The joining of a legacy stream: it waits for all blocking ones, and they for it. */
static bool join_legacy (machine *m, stream *s) {
  if ((s->flags & CU_STREAM_NON_BLOCKING) != 0)
    return true;
  for (int32_t i = 0; i < m->n_streams; i++) {
    stream *o = m->streams[i];
    if (o == s || o->card != s->card || o->last == NULL || (o->flags & CU_STREAM_NON_BLOCKING) != 0)
      continue;
    if (!s->legacy && !o->legacy)
      continue;
    if (!o->last->done && !queue_wait (m, s, o->last))
      return false;
    if (m->races != NULL && !race_clock_join (s->seen, o->seen))
      return false;
  }
  return true;
}

typedef struct watched {
  machine *m;
  command *c;
  bool failed;
} watched;

static const char *name_of (const command *c) {
  static const char *const copies[] = { "copy to host", "copy to device",
                                        "copy within the device" };
  switch ((command_kind)c->kind) {
  case COMMAND_KERNEL:
    return c->as.run.kernel->told.name;
  case COMMAND_COPY:
    return copies[c->direction];
  case COMMAND_SET:
    return "memset";
  case COMMAND_FREE:
    return "free";
  default:
    return "allocation";
  }
}

static void watch_piece (void *context, const race_range *r) {
  watched *w = context;
  race_access by = { w->c->stream->actor, w->c->sequence, name_of (w->c) };
  if (!race_touch (w->m->races, w->c->stream->seen, by, r))
    w->failed = true;
}

static bool watch (machine *m, command *c) {
  stream *s = c->stream;
  host *h = machine_host (m);
  if (h == NULL || !race_clock_join (s->seen, h->seen) ||
      !race_clock_set (s->seen, s->actor, c->sequence))
    return false;
  if (c->kind == COMMAND_WAIT && !race_clock_join (s->seen, c->as.target->seen))
    return false;
  if (c->kind == COMMAND_RECORD) {
    c->seen = race_clock_new ();
    if (c->seen == NULL || !race_clock_join (c->seen, s->seen))
      return false;
  }
  watched w = { m, c, false };
  for (int32_t i = 0; i < c->n_touches; i++)
    memory_places (m, &c->touches[i], watch_piece, &w);
  return !w.failed;
}

CUresult command_issue (machine *m, command *c) {
  if (c->stream->capture != NULL)
    return capture_take (m, c);
  if (capture_is_implicit (m, c->stream)) {
    command_drop (m, c);
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  if (!join_legacy (m, c->stream)) {
    command_drop (m, c);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  queue (m, c->stream, c);
  c->stream->copies += c->kind == COMMAND_COPY;
  if (m->races != NULL && !watch (m, c))
    machine_fail (m, CUDA_ERROR_OUT_OF_MEMORY);
  if (c->stream->idle)
    pthread_cond_broadcast (&m->changed);
  return m->stuck;
}

CUresult command_await (machine *m, stream *s, command *target) {
  command *w = wait_for (m, s, target);
  return w == NULL ? CUDA_ERROR_OUT_OF_MEMORY : command_issue (m, w);
}

void command_done (machine *m, command *c) {
  assert (c->stream && c->stream->head == c && !c->done);
  stream *s = c->stream;
  c->end_ns = machine_now (m);
  c->done = true;
  s->head = c->next;
  if (s->head == NULL)
    s->tail = NULL;
  if (c->awaited)
    pthread_cond_broadcast (&m->changed);
  command_drop (m, c);
}

CUresult command_finish (machine *m, command *c) {
  command_hold (c);
  bool hangs = false;
  while (!c->done && !hangs)
    if (m->config.clock == EMU_VIRTUAL)
      hangs = !virtual_step (m);
    else {
      c->awaited = true;
      pthread_cond_wait (&m->changed, &m->lock);
    }
  command_drop (m, c);
  machine_catch_up (m);
  return m->stuck != CUDA_SUCCESS ? m->stuck : hangs ? CUDA_ERROR_LAUNCH_TIMEOUT : CUDA_SUCCESS;
}

CUresult command_host_sees (machine *m, const race_clock *seen) {
  if (m->races == NULL)
    return CUDA_SUCCESS;
  host *h = machine_host (m);
  return h != NULL && race_clock_join (h->seen, seen) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult stream_finish (machine *m, stream *s) {
  CUresult r = s->last == NULL ? m->stuck : command_finish (m, s->last);
  return r == CUDA_SUCCESS ? command_host_sees (m, s->seen) : r;
}

bool command_asked (machine *m, const command *c) {
  if (c == NULL || c->done)
    return true;
  if (m->config.clock == EMU_VIRTUAL)
    (void)virtual_step (m);
  machine_catch_up (m);
  return c->done;
}
