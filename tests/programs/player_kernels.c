/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The module of the player of traces: a kernel for each name and number of tensors that the trace
   has.  A kernel takes the time of its op, reads all that the op reads, and fills what it writes
   with a hash of that, so that a wrong byte anywhere changes what every later op writes. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executor/emu/emu.h"
#include "tests/programs/player.h"

enum { MOST_KERNELS = 4096, MOST_POINTERS = 400, HEAD = 3 };

static emu_param params[HEAD + MOST_POINTERS];
__attribute__ ((visibility ("default"))) emu_kernel emu_module[MOST_KERNELS + 1];

static uint64_t mix (uint64_t h, uint64_t word) {
  h = (h ^ word) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 29;
}

static uint64_t read_all (uint64_t h, const uint64_t *at, int64_t words) {
  for (int64_t i = 0; i < words; i += player.stride)
    h = mix (h, at[i]);
  return h;
}

static void fill (uint64_t *at, int64_t words, uint64_t h) {
  for (int64_t i = 0; i < words; i += player.stride)
    at[i] = mix (h, (uint64_t)i);
}

static void add (uint64_t *at, int64_t words, uint64_t h) {
  for (int64_t i = 0; i < words; i += player.stride)
    at[i] += mix (h, (uint64_t)i);
}

/* By its parameters, or by the table that the host has sent. */
static uint64_t *operand (const played *o, uint64_t *const *at, int32_t i) {
  return o->how == IMPURE_TABLE && o->touches[i].reads && !o->touches[i].writes
             ? ((uint64_t *const *)(const void *)at[o->n_touches])[i]
             : at[i];
}

static uint64_t gather (const played *o, const player_head *p, uint64_t *const *at) {
  uint64_t h = mix (1, (uint64_t)p->op), *extra = at[o->n_touches];
  for (int32_t i = 0; i < o->n_touches; i++)
    if (o->touches[i].reads)
      h = read_all (h, operand (o, at, i), o->touches[i].words);
  if (o->how == IMPURE_VALUE)
    h = mix (h, (uint64_t)p->drawn);
  if (o->how == IMPURE_COUNTER)
    h = mix (h, (*extra)++);
  if (o->how == IMPURE_SCRATCH) {
    fill (extra, EXTRA_WORDS, h);
    h = read_all (h, extra, EXTRA_WORDS);
  }
  return h;
}

static void answer (const played *o, const player_head *p, uint64_t *const *at, uint64_t h) {
  bool adds =
      o->how == IMPURE_ACCUMULATE || (o->how == IMPURE_HABIT && p->step >= player.habit_step);
  for (int32_t i = 0; i < o->n_touches; i++) {
    const played_touch *t = &o->touches[i];
    if (t->writes)
      fill (at[i], t->words, mix (h, (uint64_t)i));
    else if (t->reads && adds) {
      add (at[i], t->words, h);
      adds = false;
    }
  }
  if (o->how == IMPURE_STATISTICS)
    add (at[o->n_touches], EXTRA_WORDS, h);
  if (o->how == IMPURE_BEYOND)
    add (*(uint64_t *const *)(const void *)at[o->n_touches], EXTRA_WORDS, h);
}

static void run (const emu_launch *l) {
  const player_head *p = l->params;
  uint64_t *const *at = (uint64_t *const *)(const void *)(p + 1);
  if (p->op < 0) { /* before the first step */
    if (l->bytes)
      fill (at[0], p->step, (uint64_t)p->drawn);
    return;
  }
  const played *o = &player.ops[p->op];
  int64_t place = p->step * player.n_ops + p->op;
  uint64_t h = l->bytes ? gather (o, p, at) : 0;
  int32_t before = player.launches[place]++;
  if (before == 0)
    player.seen[place] = h;
  else
    player.relaunched++;
  if (o->how == IMPURE_ORDER && before > 0)
    h = mix (h, (uint64_t)before);
  if (l->bytes)
    answer (o, p, at, h);
}

static int64_t time_of (const emu_launch *l) {
  const player_head *p = l->params;
  return p->op < 0 ? 0 : player.ops[p->op].ns;
}

/* For the race checker.  A table's addresses are not known here. */
static void touches_of (const emu_launch *l, emu_touch tell, void *context) {
  const player_head *p = l->params;
  uint64_t *const *at = (uint64_t *const *)(const void *)(p + 1);
  if (p->op < 0) {
    tell (context, (uintptr_t)at[0], p->step * 8, EMU_WRITES);
    return;
  }
  const played *o = &player.ops[p->op];
  for (int32_t i = 0; i < o->n_touches; i++)
    if (o->touches[i].writes || o->how != IMPURE_TABLE)
      tell (context, (uintptr_t)at[i], o->touches[i].words * 8,
            o->touches[i].writes ? EMU_WRITES : 0);
  if (o->how == IMPURE_SCRATCH || o->how == IMPURE_COUNTER)
    tell (context, (uintptr_t)at[o->n_touches], EXTRA_WORDS * 8, EMU_WRITES);
}

static bool is_there (const char *name, int32_t n) {
  for (int32_t i = 0; i < n; i++)
    if (strcmp (emu_module[i].name, name) == 0)
      return true;
  return false;
}

static void add_kernel (int32_t *n, const char *name, int32_t n_pointers) {
  if (*n == MOST_KERNELS || n_pointers > MOST_POINTERS) {
    fprintf (stderr, "player: the trace has more kernels or tensors of an op than can be played\n");
    exit (3);
  }
  if (!is_there (name, *n))
    emu_module[(*n)++] = (emu_kernel){ .name = name,
                                       .params = params,
                                       .n_params = HEAD + n_pointers,
                                       .run = run,
                                       .ns = time_of,
                                       .touches = touches_of };
}

static void __attribute__ ((constructor)) list_kernels (void) {
  int32_t n = 0;
  for (size_t i = 0; i < HEAD + MOST_POINTERS; i++)
    params[i] = (emu_param){ i * sizeof (int64_t), sizeof (int64_t) };
  add_kernel (&n, "player_fill", 1);
  for (int32_t k = 0; k < player.n_ops; k++)
    add_kernel (&n, player.ops[k].name, player.ops[k].n_touches + 1);
}
