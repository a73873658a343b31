/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shapes of inputs and what the head of a Kineto file says: which cards, which rank.  Shapes are
   the only evidence in such a file for who reads a tensor: an op that names no input as large as it
   does not read it whole. */
#include <string.h>

#include "trace/import/common/calls.h"
#include "trace/import/kineto/kineto.h"

static bool product (int64_t *elements, int64_t size) {
  return size < 0 || __builtin_mul_overflow (*elements, size, elements);
}

/* One shape, [32, 3, 224, 224]; *elements is -1 where lists stand in it. */
static bool read_shape (stream *s, int64_t *elements) {
  *elements = 1;
  if (!stream_array (s))
    return false;
  while (stream_element (s)) {
    stream_kind kind = stream_peek (s);
    int64_t size;
    slice text;
    if (kind == STREAM_ARRAY || kind == STREAM_OBJECT) {
      *elements = -1;
      if (!stream_skip (s))
        return false;
    } else if (!stream_scalar (s, &text))
      return false;
    else if (*elements >= 0 && (!slice_decimal (text, 0, &size) || product (elements, size)))
      *elements = -1;
  }
  return !s->failed;
}

bool kineto_read_dims (stream *s, kineto_shapes *out) {
  if (stream_peek (s) != STREAM_ARRAY)
    return stream_skip (s);
  out->given = true;
  out->n_elements = 0;
  if (!stream_array (s))
    return false;
  while (stream_element (s)) {
    int64_t elements = 1;
    if (!(stream_peek (s) == STREAM_ARRAY ? read_shape (s, &elements) : stream_skip (s)))
      return false;
    if (out->n_elements == MOST_SHAPES)
      out->more = true;
    else
      out->elements[out->n_elements++] = elements;
  }
  return !s->failed;
}

bool kineto_read_types (stream *s, kineto_shapes *out) {
  static const slice none = { "", 0, false };
  if (stream_peek (s) != STREAM_ARRAY)
    return stream_skip (s);
  out->n_types = 0;
  if (!stream_array (s))
    return false;
  while (stream_element (s)) {
    stream_kind kind = stream_peek (s);
    slice text = none;
    bool whole = kind == STREAM_ARRAY || kind == STREAM_OBJECT;
    if (!(whole ? stream_skip (s) : stream_scalar (s, &text)))
      return false;
    if (out->n_types < MOST_SHAPES)
      out->types[out->n_types++] = text;
  }
  return !s->failed;
}

/* Bytes of an element; 0: no tensor; -1: not known. */
static int64_t item_bytes (slice type) {
  static const struct {
    const char *type;
    int64_t bytes;
  } rows[] = {
    { "float", 4 },
    { "double", 8 },
    { "long int", 8 },
    { "long", 8 },
    { "int", 4 },
    { "short int", 2 },
    { "short", 2 },
    { "unsigned char", 1 },
    { "signed char", 1 },
    { "char", 1 },
    { "bool", 1 },
    { "c10::Half", 2 },
    { "c10::BFloat16", 2 },
    { "long long", 8 },
    { "c10::complex<float>", 8 },
    { "Int", 0 },
    { "Bool", 0 },
    { "Double", 0 },
    { "Scalar", 0 },
    { "ScalarList", 0 },
    { "c10::complex<double>", 16 },
    { "Device", 0 },
    { "String", 0 },
    { "None", 0 },
    { "", 0 },
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (slice_is (type, rows[i].type))
      return rows[i].bytes;
  return slice_starts (type, "c10::Float8") ? 1 : -1;
}

/* Old releases call any list GenericList and give no shapes of what is in it. */
static bool takes_list (slice name) {
  static const char *const words[] = { "cat", "stack", "index",    "foreach",    "einsum", "lstm",
                                       "gru", "rnn",   "meshgrid", "block_diag", "tensors" };
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (slice_holds (name, words[i]))
      return true;
  return false;
}

bool kineto_keep_shapes (import_job *job, kineto *k, int64_t *room, const kineto_shapes *from,
                         slice name, kineto_op *o) {
  o->first_input = k->n_inputs;
  o->has_shapes = from->given;
  k->has_shapes |= from->given;
  o->has_list = from->more;
  for (int32_t i = 0; i < from->n_elements; i++) {
    slice type = i < from->n_types ? from->types[i] : (slice){ "?", 1, false };
    int64_t item = item_bytes (type), bytes;
    bool list = slice_is (type, "TensorList") || from->elements[i] < 0 ||
                ((slice_is (type, "GenericList") || type.size == 0) && takes_list (name));
    if (list || (item < 0 && !slice_is (type, "GenericList")))
      o->has_list = true;
    if (list || item <= 0 || from->elements[i] == 0)
      continue;
    if (__builtin_mul_overflow (from->elements[i], item, &bytes) || bytes > MOST_TENSOR_BYTES) {
      o->has_list = true;
      continue;
    }
    if (!GROW (job->scratch, k->inputs, room, k->n_inputs + 1, job->err))
      return false;
    k->inputs[k->n_inputs++] = (bytes + 511) / 512 * 512;
    o->n_inputs++;
  }
  return true;
}

/* ---- the head of the file ---- */

bool kineto_read_cards (stream *s, kineto *k) {
  slice key, text;
  if (stream_peek (s) != STREAM_ARRAY)
    return stream_skip (s);
  if (!stream_array (s))
    return false;
  while (stream_element (s)) {
    kineto_card card = { -1, 0, { "", 0, false } };
    if (stream_peek (s) != STREAM_OBJECT) {
      if (!stream_skip (s))
        return false;
      continue;
    }
    if (!stream_object (s))
      return false;
    while (stream_member (s, &key)) {
      stream_kind kind = stream_peek (s);
      if (kind == STREAM_OBJECT || kind == STREAM_ARRAY) {
        if (!stream_skip (s))
          return false;
        continue;
      }
      if (!stream_scalar (s, &text))
        return false;
      int64_t value = -1;
      bool number = slice_decimal (text, 0, &value);
      if (slice_is (key, "name"))
        card.name = text;
      else if (number && slice_is (key, "id"))
        card.id = value;
      else if (number && slice_is (key, "totalGlobalMem"))
        card.bytes = value;
    }
    if (s->failed)
      return false;
    if (k->n_cards < MOST_CARDS)
      k->cards[k->n_cards++] = card;
  }
  return !s->failed;
}

bool kineto_read_rank (stream *s, kineto *k) {
  slice key, text;
  if (stream_peek (s) != STREAM_OBJECT)
    return stream_skip (s);
  if (!stream_object (s))
    return false;
  while (stream_member (s, &key)) {
    stream_kind kind = stream_peek (s);
    bool whole = kind == STREAM_OBJECT || kind == STREAM_ARRAY;
    int64_t rank;
    if (!(whole ? stream_skip (s) : stream_scalar (s, &text)))
      return false;
    if (!whole && slice_is (key, "rank") && slice_decimal (text, 0, &rank) && rank >= 0)
      k->rank = rank;
  }
  return !s->failed;
}
