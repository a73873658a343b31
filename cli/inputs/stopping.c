/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/inputs/stopping.h"

#include "base/clock.h"

static const int asking[] = { SIGINT, SIGTERM };
enum { SIGNALS = sizeof asking / sizeof *asking };

static bool has (int number, void (*handler) (int)) {
  struct sigaction now;
  return sigaction (number, NULL, &now) == 0 && now.sa_handler == handler;
}

/* The default is back at once, so the next signal of either kind ends the program, and no variable
   is shared with the handler: that it has run is seen from what is set. */
static void on_signal (int number) {
  struct sigaction standard = { .sa_handler = SIG_DFL };
  (void)number;
  for (int i = 0; i < SIGNALS; i++)
    if (has (asking[i], on_signal))
      sigaction (asking[i], &standard, NULL);
}

void stopping_begin (call *c) {
  struct sigaction mine = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
  if (c->stoppable)
    return;
  sigemptyset (&mine.sa_mask);
  for (int i = 0; i < SIGNALS; i++) /* a signal ignored from outside stays so */
    if (has (asking[i], SIG_DFL) && sigaction (asking[i], &mine, NULL) == 0)
      c->stoppable = true;
}

bool stopping_asked (const call *c) {
  for (int i = 0; c->stoppable && i < SIGNALS; i++)
    if (has (asking[i], on_signal))
      return false;
  return c->stoppable;
}

void stopping_hold (sigset_t *was) {
  sigset_t held;
  sigemptyset (&held);
  for (int i = 0; i < SIGNALS; i++)
    sigaddset (&held, asking[i]);
  sigprocmask (SIG_BLOCK, &held, was);
}

/* To ignore a signal drops one that waits. Where it had come before, ignored is as good as the
   default, and outlasts a second one. */
void stopping_in_child (const call *c, const sigset_t *was) {
  bool asked = stopping_asked (c);
  for (int i = 0; c->stoppable && i < SIGNALS; i++) {
    struct sigaction mine, ignored = { .sa_handler = SIG_IGN };
    if (sigaction (asking[i], &ignored, &mine) == 0 && !asked)
      sigaction (asking[i], &mine, NULL);
  }
  sigprocmask (SIG_SETMASK, was, NULL);
}

/* The first that is not ignored from outside: the child ignores the same. */
void stopping_tell (pid_t child) {
  for (int i = 0; i < SIGNALS; i++)
    if (!has (asking[i], SIG_IGN)) {
      kill (child, asking[i]);
      return;
    }
}

void stopping_after (call *c, int64_t seconds) {
  c->deadline_ns = monotonic_ns () + seconds * 1000000000;
}

bool stopping_due (const call *c) {
  return stopping_asked (c) || (c->deadline_ns && monotonic_ns () >= c->deadline_ns);
}
