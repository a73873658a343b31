/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How much memory a known job needs: read from answers that are there, never solved for. */
#pragma once

#include "server/service/service.h"
#include "solver/fleet/node.h"

enum { USUAL_SLOWDOWN_PPM = 50000, MOST_SLOWDOWN_PPM = 100000000 };

typedef struct advice {
  bool known;             /* there is a curve of this profile */
  bool fits;              /* on the card that was asked about, at the slowdown */
  int64_t memory_bytes;   /* the budget of the point that was chosen; 0: none is fast enough */
  int64_t reserved_bytes; /* of the card, by its process beside its budget */
  int64_t slowdown_ppm;   /* at most, of the request */
  int32_t ranks;          /* on a host's cards, together; 0: one card alone */
  int64_t peak_bytes, host_bytes, d2h_bytes, h2d_bytes;
  int64_t step_ns, baseline_ns, bound_ns, floor_bytes;
  const char *job, *trace; /* the curve, and what it is of */
  const char *device;      /* of the request; NULL: the trace's own */
  char reason[160];        /* the reason why it does not fit */
} advice;

/* Whoever places others' jobs sees every owner's advice. */
static inline bool advice_sees_all (const request *q) {
  return q->role == ROLE_site || q->role == ROLE_admin;
}
/* Names a profile: NAME, or OWNER/NAME where the asker sees every owner's. */
bool advice_is_name (const request *q, const char *fingerprint);
/* For any card.  slowdown_ppm: the most beside a step without a budget. */
bool advice_find (service *s, request *q, const char *fingerprint, int64_t slowdown_ppm,
                  advice *out, error *err) MUST_CHECK;
/* Advice for ranks on the cards of a host, from the newest what-if of both. */
typedef struct node_advice {
  bool known;
  const char *job, *trace;
  node_facts facts;
  node_answer answer;
} node_advice;
bool advice_find_host (service *s, request *q, const char *fingerprint, const char *host,
                       const node_question *asked, node_advice *out, error *err) MUST_CHECK;
/* Bytes of a card that it needs; 0: no point is fast enough. */
static inline int64_t advice_card_bytes (const advice *a) {
  return a->memory_bytes ? a->memory_bytes + a->reserved_bytes : 0;
}
/* For a card of `bytes`; 0: any. */
void advice_weigh (advice *a, int64_t gpu_bytes);
