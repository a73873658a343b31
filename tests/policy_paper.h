/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Traces of a few ops, written as text, and what a policy chose on them, as text: a rule can be
   worked out on paper and held against the program, trigger by trigger. */
#pragma once

#include "solver/policy/policy.h"

enum { MIB = 1 << 20, MS = 1000000 };

typedef struct paper {
  const char *policy;
  const char *options; /* "key=value,key=value", of which host=MiB is the request's; or NULL */
  const char *tensors, *ops; /* NULL: a chain of nine ops */
  int budget_mib;
  const char *chosen;
} paper;

extern const char paper_chain_tensors[], paper_chain_ops[];

/* A link that carries 4 MiB in a millisecond each way, granules of a MiB, no latency. */
device paper_link_device (void);
/* "w1:1! x4:4": names and MiB, `!` persistent. "f name ms reads > writes | b ..." with names. */
trace *paper_trace (arena *a, const char *tensors, const char *ops);
/* What the policy says of it; everything lives in `a`. */
void paper_ask (const paper *p, arena *a, policy_answer *out);
/* "x 1>7 @6 w": out behind op 1, needed by 7, back not before 6, and the op behind it waits for the
   copy out; "w5": op 5 does. "drop x 1>7": with its segment, or + where it stays, - where it is
   made for each op. */
void paper_holds (const paper *p);
