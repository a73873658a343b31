/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/inputs/policies.h"

#include <string.h>

#include "base/units.h"
#include "solver/ask/ask.h"
#include "solver/fleet/needs.h"

bool policy_of_name (call *c, const char *name, policy_id *out) {
  const char *names[POLICIES];
  *out = policy_named (name);
  if (*out != POLICIES)
    return true;
  for (int i = 0; i < POLICIES; i++)
    names[i] = policy_at ((policy_id)i)->name;
  const char *near = nearest_word (name, names, POLICIES);
  if (near)
    return call_usage (c, "there is no policy `%s`; did you mean `%s`?", name, near);
  return call_usage (c, "there is no policy `%s`; `ferry solve --policy list` lists them", name);
}

const char *next_part (call *c, const char **rest) {
  if (!*rest || !**rest)
    return NULL;
  size_t length = strcspn (*rest, ",");
  const char *part = arena_string_n (c->arena, *rest, length, &c->err);
  *rest += length + ((*rest)[length] == ',');
  return part;
}

bool policy_values_of (call *c, policy_id id, const char *text, policy_values *out) {
  const char *part;
  *out = policy_standard ();
  while ((part = next_part (c, &text)))
    if (!policy_set (id, part, out, &c->err))
      return false;
  return !c->err.code;
}

/* text NULL: all that the device has to give, and more than that is refused. */
static bool budget_of (call *c, const char *text, const device *d, int64_t peak_bytes,
                       int64_t *out) {
  *out = d->memory_bytes - d->reserved_bytes;
  return !text || (call_part (c, "budget", text, peak_bytes, out) && ask_room (d, *out, &c->err));
}

bool policy_asked_budget (call *c, const trace *t, const device *d, int64_t *out) {
  const char *text = call_text (c, "budget");
  int64_t peak_bytes = 0;
  if (text && strchr (text, '%') && !policy_plain_peak (c, t, d, &peak_bytes))
    return false;
  return budget_of (c, text, d, peak_bytes, out);
}

/* A budget that the card does not have, of several, is left out and said. */
static bool leave_out (call *c, const char *part) {
  if (c->err.code != ERR_usage)
    return false;
  call_note (c, "--budget: %s is left out: %s", part, c->err.text);
  c->err = (error){ 0 };
  return true;
}

bool policy_asked_budgets (call *c, const device *d, int64_t peak_bytes, int most, int64_t *out,
                           int32_t *n) {
  const char *rest = call_text (c, "budget"), *part;
  *n = 0;
  if (!rest)
    return budget_of (c, NULL, d, 0, &out[(*n)++]);
  while ((part = next_part (c, &rest))) {
    if (*n == most)
      return call_usage (c, "more than %d budgets", most);
    if (!call_part (c, "budget", part, peak_bytes, &out[*n]))
      return false;
    bool fits = ask_room (d, out[*n], &c->err);
    if (!fits && ((!*n && !*rest) || !leave_out (c, part)))
      return false;
    *n += fits;
  }
  if (!c->err.code && *n == 0)
    call_usage (c, "--budget: no budget is named, such as 8GiB,50%%");
  return !c->err.code;
}

bool policy_plain_peak (call *c, const trace *t, const device *d, int64_t *out) {
  needs n;
  arena *scratch = arena_new (0);
  bool ok = scratch || error_memory (&c->err);
  ok = ok && needs_of (t, d, scratch, &n, &c->err);
  if (ok)
    *out = reserve_onto (n.bytes, reserve_ppm (t));
  arena_free (scratch);
  return ok;
}

static const char *value_text (const policy_option_row *o, char text[UNITS_TEXT]) {
  const char *word = o->words;
  switch (o->kind) {
  case POLICY_BYTES:
    return units_bytes (text, o->standard);
  case POLICY_TIME:
    return units_time (text, o->standard);
  case POLICY_RATE:
    return units_rate (text, o->standard);
  case POLICY_SHARE:
    snprintf (text, UNITS_TEXT, "%g %%", (double)o->standard / 10000);
    return text;
  case POLICY_COUNT:
    if (o->standard == INT32_MAX)
      return "all";
    snprintf (text, UNITS_TEXT, "%lld", (long long)o->standard);
    return text;
  case POLICY_WORD:
    for (int64_t i = 0; i < o->standard; i++)
      word = strchr (word, ' ') + 1;
    snprintf (text, UNITS_TEXT, "%.*s", (int)strcspn (word, " "), word);
    return text;
  }
  return "";
}

void policies_list (void) {
  for (int i = 0; i < POLICIES; i++) {
    const policy_row *p = policy_at ((policy_id)i);
    printf ("%s%s\n  %s\n", i ? "\n" : "", p->name, p->says);
    printf ("  from: %s%s\n", p->whence, p->budget == POLICY_NONE ? "; knows no budget" : "");
    for (int n = 0; n < POLICY_OPTIONS; n++) {
      char text[UNITS_TEXT];
      const policy_option_row *o = policy_option_at ((policy_option)n);
      if (o->policy == (policy_id)i)
        printf ("  %-18s %s (%s%s%s)\n", o->key, o->says, o->words ? o->words : "",
                o->words ? "; " : "", value_text (o, text));
    }
  }
}

static const char *const kinds[] = { "count", "share", "bytes", "ns", "bytes_per_s", "word" };
static const char *const budgets[] = { "keeps", "margin", "none" };

static void put_value (json_writer *w, const char *key, const policy_option_row *o, int64_t value) {
  if (o->kind == POLICY_SHARE)
    json_add_share (w, key, value);
  else
    json_add_int (w, key, value);
}

bool policies_list_json (call *c) {
  json_writer w;
  json_begin (&w, 2);
  json_open_array (&w);
  for (int i = 0; i < POLICIES; i++) {
    const policy_row *p = policy_at ((policy_id)i);
    json_open_object (&w);
    json_add_text (&w, "budget", budgets[p->budget]);
    json_add_text (&w, "name", p->name);
    json_add_array (&w, "options");
    for (int n = 0; n < POLICY_OPTIONS; n++) {
      const policy_option_row *o = policy_option_at ((policy_option)n);
      if (o->policy != (policy_id)i)
        continue;
      json_open_object (&w);
      put_value (&w, "high", o, o->high);
      json_add_text (&w, "key", o->key);
      json_add_text (&w, "kind", kinds[o->kind]);
      put_value (&w, "low", o, o->low);
      json_add_text (&w, "says", o->says);
      put_value (&w, "standard", o, o->standard);
      json_add_text (&w, "words", o->words);
      json_close_object (&w);
    }
    json_close_array (&w);
    json_add_text (&w, "says", p->says);
    json_add_text (&w, "whence", p->whence);
    json_close_object (&w);
  }
  json_close_array (&w);
  return call_print_json (c, &w);
}

void policy_answer_write (json_writer *w, const policy_answer *a, int64_t lower_bound_ns) {
  json_add_int (w, "drops", a->drops);
  json_add_bool (w, "fits", a->fits);
  if (lower_bound_ns > 0 && a->fits)
    json_add_fixed (w, "gap", (double)a->cost.step_ns / (double)lower_bound_ns - 1, 6);
  json_add_text (w, "label", a->label);
  if (lower_bound_ns >= 0)
    json_add_int (w, "lower_bound_ns", lower_bound_ns);
  json_add_int (w, "moves", a->moves);
  json_add_text (w, "note", a->note);
  if (a->has_cost) {
    predicted_write (w, "predicted", &a->cost);
  }
  json_add_int (w, "reached_bytes", a->reached_bytes);
  if (a->order)
    json_add_bool (w, "reordered", true);
}
