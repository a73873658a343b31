/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A program's answer as shares of the gaps that it was made of: columns stand for chains of equal
   members, which are told apart again here. */
#include <assert.h>
#include <math.h>

#include "solver/flow/bound.h"

/* A column's grains fill the members of its chain in turn, largest first. */
static void fill_members (const flow *f, const flow_chain *c, int32_t at, double left,
                          double *share) {
  for (int32_t m = 0; m < c->n_members && left > 0; m++) {
    const flow_member *who = &f->members[c->members + m];
    int32_t gap = f->gaps[who->first_gap + at - c->link].gap;
    double part = fmin (left, (double)who->room);
    share[gap] += part / (double)flow_grains_up (&f->link, gaps_room (f->source, who->unit));
    left -= part;
  }
}

void bound_shares (const flow *f, const double *x, double *share, double *dropped) {
  assert (x && share);
  assert (!dropped || f->drops);
  for (int32_t i = 0; i < f->n_chains; i++) {
    const flow_chain *c = &f->chains[i];
    for (int32_t col = c->column, link = -1; col < f->n_columns; col++) {
      int32_t at = f->column_at[col];
      if (at >= c->link + c->count)
        break;
      if (f->column_kind[col] == COLUMN_gap_drop)
        fill_members (f, c, at, ldexp (x[col], FLOW_UNIT_BITS), dropped);
      if (f->column_kind[col] >= COLUMN_gap_drop || at == link)
        continue; /* the clean part was taken with the other */
      link = at;
      double left = ldexp (x[col], FLOW_UNIT_BITS);
      if (col + 1 < f->n_columns && f->column_at[col + 1] == at &&
          f->column_kind[col + 1] == COLUMN_gap_clean)
        left += ldexp (x[col + 1], FLOW_UNIT_BITS);
      fill_members (f, c, at, left, share);
    }
  }
  for (int32_t i = 0; i < f->source->count; i++) {
    share[i] = share[i] > 1 ? 1 : share[i] > 0 ? share[i] : 0;
    if (dropped)
      dropped[i] = dropped[i] > 1 ? 1 : dropped[i] > 0 ? dropped[i] : 0;
  }
}
