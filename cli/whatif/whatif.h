/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry whatif`: what its parts share.  A grid is devices x batches x links x budgets; a cell is
   one device, batch and link with all its budgets, because those are planned together. */
#pragma once

#include "cli/call/call.h"
#include "solver/fleet/curve.h"

enum { WHATIF_MOST = 32 };

typedef struct whatif_grid {
  device devices[WHATIF_MOST];
  int64_t links[WHATIF_MOST]; /* 0: the device's own */
  int64_t batches[WHATIF_MOST];
  const char *budgets[WHATIF_MOST]; /* NULL: all that the card has to give */
  int32_t n_devices, n_batches, n_links, n_budgets;
  int64_t scale_ppm; /* of all times; 0: by rooflines */
  const char *card;  /* that the times were taken on, as it calls itself; or NULL */
  bool has_from;
  device from; /* the card that the trace was made for */
  char digest[TRACE_DIGEST];
  allowed allowed;
  int32_t slice, slices; /* of the cells: from 1 */
} whatif_grid;

typedef enum whatif_answer {
  WHATIF_PLAN,
  WHATIF_NONE_FITS,
  WHATIF_NONE_FOUND,
  WHATIF_NOT_REACHED /* an interrupt came before */
} whatif_answer;

typedef struct whatif_row {
  int64_t answer;                          /* a whatif_answer */
  int64_t device, batch, link_bytes_per_s; /* device: which one; batch: how many times */
  int64_t budget_bytes, floor_bytes, peak_bytes;
  int64_t baseline_ns, step_ns, lower_bound_ns; /* -1: none */
  int64_t host_bytes, d2h_bytes, h2d_bytes;
} whatif_row;

/* The trace on a device, with a batch, and what was assumed. */
typedef struct whatif_case {
  const trace *trace;
  const char *assumed;
  int64_t floor_bytes, peak_bytes;
} whatif_case;

bool whatif_read (call *c, const trace *t, whatif_grid *g) MUST_CHECK;
int32_t whatif_cells (const whatif_grid *g);
/* One a device and batch, devices first. */
bool whatif_carry (call *c, const trace *t, const whatif_grid *g, whatif_case **out) MUST_CHECK;
/* The same on one card with the batch as it is, without the bytes. */
bool whatif_carry_to (call *c, const trace *t, const device *to, whatif_case *out) MUST_CHECK;
/* n_budgets rows. */
bool whatif_cell (const whatif_grid *g, const whatif_case *cases, const curve_options *o,
                  int32_t cell, whatif_row *rows, error *err) MUST_CHECK;

/* The row of a cell and a budget before anything is known of it. */
bool whatif_unreached (const whatif_grid *g, const whatif_case *cases, int32_t cell, int32_t budget,
                       whatif_row *row, error *err) MUST_CHECK;

/* Slices of a grid as JSON, and all of a folder's together again. */
bool whatif_json (call *c, const char *path, const whatif_grid *g, const char *const *assumed,
                  const whatif_row *rows, int32_t n_rows) MUST_CHECK;
bool whatif_merge (call *c, const char *folder, whatif_grid *g, const char ***assumed,
                   whatif_row **rows, int32_t *n_rows) MUST_CHECK;
