/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/import/chakra/wire.h"

#include <string.h>

#include "trace/import/common/accelerator.h"
#include "trace/trace.h"

static bool bad (const wire *w, int64_t at, const char *what) {
  return error_set (w->err, ERR_input, "byte %lld: %s", (long long)at, what);
}

bool wire_varint (wire *w, uint64_t *out) {
  int64_t start = w->at;
  *out = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (w->at >= w->end)
      return bad (w, start, "a number ends behind the end of what holds it");
    unsigned char c = (unsigned char)w->text[w->at++];
    if (shift < 64)
      *out |= (uint64_t)(c & 0x7f) << shift;
    if (c < 0x80)
      return true;
  }
  return bad (w, start, "a number of more than 64 bits");
}

static bool take (wire *w, uint64_t size, wire_field *out) {
  if (size > (uint64_t)(w->end - w->at))
    return error_set (w->err, ERR_input,
                      "byte %lld: a field of %llu bytes where %lld are left: the file is cut short "
                      "or damaged",
                      (long long)w->at, (unsigned long long)size, (long long)(w->end - w->at));
  out->at = w->at;
  w->at += (int64_t)size;
  out->end = w->at;
  return true;
}

bool wire_next (wire *w, wire_field *out) {
  uint64_t tag, size;
  int64_t start = w->at;
  if (w->at >= w->end || !wire_varint (w, &tag))
    return false;
  *out = (wire_field){ .number = (int64_t)(tag >> 3), .kind = (int)(tag & 7) };
  if (out->number == 0 || tag >> 32)
    return bad (w, start, "no protobuf field begins here");
  switch (out->kind) {
  case 0:
    return wire_varint (w, &out->value);
  case 1:
    return take (w, 8, out);
  case 2:
    return wire_varint (w, &size) && take (w, size, out);
  case 5:
    return take (w, 4, out);
  default:
    return bad (w, start, "no protobuf field begins here");
  }
}

wire wire_inside (const wire *w, const wire_field *f) {
  return (wire){ w->text, f->at, f->end, w->err };
}

slice wire_slice (const wire *w, const wire_field *f) {
  return (slice){ w->text + f->at, f->end - f->at, false };
}

/* ---- Python text ---- */

enum { PYTHON_DEPTH = 64, FIELDS = 6 };

/* Knowledge of an open list: its scalars while they may still be a tensor. */
typedef struct level {
  slice scalar[FIELDS];
  bool text[FIELDS];
  int n;
  bool nested;
  char close;
} level;

typedef struct python {
  const wire *w;
  int64_t at, end;
  level levels[PYTHON_DEPTH];
  int depth;
  int argument;
  bool (*found) (void *context, const python_tensor *t);
  void *context;
} python;

static bool take_tensor (python *p, const level *l) {
  int64_t v[5], elements, bytes, device;
  for (int i = 0; i < 5; i++)
    if (!slice_decimal (l->scalar[i], 0, &v[i]))
      return bad (p->w, p->at, "a tensor has six fields: ids, offset, elements, item size, device");
  if (!accelerator_is (l->scalar[5], &device) || v[1] == 0)
    return true;
  if (v[2] < 0 || v[3] < 0 || v[4] < 0)
    return bad (p->w, p->at, "a tensor whose offset, elements or item size is below 0");
  if (__builtin_add_overflow (v[2], v[3], &elements) ||
      __builtin_mul_overflow (elements, v[4], &bytes) || bytes > MOST_TENSOR_BYTES)
    return bad (p->w, p->at, "a tensor larger than 2^48 bytes");
  python_tensor t = { v[1], v[3] ? bytes : 0, v[3] * v[4], device, p->argument };
  return p->found (p->context, &t);
}

static bool add_scalar (python *p, slice text, bool quoted) {
  if (p->depth == 0)
    return bad (p->w, p->at, "a list was expected");
  level *l = &p->levels[p->depth - 1];
  if (l->n < FIELDS) {
    l->scalar[l->n] = text;
    l->text[l->n] = quoted;
  }
  l->n += l->n <= FIELDS;
  return true;
}

static bool open_list (python *p, char close) {
  if (p->depth == PYTHON_DEPTH)
    return bad (p->w, p->at, "lists nested too deeply");
  if (p->depth)
    p->levels[p->depth - 1].nested = true;
  p->levels[p->depth++] = (level){ .close = close };
  p->at++;
  return true;
}

static bool close_list (python *p, char c) {
  if (p->depth == 0 || p->levels[p->depth - 1].close != c)
    return bad (p->w, p->at, "a bracket that closes nothing");
  const level *l = &p->levels[--p->depth];
  if (!l->nested && l->n == FIELDS && l->text[5] && !l->text[0] && c == ']' && !take_tensor (p, l))
    return false;
  p->at++;
  return true;
}

static bool read_string (python *p, char quote) {
  int64_t start = ++p->at;
  while (p->at < p->end && p->w->text[p->at] != quote)
    p->at += p->w->text[p->at] == '\\' ? 2 : 1;
  if (p->at >= p->end)
    return bad (p->w, start, "a string without an end");
  slice text = { p->w->text + start, p->at - start, false };
  p->at++;
  return add_scalar (p, text, true);
}

/* Numbers, True, False, None, <...>: whatever it is, it ends at a comma or a bracket. */
static bool read_bare (python *p) {
  int64_t start = p->at;
  bool angle = p->w->text[p->at] == '<';
  while (p->at < p->end && (angle ? p->w->text[p->at] != '>'
                                  : !strchr (",[]() ", p->w->text[p->at]) || !p->w->text[p->at]))
    p->at++;
  p->at += angle && p->at < p->end;
  slice text = { p->w->text + start, p->at - start, false };
  bool known = angle || (text.size && strchr ("0123456789-+.TFNin", text.at[0]) && text.at[0]);
  if (!known)
    return bad (p->w, start, "a value was expected");
  return add_scalar (p, text, false);
}

bool python_tensors (const wire *w, const wire_field *f,
                     bool (*found) (void *context, const python_tensor *t), void *context) {
  python p = {
    .w = w, .at = f->at, .end = f->end, .argument = 0, .found = found, .context = context
  };
  while (p.at < p.end) {
    char c = w->text[p.at];
    bool ok = true;
    if (c == ' ' || c == ',') {
      p.argument += c == ',' && p.depth == 1 && p.argument < 1 << 20;
      p.at++;
    } else if (c == '[' || c == '(')
      ok = open_list (&p, c == '[' ? ']' : ')');
    else if (c == ']' || c == ')')
      ok = close_list (&p, c);
    else if (c == '\'' || c == '"')
      ok = read_string (&p, c);
    else
      ok = read_bare (&p);
    if (!ok)
      return false;
  }
  return p.depth == 0 || bad (w, p.at, "a list without an end");
}
