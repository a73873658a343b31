/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/inputs/beside.h"

#include <string.h>
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
