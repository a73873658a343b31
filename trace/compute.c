/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/compute.h"

#include <assert.h>
#include <string.h>

#include "trace/trace.h"

/* Anything near this is no op of this world; sums of a few of them still fit into 64 bits. */
#define TOO_MANY ((int64_t)1 << 57)

const char *const compute_dtype_names[DTYPES + 1] = { "fp32", "bf16", "tf32", NULL };

const char *const compute_kind_names[COMPUTE_KINDS + 1] = {
#define COMPUTE(kind, ...) #kind,
#include "trace/compute.def"
  NULL
};

/* ---- formulae that the rows of compute.def share ---- */

static int64_t times (const int64_t *factors, size_t n) {
  int64_t product = 1;
  for (size_t i = 0; i < n; i++)
    if (__builtin_mul_overflow (product, factors[i], &product) || product > TOO_MANY)
      product = factors[i] == 0 ? 0 : TOO_MANY;
  return product;
}

#define X(...) \
  times ((const int64_t[]){ __VA_ARGS__ }, sizeof (int64_t[]){ __VA_ARGS__ } / sizeof (int64_t))

static int64_t over (int64_t a, int64_t b) {
  return b > 0 ? a / b : TOO_MANY;
}

static int64_t conv_in (const compute_conv *s) {
  return X (s->in_channels, s->in_d, s->in_h, s->in_w);
}

static int64_t conv_out (const compute_conv *s) {
  return X (s->out_channels, s->out_d, s->out_h, s->out_w);
}

static int64_t conv_weights (const compute_conv *s) {
  return over (X (s->in_channels, s->out_channels, s->kernel_d, s->kernel_h, s->kernel_w),
               s->groups);
}

static int64_t conv_products (const compute_conv *s) {
  return X (conv_weights (s), s->out_d, s->out_h, s->out_w);
}

static int64_t deconv_products (const compute_conv *s) {
  return X (conv_weights (s), s->in_d, s->in_h, s->in_w);
}

static int64_t pool_in (const compute_pool *s) {
  return X (s->channels, s->in_d, s->in_h, s->in_w);
}

static int64_t pool_out (const compute_pool *s) {
  return X (s->channels, s->out_d, s->out_h, s->out_w);
}

static int64_t pool_window (const compute_pool *s) {
  return X (s->kernel_d, s->kernel_h, s->kernel_w);
}

static int64_t attention_q (const compute_attention *s) {
  int64_t heads = s->packed ? s->heads + 2 * s->kv_heads : s->heads;
  return X (s->queries, heads, s->width);
}

static int64_t attention_k (const compute_attention *s) {
  return X (s->keys, s->kv_heads, s->width);
}

/* Multiplications of one of the two products, twice (they are added); a causal mask halves them. */
static int64_t attention_products (const compute_attention *s) {
  int64_t n = X (2, s->batch, s->heads, s->queries, s->keys, s->width);
  return s->causal ? n / 2 : n;
}

static int64_t concat_row (const compute_concat *s) {
  int64_t sum = 0;
  for (int64_t i = 0; i < s->sizes_count; i++)
    if (__builtin_add_overflow (sum, s->sizes[i], &sum))
      return TOO_MANY;
  return sum;
}

/* ---- the table ---- */

typedef enum compute_how { ITEMS, BATCH, ONCE } compute_how;

typedef struct operand_list {
  operand *at;
  int count;
  int64_t batch;
  compute_dtype dtype;
} operand_list;

enum operand_where { WHOLE, ITEM };

int64_t compute_element_bytes (compute_dtype dtype, operand_type type) {
  if (type == BYTE)
    return 1;
  return type == DATA && dtype == DTYPE_BF16 ? 2 : 4;
}

static void put (operand_list *l, operand_use use, const char *name, enum operand_where where,
                 operand_type type, int64_t elements, int64_t touched) {
  assert (l->count < COMPUTE_MOST_OPERANDS);
  int64_t items = where == ITEM ? l->batch : 1;
  operand *o = &l->at[l->count++];
  *o = (operand){ .name = name, .use = use, .item = where == ITEM, .type = type };
  o->elements = X (items, elements);
  o->touched = X (items, touched);
  o->bytes = X (o->elements, compute_element_bytes (l->dtype, type));
}

