/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/shim/record/again_ops.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_UNFIT = 256 };

struct again_ops {
  uint64_t unfit[MOST_UNFIT]; /* tokens */
  int32_t n_unfit;
  bool more;
  int32_t name_of[SHIM_AGAIN_OPS]; /* of each row of the block's again_op */
};

/* NULL: there is no memory. */
static again_ops *ops_of (shim *s) {
  if (s->again_ops == NULL)
    s->again_ops = calloc (1, sizeof *s->again_ops);
  return s->again_ops;
}

bool again_is_unfit (const shim *s, uint64_t token) {
  const again_ops *g = s->again_ops;
  for (int32_t i = 0; g != NULL && i < g->n_unfit; i++)
    if (g->unfit[i] == token)
      return true;
  return false;
}

void again_add_unfit (shim *s, uint64_t token, int32_t name, shim_unfit why) {
  again_ops *g = ops_of (s);
  int64_t n = s->block->seen.unfit_ops;
  if (g == NULL || again_is_unfit (s, token) || g->n_unfit == MOST_UNFIT)
    return;
  g->unfit[g->n_unfit++] = token;
  g->more = true;
  s->block->seen.unfit_ops++;
  if (n >= SHIM_UNFIT_OPS)
    return;
  snprintf (s->block->unfit_op[n].name, sizeof s->block->unfit_op[n].name, "%s", s->names[name]);
  s->block->unfit_op[n].why = (int32_t)why;
}

bool again_more_unfit (shim *s) {
  bool more = s->again_ops != NULL && s->again_ops->more;
  if (more)
    s->again_ops->more = false;
  return more;
}

void again_count (shim *s, int32_t name) {
  shim_block *b = s->block;
  const again_ops *g = ops_of (s);
  int32_t i = 0;
  while (g != NULL && i < b->again_ops && g->name_of[i] != name)
    i++;
  if (g == NULL || i == SHIM_AGAIN_OPS)
    return;
  if (i == b->again_ops) {
    s->again_ops->name_of[i] = name;
    snprintf (b->again_op[i].name, sizeof b->again_op[i].name, "%s", s->names[name]);
    b->again_ops++;
  }
  b->again_op[i].launches++;
}
