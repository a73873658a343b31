/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The cases of bench_solve: networks of the zoo on a card of 11 TFLOP/s, behind links that carry
   both ways at once, with shares of the peak as budgets. */
#pragma once

#include "solver/solve.h"

enum { SOLVE_NETWORKS = 9, SOLVE_LINKS = 3, SOLVE_PERCENTS = 4 };

typedef struct solve_network {
  const char *name;
  int64_t batch, seq;
} solve_network;

extern const solve_network solve_networks[SOLVE_NETWORKS];
extern const int64_t solve_links[SOLVE_LINKS]; /* GB/s each way */
extern const int solve_percents[SOLVE_PERCENTS];

device solve_card (int64_t gb_per_s);
trace *solve_trace (const solve_network *n, const device *card, arena *a, error *err) MUST_CHECK;
