/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A case of each kind of op that has a gradient, with odd sizes. */
#pragma once

#include "tests/op_bench.h"

typedef struct gradient_case {
  const char *name;
  compute c; /* forward; its batch is set later */
  compute_kind back[3];
  int n_back;
  const char *outs[2][2]; /* an output of the forward, and what its gradient is called */
  double low, high;       /* of the inputs */
  bool grid;              /* a kinked function: inputs far from the kinks */
  int64_t limit;
} gradient_case;

extern const gradient_case op_cases[];
extern const int op_cases_count;

/* The same for so many items. */
compute op_with_batch (const compute *c, int64_t batch);
/* Of that kind, of the sizes of the forward op. */
compute op_back_of (const compute *forward, compute_kind kind);

/* A bench with what the op touches, of such values. */
void op_case_begin (op_bench *b, const gradient_case *g, const compute *c);
