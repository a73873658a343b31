/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The room of each member of a group, as the one who serves it decides. */
#pragma once

#include "cli/run/share.h"

typedef struct member {
  int row;
  int64_t order, target;
} member;

static inline int64_t share_get (const share *g, int row, int word) {
  return __atomic_load_n (&g->group.at->row[row].word[word], __ATOMIC_ACQUIRE);
}
static inline void share_set (share *g, int row, int word, int64_t value) {
  __atomic_store_n (&g->group.at->row[row].word[word], value, __ATOMIC_RELEASE);
}

/* In the order in which they came; how many. */
int share_members (const share *g, member *out);
int64_t share_up (const share *g, int64_t bytes); /* to whole granules */
/* A plan for all, in a process of its own, once the steps of all are known. */
void share_pack (call *c, share *g, const member *m, int n);
/* Each one's target. */
void share_divide (const share *g, member *m, int n);
/* Gives what others have given back to whoever is to have more. */
void share_grant (share *g, const member *m, int n);
