/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/import/common/intern.h"

#include <string.h>

intern intern_new (arena *a) {
  return (intern){ .arena = a };
}

/* FNV-1a, then mixed: the low bits pick the slot. */
static uint64_t hash_text (slice text) {
  uint64_t h = 0xcbf29ce484222325u;
  for (int64_t i = 0; i < text.size; i++)
    h = (h ^ (unsigned char)text.at[i]) * 0x100000001b3u;
  return h ^ h >> 29;
}

/* A hostile file could choose ids that collide under a plain modulus; this is the finaliser of
   splitmix64, which spreads neighbours well and is cheap. */
static uint64_t hash_id (int64_t id) {
  uint64_t h = (uint64_t)id + 0x9e3779b97f4a7c15u;
  h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
  h = (h ^ h >> 27) * 0x94d049bb133111ebu;
  return h ^ h >> 31;
}

static bool same (slice a, slice b) {
  return a.size == b.size && (a.size == 0 || memcmp (a.at, b.at, (size_t)a.size) == 0);
}

static int64_t text_slot (const intern *n, slice text) {
  int64_t at = (int64_t)(hash_text (text) & (uint64_t)(n->n_slots - 1));
  while (n->slots[at] && !same (n->texts[n->slots[at] - 1], text))
    at = (at + 1) & (n->n_slots - 1);
  return at;
}

int32_t intern_find (const intern *n, slice text) {
  return n->n_slots ? n->slots[text_slot (n, text)] - 1 : -1;
}

static bool more_text_slots (intern *n, error *err) {
  int64_t wanted = n->n_slots ? 2 * n->n_slots : 64;
  int32_t *slots = NEW (n->arena, wanted, int32_t, err);
  if (!slots)
    return false;
  n->slots = slots;
  n->n_slots = wanted;
  for (int32_t i = 0; i < n->count; i++)
    slots[text_slot (n, n->texts[i])] = i + 1;
  return true;
}

int32_t intern_add (intern *n, slice text, bool copy, error *err) {
  if (2 * ((int64_t)n->count + 1) > n->n_slots && !more_text_slots (n, err))
    return -1;
  int64_t at = text_slot (n, text);
  if (n->slots[at])
    return n->slots[at] - 1;
  if (!GROW (n->arena, n->texts, &n->room, (int64_t)n->count + 1, err))
    return -1;
  if (copy) {
    text.at = arena_string_n (n->arena, text.at, (size_t)text.size, err);
    if (!text.at)
      return -1;
  }
  n->texts[n->count] = text;
  n->slots[at] = n->count + 1;
  return n->count++;
}

id_map id_map_new (arena *a) {
  return (id_map){ .arena = a };
}

static int64_t id_slot (const id_map *m, int64_t key) {
  int64_t at = (int64_t)(hash_id (key) & (uint64_t)(m->n_slots - 1));
  while (m->values[at] != INT32_MIN && m->keys[at] != key)
    at = (at + 1) & (m->n_slots - 1);
  return at;
}

int32_t id_map_find (const id_map *m, int64_t key) {
  if (!m->n_slots)
    return -1;
  int64_t at = id_slot (m, key);
  return m->values[at] == INT32_MIN ? -1 : m->values[at];
}

static bool more_id_slots (id_map *m, error *err) {
  id_map larger = { .arena = m->arena, .n_slots = m->n_slots ? 2 * m->n_slots : 64 };
  if (!ALLOC (m->arena, larger.keys, larger.n_slots, err) ||
      !ALLOC (m->arena, larger.values, larger.n_slots, err))
    return false;
  for (int64_t i = 0; i < larger.n_slots; i++)
    larger.values[i] = INT32_MIN;
  for (int64_t i = 0; i < m->n_slots; i++)
    if (m->values[i] != INT32_MIN) {
      int64_t at = id_slot (&larger, m->keys[i]);
      larger.keys[at] = m->keys[i];
      larger.values[at] = m->values[i];
    }
  larger.count = m->count;
  *m = larger;
  return true;
}

int32_t *id_map_at (id_map *m, int64_t key, error *err) {
  if (2 * (m->count + 1) > m->n_slots && !more_id_slots (m, err))
    return NULL;
  int64_t at = id_slot (m, key);
  if (m->values[at] == INT32_MIN) {
    m->keys[at] = key;
    m->values[at] = -1;
    m->count++;
  }
  return &m->values[at];
}
