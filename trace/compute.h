/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An op's real calculation: one table of kinds (trace/compute.def) tells its parameters,
   operands, flops and bytes, how it is written in a trace, and later how it is executed. */
#pragma once

#include "base/json.h"

enum { COMPUTE_MOST_OPERANDS = 136, COMPUTE_MOST_LIST = 128, COMPUTE_MOST_BACK = 3 };

typedef enum compute_dtype { DTYPE_FP32, DTYPE_BF16, DTYPE_TF32, DTYPES } compute_dtype;
extern const char *const compute_dtype_names[DTYPES + 1]; /* NULL at the end */

typedef enum compute_kind {
#define COMPUTE(kind, ...) COMPUTE_##kind,
#include "trace/compute.def"
  COMPUTE_KINDS
} compute_kind;
extern const char *const compute_kind_names[COMPUTE_KINDS + 1];

/* How gradients get past a kind. */
typedef enum compute_way {
  WAY_FORWARD,  /* by the kinds that compute_back_of tells */
  WAY_PASSES,   /* as they are */
  WAY_SOURCE,   /* they do not */
  WAY_BACKWARD, /* it makes them */
  WAY_UPDATES   /* it uses them up */
} compute_way;
compute_way compute_way_of (compute_kind kind);
/* The kinds that make its gradients; returns how many, at least one where the way is WAY_FORWARD.
 */
int compute_back_of (compute_kind kind, compute_kind out[COMPUTE_MOST_BACK]);

/* A struct of int64_t for each shape: compute_conv, compute_linear, ... */
#define FIELD(name) int64_t name;
#define LIST(name) int64_t name##_count, name[COMPUTE_MOST_LIST];
#define SHAPE(name, fields)       \
  typedef struct compute_##name { \
    fields                        \
  } compute_##name;
#include "trace/compute.def"

typedef struct compute {
  compute_kind kind;
  compute_dtype dtype;
  union {
#define SHAPE(name, fields) compute_##name name;
#include "trace/compute.def"
    int64_t at[4 + COMPUTE_MOST_LIST]; /* the fields in their order */
  };
} compute;
#undef FIELD
#undef LIST

/* UPDATE_PART: updated, and what is not touched stays (an UPDATE by a later section adds). */
typedef enum operand_use { ABSENT, READ, WRITE, UPDATE, UPDATE_PART, SIDE } operand_use;
typedef enum operand_type { DATA, FLOAT, INDEX, BYTE } operand_type;

typedef struct operand {
  const char *name;
  operand_use use;
  bool item; /* split along the batch; else whole */
  operand_type type;
  int64_t elements, touched; /* of the whole batch */
  int64_t bytes;             /* of elements */
} operand;

static inline bool operand_reads (const operand *o) {
  return o->use == READ || o->use == UPDATE || o->use == UPDATE_PART || o->use == SIDE;
}
static inline bool operand_writes (const operand *o) {
  return o->use != ABSENT && o->use != READ;
}

/* The operands, absent ones too, in the order of compute.def; returns how many. */
int compute_operands (const compute *c, operand out[COMPUTE_MOST_OPERANDS]);

int64_t compute_flops (const compute *c);
/* Read and written, each operand once each way. */
int64_t compute_bytes (const compute *c);
/* Items of the batch; 1 where the kind has none. */
int64_t compute_batch (const compute *c);
/* The most sections that it can be executed in. */
int64_t compute_parts (const compute *c);
/* Matrix products run at the rate of their dtype, everything else at that of fp32. */
bool compute_is_product (const compute *c);
int64_t compute_element_bytes (compute_dtype dtype, operand_type type);

/* The sizes of a kind's shape, in the order of compute.at. */
typedef struct compute_field {
  const char *name; /* NULL behind the last */
  bool list;
} compute_field;
const compute_field *compute_fields (compute_kind kind);
/* Do the sizes fit together, and can some memory hold each operand?  What else is 0 makes an
   operand empty. */
bool compute_is_sound (const compute *c);

/* The canonical JSON object, in the arena. */
const char *compute_text (const compute *c, arena *a, error *err) MUST_CHECK;
/* Unknown kinds and keys, and sizes that no memory could hold, are errors. */
bool compute_read (const json *j, compute *out, error *err) MUST_CHECK;
bool compute_parse (const char *text, compute *out, error *err) MUST_CHECK;
