/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The bytes that ranks must carry over the links that they share: rows of a bound for all. */
#pragma once

#include "trace/host.h"
#include "trace/trace.h"

/* Bytes that cross a rank's link in every step, at least: each way, and both ways together. */
typedef struct crossing {
  int64_t bytes[COPY_WAYS], both_bytes;
} crossing;

/* Holds for all plans of the trace that only swap, in its order and in this budget. */
bool crossing_of (const trace *t, int64_t budget_bytes, crossing *out, error *err) MUST_CHECK;
/* No step of n ranks is faster, whatever each does: the group's link takes so long. ranks[i] is on
   card i. */
int64_t crossing_ns (const host_group *g, const crossing *ranks, int32_t n);
