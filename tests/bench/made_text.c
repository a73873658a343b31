/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/bench/made_text.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/random.h"

/* A text while it is made, and what its choices amount to: no model can be surer than that. */
typedef struct writer {
  random_state random;
  char *text;
  int64_t bytes, at;
  double nats;
} writer;

static void say (writer *w, const char *words) {
  for (; *words != '\0' && w->at < w->bytes; words++)
    w->text[w->at++] = *words;
}

static int choose (writer *w, int count) {
  w->nats += log (count);
  return (int)random_between (&w->random, 0, count - 1);
}

/* Sentences from a small grammar: words, agreement of number, clauses within clauses. */
static void sentence (writer *w, int depth) {
  static const char *const nouns[] = { "ship", "gull", "sailor", "lantern", "harbour", "captain" };
  static const char *const verbs[] = { "follow", "watch", "remember", "greet", "pass", "leave" };
  static const char *const ways[] = { "slowly", "at night", "in the rain", "before dawn" };
  bool many = choose (w, 2);
  say (w, "the ");
  say (w, nouns[choose (w, 6)]);
  say (w, many ? "s " : " ");
  bool clause = depth < 2 && random_between (&w->random, 0, 3) == 0;
  if (depth < 2)
    w->nats -= clause ? log (0.25) : log (0.75);
  if (clause) {
    say (w, "that ");
    sentence (w, depth + 1);
    say (w, " ");
  }
  say (w, verbs[choose (w, 6)]);
  say (w, many ? " the " : "s the ");
  say (w, nouns[choose (w, 6)]);
  say (w, choose (w, 2) ? "s" : "");
  if (depth > 0)
    return;
  say (w, " ");
  say (w, ways[choose (w, 4)]);
  say (w, ".\n");
}

char *made_text (int64_t bytes, double *nats) {
  writer w = { random_seed (11), malloc ((size_t)bytes), bytes, 0, 0 };
  while (w.text != NULL && w.at < bytes)
    sentence (&w, 0);
  *nats = w.nats / (double)bytes;
  return w.text;
}

void text_entropies (const void *text, int64_t bytes, double *one, double *two) {
  const unsigned char *letters = text;
  int64_t (*pairs)[256] = calloc (256, sizeof *pairs);
  double total = (double)(bytes - 1);
  *one = *two = 0;
  if (pairs == NULL)
    return;
  for (int64_t i = 0; i + 1 < bytes; i++)
    pairs[letters[i]][letters[i + 1]]++;
  for (int a = 0; a < 256; a++) {
    double count = 0;
    for (int b = 0; b < 256; b++)
      count += (double)pairs[a][b];
    for (int b = 0; b < 256; b++)
      if (pairs[a][b] > 0)
        *two -= (double)pairs[a][b] / total * log ((double)pairs[a][b] / count);
    if (count > 0)
      *one -= count / total * log (count / total);
  }
  free (pairs);
}
