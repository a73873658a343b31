/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which ops a plan runs elsewhere than the trace does. */
#pragma once

#include "cli/call/call.h"
#include "trace/plan.h"

typedef struct order_told {
  int32_t ops;     /* that another op of the trace passes; 0: the order is the trace's own */
  int32_t updates; /* of these */
  int32_t passed;  /* the most ops that one of them passes */
  int32_t far;     /* that one */
  const char *name;
} order_told;

bool order_of (call *c, const trace *t, const plan *p, order_told *out);
void order_print (const order_told *o);
void order_put (json_writer *w, const order_told *o);
