/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/ops/feed.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "executor/ops/bf16.h"
#include "executor/ops/bind.h"
#include "executor/ops/inner.h"

/* How a tensor is filled. */
typedef enum fill { NOTHING, CONSTANT, UNIFORM, PICTURE, INDICES } fill;

/* One item of an input of indices. */
typedef enum meaning { LABEL, TEXT, NEXT_TEXT, GIVEN_TEXT, FIRST_WORD, HALVES } meaning;

typedef struct role {
  fill fill;
  double value;  /* a constant, or the standard deviation */
  int64_t limit; /* of indices */
  meaning meaning;
  int64_t at; /* place in the text's window */
  bool bf16;
  int32_t like; /* another tensor of whose values this is the exact one; -1: none */
} role;

struct feed {
  const trace *t;
  role *roles;
  uint64_t seed;
  const uint8_t *text; /* or made: */
  int32_t *made;
  int64_t length, window; /* of the text */
  int64_t labels;         /* in an item, where there are pictures */
  int64_t classes;
};

enum { MADE_LENGTH = 1 << 16, MADE_LETTERS = 61 };

/* ---- roles, from the ops ---- */

static double root (double x) {
  return sqrt (x);
}

static role uniform (double deviation) {
  return (role){ .fill = UNIFORM, .value = deviation };
}

static role constant (double value) {
  return (role){ .fill = CONSTANT, .value = value };
}

static role indices (int64_t limit) {
  return (role){ .fill = INDICES, .limit = limit };
}

/* Operand `name` of what c is; the weights of a product keep the size of what goes through, those
   before a rectifier get twice that variance. */
static role role_of (const compute *c, const char *name) {
  const compute_conv *s = &c->conv;
  double kernel = (double)(s->kernel_d * s->kernel_h * s->kernel_w);
  bool weights = strcmp (name, "w") == 0;
  switch (c->kind) {
  case COMPUTE_conv_fwd:
    return weights ? uniform (root (2 / ((double)(s->in_channels / s->groups) * kernel)))
                   : constant (0);
  case COMPUTE_deconv_fwd:
    kernel /= (double)(s->stride_d * s->stride_h * s->stride_w);
    return weights ? uniform (root (2 / ((double)(s->in_channels / s->groups) * kernel)))
                   : constant (0);
  case COMPUTE_linear_fwd:
    return weights ? uniform (root (1 / (double)c->linear.in)) : constant (0);
  case COMPUTE_batchnorm_fwd:
    return constant (weights || strcmp (name, "running_var") == 0);
  case COMPUTE_layernorm_fwd:
  case COMPUTE_rmsnorm_fwd:
    return constant (weights);
  case COMPUTE_embedding_fwd:
    return strcmp (name, "token") == 0 ? indices (c->embedding.table_rows) : uniform (0.3);
  case COMPUTE_position_fwd:
  case COMPUTE_prepend_fwd:
    return uniform (0.02);
  case COMPUTE_entropy_fwd:
    return indices (c->entropy.classes);
  default:
    return constant (0);
  }
}

/* Two uses (an embedding that is also the output's weights): the smaller deviation serves both. */
static void join_role (role *have, role other) {
  other.bf16 = have->bf16;
  other.like = have->like;
  if (have->fill == NOTHING || (have->fill == CONSTANT && other.fill == UNIFORM) ||
      (have->fill == UNIFORM && other.fill == UNIFORM && other.value < have->value))
    *have = other;
  if (have->fill == INDICES && other.fill == INDICES && other.limit < have->limit)
    have->limit = other.limit;
}

/* How wide its numbers are, and of what it is the fp32 copy. */
static void find_form (feed *f, const ops_binding *b, const operand *x, int k, int32_t tensor) {
  role *r = &f->roles[tensor];
  if (x[k].type == DATA && b->c.dtype == DTYPE_BF16)
    r->bf16 = true;
  if (strcmp (x[k].name, "main") == 0)
    r->like = b->tensors[b->offset[0]];
}

