/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/cover.h"

#include <assert.h>
#include <stdio.h>

const cover cover_every = { .swaps = true,
                            .drops = COVER_DROPS_ANY,
                            .kept = true,
                            .sections = COVER_SECTIONS_ANY,
                            .order = COVER_ORDER_ANY };
const cover cover_swaps = { .swaps = true };
const cover cover_given = { .swaps = true,
                            .drops = COVER_DROPS_GIVEN,
                            .sections = COVER_SECTIONS_GIVEN };

cover cover_of_rewriting (int n_sections, int n_recomputes) {
  return n_sections || n_recomputes ? cover_given : cover_swaps;
}

/* ---- one in another ---- */

/* `given` and `none` are of different plans; both are in what is wider. */
static bool in_sections (cover_sections narrow, cover_sections wide) {
  return narrow == wide || (wide >= COVER_SECTIONS_LEVEL && narrow < wide);
}

static bool chooses_drops (const cover *c) {
  return c->drops >= COVER_DROPS_CHEAP;
}

bool cover_keeps_nothing (const cover *c) {
  return chooses_drops (c) && !c->kept;
}

static bool in_drops (const cover *narrow, const cover *wide) {
  return (narrow->drops == wide->drops || (chooses_drops (wide) && narrow->drops < wide->drops)) &&
         (!chooses_drops (narrow) || wide->kept || !narrow->kept);
}

static bool in_order (cover_order narrow, cover_order wide) {
  return narrow == wide || wide == COVER_ORDER_ANY ||
         (wide == COVER_ORDER_UPDATES && narrow == COVER_ORDER_TRACE);
}

bool cover_includes_but_order (const cover *wide, const cover *narrow) {
  return (wide->swaps || !narrow->swaps) && in_drops (narrow, wide) &&
         in_sections (narrow->sections, wide->sections) &&
         (wide->executor == COVER_EXECUTOR_ANY || narrow->executor == wide->executor) &&
         (!wide->given_units || narrow->given_units);
}

bool cover_includes (const cover *wide, const cover *narrow) {
  assert (wide && narrow);
  return cover_includes_but_order (wide, narrow) && in_order (narrow->order, wide->order);
}

/* ---- in words ---- */

static bool is_rewriting_given (const cover *c) {
  return c->drops <= COVER_DROPS_GIVEN && c->sections <= COVER_SECTIONS_GIVEN;
}

static bool only_swaps (const cover *c) {
  return c->drops == COVER_DROPS_NONE && c->sections == COVER_SECTIONS_NONE;
}

static void put_rewriting (const cover *c, char text[COVER_TEXT]) {
  static const char *const drops[] = { "without recompute entries", "with these recompute entries",
                                       "with any cheap op made again", "with any op made again" };
  static const char *const cuts[] = { " and without sections", " and this cut",
                                      ", cut into whatever sections level by level",
                                      ", cut into whatever sections" };
  const char *units = c->given_units ? ", with these groups, pool and granules" : "";
  const char *still = c->swaps ? "" : " and nothing swapped";
  if (c->swaps && c->drops == COVER_DROPS_ANY && c->kept && c->sections == COVER_SECTIONS_ANY)
    snprintf (text, COVER_TEXT, "every plan, with whatever sections and recompute entries%s",
              units);
  else if (is_rewriting_given (c))
    snprintf (text, COVER_TEXT, "every plan %s%s%s",
              only_swaps (c) ? "without sections and recompute"
                             : "with this cut and these recompute entries",
              still, units);
  else
    snprintf (text, COVER_TEXT, "every plan %s%s%s%s%s", drops[c->drops],
              cover_keeps_nothing (c) ? " from what lives anyway" : "", still, cuts[c->sections],
              units);
}

/* Plans that only swap leave the order alone, so that is not said of them. */
static const char *order_text (const cover *c) {
  static const char *const orders[] = { ", with its ops in the order of the trace",
                                        ", with its ops in this order",
                                        ", with its updates moved up or not",
                                        ", in whatever order" };
  return c->order == COVER_ORDER_TRACE && is_rewriting_given (c) ? "" : orders[c->order];
}

