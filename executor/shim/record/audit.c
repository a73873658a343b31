/* SPDX-License-Identifier: GPL-3.0-or-later */
/* CUPTI tells of each call that the driver gets, on the thread that makes it.  A thread that comes
   through the shim is inside by then; a call that we wrap, on a thread that is not, has found
   another way in. */
#include "executor/shim/record/audit.h"

#include <string.h>

static shim_block *counted;

static bool begins (const char *text, const char *with) {
  return strncmp (text, with, strlen (with)) == 0;
}

static bool is_launch (const char *function) {
  return begins (function, "cuLaunchKernel") || begins (function, "cuLaunchCooperativeKernel");
}

/* One of the wrapped, which makes memory or uses it; the others change nothing. */
static bool is_ours (const char *function) {
  static const char *const wrapped[] = {
#define WRAP(name, version, per_thread, symbol, wrapper, parameters) #symbol,
#include "executor/shim/state/wraps.def"
#undef WRAP
  };
  static const char *const kinds[] = { "cuLaunch", "cuMemAlloc", "cuMemcpy", "cuMemset" };
  bool wanted = false;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    wanted = wanted || begins (function, kinds[i]);
  for (size_t i = 0; wanted && i < sizeof wrapped / sizeof *wrapped; i++)
    if (strcmp (wrapped[i], function) == 0)
      return true;
  return false;
}

static void saw (const char *function) {
  shim_audit *a = &counted->audit;
  if (is_launch (function))
    __atomic_fetch_add (&a->launches, 1, __ATOMIC_RELAXED);
  if (shim_is_inside () || !is_ours (function))
    return;
  if (__atomic_fetch_add (&a->escapes, 1, __ATOMIC_RELAXED) == 0)
    strncpy (a->first, function, sizeof a->first - 1);
}

bool audit_start (shim *s, cupti *c, const char **why) {
  counted = s->block;
  return cupti_watch (c, saw, why);
}
