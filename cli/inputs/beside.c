/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/inputs/beside.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

char *path_beside (call *c, const char *const *paths, int n) {
  char program[4096] = "";
  ssize_t length = readlink ("/proc/self/exe", program, sizeof program - 1);
  char *slash = length > 0 ? strrchr (program, '/') : NULL;
  if (slash)
    *slash = 0;
  for (int i = 0; slash && i < n; i++) {
    char *path = arena_format (c->arena, &c->err, "%s/%s", program, paths[i]);
    if (!path || access (path, R_OK) == 0)
      return path;
  }
  return NULL;
}

const char *data_folder (call *c, const char *kind) {
  static const char *const beside[] = { "../data", "data", "../../data", "../share/ferry" };
  enum { N_BESIDE = sizeof beside / sizeof *beside };
  const char *given = getenv ("FERRY_DATADIR"), *paths[N_BESIDE];
  if (given && *given)
    return arena_format (c->arena, &c->err, "%s/%s", given, kind);
  for (int i = 0; i < N_BESIDE; i++)
    if (!(paths[i] = arena_format (c->arena, &c->err, "%s/%s", beside[i], kind)))
      return NULL;
  char *folder = path_beside (c, paths, N_BESIDE);
  if (folder || c->err.code != ERR_none)
    return folder;
  return arena_format (c->arena, &c->err, "%s/%s", FERRY_DATADIR, kind);
}

static int by_name (const void *a, const void *b) {
  return strcmp (*(const char *const *)a, *(const char *const *)b);
}

const char **data_names (call *c, const char *kind, int *count) {
  enum { MOST = 1000 };
  const char *folder = data_folder (c, kind);
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
    qsort (names, (size_t)*count, sizeof *names, by_name);
  return names;
}

bool data_is_file (const char *name) {
  size_t length = strlen (name);
  return strchr (name, '/') || strcmp (name, "-") == 0 || strstr (name, ".json") ||
         (length > 3 && strcmp (name + length - 3, ".gz") == 0);
}

static const char *unknown (call *c, const char *kind, const char *one, const char *name,
                            const char *folder) {
  int count;
  const char *const *names = data_names (c, kind, &count);
  const char *near = names ? nearest_word (name, names, count) : NULL;
  if (near)
    call_usage (c, "there is no %s `%s`; did you mean `%s`?", one, name, near);
  else if (names)
    call_usage (c, "there is no %s `%s` in %s; `ferry %s` lists them", one, name, folder, kind);
  return NULL;
}

const char *data_path (call *c, const char *kind, const char *one, const char *name) {
  if (data_is_file (name))
    return name;
  const char *folder = data_folder (c, kind);
  char *path = folder ? arena_format (c->arena, &c->err, "%s/%s.json", folder, name) : NULL;
  if (!path || access (path, R_OK) == 0)
    return path;
  int count;
  const char *const *names = data_names (c, kind, &count);
  for (int i = 0; names && i < count; i++) /* no two differ in capitals alone */
    if (strcasecmp (names[i], name) == 0)
      return arena_format (c->arena, &c->err, "%s/%s.json", folder, names[i]);
  return unknown (c, kind, one, name, folder);
}