const char *cover_text (const cover *c, char text[COVER_TEXT]) {
  assert (c && text);
  char plans[COVER_TEXT];
  put_rewriting (c, plans);
  snprintf (text, COVER_TEXT, "%.200s%s%s", plans, order_text (c),
            c->executor == COVER_EXECUTOR_TORCH ? ", that ferry_torch can follow" : "");
  return text;
}

/* "swaps, recomputes or cuts", as far as they do. */
static void put_verbs (const cover *c, char text[COVER_TEXT]) {
  const char *verbs[3];
  int n = 0;
  if (c->swaps)
    verbs[n++] = "swaps";
  if (chooses_drops (c))
    verbs[n++] = c->drops == COVER_DROPS_CHEAP ? "recomputes cheap ops" : "recomputes";
  if (c->sections >= COVER_SECTIONS_LEVEL)
    verbs[n++] = "cuts";
  int length = snprintf (text, COVER_TEXT, " that %s", n == 1 ? "only " : "");
  for (int i = 0; i < n; i++)
    length += snprintf (text + length, COVER_TEXT - (size_t)length, "%s%s",
                        i == 0       ? ""
                        : i + 1 == n ? " or "
                                     : ", ",
                        verbs[i]);
}

const char *cover_whom (const cover *c, char text[COVER_TEXT]) {
  char plans[COVER_TEXT] = " with these cuts and drops";
  bool every = c->swaps && c->drops == COVER_DROPS_ANY && c->kept &&
               c->sections == COVER_SECTIONS_ANY && !c->given_units;
  if (!is_rewriting_given (c) || only_swaps (c))
    put_verbs (c, plans);
  bool here = c->order != COVER_ORDER_ANY && *order_text (c);
  snprintf (text, COVER_TEXT, "%.200s%s%s", every ? "" : plans, here ? " in this order" : "",
            c->executor == COVER_EXECUTOR_TORCH ? " and ferry_torch can follow" : "");
  return text;
}

/* ---- in files ---- */

static const char *const drops_words[] = { "none", "given", "cheap", "any", NULL };
static const char *const sections_words[] = { "none", "given", "level", "any", NULL };
static const char *const order_words[] = { "trace", "given", "updates", "any", NULL };
static const char *const executor_words[] = { "any", "ferry_torch", NULL };
static const char *const units_words[] = { "any", "given", NULL };

void cover_write (json_writer *w, const cover *c) {
  json_open_object (w);
  json_add_text (w, "drops", drops_words[c->drops]);
  json_add_bool (w, "drops_from_kept", c->kept);
  json_add_text (w, "executor", executor_words[c->executor]);
  json_add_text (w, "order", order_words[c->order]);
  json_add_text (w, "sections", sections_words[c->sections]);
  json_add_bool (w, "swaps", c->swaps);
  json_add_text (w, "units", units_words[c->given_units]);
  json_close_object (w);
}

static bool read_word (const json *object, const char *key, const char *const *words, int *out,
                       error *err) {
  json j;
  return json_need (object, key, &j, err) && json_get_word (&j, words, out, err);
}

static bool read_flag (const json *object, const char *key, bool *out, error *err) {
  json j;
  return json_need (object, key, &j, err) && json_get_bool (&j, out, err);
}

bool cover_read (const json *j, cover *out, error *err) {
  int drops = 0, sections = 0, order = 0, executor = 0, units = 0;
  cover c = { 0 };
  if (!json_want_object (j, err) || !read_word (j, "drops", drops_words, &drops, err) ||
      !read_flag (j, "drops_from_kept", &c.kept, err) ||
      !read_word (j, "executor", executor_words, &executor, err) ||
      !read_word (j, "order", order_words, &order, err) ||
      !read_word (j, "sections", sections_words, &sections, err) ||
      !read_flag (j, "swaps", &c.swaps, err) || !read_word (j, "units", units_words, &units, err))
    return false;
  c.drops = (cover_drops)drops;
  c.sections = (cover_sections)sections;
  c.order = (cover_order)order;
  c.executor = (cover_executor)executor;
  c.given_units = units;
  *out = c;
  return true;
}
