/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/inputs/drivers.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libferry-emu.so"

const char *emulator_path (char *buffer, int size) {
  const char *given = getenv ("FERRY_EMU");
  if (given && *given)
    return given;
  static const char *const beside[] = { "/" LIBRARY, "/../lib/ferry/" LIBRARY };
  char program[4096];
  ssize_t n = readlink ("/proc/self/exe", program, sizeof program - 1);
  program[n > 0 ? n : 0] = 0;
  char *slash = strrchr (program, '/');
  if (slash)
    *slash = 0;
  for (size_t i = 0; slash && i < sizeof beside / sizeof *beside; i++) {
    int length = snprintf (buffer, (size_t)size, "%s%s", program, beside[i]);
    if (length < size && access (buffer, R_OK) == 0)
      return buffer;
  }
  return FERRY_LIBDIR "/" LIBRARY;
}

bool call_driver (call *c, const char **library, bool *emulated) {
  static const char *const words[] = { "emulated", "cuda", NULL };
  int which = 0;
  char path[4096];
  if (!call_word (c, "driver", words, &which))
    return false;
  *emulated = which == 0;
  *library = NULL;
  if (which == 0)
    *library = arena_string (c->arena, emulator_path (path, sizeof path), &c->err);
  return which != 0 || *library;
}
