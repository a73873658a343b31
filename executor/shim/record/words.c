/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/shim/record/words.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORDS = 1 << 15 };

bool words_new (words *w) {
  w->file = -1;
  w->at = calloc (WORDS, sizeof *w->at);
  return w->at != NULL;
}

void words_open (words *w, const shim *s, const char *name, int32_t number) {
  char path[SHIM_PATH + 64];
  if (number < 0)
    snprintf (path, sizeof path, "%s/%s", s->block->config.folder, name);
  else
    snprintf (path, sizeof path, "%s/%s-%d", s->block->config.folder, name, number);
  w->file = open (path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  w->told_names = 0;
  w->n = 0;
  w->failed = w->file < 0;
}

static void flush (words *w) {
  const char *from = (const char *)w->at;
  size_t left = (size_t)w->n * sizeof *w->at;
  while (left > 0) {
    ssize_t n = write (w->file, from, left);
    if (n <= 0) {
      w->failed = true;
      break;
    }
    from += n;
    left -= (size_t)n;
  }
  w->n = 0;
}

bool words_close (words *w) {
  if (w->file < 0)
    return false;
  flush (w);
  close (w->file);
  w->file = -1;
  return !w->failed;
}

void words_put (words *w, int64_t kind, const int64_t *values, int64_t count) {
  if (w->file < 0 || w->failed)
    return;
  if (w->n + count + 2 > WORDS)
    flush (w);
  if (count + 2 > WORDS)
    return;
  w->at[w->n++] = kind;
  w->at[w->n++] = count;
  memcpy (w->at + w->n, values, (size_t)count * sizeof *values);
  w->n += count;
}

static void put_name (words *w, const shim *s, int32_t name) {
  int64_t values[2 + 64] = { name };
  size_t length = strnlen (s->names[name], 64 * 8 - 1);
  values[1] = (int64_t)length;
  memcpy (values + 2, s->names[name], length);
  words_put (w, RECORD_NAME, values, 2 + ((int64_t)length + 7) / 8);
}

void words_put_names (words *w, const shim *s) {
  while (w->told_names < s->n_names)
    put_name (w, s, w->told_names++);
}
