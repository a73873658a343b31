/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/cards.h"

#include <fnmatch.h>
#include <string.h>

static const struct {
  const char *called, *device;
  int64_t memory_bytes_per_s;
} cards[] = {
#define CARD(called, device, memory_bytes_per_s) { called, device, memory_bytes_per_s },
#include "trace/cards.def"
#undef CARD
};

static const struct {
  const char *device;
  int year;
} released[] = {
#define RELEASED(device, year) { device, year },
#include "trace/cards.def"
#undef RELEASED
};

/* Its row; -1: none. */
static int find (const char *called) {
  for (int i = 0; called && i < (int)(sizeof cards / sizeof *cards); i++)
    if (fnmatch (cards[i].called, called, 0) == 0)
      return i;
  return -1;
}

const char *card_device (const char *called) {
  int i = find (called);
  return i < 0 ? NULL : cards[i].device;
}

int64_t card_memory_bytes_per_s (const char *called) {
  int i = find (called);
  return i < 0 ? 0 : cards[i].memory_bytes_per_s;
}

int card_year (const char *device) {
  for (int i = 0; i < (int)(sizeof released / sizeof *released); i++)
    if (strcmp (released[i].device, device) == 0)
      return released[i].year;
  return 0;
}

static bool is_called (const trace *t) {
  return t->source.device && *t->source.device;
}

/* The device of a trace of the zoo, or of times that were scaled. */
static const char *made_for (const trace *t) {
  return t->source.made_for && *t->source.made_for ? t->source.made_for : NULL;
}

const char *card_of_trace (const trace *t) {
  return is_called (t) ? t->source.device : made_for (t);
}

const char *card_device_of_trace (const trace *t) {
  return is_called (t) ? card_device (t->source.device) : made_for (t);
}
