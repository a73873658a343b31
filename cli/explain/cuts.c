/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/explain/cuts.h"

#include <stdio.h>

#include "base/units.h"
#include "solver/fleet/floor.h"
#include "trace/uses.h"

enum { SHOWN = 12, NAME = 48 };

/* Each tensor once, though an op may read what it writes. */
static void count_op (const trace *t, int32_t k, int64_t items, bool *seen, cut_told *x) {
  const op *o = &t->ops[k];
  const index_list *lists[] = { &o->reads, &o->writes };
  int64_t whole = o->workspace_bytes, part = units_scale (o->workspace_bytes, items, t->batch);
  for (int pass = 0; pass < 2; pass++)
    for (int which = 0; which < 2; which++)
      for (int32_t i = 0; i < lists[which]->count; i++) {
        int32_t y = lists[which]->at[i];
        const tensor *at = &t->tensors[y];
        if (pass == 0 && !seen[y]) {
          whole += at->bytes;
          part += at->split ? units_scale (at->bytes, items, t->batch) : at->bytes;
        }
        seen[y] = pass == 0;
      }
  if (whole > x->whole_bytes) {
    x->whole_bytes = whole;
    x->parts_bytes = part;
    x->op = k;
  }
}

static int64_t inside (const trace *t, const uses *u, const section *s) {
  int64_t sum = 0;
  for (int32_t y = 0; y < t->n_tensors; y++)
    if (t->tensors[y].split && !t->tensors[y].persistent && uses_count (u, y) > 1 &&
        uses_first (u, y) >= s->first && uses_last (u, y) < s->end)
      sum += t->tensors[y].bytes;
  return sum;
}

bool cuts_of (call *c, const trace *t, const plan *p, cuts_told *out) {
  uses u;
  memory_floor f;
  *out = (cuts_told){ .trace = t, .count = p->n_sections, .budget_bytes = p->budget_bytes };
  out->at = NEW (c->arena, p->n_sections, cut_told, &c->err);
  bool *seen = NEW (c->arena, t->n_tensors, bool, &c->err);
  if (!out->at || !seen || !uses_of (t, c->arena, &u, &c->err) ||
      !floor_of (t, &p->device, c->arena, &f, &c->err))
    return false;
  out->floor_bytes = f.bytes;
  out->floor_op = f.op;
  for (int32_t i = 0; i < p->n_sections; i++) {
    const section *from = &p->sections[i];
    cut_told *x = &out->at[i];
    *x = (cut_told){ .section = from, .op = from->first };
    for (int32_t k = from->first; k < from->end; k++)
      count_op (t, k, units_div_up (t->batch, from->parts), seen, x);
    x->inside_bytes = from->order == SECTION_DEPTH ? inside (t, &u, from) : 0;
    x->ns = (from->end - from->first) * (from->parts - 1) * p->device.section_ns;
    out->ns += x->ns;
  }
  return true;
}

static void print_one (const cuts_told *c, const cut_told *x) {
  char whole[UNITS_TEXT], part[UNITS_TEXT], inside[UNITS_TEXT], ns[UNITS_TEXT];
  const section *s = x->section;
  const char *name = c->trace->ops[x->op].name;
  printf ("  ops %d to %d %s in %lld parts, for %s: op %d (%.*s) touches %s whole, %s in a part",
          s->first, s->end - 1, s->order == SECTION_DEPTH ? "depth first" : "level by level",
          (long long)s->parts, units_time (ns, x->ns), x->op, NAME, name ? name : "",
          units_bytes (whole, x->whole_bytes), units_bytes (part, x->parts_bytes));
  if (x->inside_bytes)
    printf ("; %s are there one part at a time", units_bytes (inside, x->inside_bytes));
  putchar ('\n');
}

void cuts_print (const cuts_told *c) {
  char ns[UNITS_TEXT], budget[UNITS_TEXT], floor[UNITS_TEXT];
  if (!c->count)
    return;
  units_bytes (budget, c->budget_bytes);
  units_bytes (floor, c->floor_bytes);
  printf ("\ncut into sections, which costs %s: ", units_time (ns, c->ns));
  if (c->floor_bytes > c->budget_bytes)
    printf ("in whole ops the step needs %s (op %d), the budget is %s\n", floor, c->floor_op,
            budget);
  else
    printf ("in whole ops the step fits (%s of %s), but more would cross the link\n", floor,
            budget);
  for (int32_t i = 0; i < c->count && i < SHOWN; i++)
    print_one (c, &c->at[i]);
  if (c->count > SHOWN)
    printf ("  and %d sections more\n", c->count - SHOWN);
}

void cuts_put (json_writer *w, const cuts_told *c) {
  json_add_array (w, "sections");
  for (int32_t i = 0; i < c->count; i++) {
    const cut_told *x = &c->at[i];
    json_open_object (w);
    json_add_int (w, "end", x->section->end);
    json_add_int (w, "first", x->section->first);
    json_add_int (w, "inside_bytes", x->inside_bytes);
    json_add_int (w, "ns", x->ns);
    json_add_int (w, "op", x->op);
    json_add_text (w, "order", x->section->order == SECTION_DEPTH ? "depth" : "level");
    json_add_int (w, "parts", x->section->parts);
    json_add_int (w, "parts_bytes", x->parts_bytes);
    json_add_int (w, "whole_bytes", x->whole_bytes);
    json_close_object (w);
  }
  json_close_array (w);
}
