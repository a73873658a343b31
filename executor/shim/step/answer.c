/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/shim/step/answer.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "executor/shim/step/block.h"

void step_free (step *s) {
  if (s == NULL)
    return;
  free (s->beats);
  free (s->refs);
  free (s->tensors);
  free (s->pairs);
  free (s->facts);
  free (s->words);
  free (s->aways);
  free (s->actions);
  free (s->chunk_of);
  free (s->again);
  free (s->off);
  free (s);
}

static int32_t tensor_of (const step *s, int64_t number) {
  for (int32_t low = 0, high = s->n_tensors; low < high;) {
    int32_t middle = low + (high - low) / 2;
    if (s->tensors[middle].number == number)
      return middle;
    if (s->tensors[middle].number < number)
      low = middle + 1;
    else
      high = middle;
  }
  return -1;
}

/* In the order of their numbers: those that last, and those that are made in the step. */
static bool take_tensors (step *s, const beats *b, int64_t first, int64_t end) {
  int64_t from = beats_oldest_life (b);
  int32_t n = 0;
  for (int64_t k = from; k < b->n_lives; k++) {
    const life *l = beats_life (b, k);
    n += life_at (l, first) || (l->born >= first && l->born < end);
  }
  s->tensors = calloc ((size_t)n + 1, sizeof *s->tensors);
  if (s->tensors == NULL)
    return false;
  for (int64_t k = from; k < b->n_lives; k++) {
    const life *l = beats_life (b, k);
    bool there = life_at (l, first),
         lasts = there && life_crossing (l, first, end) == CROSSING_NONE;
    if (there || (l->born >= first && l->born < end))
      s->tensors[s->n_tensors++] = (step_tensor){
        .number = l->number, .bytes = l->bytes, .lasts = lasts, .read_last = -1, .slot = -1
      };
    s->n_lasting += lasts;
  }
  return true;
}

static bool take_pairs (step *s, const beats *b, int64_t first, int64_t end) {
  s->pairs = calloc ((size_t)s->n_tensors + 1, sizeof *s->pairs);
  for (int32_t k = 0; s->pairs != NULL && k < s->n_tensors; k++) {
    const life *l = beats_life (b, s->tensors[k].number);
    if (life_crossing (l, first, end) != CROSSING_OUT)
      continue;
    const life *replaced = beats_replaced (b, l, end - first);
    int32_t was = replaced != NULL ? tensor_of (s, replaced->number) : -1;
    if (was < 0)
      continue;
    s->tensors[was].carried_in = true;
    s->pairs[s->n_pairs++] = (step_pair){ was, k, first - replaced->born, false };
  }
  return s->pairs != NULL;
}

step *step_take (const beats *b, int64_t first, int64_t end) {
  step *s = calloc (1, sizeof *s);
  if (s == NULL || !take_tensors (s, b, first, end) || !take_pairs (s, b, first, end)) {
    step_free (s);
    return NULL;
  }
  int64_t refs = 0;
  for (int64_t i = first; i < end; i++)
    refs += beats_at (b, i)->n_refs;
  s->beats = calloc ((size_t)(end - first), sizeof *s->beats);
  s->refs = calloc ((size_t)refs + 1, sizeof *s->refs);
  if (s->beats == NULL || s->refs == NULL) {
    step_free (s);
    return NULL;
  }
  int32_t at = 0;
  for (int64_t i = first; i < end; i++) {
    const beat *e = beats_at (b, i);
    const life *l = e->op < 0 ? beats_life (b, e->allocation) : NULL;
    s->beats[s->n_beats++] = (step_beat){ .token = e->token,
                                          .bytes = l == NULL ? -1 : l->bytes,
                                          .stream = e->stream,
                                          .first_ref = at,
                                          .n_refs = e->n_refs,
                                          .again = -1,
                                          .tensor = l == NULL ? -1 : tensor_of (s, l->number) };
    for (int32_t k = 0; k < e->n_refs; k++)
      s->refs[at++] = tensor_of (s, beats_ref (b, e, k));
  }
  return s;
}

/* ---- the answer ---- */

static int64_t read_words (const char *path, int64_t **out) {
  int file = open (path, O_RDONLY | O_CLOEXEC);
  struct stat about;
  int64_t count = -1;
  if (file < 0)
    return -1;
  if (fstat (file, &about) == 0 && (*out = malloc ((size_t)about.st_size + 8)) != NULL &&
      read (file, *out, (size_t)about.st_size) == about.st_size)
    count = about.st_size / 8;
  close (file);
  return count;
}

static bool read_span (const step *s, const int64_t *w, step_span *out) {
  out->tensor = tensor_of (s, w[0]);
  if (out->tensor < 0 || w[1] < 0 || w[2] < 1 || w[1] + w[2] > s->tensors[out->tensor].pages)
    return false;
  out->first = (int32_t)w[1];
  out->count = (int32_t)w[2];
  return true;
}

