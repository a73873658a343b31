/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which parts are ever on the device at one moment: a bit for each pair, set by one walk round the
   circle. Steps of very many parts are compared pair by pair, since their bits would not fit. */
#include <assert.h>
#include <string.h>

#include "solver/place/same_inner.h"

enum { WORD = 64, MOST_KEYS = 20000 };

static uint64_t *row_of (const same *s, int32_t key) {
  return s->meet + (int64_t)key * s->words;
}

static void set_bit (uint64_t *row, int32_t key) {
  row[key / WORD] |= UINT64_C (1) << (key % WORD);
}

static void clear_bit (uint64_t *row, int32_t key) {
  row[key / WORD] &= ~(UINT64_C (1) << (key % WORD));
}

static void meet_all (same *s, int32_t key, const uint64_t *there) {
  uint64_t *row = row_of (s, key);
  for (int32_t w = 0; w < s->words; w++)
    row[w] |= there[w];
}

/* A birth meets all that are there, as those do that are there always. */
static void walk (same *s, uint64_t *there) {
  const circle *c = &s->circle;
  for (int32_t i = 0; i < s->l->count; i++)
    if (s->always[s->key[i]] || c->end[i] < c->birth[i])
      set_bit (there, s->key[i]);
  for (int32_t k = 0; k < s->n_keys; k++)
    if (s->always[k])
      meet_all (s, k, there);
  for (int64_t i = 0; i < c->ranks; i++) {
    int32_t what = c->at[i], key = s->key[what < 0 ? -1 - what : what];
    if (s->always[key])
      continue;
    if (what < 0) {
      clear_bit (there, key);
      continue;
    }
    meet_all (s, key, there);
    set_bit (there, key);
  }
}

/* Those that were there have the bit of the newcomer too. */
static void mirror (same *s) {
  for (int32_t k = 0; k < s->n_keys; k++)
    for (int32_t w = 0; w < s->words; w++)
      for (uint64_t bits = row_of (s, k)[w]; bits; bits &= bits - 1)
        set_bit (row_of (s, w * WORD + __builtin_ctzll (bits)), k);
}

bool same_find_meetings (same *s) {
  if (s->n_keys > MOST_KEYS)
    return true;
  s->words = (s->n_keys + WORD - 1) / WORD;
  s->meet = NEW (s->arena, (int64_t)s->n_keys * s->words, uint64_t, s->err);
  uint64_t *there = NEW (s->arena, s->words, uint64_t, s->err);
  if (!s->meet || !there)
    return false;
  walk (s, there);
  mirror (s);
  return true;
}

static bool have_common_moment (const same *s, int32_t a, int32_t b) {
  if (s->always[a] || s->always[b])
    return true;
  for (int32_t i = s->first_stay[a]; i < s->first_stay[a + 1]; i++)
    for (int32_t j = s->first_stay[b]; j < s->first_stay[b + 1]; j++)
      if (same_stays_meet (s, s->stays[i], s->stays[j]))
        return true;
  return false;
}

bool same_meet (const same *s, int32_t a, int32_t b) {
  assert (a != b);
  return s->meet ? row_of (s, a)[b / WORD] >> (b % WORD) & 1 : have_common_moment (s, a, b);
}

bool same_is_free (const same *s, const area *a, int32_t key) {
  if (s->meet)
    return !a->closed || !(a->closed[key / WORD] >> (key % WORD) & 1);
  for (int32_t o = a->owners; o >= 0; o = s->owners[o].next)
    if (same_meet (s, key, s->owners[o].key))
      return false;
  return true;
}

bool same_close (same *s, area *a, int32_t key) {
  if (!s->meet)
    return true;
  if (!a->closed && !(a->closed = NEW (s->arena, s->words, uint64_t, s->err)))
    return false;
  for (int32_t w = 0; w < s->words; w++)
    a->closed[w] |= row_of (s, key)[w];
  return true;
}

bool same_split (same *s, area *a) {
  uint64_t *had = a->closed;
  if (!had)
    return true;
  if (!(a->closed = NEW (s->arena, s->words, uint64_t, s->err)))
    return false;
  memcpy (a->closed, had, (size_t)s->words * sizeof *had);
  return true;
}
