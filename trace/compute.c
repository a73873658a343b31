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

typedef struct field_name {
  const char *name;
  bool list;
} field_name;

#define FIELD(name) { #name, false },
#define LIST(name) { #name, true },
#define SHAPE(name, fields) static const field_name name##_fields[] = { fields{ NULL, false } };
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
  const field_name *fields;
  compute_how how;
  bool product;
  compute_way way;
  compute_kind back[COMPUTE_MOST_BACK + 1]; /* NO_KIND behind the last */
} rows[COMPUTE_KINDS] = {
#define COMPUTE(kind, shape, how, rate, way, flops, ...) \
  { kind##_flops, kind##_operands, shape##_fields, how, rate == PRODUCT, way },
#include "trace/compute.def"
};

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

/* ---- JSON ---- */

/* What stands in the object: the two words and the fields that are not 0, sorted by name. */
typedef struct member {
  const char *name, *word;
  const int64_t *values;
  int64_t count; /* of a list; 0: a word or one value */
} member;

enum { MOST_MEMBERS = 32 };

static int sorted_members (const compute *c, member out[MOST_MEMBERS]) {
  int n = 0;
  out[n++] = (member){ .name = "dtype", .word = compute_dtype_names[c->dtype] };
  out[n++] = (member){ .name = "kind", .word = compute_kind_names[c->kind] };
  const int64_t *value = c->at;
  for (const field_name *f = rows[c->kind].fields; f->name != NULL; f++, value++) {
    assert (n < MOST_MEMBERS);
    if (f->list)
      out[n++] = (member){ .name = f->name, .values = value + 1, .count = *value };
    else if (*value != 0)
      out[n++] = (member){ .name = f->name, .values = value };
  }
  for (int i = 1; i < n; i++) {
    member m = out[i];
    int j = i;
    for (; j > 0 && strcmp (out[j - 1].name, m.name) > 0; j--)
      out[j] = out[j - 1];
    out[j] = m;
  }
  return n;
}

const char *compute_text (const compute *c, arena *a, error *err) {
  member m[MOST_MEMBERS];
  int count = sorted_members (c, m);
  json_writer w;
  json_begin (&w, 0);
  json_open_object (&w);
  for (int i = 0; i < count; i++) {
    if (m[i].word != NULL) {
      json_add_text (&w, m[i].name, m[i].word);
    } else if (m[i].count == 0) {
      json_add_int (&w, m[i].name, *m[i].values);
    } else {
      json_put_key (&w, m[i].name);
      json_open_array (&w);
      for (int64_t k = 0; k < m[i].count; k++)
        json_put_int (&w, m[i].values[k]);
      json_close_array (&w);
    }
  }
  json_close_object (&w);
  bytes text = { 0 };
  if (!json_finish (&w, &text, err))
    return NULL;
  size_t size = (size_t)text.size;
  while (size > 0 && text.data[size - 1] == '\n')
    size--;
  char *copy = arena_string_n (a, text.data, size, err);
  bytes_free (&text);
  return copy;
}

static bool read_list (const json *j, int64_t *count, int64_t *values, error *err) {
  if (!json_want_array (j, err))
    return false;
  size_t n = json_count (j);
  if (n < 1 || n > COMPUTE_MOST_LIST)
    return json_error (j, err, "a list of %zu sizes: 1 to %d are possible", n, COMPUTE_MOST_LIST);
  *count = (int64_t)n;
  for (size_t i = 0; i < n; i++) {
    json element = json_element (j, i);
    if (!json_get_int (&element, 1, MOST_BYTES, &values[i], err))
      return false;
  }
  return true;
}

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

/* What kernels rely on beside operands that are not empty: they must stay inside their operands
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

/* Whatever else is 0 makes an operand empty. */
static bool is_sound (const compute *c) {
  if (!fits (c))
    return false;
  operand o[COMPUTE_MOST_OPERANDS];
  int count = compute_operands (c, o);
  for (int i = 0; i < count; i++)
    if (o[i].use != ABSENT && (o[i].elements < 1 || o[i].bytes > MOST_TENSOR_BYTES))
      return false;
  return compute_flops (c) < TOO_MANY && compute_batch (c) >= 1;
}

bool compute_read (const json *j, compute *out, error *err) {
  *out = (compute){ 0 };
  int word = 0;
  json kind, dtype;
  if (!json_want_object (j, err) || !json_need (j, "kind", &kind, err) ||
      !json_get_word (&kind, compute_kind_names, &word, err))
    return false;
  out->kind = (compute_kind)word;
  if (!json_need (j, "dtype", &dtype, err) ||
      !json_get_word (&dtype, compute_dtype_names, &word, err))
    return false;
  out->dtype = (compute_dtype)word;
  const char *known[MOST_MEMBERS + 1] = { "dtype", "kind" };
  int n = 2;
  int64_t *value = out->at;
  for (const field_name *f = rows[out->kind].fields; f->name != NULL; f++, value++) {
    known[n++] = f->name;
    json field = json_member (j, f->name);
    if (f->list) {
      if (!json_need (j, f->name, &field, err) || !read_list (&field, value, value + 1, err))
        return false;
    } else if (!json_get_int (&field, 0, MOST_BYTES, value, err)) {
      return false;
    }
  }
  if (!json_known (j, known, true, NULL, err))
    return false;
  if (!is_sound (out))
    return json_error (j, err, "%s with sizes that do not fit together, or larger than any memory",
                       compute_kind_names[out->kind]);
  return true;
}

bool compute_parse (const char *text, compute *out, error *err) {
  json_document *d = json_open (text, (int64_t)strlen (text), err);
  if (d == NULL)
    return false;
  json root = json_root (d);
  bool read = compute_read (&root, out, err);
  json_close (d);
  return read;
}
