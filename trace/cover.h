/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which plans a bound covers: a value, which is stored, compared, and put in words in cover.c
   alone. `given`: as the plan at hand has it, so such a cover means something beside its plan only.
 */
#pragma once

#include <stdbool.h>

#include "base/json.h"

/* Cut into no sections; into those; into any, level by level; into any. */
typedef enum cover_sections {
  COVER_SECTIONS_NONE,
  COVER_SECTIONS_GIVEN,
  COVER_SECTIONS_LEVEL,
  COVER_SECTIONS_ANY
} cover_sections;

/* Recomputing nothing; by those entries; outputs of cheap ops; of any. */
typedef enum cover_drops {
  COVER_DROPS_NONE,
  COVER_DROPS_GIVEN,
  COVER_DROPS_CHEAP,
  COVER_DROPS_ANY
} cover_drops;

/* Ops as in the trace; as in the plan; also with the updates moved up; in any order. */
typedef enum cover_order {
  COVER_ORDER_TRACE,
  COVER_ORDER_GIVEN,
  COVER_ORDER_UPDATES,
  COVER_ORDER_ANY
} cover_order;

/* Followed by anybody, or by ferry_torch. */
typedef enum cover_executor { COVER_EXECUTOR_ANY, COVER_EXECUTOR_TORCH } cover_executor;

typedef struct cover {
  bool swaps; /* false: nothing crosses the link */
  cover_drops drops;
  bool kept; /* of drops cheap or any: what they read may be kept beyond its last use for them */
  cover_sections sections;
  cover_order order;
  cover_executor executor;
  bool given_units; /* with the plan's groups, pool and granules */
} cover;

/* Every plan; plans that only swap, and those with sections and recompute entries as given. */
extern const cover cover_every, cover_swaps, cover_given;
/* One of the last two. */
cover cover_of_rewriting (int n_sections, int n_recomputes);

/* True if each plan of `narrow` is one of `wide`, given that the plan at hand is. */
bool cover_includes (const cover *wide, const cover *narrow);
/* The same whatever the order of ops. */
bool cover_includes_but_order (const cover *wide, const cover *narrow);

/* True if its drops read nothing beyond its last use. */
bool cover_keeps_nothing (const cover *c);

enum { COVER_TEXT = 256 };
/* "every plan ..." */
const char *cover_text (const cover *c, char text[COVER_TEXT]);
/* To follow "any plan" or "no plan": " that only swaps", " that swaps or recomputes in this order".
 */
const char *cover_whom (const cover *c, char text[COVER_TEXT]);

void cover_write (json_writer *w, const cover *c);
bool cover_read (const json *j, cover *out, error *err) MUST_CHECK;
