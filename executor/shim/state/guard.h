/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The checks that keep a run from a wrong byte.  In a library that is built for tests, and for
   nothing else, FERRY_UNGUARDED names those that are left out, so that a test can see that each of
   them is needed; FERRY_VARIANT names slower ways to do the same, so that a GPU can tell what they
   cost (tests/gpu/where.py). */
#pragma once

#ifdef FERRY_UNGUARDED
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool guard_names (const char *variable, const char *name) {
  const char *names = getenv (variable);
  return names != NULL && strstr (names, name) != NULL;
}
#define GUARD(name) (!guard_names ("FERRY_UNGUARDED", "," #name ","))
#define VARIANT(name) guard_names ("FERRY_VARIANT", "," #name ",")
#else
#define GUARD(name) true
#define VARIANT(name) false
#endif
