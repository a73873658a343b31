/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A clean move relies on bytes that the host holds, and that nobody has written since. */
#include "trace/check/inner.h"

/* A write by an op in [first, end). */
static int32_t write_within (const checker *c, const check_unit *u, int32_t first, int32_t end) {
  int32_t at = check_use_after (c, u, first - 1);
  int32_t op = at < u->first_use + u->n_uses ? c->uses[at].next_write : NO_OP;
  return op < end ? op : NO_OP;
}

static bool unwritten (checker *c, int32_t i, int32_t source) {
  const move *x = &c->p->moves[i], *y = &c->p->moves[source];
  const check_unit *u = &c->units[x->unit];
  int32_t writer;
  if (y->out_after < x->out_after)
    writer = write_within (c, u, y->out_after + 1, x->out_after + 1);
  else {
    writer = write_within (c, u, y->out_after + 1, c->n_ops);
    if (writer == NO_OP)
      writer = write_within (c, u, 0, x->out_after + 1);
  }
  if (writer != NO_OP)
    return check_breaks (c, RULE_clean_written, "moves", i, "clean",
                         "op %d writes unit %d after move %d took the copy that this one uses",
                         writer, x->unit, source);
  if (x->host_offset != y->host_offset)
    return check_breaks (c, RULE_clean_offset, "moves", i, "host_offset",
                         "%lld, but the copy that it uses, of move %d, lies at %lld",
                         (long long)x->host_offset, source, (long long)y->host_offset);
  return true;
}

/* Moves [first, end) of by_part are all of a part, and all clean. */
static bool from_the_start (checker *c, int32_t first, int32_t end) {
  const move *x = &c->p->moves[c->by_part[first]];
  const check_unit *u = &c->units[x->unit];
  if (!u->persistent || u->written)
    return check_breaks (c, RULE_clean_source, "moves", c->by_part[first], "clean",
                         "part %d of unit %d never goes out, and the unit %s", x->part, x->unit,
                         u->persistent ? "is written" : "is not persistent");
  for (int32_t r = first; r < end; r++) {
    int32_t i = c->by_part[r];
    c->source[i] = -1;
    if (c->p->moves[i].host_offset != x->host_offset)
      return check_breaks (c, RULE_clean_offset, "moves", i, "host_offset",
                           "%lld, but the one copy of the part lies at %lld, as move %d has it",
                           (long long)c->p->moves[i].host_offset, (long long)x->host_offset,
                           c->by_part[first]);
  }
  return true;
}

static bool clean_part (checker *c, int32_t first, int32_t end) {
  int32_t last_out = -1;
  for (int32_t r = first; r < end; r++)
    if (!c->p->moves[c->by_part[r]].clean)
      last_out = c->by_part[r];
  if (last_out < 0)
    return from_the_start (c, first, end);
  const check_unit *u = &c->units[c->p->moves[last_out].unit];
  int32_t source = u->persistent ? last_out : -1;
  for (int32_t r = first; r < end; r++) {
    int32_t i = c->by_part[r];
    if (!c->p->moves[i].clean)
      source = i;
    else if (source < 0)
      return check_breaks (c, RULE_clean_source, "moves", i, "clean",
                           "the part has not gone out before, and its unit is not persistent");
    else if (!unwritten (c, i, source))
      return false;
    c->source[i] = source;
  }
  return true;
}

bool check_clean (checker *c) {
  if (!(c->source = NEW (c->a, c->p->n_moves, int32_t, c->err)))
    return false;
  for (int32_t first = 0, end; first < c->p->n_moves; first = end) {
    end = first + 1;
    while (end < c->p->n_moves && c->begins[end] == first)
      end++;
    if (!clean_part (c, first, end))
      return false;
  }
  return true;
}