static bool read_homes (step *s, const int64_t **at, const int64_t *end, int64_t count) {
  const int64_t *w = *at;
  for (int64_t i = 0; i < count; i++) {
    if (end - w < 2 || w[1] < 1 || end - w < 2 + w[1])
      return false;
    int32_t t = tensor_of (s, w[0]);
    if (t < 0)
      return false;
    s->tensors[t].pages = (int32_t)w[1];
    s->tensors[t].homes = w + 2;
    for (int64_t k = 0; k < w[1]; k++)
      if (w[2 + k] < 0 || w[2 + k] >= s->granules)
        return false;
    w += 2 + w[1];
  }
  *at = w;
  return true;
}

/* A pair stays where what is carried out never leaves, and there is room for what is carried in. */
static void find_staying (step *s) {
  for (int32_t i = 0; i < s->n_pairs; i++) {
    step_pair *c = &s->pairs[i];
    c->stays = s->tensors[c->carried_in].homes != NULL && s->tensors[c->carried_out].homes != NULL;
    for (int32_t k = 0; k < s->n_actions; k++)
      c->stays = c->stays &&
                 (s->actions[k].what == ACTION_AGAIN || s->actions[k].tensor != c->carried_out);
  }
}

/* An op, by its beat; one row of several. */
static bool read_again (step *s, const int64_t *w, step_span *out) {
  if (w[2] < 0 || w[2] >= s->n_beats || w[3] < 0 || w[3] >= s->n_beats ||
      s->beats[w[2]].n_refs > AGAIN_REFS || s->beats[w[2]].bytes >= 0)
    return false;
  step_beat *b = &s->beats[w[2]];
  if (b->again < 0) {
    b->again = s->n_again;
    s->again[s->n_again++] = (step_again){ .beat = (int32_t)w[2], .uses = w[4] };
  }
  out->again = b->again;
  out->entry = (int32_t)w[3];
  s->n_entries = out->entry >= s->n_entries ? out->entry + 1 : s->n_entries;
  return true;
}

bool step_same_beats (const step *s, const step_beat *beats, int32_t n) {
  if (s->n_beats != n)
    return false;
  for (int32_t i = 0; i < n; i++)
    if (s->beats[i].token != beats[i].token || s->beats[i].bytes != beats[i].bytes)
      return false;
  return true;
}

bool step_writes (const step *s, const step_span *a, int32_t tensor) {
  const step_again *g = &s->again[a->again];
  const step_beat *b = &s->beats[g->beat];
  for (int32_t i = 0; i < b->n_refs; i++)
    if (s->refs[b->first_ref + i] == tensor && again_uses (g, i) != USE_READS)
      return true;
  return false;
}

/* A dropped tensor is made again by the next entry that writes it. */
static bool find_makers (step *s) {
  s->off = calloc ((size_t)s->n_entries + 1, sizeof *s->off);
  for (int32_t i = 0; s->off != NULL && i < s->n_actions; i++) {
    step_span *a = &s->actions[i];
    const step_again *g = a->what == ACTION_AGAIN ? &s->again[a->again] : NULL;
    for (int32_t k = 0; g != NULL && k < s->beats[g->beat].n_refs; k++)
      if (again_uses (g, k) != USE_WRITES && s->refs[s->beats[g->beat].first_ref + k] >= 0)
        s->tensors[s->refs[s->beats[g->beat].first_ref + k]].read_last = i;
    for (int32_t k = i + 1; a->what == ACTION_DROP && k < s->n_actions && !a->remade; k++)
      if (s->actions[k].what == ACTION_AGAIN && step_writes (s, &s->actions[k], a->tensor)) {
        a->remade = true;
        a->entry = s->actions[k].entry;
        a->again = s->actions[k].again;
      }
  }
  return s->off != NULL;
}

bool step_answer (step *s, const char *path) {
  int64_t n = read_words (path, &s->words);
  const int64_t *w = s->words, *end = w + (n > 0 ? n : 0);
  if (n < PLAN_HEAD || w[0] != PLAN_MAGIC)
    return false;
  int64_t homes = w[3], aways = w[4], actions = w[5];
  s->predicted_ns = w[1];
  s->granules = (int32_t)w[2];
  w += PLAN_HEAD;
  if (!read_homes (s, &w, end, homes) || aways < 0 || actions < 0 ||
      end - w < 3 * aways + 5 * actions)
    return false;
  s->aways = calloc ((size_t)aways + 1, sizeof *s->aways);
  s->actions = calloc ((size_t)actions + 1, sizeof *s->actions);
  s->again = calloc ((size_t)s->n_beats + 1, sizeof *s->again);
  if (s->aways == NULL || s->actions == NULL || s->again == NULL)
    return false;
  for (; s->n_aways < aways; s->n_aways++, w += 3)
    if (!read_span (s, w, &s->aways[s->n_aways]))
      return false;
  for (; s->n_actions < actions; s->n_actions++, w += 5) {
    step_span *a = &s->actions[s->n_actions];
    a->beat = w[0];
    a->what = (uint8_t)w[1];
    if (w[0] < -1 || w[0] >= s->n_beats || w[1] < ACTION_OUT || w[1] > ACTION_AGAIN ||
        !(w[1] == ACTION_AGAIN ? read_again (s, w, a) : read_span (s, w + 2, a)))
      return false;
    if (w[1] == ACTION_LEAVE)
      s->tensors[a->tensor].checks = true;
  }
  find_staying (s);
  return find_makers (s);
}
