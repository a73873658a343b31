/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "server/api/pods.h"

#include <string.h>

#include "server/protocol/kinds.h"

bool k8s_quantity (request *q, const char *text, int64_t *out) {
  static const struct {
    const char *unit;
    int64_t bytes;
  } units[] = { { "", 1 },
                { "k", 1000 },
                { "M", 1000000 },
                { "G", 1000000000 },
                { "T", 1000000000000 },
                { "Ki", (int64_t)1 << 10 },
                { "Mi", (int64_t)1 << 20 },
                { "Gi", (int64_t)1 << 30 },
                { "Ti", (int64_t)1 << 40 } };
  error ignored = { 0 };
  size_t digits = strspn (text, "0123456789");
  const char *number = arena_string_n (q->arena, text, digits, &ignored);
  for (size_t i = 0; number && i < sizeof units / sizeof *units; i++)
    if (strcmp (text + digits, units[i].unit) == 0)
      return text_to_int (number, MOST_INT, out) &&
             !__builtin_mul_overflow (*out, units[i].bytes, out) && *out <= MOST_INT;
  return false;
}
