/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/shim/memory/share.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "executor/shim/memory/memory.h"

static int64_t get (const shim *s, int word) {
  return __atomic_load_n (&s->group.at->row[s->group.own].word[word], __ATOMIC_ACQUIRE);
}

static void set (shim *s, int word, int64_t value) {
  __atomic_store_n (&s->group.at->row[s->group.own].word[word], value, __ATOMIC_RELEASE);
}

static int64_t wanted (const shim *s) {
  int64_t granted = get (s, MEMBER_GRANTED), asked = get (s, MEMBER_ASKED);
  return asked < granted ? asked : granted;
}

bool share_start (shim *s) {
  const shim_config *c = &s->block->config;
  if (c->share[0] == 0)
    return true;
  if (!roster_open (&s->group, c->share)) {
    shim_say (s, "the group of programs (%s) cannot be had: %s", c->share, strerror (errno));
    return false;
  }
  roster_enter (&s->group);
  bool good = roster_sit (&s->group, c->share_row, SEAT_PROGRAM);
  if (good)
    set (s, MEMBER_GRANTED, wanted (s));
  roster_leave (&s->group);
  if (!good) {
    roster_close (&s->group);
    return false;
  }
  s->room_bytes = get (s, MEMBER_GRANTED);
  s->most_chunks = (int32_t)(s->room_bytes / s->chunk_bytes);
  return true;
}

/* Chunks go as long as somebody can leave. */
static void shrink (shim *s) {
  while (s->n_chunks > s->most_chunks) {
    int32_t c = chunk_take (s, NULL);
    if (c == NONE || !chunk_drop (s, c))
      return;
  }
}

static void resize (shim *s, int64_t room) {
  int64_t granted = get (s, MEMBER_GRANTED);
  s->resizes (s);
  s->most_chunks = (int32_t)(room / s->chunk_bytes);
  shrink (s);
  int64_t held = s->n_chunks * s->chunk_bytes, now = held > room ? held : room;
  if (now < granted)
    (void)__atomic_compare_exchange_n (&s->group.at->row[s->group.own].word[MEMBER_GRANTED],
                                       &granted, now, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  s->block->seen.resizes += now != s->room_bytes;
  s->room_bytes = now;
}

void share_look (shim *s) {
  if (s->group.at != NULL && wanted (s) != s->room_bytes)
    resize (s, wanted (s));
}

int64_t share_fixed_bytes (const shim *s) {
  int64_t chunks = 0;
  for (int32_t c = 0; c < s->n_chunks; c++)
    chunks += s->chunks[c].small;
  for (int32_t t = 0; t < s->n_tensors; t++)
    if (s->tensors[t].live && s->tensors[t].escaped)
      chunks += s->tensors[t].n_pages;
  return chunks * s->chunk_bytes;
}

/* Anyone of the launchers there are. */
static bool is_served (const shim *s) {
  for (int i = 0; i < ROSTER_ROWS; i++)
    if (roster_seat_taken (&s->group, i, SEAT_LAUNCHER))
      return true;
  return false;
}

bool share_wait (shim *s, int64_t bytes) {
  const struct timespec moment = { 0, 1000000 };
  if (s->group.at == NULL || bytes > s->block->config.budget_bytes)
    return false;
  if (bytes > get (s, MEMBER_NEED))
    set (s, MEMBER_NEED, bytes);
  s->block->seen.room_waits++;
  for (int round = 0; wanted (s) < bytes; round++) {
    if (round % 64 == 63 && !is_served (s))
      return false; /* nobody would say that there is room */
    share_look (s);
    nanosleep (&moment, NULL);
  }
  share_look (s);
  return true;
}

void share_want (shim *s, int64_t bytes) {
  if (s->group.at != NULL)
    set (s, MEMBER_WANT, bytes);
}
