/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/place/free_lists.h"

#include <assert.h>
#include <string.h>

enum { WORD = 64 };

bool free_lists_make (int32_t count, arena *a, free_lists *out, error *err) {
  assert (count > 0);
  int64_t room = out->room;
  free_list *moved = arena_grow (a, out->at, &room, count, sizeof *out->at, err);
  if (!moved)
    return false;
  out->at = moved;
  if (room != out->room && !(out->stocked = NEW (a, room / WORD + 1, uint64_t, err)))
    return false;
  out->room = room;
  out->count = count;
  memset (out->stocked, 0, (size_t)(count / WORD + 1) * sizeof *out->stocked);
  for (int32_t h = 0; h < count; h++)
    out->at[h] = (free_list){ .at = out->at[h].at, .room = out->at[h].room };
  return true;
}

int32_t free_lists_from (const free_lists *x, int32_t h) {
  assert (h >= 0);
  if (h >= x->count)
    return x->count;
  int32_t word = h / WORD, words = (x->count + WORD - 1) / WORD;
  uint64_t bits = x->stocked[word] >> (h % WORD) << (h % WORD);
  while (!bits && ++word < words)
    bits = x->stocked[word];
  return bits ? word * WORD + __builtin_ctzll (bits) : x->count;
}

int32_t free_lists_until (const free_lists *x, int32_t h) {
  assert (h < x->count);
  if (h < 0)
    return -1;
  int32_t word = h / WORD, above = WORD - 1 - h % WORD;
  uint64_t bits = x->stocked[word] << above >> above;
  while (!bits && --word >= 0)
    bits = x->stocked[word];
  return bits ? word * WORD + WORD - 1 - __builtin_clzll (bits) : -1;
}

bool free_lists_give (free_lists *x, int32_t h, free_run run, arena *a, error *err) {
  assert (h >= 0 && h < x->count && run.count > 0);
  free_list *to = &x->at[h];
  free_run *last = to->used ? &to->at[to->head + to->used - 1] : NULL;
  to->granules += run.count;
  x->stocked[h / WORD] |= (uint64_t)1 << (h % WORD);
  if (last && last->before == run.before && last->first + last->count == run.first) {
    last->count += run.count;
    return true;
  }
  if (to->head + to->used == to->room && to->head > to->room / 2) {
    memmove (to->at, to->at + to->head, (size_t)to->used * sizeof *to->at);
    to->head = 0;
  }
  free_run *moved = arena_grow (a, to->at, &to->room, to->head + to->used + 1, sizeof *to->at, err);
  if (!moved)
    return false;
  to->at = moved;
  to->at[to->head + to->used++] = run;
  return true;
}

free_run free_lists_take (free_lists *x, int32_t h, int32_t most) {
  free_list *from = &x->at[h];
  assert (from->used > 0);
  free_run *oldest = &from->at[from->head], part = *oldest;
  if (part.count > most)
    part.count = most;
  oldest->first += part.count;
  oldest->count -= part.count;
  from->granules -= part.count;
  if (from->granules == 0)
    x->stocked[h / WORD] &= ~((uint64_t)1 << (h % WORD));
  if (oldest->count == 0) {
    from->head++;
    from->used--;
  }
  return part;
}
