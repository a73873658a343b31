/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/inputs/devices.h"

#include <stdlib.h>
#include <string.h>

#include "cli/inputs/beside.h"
#include "cli/inputs/hosts.h"
#include "cli/inputs/inputs.h"
#include "solver/ask/ask.h"
#include "trace/cards.h"

const char *device_folder (call *c) {
  return data_folder (c, "devices");
}

/* The newest first; those of one year, and those of no known year at the end, by name. */
static int by_year (const void *a, const void *b) {
  const char *x = *(const char *const *)a, *y = *(const char *const *)b;
  return card_year (y) - card_year (x) ?: strcmp (x, y);
}

const char *const *device_names (call *c, int *count) {
  const char **names = data_names (c, "devices", count);
  if (names)
    qsort (names, (size_t)*count, sizeof *names, by_year);
  return names;
}

bool device_is_file (const char *name) {
  return data_is_file (name);
}

/* A device without a name of its own is called as its file is: rows are told apart by it. */
static bool load_file (call *c, const char *path, device *out) {
  read_options o = call_read_options (c);
  return device_load (path, &o, c->arena, out, &c->err) &&
         (*out->name || strcmp (path, "-") == 0 || (out->name = call_stem (c, path)));
}

bool device_named (call *c, const char *name, device *out) {
  const char *path = data_path (c, "devices", "device", name);
  return path && load_file (c, path, out);
}

bool device_for (call *c, const trace *t, device *out, bool *found) {
  *found = host_is_asked (c);
  if (*found)
    return host_card (c, out);
  const char *name = call_text (c, "device");
  if (!name && t)
    name = card_device_of_trace (t);
  *found = name;
  if (c->err.code)
    return false;
  return !name || device_named (c, name, out);
}

bool device_tell_times (call *c, const trace *t, const device *planned) {
  const char *card = card_of_trace (t);
  const char *own = card ? card_device_of_trace (t) : NULL;
  if (c->err.code)
    return false;
  if (!card || (own && strcmp (own, planned->name) == 0))
    return true;
  if (t->source.kind && strcmp (t->source.kind, "zoo") == 0)
    call_note (c,
               "%s: the times are those of a %s, planned on %s as they are; `ferry zoo` with "
               "--device %s makes a trace for it",
               t->name, card, planned->name, planned->name);
  else
    call_note (c,
               "%s: the times are those of a %s, planned on %s as they are; `ferry convert "
               "--device %s` with --scale carries them over",
               t->name, card, planned->name, planned->name);
  return true;
}

bool device_needed (call *c, const trace *t, device *out) {
  bool found;
  if (!device_for (c, t, out, &found))
    return false;
  if (found)
    return device_tell_times (c, t, out);
  const char *card = card_of_trace (t);
  if (c->err.code)
    return false;
  if (card)
    return call_usage (c,
                       "the trace is of a %s, for which ferry has no device file: give --device "
                       "NAME or FILE; `ferry devices` lists the names",
                       card);
  return call_usage (c, "the trace does not say which device it was made for: give --device NAME; "
                        "`ferry devices` lists them");
}

bool device_host (call *c, const device *d, int64_t *host_bytes) {
  *host_bytes = d->host_bytes;
  if (host_asked (c))
    return true;
  return call_quantity (c, "host", host_bytes) && ask_host (d, *host_bytes, &c->err);
}
