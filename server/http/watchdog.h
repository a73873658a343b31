/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Asks each thread of the library for an answer, again and again, on a connection of its own. Who
   is silent for too long hangs, and nothing but a new process helps its clients. */
#pragma once

#include "base/error.h"

typedef struct watchdog watchdog;
typedef struct watchdog_care {
  int threads;   /* the library gives connection FD to number FD % threads */
  int moment_ms; /* between questions */
  int patience;  /* so many moments without an answer are too many: those in which this process was
                    stopped do not count */
  bool (*open) (void *context, int fd); /* takes the descriptor over */
  void (*answered) (void *context);     /* once a moment, where none is late */
  void (*late) (void *context);         /* once */
  void *context;
} watchdog_care;

watchdog *watchdog_start (const watchdog_care *care, error *err) MUST_CHECK;
void watchdog_stop (watchdog *w);
