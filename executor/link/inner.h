/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Copies that begin together behind a gate; private to the room. */
#pragma once

#include "executor/link/link.h"

enum {
  LINK_USUAL_MOST = 256 << 20,
  LINK_GATE_NS = 200000 /* all copies of a card are issued while the gate is shut */
};

typedef struct link_bench {
  const driver *d;
  kernels k;
  CUstream gate, way[2]; /* 0: out, 1: in */
  CUevent open, begin[2], end[2];
  CUdeviceptr device[2];
  char *host[2];
} link_bench;

/* b->d is given, and its context current, as for all of these. */
bool link_open (link_bench *b, bool emulated, int64_t bytes, error *err) MUST_CHECK;
void link_close (link_bench *b);
/* A copy that waits for `open`, between its two events. */
bool link_issue (link_bench *b, CUevent open, int way, int64_t bytes, error *err) MUST_CHECK;
