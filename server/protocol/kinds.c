/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "server/protocol/kinds.h"

#include <assert.h>
#include <string.h>

const job_kind job_kinds[JOB_KINDS] = {
#define KIND(letter, name, command, operand, output, most) \
  { letter, name, command, operand, output, most },
#include "server/protocol/kinds.def"
#undef KIND
};

const member members[] = {
#define MEMBER(name, option, type, least, most, words, kinds) \
  { #name, option, type, least, most, words, kinds },
#include "server/protocol/members.def"
#undef MEMBER
  { NULL, NULL, TYPE_INT, 0, 0, NULL, NULL },
};

const job_kind *kind_named (const char *name) {
  for (int i = 0; i < JOB_KINDS; i++)
    if (strcmp (job_kinds[i].name, name) == 0)
      return &job_kinds[i];
  return NULL;
}

bool member_is_of (const member *m, const job_kind *k) {
  assert (m && k);
  return strchr (m->kinds, k->letter);
}

bool name_is_plain (const char *text) {
  size_t n = strlen (text);
  return n > 0 && n <= 64 && text[0] != '.' && text[0] != '-' &&
         n == strspn (text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
}

bool digest_is_valid (const char *text) {
  return strlen (text) == 64 && strspn (text, "0123456789abcdef") == 64;
}
