/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The plan's copies and orders, asked of the emulator after each step.  Not "did it end before",
   which some other timing might change, but "is there a wait, or a chain of them, that makes it
   so"; and a copy counts as missing even where the same bytes lay there already. */
#include "executor/replay/run.h"

#include <assert.h>
#include <stdio.h>

static emu_race *note (replay_state *s) {
  return s->n_missing++ < REPLAY_RACES ? &s->missing[s->n_missing - 1] : NULL;
}

static void put_name (const replay_state *s, walk_queue queue, int32_t position, char *out,
                      size_t size) {
  const walk_item *i = &s->walk.items[s->walk.place[queue][position]];
  if (queue == WALK_OPS)
    snprintf (out, size, "op %d", i->index);
  else
    snprintf (out, size, "the copy %s of move %d", queue == WALK_OUTS ? "out" : "in", i->index);
}

static void note_order (replay_state *s, int32_t step, const walk_item *i, const walk_wait *w) {
  char item[64], awaited[64];
  emu_race *to = note (s);
  if (to == NULL)
    return;
  put_name (s, i->queue, i->position, item, sizeof item);
  put_name (s, w->queue, w->position, awaited, sizeof awaited);
  snprintf (to->text, sizeof to->text,
            "%s of step %d has to wait for %s of step %d, and nothing orders them", item, step + 1,
            awaited, step - w->lag + 1);
}

static bool see_orders (replay_state *s, int32_t step, int32_t place, error *err) {
  const walk *p = &s->walk;
  const walk_item *i = &p->items[place];
  for (int32_t d = i->first_demand; d < i->first_demand + i->n_demands; d++) {
    const walk_wait *w = &p->demands[d];
    int yes = 0;
    if (step < w->lag)
      continue;
    CUevent awaited = replay_ends (s, step - w->lag)[p->place[w->queue][w->position]];
    if (!driver_ok (&s->driver, s->ordered (awaited, replay_ends (s, step)[place], &yes),
                    EMU_ORDERED, err))
      return false;
    if (!yes)
      note_order (s, step, i, w);
  }
  return true;
}

static bool see_copies (replay_state *s, int32_t step, walk_queue queue, error *err) {
  int64_t given = 0;
  if (!driver_ok (&s->driver, s->stream_copies (s->stream[queue], &given), EMU_STREAM_COPIES, err))
    return false;
  int64_t since = given - s->given[queue];
  s->given[queue] = given;
  emu_race *to = since == s->walk.count[queue] ? NULL : note (s);
  if (to != NULL)
    snprintf (to->text, sizeof to->text, "of the %d copies %s of step %d the device was given %lld",
              s->walk.count[queue], queue == WALK_OUTS ? "out" : "in", step + 1, (long long)since);
  return true;
}

bool replay_see_calls (replay_state *s, int32_t step, error *err) {
  assert (step >= 0);
  for (int32_t place = 0; place < s->walk.n_items; place++)
    if (!see_orders (s, step, place, err))
      return false;
  return see_copies (s, step, WALK_OUTS, err) && see_copies (s, step, WALK_INS, err);
}