static bool find_roles (feed *f, arena *a, error *err) {
  rewritten whole;
  arena_mark mark = arena_here (a);
  if (!trace_rewrite (f->t, &(rewriting){ 0 }, a, &whole, err))
    return false;
  for (int32_t i = 0; i < f->t->n_ops; i++) {
    arena_mark here = arena_here (a);
    ops_binding b;
    operand x[COMPUTE_MOST_OPERANDS];
    if (!ops_bind (&whole, i, a, &b, err))
      return false;
    int n = compute_operands (&b.c, x);
    for (int k = 0; k < n; k++)
      for (int32_t j = b.offset[k]; j < b.offset[k + 1]; j++) {
        const tensor *t = &f->t->tensors[b.tensors[j]];
        find_form (f, &b, x, k, b.tensors[j]);
        if (t->persistent)
          join_role (&f->roles[b.tensors[j]], role_of (&b.c, x[k].name));
        else if (t->kind == TENSOR_INPUT && x[k].type == INDEX)
          join_role (&f->roles[b.tensors[j]], role_of (&b.c, x[k].name));
        else if (t->kind == TENSOR_INPUT)
          join_role (&f->roles[b.tensors[j]], (role){ .fill = PICTURE });
      }
    arena_back (a, here);
  }
  arena_back (a, mark);
  return true;
}

/* ---- the inputs' meaning, from their names ---- */

/* The name without the number at its end. */
static size_t stem_of (const char *name, int64_t *number) {
  size_t n = strlen (name), stem = n;
  while (stem > 0 && isdigit ((unsigned char)name[stem - 1]))
    stem--;
  *number = 0;
  for (size_t i = stem; i < n && i < stem + 9; i++)
    *number = *number * 10 + (name[i] - '0');
  return stem;
}

static int64_t rows_of (const feed *f, int32_t tensor) {
  return f->t->tensors[tensor].bytes / (f->roles[tensor].bf16 ? 2 : 4) / f->t->batch;
}

static void find_meanings (feed *f) {
  static const struct {
    const char *stem;
    meaning meaning;
  } words[] = { { "char", TEXT },        { "tokens", TEXT },       { "source", TEXT },
                { "given", GIVEN_TEXT }, { "targets", NEXT_TEXT }, { "token_types", HALVES } };
  bool pictures = false, translates = false;
  for (int32_t i = 0; i < f->t->n_tensors; i++) {
    pictures |= f->roles[i].fill == PICTURE;
    translates |= strcmp (f->t->tensors[i].name, "given0") == 0;
  }
  for (int32_t i = 0; i < f->t->n_tensors; i++) {
    role *r = &f->roles[i];
    const char *name = f->t->tensors[i].name;
    size_t stem = stem_of (name, &r->at);
    if (r->fill != INDICES)
      continue;
    r->meaning = pictures ? LABEL : FIRST_WORD;
    if (stem == 6 && strncmp (name, "target", stem) == 0)
      r->meaning = translates ? TEXT : NEXT_TEXT;
    for (size_t k = 0; k < sizeof words / sizeof words[0]; k++)
      if (strlen (words[k].stem) == stem && strncmp (name, words[k].stem, stem) == 0)
        r->meaning = words[k].meaning;
    if (pictures) {
      f->labels = rows_of (f, i);
      f->classes = r->limit;
    }
    if (r->at + rows_of (f, i) > f->window)
      f->window = r->at + rows_of (f, i);
  }
}

static bool reads_text (const feed *f) {
  for (int32_t i = 0; i < f->t->n_tensors; i++)
    if (f->roles[i].fill == INDICES && f->roles[i].meaning != LABEL &&
        f->roles[i].meaning != HALVES)
      return true;
  return false;
}

/* A letter is nearly told by the one before it. */
static bool make_text (feed *f, arena *a, error *err) {
  if (!ALLOC (a, f->made, MADE_LENGTH, err))
    return false;
  f->length = MADE_LENGTH;
  int64_t letter = 0;
  for (int64_t i = 0; i < MADE_LENGTH; i++) {
    int64_t noise = (int64_t)(ops_random (7, (int64_t)f->seed, i) >> 40);
    letter = (letter * 7 + 3 + (noise % 5 == 0 ? noise / 5 % 4 : 0)) % MADE_LETTERS;
    f->made[i] = (int32_t)letter;
  }
  return true;
}

feed *feed_new (const trace *t, const feed_options *o, arena *a, error *err) {
  feed *f = NEW (a, 1, feed, err);
  if (f == NULL)
    return NULL;
  f->t = t;
  f->seed = o->seed;
  f->roles = NEW (a, t->n_tensors, role, err);
  for (int32_t i = 0; f->roles != NULL && i < t->n_tensors; i++)
    f->roles[i].like = -1;
  if (f->roles == NULL || !find_roles (f, a, err))
    return NULL;
  find_meanings (f);
  if (o->text == NULL)
    return make_text (f, a, err) ? f : NULL;
  if (!reads_text (f)) {
    error_set (err, ERR_usage, "a text is given, and this network learns pictures");
    return NULL;
  }
  f->text = o->text;
  f->length = o->text_bytes;
  if (f->length < 2) {
    error_set (err, ERR_input, "a text of %lld bytes: nothing can be learned from it",
               (long long)f->length);
    return NULL;
  }
  return f;
}

