/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/import/snapshot/pickle.h"

#include <assert.h>
#include <string.h>

typedef struct machine {
  const unsigned char *text;
  int64_t size, at, op_at;
  arena *a;
  error *err;
  pickle *out;
  int64_t value_room;
  int32_t *stack;
  int64_t n_stack, stack_room;
  int64_t *marks;
  int64_t n_marks, mark_room;
  int32_t *memo; /* value + 1; 0: never put */
  int64_t n_memo, memo_room;
} machine;

static bool bad (const machine *m, const char *what) {
  return error_set (m->err, ERR_input, "byte %lld: %s", (long long)m->op_at, what);
}

static bool cut (const machine *m) {
  return error_set (m->err, ERR_input, "byte %lld: the pickle ends in the middle",
                    (long long)m->size);
}

/* Little-endian, n <= 8. */
static bool take_number (machine *m, int n, uint64_t *out) {
  *out = 0;
  if (n > m->size - m->at)
    return cut (m);
  for (int i = 0; i < n; i++)
    *out |= (uint64_t)m->text[m->at + i] << (8 * i);
  m->at += n;
  return true;
}

static bool push_place (machine *m, int32_t place) {
  if (!GROW (m->a, m->stack, &m->stack_room, m->n_stack + 1, m->err))
    return false;
  m->stack[m->n_stack++] = place;
  return true;
}

static bool push (machine *m, pickle_value v) {
  pickle *p = m->out;
  if (p->n_values == INT32_MAX - 1)
    return bad (m, "more than 2^31 values");
  if (!GROW (m->a, p->values, &m->value_room, (int64_t)p->n_values + 1, m->err))
    return false;
  p->values[p->n_values] = v;
  return push_place (m, p->n_values++);
}

static bool push_text (machine *m, int width) {
  uint64_t length;
  if (!take_number (m, width, &length))
    return false;
  if (length > (uint64_t)(m->size - m->at) || length > INT32_MAX)
    return cut (m);
  const char *text = (const char *)m->text + m->at;
  m->at += (int64_t)length;
  return push (m, (pickle_value){ .text = text, .count = (int32_t)length, .kind = PICKLE_TEXT });
}

static bool push_int (machine *m, int64_t number) {
  return push (m, (pickle_value){ .number = number, .kind = PICKLE_INT });
}

/* LONG1: two's complement of as many bytes as needed. One that int64_t cannot hold has no value
   that is kept, like a real number: who needs it says that it is not there. */
static bool push_long (machine *m) {
  uint64_t n, value;
  if (!take_number (m, 1, &n))
    return false;
  if (n > 8) {
    if (n > (uint64_t)(m->size - m->at))
      return cut (m);
    m->at += (int64_t)n;
    return push (m, (pickle_value){ .kind = PICKLE_REAL });
  }
  if (!take_number (m, (int)n, &value))
    return false;
  if (n > 0 && n < 8 && value >> (8 * n - 1))
    value |= ~(uint64_t)0 << (8 * n);
  return push_int (m, (int64_t)value);
}

static bool put_memo (machine *m, uint64_t place) {
  /* A memo is written at most once a byte of the file, so a larger place is a lie. */
  if (place > (uint64_t)m->size)
    return bad (m, "a memo place beyond the size of the file");
  if (m->n_stack == 0)
    return bad (m, "nothing to remember");
  if (!GROW (m->a, m->memo, &m->memo_room, (int64_t)place + 1, m->err))
    return false;
  m->memo[place] = m->stack[m->n_stack - 1] + 1;
  if ((int64_t)place >= m->n_memo)
    m->n_memo = (int64_t)place + 1;
  return true;
}

static bool get_memo (machine *m, int width) {
  uint64_t place;
  if (!take_number (m, width, &place))
    return false;
  if (place >= (uint64_t)m->n_memo || m->memo[place] == 0)
    return bad (m, "a memo place that was never filled");
  return push_place (m, m->memo[place] - 1);
}

static bool set_mark (machine *m) {
  if (!GROW (m->a, m->marks, &m->mark_room, m->n_marks + 1, m->err))
    return false;
  m->marks[m->n_marks++] = m->n_stack;
  return true;
}

static bool to_mark (machine *m, int64_t *from) {
  if (m->n_marks == 0)
    return bad (m, "no mark to go back to");
  *from = m->marks[--m->n_marks];
  return *from <= m->n_stack || bad (m, "the mark lies above the stack");
}

/* The values from place `from` of the stack on, moved into the container below them. */
static bool collect (machine *m, int64_t from, pickle_kind kind) {
  if (from < 1 || (m->n_marks && m->marks[m->n_marks - 1] > from - 1))
    return bad (m, "nothing to put the values into");
  pickle_value *v = &m->out->values[m->stack[from - 1]];
  int64_t n = m->n_stack - from;
  if (v->kind != kind || (kind == PICKLE_DICT && n % 2))
    return bad (m, "values put into something that does not take them");
  if (v->count + n > INT32_MAX)
    return bad (m, "a list of more than 2^31 values");
  if (n == 0)
    return true;
  if (!GROW (m->a, v->items, &v->room, v->count + n, m->err))
    return false;
  memcpy (v->items + v->count, m->stack + from, (size_t)n * sizeof *v->items);
  v->count += (int32_t)n;
  m->n_stack = from;
  return true;
}

static bool make_tuple (machine *m, int64_t from) {
  if (from < 0 || (m->n_marks && m->marks[m->n_marks - 1] > from))
    return bad (m, "too few values for a tuple");
  int64_t n = m->n_stack - from;
  pickle_value v = { .kind = PICKLE_LIST, .count = (int32_t)n, .room = n };
  if (!ALLOC (m->a, v.items, n, m->err) || n > INT32_MAX)
    return false;
  if (n)
    memcpy (v.items, m->stack + from, (size_t)n * sizeof *v.items);
  m->n_stack = from;
  return push (m, v);
}

