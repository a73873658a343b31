/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the planner's fuzzer found once, inputs that reach far, and inputs made of those or of
   nothing, through solve and the policies. FERRY_CASES: how many of the made ones. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/random.h"
#include "tests/solve_fuzz.h"
#include "tests/suite.h"

enum { MOST = 64, ROOM = 512, CASES = 2000 };

typedef struct input {
  uint8_t data[ROOM];
  size_t size;
} input;

static int is_input (const struct dirent *e) {
  return e->d_name[0] != '.';
}

/* By name, so that a made case is the same one everywhere. */
static int read_corpus (input *all) {
  const char *srcdir = getenv ("srcdir");
  char folder[512], path[1024];
  struct dirent **files;
  snprintf (folder, sizeof folder, "%s/tests/corpus/solve", srcdir ? srcdir : ".");
  int count = scandir (folder, &files, is_input, alphasort);
  ck_assert_msg (count > 10 && count <= MOST, "%s has %d inputs", folder, count);
  for (int i = 0; i < count; i++) {
    error err = { 0 };
    bytes raw = { 0 };
    snprintf (path, sizeof path, "%s/%s", folder, files[i]->d_name);
    ck_assert_msg (file_read_raw (path, ROOM, &raw, &err), "%s", err.text);
    memcpy (all[i].data, raw.data, (size_t)raw.size);
    all[i].size = (size_t)raw.size;
    bytes_free (&raw);
    free (files[i]);
  }
  free (files);
  return count;
}

CLAIM (the_corpus_of_the_planner_holds) {
  static input all[MOST];
  int count = read_corpus (all);
  for (int i = 0; i < count; i++)
    solve_fuzz (all[i].data, all[i].size);
}

/* Small, large or any bytes, since what is read of them is mostly a choice or a size. */
static void make_anew (random_state *r, input *out) {
  int64_t how = random_between (r, 0, 2);
  out->size = (size_t)random_between (r, 20, 250);
  for (size_t i = 0; i < out->size; i++) {
    out->data[i] = (uint8_t)random_between (r, 0, 255);
    if (how == 1 && random_chance (r, 333333))
      out->data[i] &= 15;
    if (how == 2 && random_chance (r, 166667))
      out->data[i] = 255;
  }
}

/* The end of another one behind its beginning, and some bytes that are different. */
static void splice (random_state *r, const input *other, input *out) {
  size_t at = (size_t)random_between (r, 0, (int64_t)other->size);
  if (at < out->size && random_chance (r, 250000)) {
    memcpy (out->data + at, other->data + at, other->size - at);
    out->size = other->size;
  }
  for (int64_t n = random_between (r, 1, 20); n > 0; n--)
    out->data[random_between (r, 0, (int64_t)out->size - 1)] =
        (uint8_t)(random_chance (r, 333333) ? random_chance (r, 500000) * 255
                                            : random_between (r, 0, 255));
}

CLAIM (what_is_made_of_the_corpus_or_of_nothing_holds) {
  static input all[MOST], made;
  int count = read_corpus (all);
  for (int i = 0; i < suite_cases (CASES); i++) {
    random_state r = random_seed ((uint64_t)i);
    if (random_chance (&r, 500000)) {
      made = all[random_between (&r, 0, count - 1)];
      splice (&r, &all[random_between (&r, 0, count - 1)], &made);
    } else
      make_anew (&r, &made);
    fprintf (stderr, "\rcase %d", i); /* the last one named is the one that stopped it */
    solve_fuzz (made.data, made.size);
  }
  fprintf (stderr, "\n");
}

int main (void) {
  return suite_run ("the planner's corpus", 120);
}
