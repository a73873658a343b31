/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/explain/drops.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/order.h"
#include "base/units.h"
#include "trace/rewrite/rewrite.h"

enum { SHOWN = 6, NAME = 48, PART = 16 }; /* less than that part of an entry is no news */

static int most_first (const void *a, const void *b) {
  const dropped *x = a, *y = b;
  return ORDER (y->bytes, x->bytes) ?: ORDER (x->before, y->before);
}

static bool writes_before (const trace *t, const recompute *r, int32_t k, int32_t x) {
  for (int32_t i = 0; i < k; i++)
    if (list_has (&t->ops[r->ops.at[i]].writes, x))
      return true;
  return false;
}

/* Tensors that are made on the way and given up again. */
static int64_t passing (const trace *t, const recompute *r) {
  int64_t bytes = 0;
  for (int32_t k = 0; k < r->ops.count; k++) {
    const op *o = &t->ops[r->ops.at[k]];
    for (int32_t j = 0; j < o->writes.count; j++) {
      int32_t x = o->writes.at[j];
      if (!list_has (&o->side, x) && !list_has (&r->replaces, x) && !writes_before (t, r, k, x))
        bytes += t->tensors[x].bytes;
    }
  }
  return bytes;
}

bool dropped_of (call *c, const trace *t, const plan *p, dropped_list *out) {
  rewritten cut;
  link_rates r = device_rates (&p->device.link, p->device.share_ppm);
  *out = (dropped_list){ .count = p->n_recomputes };
  out->at = NEW (c->arena, p->n_recomputes, dropped, &c->err);
  if (!out->at || !plan_cut (t, p, c->arena, &cut, &c->err))
    return false;
  out->cut = cut.trace;
  for (int32_t i = 0; i < p->n_recomputes; i++) {
    const recompute *from = &p->recomputes[i];
    dropped *d = &out->at[i];
    *d = (dropped){ .before = from->before, .list = &from->replaces, .ops = from->ops.count };
    d->passing_bytes = passing (cut.trace, from);
    for (int32_t k = 0; k < from->ops.count; k++)
      d->ns += cut.trace->ops[from->ops.at[k]].ns + cut.trace->ops[from->ops.at[k]].gap_ns;
    for (int32_t k = 0; k < from->replaces.count; k++)
      d->bytes += cut.trace->tensors[from->replaces.at[k]].bytes;
    __int128 link_ns = (__int128)d->bytes * 1000000000 / r.out_alone +
                       (__int128)d->bytes * 1000000000 / r.in_alone;
    d->link_ns = link_ns < MOST_NS ? (int64_t)link_ns : MOST_NS;
    out->ns += d->ns;
    out->bytes += d->bytes;
    out->link_ns += d->link_ns;
  }
  qsort (out->at, (size_t)out->count, sizeof *out->at, most_first);
  return true;
}

/* Names may be missing. */
static const char *tensor_text (const dropped_list *d, int32_t x, char text[NAME + 24]) {
  const char *name = d->cut->tensors[x].name;
  if (name && *name)
    snprintf (text, NAME + 24, "%.*s", NAME, name);
  else
    snprintf (text, NAME + 24, "tensor %d", x);
  return text;
}

void dropped_print (const dropped_list *d) {
  char bytes[UNITS_TEXT], ns[UNITS_TEXT], link[UNITS_TEXT], name[NAME + 24];
  if (!d->count)
    return;
  printf ("\ndropped and made again: %s, by ops that take %s; as copies both ways %s; the most\n",
          units_bytes (bytes, d->bytes), units_time (ns, d->ns), units_time (link, d->link_ns));
  for (int32_t i = 0; i < d->count && i < SHOWN; i++) {
    const dropped *x = &d->at[i];
    const char *op = d->cut->ops[x->before].name;
    printf ("  %10s  of %s", units_bytes (bytes, x->bytes),
            x->list->count ? tensor_text (d, x->list->at[0], name) : "nothing that stays");
    if (x->list->count > 1)
      printf (" and %d more", x->list->count - 1);
    printf (" before op %d (%.*s): %s of ops for %s of copies", x->before, NAME, op ? op : "",
            units_time (ns, x->ns), units_time (link, x->link_ns));
    if (x->passing_bytes > x->bytes / PART)
      printf ("; %s on the way, given up again", units_bytes (bytes, x->passing_bytes));
    printf ("\n");
  }
  if (d->count > SHOWN)
    printf ("  %10s  %d more times\n", "", d->count - SHOWN);
}

void dropped_put (json_writer *w, const dropped_list *d) {
  json_add_array (w, "drops");
  for (int32_t i = 0; i < d->count; i++) {
    const dropped *x = &d->at[i];
    json_open_object (w);
    json_add_int (w, "before", x->before);
    json_add_int (w, "bytes", x->bytes);
    json_add_int (w, "link_ns", x->link_ns);
    json_add_int (w, "ns", x->ns);
    json_add_int (w, "ops", x->ops);
    json_add_int (w, "passing_bytes", x->passing_bytes);
    json_add_indices (w, "tensors", x->list->at, x->list->count);
    json_close_object (w);
  }
  json_close_array (w);
}