/* The instructions that look something up or call it. */
static const char *running (unsigned char op) {
  static const struct {
    unsigned char op;
    const char *name;
  } rows[] = { { 'c', "GLOBAL" },    { 0x93, "STACK_GLOBAL" }, { 'R', "REDUCE" },
               { 'b', "BUILD" },     { 'i', "INST" },          { 'o', "OBJ" },
               { 0x81, "NEWOBJ" },   { 0x92, "NEWOBJ_EX" },    { 'P', "PERSID" },
               { 'Q', "BINPERSID" }, { 0x82, "EXT1" },         { 0x83, "EXT2" },
               { 0x84, "EXT4" },     { 0x97, "NEXT_BUFFER" } };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (rows[i].op == op)
      return rows[i].name;
  return NULL;
}

static bool refuse_opcode (const machine *m, unsigned char op) {
  const char *name = running (op);
  if (name)
    return error_set (m->err, ERR_input,
                      "this pickle wants to run code (opcode %s at byte %lld); a memory snapshot "
                      "never does",
                      name, (long long)m->op_at);
  return error_set (m->err, ERR_input, "byte %lld: opcode 0x%02x is not one of a memory snapshot",
                    (long long)m->op_at, op);
}

/* An opcode that pushes a number or a text. */
static bool push_value (machine *m, unsigned char op) {
  uint64_t number;
  switch (op) {
  case 'J':
    return take_number (m, 4, &number) && push_int (m, (int32_t)(uint32_t)number);
  case 'K':
    return take_number (m, 1, &number) && push_int (m, (int64_t)number);
  case 'M':
    return take_number (m, 2, &number) && push_int (m, (int64_t)number);
  case 0x8a:
    return push_long (m);
  case 'G':
    return take_number (m, 8, &number) && push (m, (pickle_value){ .kind = PICKLE_REAL });
  case 0x88:
  case 0x89:
    return push (m, (pickle_value){ .number = op == 0x88, .kind = PICKLE_BOOL });
  case 'N':
    return push (m, (pickle_value){ .kind = PICKLE_NONE });
  case 0x8c:
  case 'C':
    return push_text (m, 1);
  case 'X':
  case 'B':
    return push_text (m, 4);
  case 0x8d:
  case 0x8e:
    return push_text (m, 8);
  default:
    return refuse_opcode (m, op);
  }
}

static bool step (machine *m, unsigned char op) {
  uint64_t number;
  int64_t from;
  switch (op) {
  case 0x80: /* PROTO */
    return take_number (m, 1, &number);
  case 0x95: /* FRAME: its length is only a hint */
    return take_number (m, 8, &number);
  case '}':
    return push (m, (pickle_value){ .kind = PICKLE_DICT });
  case ']':
  case ')':
    return push (m, (pickle_value){ .kind = PICKLE_LIST });
  case '(':
    return set_mark (m);
  case 'u': /* SETITEMS */
    return to_mark (m, &from) && collect (m, from, PICKLE_DICT);
  case 's':
    return collect (m, m->n_stack - 2, PICKLE_DICT);
  case 'e': /* APPENDS */
    return to_mark (m, &from) && collect (m, from, PICKLE_LIST);
  case 'a':
    return collect (m, m->n_stack - 1, PICKLE_LIST);
  case 't':
    return to_mark (m, &from) && make_tuple (m, from);
  case 0x85:
  case 0x86:
  case 0x87:
    return make_tuple (m, m->n_stack - (op - 0x84));
  case 'h':
    return get_memo (m, 1);
  case 'j':
    return get_memo (m, 4);
  case 0x94: /* MEMOIZE */
    return put_memo (m, (uint64_t)m->n_memo);
  case 'q':
    return take_number (m, 1, &number) && put_memo (m, number);
  case 'r':
    return take_number (m, 4, &number) && put_memo (m, number);
  default:
    return push_value (m, op);
  }
}

bool pickle_read (const char *text, int64_t size, arena *a, pickle *out, error *err) {
  assert (size >= 0 && (text || size == 0));
  *out = (pickle){ .root = -1 };
  machine m = { .text = (const unsigned char *)text, .size = size, .a = a, .err = err, .out = out };
  while (m.at < m.size) {
    m.op_at = m.at;
    unsigned char op = m.text[m.at++];
    if (op == '.') {
      if (m.n_stack != 1)
        return bad (&m, "the pickle stops with other than one value");
      out->root = m.stack[0];
      return true;
    }
    if (!step (&m, op))
      return false;
  }
  return cut (&m);
}

const pickle_value *pickle_item (const pickle *p, const pickle_value *list, int64_t index) {
  return index < pickle_count (list) ? &p->values[list->items[index]] : NULL;
}

int64_t pickle_count (const pickle_value *list) {
  return list && list->kind == PICKLE_LIST ? list->count : 0;
}

int64_t pickle_int (const pickle_value *v, int64_t otherwise) {
  return v && v->kind == PICKLE_INT ? v->number : otherwise;
}

slice pickle_text (const pickle_value *v) {
  return v && v->kind == PICKLE_TEXT ? (slice){ v->text, v->count, false }
                                     : (slice){ "", 0, false };
}

const pickle_value *pickle_get (const pickle *p, const pickle_value *dict, const char *key) {
  if (!dict || dict->kind != PICKLE_DICT)
    return NULL;
  for (int32_t i = 0; i < dict->count && i < 128; i += 2)
    if (slice_is (pickle_text (&p->values[dict->items[i]]), key))
      return &p->values[dict->items[i + 1]];
  return NULL;
}
