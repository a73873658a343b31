/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the fuzzer of the planner does with one input, and what a replay of its corpus does too. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The bytes become a small trace, a device, a budget and what solve may do. Aborts where solve
   fails with anything but a refusal in words, where what it returns is no legal plan, costs other
   than it says or less than its bound, is not proved, or does not come back from its own text; and
   where a policy does such a thing. */
void solve_fuzz (const uint8_t *data, size_t size);