#define OPERAND(use, name, where, type, elements) \
  {                                               \
    int64_t n = elements;                         \
    put (l, use, #name, where, type, n, n);       \
  }
#define OPERAND_PART(use, name, where, type, elements, touched) \
  put (l, use, #name, where, type, elements, touched);
#define OPERAND_EACH(use, name, where, type, count, elements) \
  for (int64_t i = 0; i < count; i++)                         \
  OPERAND (use, name, where, type, elements)
#define COMPUTE(kind, shape, how, rate, way, flops, operands)       \
  static int64_t kind##_flops (const compute *c) {                  \
    const compute_##shape *s = &c->shape;                           \
    (void)s;                                                        \
    return flops;                                                   \
  }                                                                 \
  static void kind##_operands (const compute *c, operand_list *l) { \
    const compute_##shape *s = &c->shape;                           \
    operands                                                        \
  }
#include "trace/compute.def"

#define FIELD(name) { #name, false },
#define LIST(name) { #name, true },
#define SHAPE(name, fields) static const compute_field name##_fields[] = { fields{ NULL, false } };
#include "trace/compute.def"

enum { PLAIN, PRODUCT };

/* The kinds in a row's FORWARD. */
#define KIND_1(a) COMPUTE_##a
#define KIND_2(a, b) COMPUTE_##a, COMPUTE_##b
#define KIND_3(a, b, c) COMPUTE_##a, COMPUTE_##b, COMPUTE_##c
#define KIND_N(a, b, c, n, ...) KIND_##n
#define FORWARD(...)                                       \
  WAY_FORWARD, {                                           \
    KIND_N (__VA_ARGS__, 3, 2, 1, ) (__VA_ARGS__), NO_KIND \
  }
#define PASSES  \
  WAY_PASSES, { \
    NO_KIND     \
  }
#define SOURCE  \
  WAY_SOURCE, { \
    NO_KIND     \
  }
#define BACKWARD  \
  WAY_BACKWARD, { \
    NO_KIND       \
  }
#define UPDATES  \
  WAY_UPDATES, { \
    NO_KIND      \
  }
#define NO_KIND COMPUTE_KINDS

