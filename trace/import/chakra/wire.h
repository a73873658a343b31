/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The two encodings inside a Chakra .et file: protobuf fields, and tensor values as Python text.
   Every length is checked against the end of what holds it before anything else happens. */
#pragma once

#include "trace/import/common/stream.h"

typedef struct wire {
  const char *text; /* the whole file: errors name its bytes */
  int64_t at, end;
  error *err;
} wire;

typedef struct wire_field {
  int64_t number;
  int kind;        /* 0 varint, 1 and 5 fixed, 2 length-delimited */
  uint64_t value;  /* of a varint */
  int64_t at, end; /* of anything else */
} wire_field;

bool wire_varint (wire *w, uint64_t *out) MUST_CHECK;
/* False at the end and after a mistake (err tells). */
bool wire_next (wire *w, wire_field *out) MUST_CHECK;
/* The inside of a length-delimited field. */
wire wire_inside (const wire *w, const wire_field *f);
slice wire_slice (const wire *w, const wire_field *f);

typedef struct python_tensor {
  int64_t storage, bytes; /* 0 bytes: no elements */
  int64_t own_bytes;      /* of its elements, without the offset */
  int64_t device;         /* -1: not said */
  int argument;           /* which element of the outermost list it stands in */
} python_tensor;

/* Calls `found` for each tensor of a GPU in the text of a list.  Lists, tuples, numbers, strings,
   True, False, None and <...> are known; nothing is ever evaluated. */
bool python_tensors (const wire *w, const wire_field *f,
                     bool (*found) (void *context, const python_tensor *t),
                     void *context) MUST_CHECK;
