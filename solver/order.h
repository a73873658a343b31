/* Another order of the copies in.  By need is the obvious one, but a copy whose own copy out is
   late then holds up all behind it, although the link is free: here the earliest need goes first
   among those that could start, by the times that a forward run has seen. */
#ifndef FERRY_SOLVER_ORDER_H
#define FERRY_SOLVER_ORDER_H

#include "solver/lives.h"

/* Rewrites in_order. A run with it may hang, where memory keeps a copy in from starting until an op
   has run that waits for one behind it. */
bool order_by_release (lives *l, moment period, moment start, arena *scratch,
                       error *err) MUST_CHECK;

#endif