bool feed_is_input (const feed *f, int32_t tensor) {
  return f->roles[tensor].fill == PICTURE || f->roles[tensor].fill == INDICES;
}

bool feed_is_bf16 (const feed *f, int32_t tensor) {
  return f->roles[tensor].bf16;
}

/* ---- values ---- */

/* A stream's number n, in [-1, 1). */
static float centred (int64_t stream, uint64_t seed, int64_t n) {
  return (float)(ops_random (stream, (int64_t)seed, n) >> 40) / 8388608.0f - 1;
}

static int64_t stream_of (const char *name) {
  uint64_t hash = 14695981039346656037u; /* FNV-1a */
  for (; *name != '\0'; name++)
    hash = (hash ^ (uint8_t)*name) * 1099511628211u;
  return (int64_t)(hash >> 1);
}

static void put_number (const role *r, void *out, int64_t i, float x) {
  if (r->bf16)
    ((uint16_t *)out)[i] = bf16_of (x);
  else
    ((float *)out)[i] = x;
}

void feed_initial (const feed *f, int32_t tensor, void *out) {
  assert (tensor >= 0 && tensor < f->t->n_tensors && out);
  const role *form = &f->roles[tensor];
  int32_t from = form->like >= 0 ? form->like : tensor;
  const role *r = &f->roles[from];
  int64_t count = f->t->tensors[tensor].bytes / (form->bf16 ? 2 : 4);
  int64_t stream = stream_of (f->t->tensors[from].name);
  float edge = (float)(r->value * root (3)), value = (float)r->value;
  for (int64_t i = 0; i < count; i++)
    put_number (form, out, i, r->fill == UNIFORM ? edge * centred (stream, f->seed, i) : value);
}

static int32_t letter (const feed *f, int64_t item, int64_t step, int64_t at, int64_t limit) {
  int64_t lane = f->length / f->t->batch;
  int64_t i = (item * lane + step % f->length * f->window + at) % f->length;
  return (int32_t)((f->text != NULL ? f->text[i] : f->made[i]) % limit);
}

/* Neighbouring voxels have one label. */
static int32_t label (const feed *f, int64_t item, int64_t at, int64_t limit) {
  int64_t stretch = f->labels > 1 ? at / 8 : at;
  return (int32_t)(ops_random (11 + item, (int64_t)f->seed, stretch) % (uint64_t)limit);
}

static int32_t index_of (const feed *f, const role *r, int64_t step, int64_t item, int64_t row,
                         int64_t rows) {
  int64_t at = r->at + row;
  switch (r->meaning) {
  case LABEL:
    return label (f, item, at, r->limit);
  case TEXT:
    return letter (f, item, step, at, r->limit);
  case NEXT_TEXT:
    return letter (f, item, step, at + 1, r->limit);
  case GIVEN_TEXT:
    return at == 0 ? 0 : letter (f, item, step, at - 1, r->limit);
  case FIRST_WORD:
    return letter (f, item, step, 0, r->limit);
  case HALVES:
    return row >= rows / 2;
  }
  return 0;
}

/* Noise; where every place has a label of its own, that shines through. */
static float picture (const feed *f, int64_t stream, int64_t item, int64_t i, int64_t elements) {
  float noise = 1.7f * centred (stream, f->seed, item * elements + i);
  if (f->labels <= 1 || f->classes < 2)
    return noise;
  float shade = (float)label (f, item, i % f->labels, f->classes) / (float)(f->classes - 1);
  return 0.3f * noise + 2 * shade - 1;
}

void feed_input (const feed *f, int32_t tensor, int64_t step, int64_t first_item, int64_t end_item,
                 void *out) {
  assert (first_item >= 0 && first_item <= end_item && out);
  const role *r = &f->roles[tensor];
  int64_t elements = rows_of (f, tensor), stream = stream_of (f->t->tensors[tensor].name);
  for (int64_t item = first_item; item < end_item; item++)
    for (int64_t i = 0; i < elements; i++) {
      int64_t at = (item - first_item) * elements + i;
      if (r->fill == INDICES)
        ((int32_t *)out)[at] = index_of (f, r, step, item, i, elements);
      else
        put_number (r, out, at, picture (f, stream, item, i, elements));
    }
}
