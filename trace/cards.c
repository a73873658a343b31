/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/cards.h"

#include <fnmatch.h>
#include <string.h>

static const struct {
  const char *called, *device;
} cards[] = {
#define CARD(called, device) { called, device },
#include "trace/cards.def"
#undef CARD
};

const char *card_device (const char *called) {
  for (size_t i = 0; called && i < sizeof cards / sizeof *cards; i++)
    if (fnmatch (cards[i].called, called, 0) == 0)
      return cards[i].device;
  return NULL;
}

/* The word behind the last "--device" in the detail, of the zoo or of times that were scaled. */
static const char *made_for (const trace *t, arena *a, error *err) {
  static const char key[] = "--device ";
  const char *at = t->source.detail ? strstr (t->source.detail, key) : NULL;
  if (!at)
    return NULL;
  for (const char *next; (next = strstr (at + 1, key));)
    at = next;
  at += sizeof key - 1;
  return arena_string_n (a, at, strcspn (at, " ;"), err);
}

static bool is_called (const trace *t) {
  return t->source.device && *t->source.device;
}

const char *card_of_trace (const trace *t, arena *a, error *err) {
  return is_called (t) ? t->source.device : made_for (t, a, err);
}

const char *card_device_of_trace (const trace *t, arena *a, error *err) {
  return is_called (t) ? card_device (t->source.device) : made_for (t, a, err);
}
