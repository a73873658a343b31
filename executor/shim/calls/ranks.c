/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One process for each device: a process finds its rank, and with it its own block, budget and
   files.  The variables of launchers say it before the driver is asked anything; else the device of
   the context that asks for memory first is the rank's. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "executor/shim/calls/owner.h"

/* A whole number; -1: it is none. */
static int32_t number (const char *text) {
  char *end;
  if (text == NULL || *text < '0' || *text > '9')
    return -1;
  long n = strtol (text, &end, 10);
  return *end == 0 && n <= INT32_MAX ? (int32_t)n : -1;
}

/* -1: no variable says it. */
static int32_t rank_of_launcher (void) {
  static const char *const names[] = { "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                       "MPI_LOCALRANKID", "SLURM_LOCALID", "CUDA_VISIBLE_DEVICES" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (number (getenv (names[i])) >= 0)
      return number (getenv (names[i]));
  return -1;
}

static bool take (shim *s, int32_t rank) {
  const shim_config *c = &s->block->config;
  char path[SHIM_PATH + 64];
  if (rank >= c->ranks) {
    s->shut = true;
    s->block->refused = 1;
    shim_say (s,
              "process %d is rank %d (LOCAL_RANK or its device), and --ranks has %d: give "
              "--ranks %d",
              (int)getpid (), rank, c->ranks, rank + 1);
    return false;
  }
  snprintf (path, sizeof path, "%s/" SHIM_RANK "-%d/" SHIM_BLOCK_FILE, c->folder, rank);
  shim_block *own = rank == 0 ? s->block : shim_open_block (path);
  if (own == NULL) {
    s->shut = true;
    shim_say (s, "%s cannot be read: rank %d has no budget", path, rank);
    return false;
  }
  s->block = own;
  s->ranked = true;
  __atomic_store_n (&own->loader_pid, (int32_t)getpid (), __ATOMIC_RELAXED);
  return true;
}

bool ranks_begin (shim *s) {
  int32_t rank = rank_of_launcher ();
  s->ranked = s->ranked || s->block->config.ranks <= 1;
  return s->ranked || rank < 0 || take (s, rank);
}

bool ranks_settle (shim *s) {
  CUdevice device = 0;
  if (s->ranked)
    return true;
  return s->real.ctx_get_device != NULL && s->real.ctx_get_device (&device) == CUDA_SUCCESS &&
         take (s, device);
}
