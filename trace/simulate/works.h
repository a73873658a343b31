/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Work in streams that no plan orders: what a program and the shim under it will do, one item after
   the other, each with what it waits for.  Its times are the event loop's; docs/machine-model.md,
   "Works". */
#pragma once

#include "base/arena.h"
#include "base/file.h"
#include "trace/device.h"
#include "trace/simulate/simulate.h"

enum { WORKS_STREAMS = 66 };

typedef struct work {
  int32_t stream;
  int64_t ns;    /* of what is no copy */
  int64_t bytes; /* of a copy, less than 0: to the host; 0: no copy */
  int64_t first_wait, n_waits;
} work;

typedef struct works {
  bytes rows, waits;
  int32_t last[WORKS_STREAMS]; /* of each stream; -1: none */
} works;

void works_start (works *w);
void works_free (works *w);
/* Behind the last of its stream; works_wait then adds to what it waits for. */
bool works_add (works *w, int32_t stream, int64_t ns, int64_t bytes, error *err) MUST_CHECK;
bool works_wait (works *w, int32_t behind, error *err) MUST_CHECK; /* less than 0: nothing */
/* out[i]: when the i-th starts and ends, from time 0 on. Of copies that could start at once that
   which was added first is first. */
bool works_simulate (const works *w, const device *d, arena *a, span **out, error *err) MUST_CHECK;
