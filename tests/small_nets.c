/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/small_nets.h"

#include <check.h>
#include <stdlib.h>

static const device a_device = { .name = "a",
                                 .has_roofline = true,
                                 .roofline = { .fp32_flops = 1000000000000,
                                               .memory_bytes_per_s = 100000000000 } };

const small_net small_nets[SMALL_NETS] = {
  { "vgg16", 5, 32, 0, 16, 0, 10, ZOO_SGD, false },
  { "resnet18", 5, 32, 0, 8, 0, 10, ZOO_MOMENTUM, false },
  { "unet3d", 3, 8, 0, 8, 0, 3, ZOO_ADAM, false },
  { "charrnn", 5, 0, 8, 8, 0, 64, ZOO_ADAM, false },
  { "seq2seq", 5, 0, 5, 8, 0, 40, ZOO_ADAM, false },
  { "gpt2", 5, 0, 16, 12, 6, 64, ZOO_ADAM, false },
  { "llama-1b", 5, 0, 16, 32, 8, 64, ZOO_ADAM, true },
};

trace *small_trace (const small_net *s, arena *a) {
  error err = { 0 };
  zoo_request r = { .name = s->name,
                    .batch = s->batch,
                    .image = s->image,
                    .seq = s->seq,
                    .width_divisor = s->width_divisor,
                    .depth_divisor = s->depth_divisor,
                    .classes = s->classes,
                    .optimizer = s->optimizer,
                    .explicit_attention = s->explicit_attention,
                    .device = &a_device };
  trace *t = zoo_trace (&r, a, &err);
  ck_assert_msg (t != NULL, "%s: %s", s->name, err.text);
  return t;
}

rewritten small_rewrite (const trace *t, const section *sections, int32_t n_sections,
                         const recompute *entries, int32_t n_entries, arena *a) {
  error err = { 0 };
  rewritten r;
  ck_assert_msg (trace_rewrite (t,
                                &(rewriting){ .sections = sections,
                                              .n_sections = n_sections,
                                              .recomputes = entries,
                                              .n_recomputes = n_entries },
                                a, &r, &err),
                 "%s %s", err.where, err.text);
  return r;
}

/* ---- sections ---- */

int32_t small_cut (const trace *t, int64_t parts, section_order order, int32_t most, section *out,
                   arena *a) {
  int32_t n = 0;
  for (int32_t i = 0; i < t->n_ops;) {
    int32_t end = i;
    while (end < t->n_ops && end - i < most && t->ops[end].parts >= parts)
      end++;
    for (; end > i; end--) {
      error err = { 0 };
      rewritten r;
      arena_mark mark = arena_here (a);
      out[n] = (section){ i, end, parts, order };
      bool fits =
          trace_rewrite (t, &(rewriting){ .sections = &out[n], .n_sections = 1 }, a, &r, &err);
      arena_back (a, mark);
      if (fits)
        break;
    }
    n += end > i;
    i = end > i ? end : i + 1;
  }
  return n;
}

/* ---- recomputed copies ---- */

/* Does it update in place what `o` has written? */
static bool updates (const op *later, const op *o) {
  for (int32_t j = 0; j < o->writes.count; j++)
    if (list_has (&later->reads, o->writes.at[j]) && list_has (&later->writes, o->writes.at[j]) &&
        !list_has (&o->side, o->writes.at[j]))
      return true;
  return false;
}

/* Op k again, and what updates its results in place, before the first op of the way back that reads
   one of them; all that it writes is replaced. */
static bool entry_for (const trace *t, int32_t k, recompute *e, arena *a) {
  error err = { 0 };
  const op *o = &t->ops[k];
  *e = (recompute){ .before = -1 };
  for (int32_t i = k + 1; i < t->n_ops && e->before < 0; i++)
    for (int32_t j = 0; j < o->writes.count; j++)
      if (t->ops[i].phase == OP_BACKWARD && list_has (&t->ops[i].reads, o->writes.at[j]) &&
          !t->tensors[o->writes.at[j]].persistent)
        e->before = i;
  if (o->phase != OP_FORWARD || e->before < 0)
    return false;
  e->ops.at = NEW (a, e->before, int32_t, &err);
  for (int32_t i = k; i < e->before; i++)
    if (i == k || (updates (&t->ops[i], o) && t->ops[i].phase == OP_FORWARD))
      e->ops.at[e->ops.count++] = i;
  e->replaces.at = NEW (a, o->writes.count, int32_t, &err);
  for (int32_t j = 0; j < o->writes.count; j++)
    if (!list_has (&o->side, o->writes.at[j]) && !list_has (&o->reads, o->writes.at[j]))
      e->replaces.at[e->replaces.count++] = o->writes.at[j];
  return e->replaces.count > 0;
}

/* By `before`, then by op. */
static int by_before (const void *a, const void *b) {
  const recompute *x = a, *y = b;
  return x->before != y->before ? (x->before > y->before) - (x->before < y->before)
                                : (x->ops.at[0] > y->ops.at[0]) - (x->ops.at[0] < y->ops.at[0]);
}

/* Every op that can be computed again on its own; `most` of them. */
static int32_t recompute_all (const trace *t, const section *sections, int32_t n_sections,
                              const trace *cut, recompute *out, int32_t most, arena *a) {
  int32_t n = 0, tried = 0;
  for (int32_t k = 0; k < cut->n_ops && n < most; k++) {
    recompute kept = out[n], *list = out;
    rewritten r;
    error err = { 0 };
    if (!entry_for (cut, k, &out[n], a))
      continue;
    tried++;
    arena_mark mark = arena_here (a);
    bool fits = trace_rewrite (t,
                               &(rewriting){ .sections = sections,
                                             .n_sections = n_sections,
                                             .recomputes = list + n,
                                             .n_recomputes = 1 },
                               a, &r, &err);
    arena_back (a, mark);
    if (fits)
      n++;
    else
      out[n] = kept;
  }
  qsort (out, (size_t)n, sizeof *out, by_before);
  ck_assert_int_gt (tried, 0);
  return n;
}

/* All together may be refused where one reads what another has replaced; then those that can be. */
int32_t small_copies (const trace *t, const section *sections, int32_t n_sections, const trace *cut,
                      recompute *out, arena *a) {
  int32_t n = recompute_all (t, sections, n_sections, cut, out, cut->n_ops, a), kept = 0;
  for (int32_t i = 0; i < n; i++) {
    error refused = { 0 };
    rewritten r;
    recompute left = out[kept];
    out[kept] = out[i];
    arena_mark mark = arena_here (a);
    if (trace_rewrite (t,
                       &(rewriting){ .sections = sections,
                                     .n_sections = n_sections,
                                     .recomputes = out,
                                     .n_recomputes = kept + 1 },
                       a, &r, &refused))
      kept++;
    else
      out[kept] = left;
    arena_back (a, mark);
  }
  return kept;
}
