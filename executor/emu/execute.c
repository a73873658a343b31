/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A command's effect on bytes. Where its addresses are not there, the thread that
   runs it jumps out of the signal and the command's context keeps the error, as on a GPU. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>

#include "executor/emu/core.h"

/* The signal is not blocked while it is handled (SA_NODEFER), so no mask is saved: that would be a
   system call a command. */
static _Thread_local sigjmp_buf landing;
static _Thread_local volatile sig_atomic_t guarded;
static struct sigaction before[2]; /* the handlers of these signals before ours */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool installed;

static void on_fault (int signal, siginfo_t *info, void *context) {
  if (guarded) {
    guarded = 0;
    siglongjmp (landing, 1);
  }
  const struct sigaction *old = &before[signal == SIGBUS];
  if ((old->sa_flags & SA_SIGINFO) != 0 && old->sa_sigaction != NULL)
    old->sa_sigaction (signal, info, context);
  else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN)
    old->sa_handler (signal);
  else
    sigaction (signal, old, NULL); /* the access is tried again and ends as it would have */
}

static void install (void) {
  struct sigaction a = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER };
  sigemptyset (&a.sa_mask);
  installed = sigaction (SIGSEGV, &a, &before[0]) == 0 && sigaction (SIGBUS, &a, &before[1]) == 0;
}

bool execute_prepare (void) {
  pthread_once (&once, install);
  return installed;
}

CUresult execute_check (const machine *m, const command *c) {
  if (c->kind == COMMAND_RECORD || c->kind == COMMAND_FREE)
    return CUDA_SUCCESS;
  for (int32_t i = 0; i < c->n_touches; i++)
    if (!memory_reachable (m, c->touches[i].at, c->touches[i].bytes,
                           (c->touches[i].how & EMU_WRITES) != 0))
      return CUDA_ERROR_ILLEGAL_ADDRESS;
  return CUDA_SUCCESS;
}

/* Staged rows lie without a pitch. */
static void move (const command *c) {
  const box *b = &c->as.copy.box;
  const char *staged = c->as.copy.staged, *from = (const char *)(uintptr_t)c->as.copy.from;
  char *to = (char *)(uintptr_t)c->as.copy.to;
  for (int64_t i = 0; i < b->rows * b->planes; i++) {
    int64_t y = i % b->rows, z = i / b->rows;
    memmove (to + z * b->to_slice + y * b->to_pitch,
             staged != NULL ? staged + i * b->width : from + z * b->from_slice + y * b->from_pitch,
             (size_t)b->width);
  }
}

static void fill (const command *c) {
  unsigned char *at = (unsigned char *)(uintptr_t)c->as.set.to;
  if (c->as.set.width == 1)
    memset (at, (int)c->as.set.value, (size_t)c->as.set.count);
  else
    for (int64_t i = 0; i < c->as.set.count; i++)
      memcpy (at + c->as.set.width * i, &c->as.set.value, (size_t)c->as.set.width);
}

static void call_host (const command *c) {
  machine_in_callback (true);
  if (c->as.host.function != NULL)
    c->as.host.function (c->as.host.user);
  else
    c->as.host.callback ((CUstream)c->stream, CUDA_SUCCESS, c->as.host.user);
  machine_in_callback (false);
}

CUresult execute_run (const machine *m, command *c) {
  bool bytes = m->config.bytes == EMU_ALL;
  bool moves =
      bytes || (c->kind == COMMAND_COPY && c->direction == COPY_BESIDE && c->n_touches == 0);
  if (sigsetjmp (landing, 0) != 0)
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  guarded = 1;
  switch ((command_kind)c->kind) {
  case COMMAND_KERNEL:
    if (c->as.run.kernel->told.run != NULL)
      c->as.run.kernel->told.run (&c->as.run.launch);
    break;
  case COMMAND_COPY:
    if (moves)
      move (c);
    break;
  case COMMAND_SET:
    if (bytes)
      fill (c);
    break;
  case COMMAND_HOST:
    guarded = 0;
    call_host (c);
    break;
  default:
    break;
  }
  guarded = 0;
  return CUDA_SUCCESS;
}
