/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/utf8.h"

int utf8_length (const char *text, int64_t left) {
  const unsigned char *at = (const unsigned char *)text;
  int n = left < 1                         ? 0
          : at[0] < 0x80                   ? 1
          : at[0] >= 0xc2 && at[0] <= 0xdf ? 2
          : (at[0] & 0xf0) == 0xe0         ? 3
          : at[0] >= 0xf0 && at[0] <= 0xf4 ? 4
                                           : 0;
  if (n > left)
    return 0;
  for (int i = 1; i < n; i++)
    if ((at[i] & 0xc0) != 0x80)
      return 0;
  if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
      (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
    return 0;
  return n;
}
