/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Drops of a plan: which tensors, what that costs, and what it saves. */
#pragma once

#include "cli/call/call.h"
#include "trace/plan.h"

/* One recompute entry. */
typedef struct dropped {
  int32_t before;         /* an op of the trace with its sections */
  const index_list *list; /* tensors of that trace which it makes again */
  int32_t ops;            /* that run again */
  int64_t ns, bytes;      /* they take; it gives up */
  int64_t link_ns;        /* these bytes out and in again would be on the link */
  int64_t passing_bytes;  /* made besides, on the way, and given up again */
} dropped;

typedef struct dropped_list {
  const trace *cut;
  dropped *at; /* the most bytes first */
  int32_t count;
  int64_t ns, bytes, link_ns;
} dropped_list;

bool dropped_of (call *c, const trace *t, const plan *p, dropped_list *out) MUST_CHECK;
/* Nothing where nothing is dropped. */
void dropped_print (const dropped_list *d);
void dropped_put (json_writer *w, const dropped_list *d);
