/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A program of the user's, started with the shim in front of its driver: its private folder, its
   environment, what it leaves behind. */
#pragma once

#include <sys/types.h>

#include "cli/call/call.h"
#include "executor/shim/step/block.h"

typedef struct program_run {
  shim_block *block; /* shared with it */
  int file;          /* the block's; 0: none */
  char folder[SHIM_PATH];
  char shim[SHIM_PATH], driver[SHIM_PATH]; /* the shim's file and the driver's */
  pid_t child;
  int status; /* of waitpid */
} program_run;

/* clang-format off */
#define OPTION_RUN_DRIVER { 0, "driver", "cuda|emulated", "the program's driver: this machine's, " \
  "or the emulated device, whose kernels are modules made for it; default: cuda" }
/* clang-format on */

/* The folder and the block; what the options say of the driver stands in its configuration. */
bool program_prepare (call *c, program_run *r) MUST_CHECK;
/* The block of a further rank, in a folder of the first's, with the same configuration. */
bool program_add_rank (call *c, const program_run *first, int rank, program_run *out) MUST_CHECK;
/* Starts it; its operands are the call's. */
bool program_start (call *c, program_run *r) MUST_CHECK;
/* True while it runs. Signals that end a program are passed on; `wait` false: does not wait. */
bool program_runs (program_run *r, bool wait);
/* Its exit status, 128 and the signal where one ended it. */
int program_status (const program_run *r);
/* An error where it never called the driver through the shim. */
bool program_was_seen (call *c, const program_run *r) MUST_CHECK;
/* The status of a call that failed: the program's own, if it ended with one. */
int program_failed (call *c, const program_run *r);
/* An error where the emulated device saw two uses of the same bytes in no order. */
bool program_is_ordered (call *c, const program_run *r) MUST_CHECK;
/* Files that are written when a program ends are there: it ended by exit, or from main. */
bool program_told (call *c, const program_run *r) MUST_CHECK;
void program_clean (program_run *r);
/* With all the files in it, that of the name `last` behind the others. */
void program_remove_folder (const char *path, const char *last);
const char *program_file (const program_run *r, char *buffer, int size, const char *name,
                          int number);
