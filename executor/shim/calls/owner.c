/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/shim/calls/owner.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct walk {
  const char *ours, *real;
  char found[SHIM_PATH];
} walk;

/* Another object that calls itself the driver: calls through it would not be seen. */
static int look_at (struct dl_phdr_info *info, size_t size, void *context) {
  (void)size;
  walk *w = context;
  const char *name = strrchr (info->dlpi_name, '/');
  if (name == NULL || strncmp (name, "/libcuda.so", 11) != 0)
    return 0;
  char path[4096];
  if (realpath (info->dlpi_name, path) == NULL || strcmp (path, w->ours) == 0 ||
      strcmp (path, w->real) == 0)
    return 0;
  snprintf (w->found, sizeof w->found, "%s", info->dlpi_name);
  return 1;
}

bool owner_is_passed_by (shim *s) {
  Dl_info own;
  char ours[4096] = "", real[4096] = "";
  if (dladdr ((void *)owner_take, &own) == 0 || realpath (own.dli_fname, ours) == NULL ||
      realpath (s->real.path, real) == NULL)
    return false;
  walk w = { .ours = ours, .real = real };
  dl_iterate_phdr (look_at, &w);
  if (w.found[0] == 0)
    return false;
  shim_say (s,
            "a second driver library is loaded (%s): calls through it would not be seen; open "
            "libcuda.so.1 by name, without a folder",
            w.found);
  return true;
}

/* The owner has no memory yet, or none any more. A profile is of the first that did something. */
static bool has_none (const shim_block *b, int32_t owner) {
  if (owner >= 0)
    return true;
  if (b->config.mode == SHIM_PROFILE && b->seen.ops > 0)
    return false;
  return b->ended || (kill (-owner, 0) != 0 && errno == ESRCH);
}

static bool swap_owner (shim_block *b, int32_t *seen, int32_t wanted) {
  return __atomic_compare_exchange_n (&b->owner, seen, wanted, false, __ATOMIC_SEQ_CST,
                                      __ATOMIC_SEQ_CST);
}

CUresult owner_take (shim *s, bool works) {
  shim_block *b = s->block;
  int32_t me = (int32_t)getpid (), owner = __atomic_load_n (&b->owner, __ATOMIC_SEQ_CST);
  while (owner != me && owner != -me && has_none (b, owner))
    if (swap_owner (b, &owner, me)) {
      b->ended = 0;
      owner = me;
    }
  if (owner == -me || (owner == me && (!works || swap_owner (b, &owner, -me))))
    return CUDA_SUCCESS;
  if (b->config.mode == SHIM_PROFILE) {
    s->alone = true;
    return CUDA_SUCCESS;
  }
  s->shut = true;
  shim_say (s,
            "process %d wants the gpu too; the budget belongs to %d; with a gpu for each, give "
            "--ranks N, else each its own ferry run",
            me, owner < 0 ? -owner : owner);
  return CUDA_ERROR_NO_DEVICE;
}
