/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/inputs/devices.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/inputs/beside.h"
#include "cli/inputs/inputs.h"
#include "solver/ask/ask.h"
#include "trace/cards.h"

const char *device_folder (call *c) {
  static const char *const beside[] = { "../data/devices", "data/devices", "../../data/devices",
                                        "../share/ferry/devices" };
  enum { N_BESIDE = sizeof beside / sizeof *beside };
  const char *given = getenv ("FERRY_DATADIR");
  if (given && *given)
    return arena_format (c->arena, &c->err, "%s/devices", given);
  char *folder = path_beside (c, beside, N_BESIDE);
  if (folder || c->err.code != ERR_none)
    return folder;
  return arena_format (c->arena, &c->err, "%s/devices", FERRY_DATADIR);
}

/* The newest first; those of one year, and those of no known year at the end, by name. */
static int by_year (const void *a, const void *b) {
  const char *x = *(const char *const *)a, *y = *(const char *const *)b;
  int years = card_year (y) - card_year (x);
  return years ? years : strcmp (x, y);
}

const char *const *device_names (call *c, int *count) {
  enum { MOST = 1000 };
  const char *folder = device_folder (c);
  const char **names = folder ? NEW (c->arena, MOST, const char *, &c->err) : NULL;
  DIR *dir = names ? opendir (folder) : NULL;
  *count = 0;
  if (names && !dir && errno == ENOMEM)
    (void)error_memory (&c->err);
  if (!dir)
    return c->err.code ? NULL : names;
  struct dirent *entry;
  while (names && *count < MOST && (entry = readdir (dir))) {
    size_t length = strlen (entry->d_name);
    if (length < 6 || strcmp (entry->d_name + length - 5, ".json") != 0)
      continue;
    char *name = arena_string_n (c->arena, entry->d_name, length - 5, &c->err);
    if (name)
      names[(*count)++] = name;
    else
      names = NULL;
  }
  closedir (dir);
  if (names)
    qsort (names, (size_t)*count, sizeof *names, by_year);
  return names;
}

bool device_is_file (const char *name) {
  size_t length = strlen (name);
  return strchr (name, '/') || strcmp (name, "-") == 0 || strstr (name, ".json") ||
         (length > 3 && strcmp (name + length - 3, ".gz") == 0);
}

/* A device without a name of its own is called as its file is: rows are told apart by it. */
static bool load_file (call *c, const char *path, device *out) {
  read_options o = call_read_options (c);
  return device_load (path, &o, c->arena, out, &c->err) &&
         (*out->name || strcmp (path, "-") == 0 || (out->name = call_stem (c, path)));
}

bool device_named (call *c, const char *name, device *out) {
  if (device_is_file (name))
    return load_file (c, name, out);
  const char *folder = device_folder (c);
  char *path = folder ? arena_format (c->arena, &c->err, "%s/%s.json", folder, name) : NULL;
  if (!path)
    return false;
  if (access (path, R_OK) == 0)
    return load_file (c, path, out);
  int count;
  const char *const *names = device_names (c, &count);
  const char *near = names ? nearest_word (name, names, count) : NULL;
  if (near)
    return error_set (&c->err, ERR_usage, "there is no device `%s`; did you mean `%s`?", name,
                      near);
  return error_set (&c->err, ERR_usage, "there is no device `%s` in %s; `ferry devices` lists them",
                    name, folder);
}

bool device_for (call *c, const trace *t, device *out, bool *found) {
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
    return error_set (&c->err, ERR_usage,
                      "the trace is of a %s, for which ferry has no device file: give --device "
                      "NAME or FILE; `ferry devices` lists the names",
                      card);
  return error_set (&c->err, ERR_usage,
                    "the trace does not say which device it was made for: give --device NAME; "
                    "`ferry devices` lists them");
}

bool device_host (call *c, const device *d, int64_t *host_bytes) {
  *host_bytes = d->host_bytes;
  return call_quantity (c, "host", host_bytes) && ask_host (d, *host_bytes, &c->err);
}