static const struct row {
  int64_t (*flops) (const compute *c);
  void (*operands) (const compute *c, operand_list *l);
  const compute_field *fields;
  compute_how how;
  bool product;
  compute_way way;
  compute_kind back[COMPUTE_MOST_BACK + 1]; /* NO_KIND behind the last */
} rows[COMPUTE_KINDS] = {
#define COMPUTE(kind, shape, how, rate, way, flops, ...) \
  { kind##_flops, kind##_operands, shape##_fields, how, rate == PRODUCT, way },
#include "trace/compute.def"
};

const compute_field *compute_fields (compute_kind kind) {
  return rows[kind].fields;
}

compute_way compute_way_of (compute_kind kind) {
  return rows[kind].way;
}

int compute_back_of (compute_kind kind, compute_kind out[COMPUTE_MOST_BACK]) {
  int n = 0;
  for (; rows[kind].back[n] != NO_KIND; n++)
    out[n] = rows[kind].back[n];
  return n;
}

int64_t compute_batch (const compute *c) {
  return rows[c->kind].how == ONCE ? 1 : c->at[0];
}

int64_t compute_parts (const compute *c) {
  return rows[c->kind].how == ITEMS ? c->at[0] : 1;
}

bool compute_is_product (const compute *c) {
  return rows[c->kind].product;
}

int compute_operands (const compute *c, operand out[COMPUTE_MOST_OPERANDS]) {
  operand_list l = { out, 0, compute_batch (c), c->dtype };
  rows[c->kind].operands (c, &l);
  return l.count;
}

int64_t compute_flops (const compute *c) {
  return rows[c->kind].flops (c);
}

int64_t compute_bytes (const compute *c) {
  operand o[COMPUTE_MOST_OPERANDS];
  int count = compute_operands (c, o);
  int64_t sum = 0;
  for (int i = 0; i < count; i++) {
    int ways = operand_reads (&o[i]) + operand_writes (&o[i]);
    if (o[i].use == UPDATE_PART)
      ways = 1; /* beside what is written, nothing is looked at */
    int64_t bytes = X (ways, o[i].touched, compute_element_bytes (c->dtype, o[i].type));
    if (__builtin_add_overflow (sum, bytes, &sum))
      return INT64_MAX;
  }
  return sum;
}

/* ---- sizes together ---- */

/* Does the last element that a product touches lie in its operand's item? */
static bool lies_in (int64_t item, int64_t offset, int64_t heads, int64_t head, int64_t rows,
                     int64_t row, int64_t columns) {
  return (__int128)offset + (__int128)(heads - 1) * head + (__int128)(rows - 1) * row + columns <=
         item;
}

static bool matmul_lies_in (const compute_matmul *s) {
  bool ta = s->transpose_a != 0, tb = s->transpose_b != 0;
  return s->heads > 0 && s->m > 0 && s->n > 0 && s->k > 0 &&
         lies_in (s->a_item, s->a_offset, s->heads, s->a_head, ta ? s->k : s->m, s->a_row,
                  ta ? s->m : s->k) &&
         lies_in (s->b_item, s->b_offset, s->heads, s->b_head, tb ? s->n : s->k, s->b_row,
                  tb ? s->k : s->n) &&
         lies_in (s->c_item, s->c_offset, s->heads, s->c_head, s->m, s->c_row, s->n) &&
         (!s->b_in_a || s->a_item == s->b_item);
}

/* Kernels rely on more than operands that are not empty: they must stay inside their operands
   whatever a file says. */
static bool fits (const compute *c) {
  switch (c->kind) {
  case COMPUTE_matmul:
    return matmul_lies_in (&c->matmul);
  case COMPUTE_attention_fwd:
  case COMPUTE_attention_bwd:
    return c->attention.kv_heads > 0 && c->attention.heads % c->attention.kv_heads == 0 &&
           (!c->attention.packed || c->attention.keys == c->attention.queries) &&
           c->attention.rate_ppm < 1000000;
  case COMPUTE_dropout_fwd:
  case COMPUTE_dropout_bwd:
    return c->dropout.rate_ppm < 1000000;
  case COMPUTE_rotary_fwd:
  case COMPUTE_rotary_bwd:
    return c->rotary.width % 2 == 0 && c->rotary.theta > 0;
  case COMPUTE_position_fwd:
  case COMPUTE_position_bwd:
    return c->position.rows > 0 && c->position.rows <= c->position.table_rows;
  case COMPUTE_select_fwd:
  case COMPUTE_select_bwd:
    return c->rows.row < c->rows.rows;
  case COMPUTE_crop_fwd:
  case COMPUTE_crop_bwd:
    return c->pool.out_d <= c->pool.in_d && c->pool.out_h <= c->pool.in_h &&
           c->pool.out_w <= c->pool.in_w;
  case COMPUTE_conv_fwd:
  case COMPUTE_conv_bwd_data:
  case COMPUTE_conv_bwd_weights:
  case COMPUTE_deconv_fwd:
  case COMPUTE_deconv_bwd_data:
  case COMPUTE_deconv_bwd_weights:
    return c->conv.groups > 0 && c->conv.in_channels % c->conv.groups == 0 &&
           c->conv.out_channels % c->conv.groups == 0 && c->conv.stride_d > 0 &&
           c->conv.stride_h > 0 && c->conv.stride_w > 0;
  default:
    return true;
  }
}

bool compute_is_sound (const compute *c) {
  if (!fits (c))
    return false;
  operand o[COMPUTE_MOST_OPERANDS];
  int count = compute_operands (c, o);
  for (int i = 0; i < count; i++)
    if (o[i].use != ABSENT && (o[i].elements < 1 || o[i].bytes > MOST_TENSOR_BYTES))
      return false;
  return compute_flops (c) < TOO_MANY && compute_batch (c) >= 1;
}
