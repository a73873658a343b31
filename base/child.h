/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A process that ends with the one that began it. */
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/error.h"

/* From now on the caller ends with its parent, however that one ends. False: it has ended already,
   and the caller should too. */
MUST_CHECK static inline bool child_ends_with (pid_t parent) {
  return prctl (PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid () == parent;
}
