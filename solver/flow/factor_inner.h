/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A factor's pattern, shared by the files that find it and that fill it with numbers. Nothing else
   needs it. */
#pragma once

#include "solver/flow/factor.h"

/* Columns that stand side by side and have nearly the same rows below them are a block: first[b] up
   to first[b + 1].  Its rows are its own columns and those below; its numbers stand column after
   column, above the diagonal too. */
struct factor {
  int32_t n, n_blocks;
  int32_t *order, *place; /* the row that comes as the k-th; where a row comes */
  int32_t *parent;
  int32_t *first, *block; /* of a column */
  int64_t *start, *at;    /* of a block: its rows, its numbers */
  int32_t *row;
  double *value;
  int64_t *given_start; /* of a column in the matrix: its entries, the diagonal first */
  int32_t *given_row;
  double *dense, *work;
  int32_t *head, *next; /* blocks whose next row is in a block */
  int32_t *done;        /* how many rows of a block are over */
  int32_t *relative;
  int64_t entries, products;
};
