/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/inputs/rewriting.h"

#include <string.h>

#include "cli/inputs/executors.h"

static bool read_parts (call *c, const trace *t, const char *text, int64_t *parts) {
  int64_t most = t ? allowed_most_parts (t) : INT64_MAX;
  if (text[strspn (text, "0123456789")] || !*text)
    return call_usage (c, "--sections: `%s` is not auto, off or a number of parts", text);
  if (!call_quantity (c, "sections", parts))
    return false;
  if (*parts > most)
    return call_usage (c,
                       "--sections: no op can run in %lld parts, %lld are the most (the batch is "
                       "%lld)",
                       (long long)*parts, (long long)most, (long long)t->batch);
  return true;
}

static bool read_sections (call *c, const trace *t, allowed *out) {
  const char *text = call_text (c, "sections");
  if (!text)
    return true;
  out->sections = strcmp (text, "off") == 0    ? SECTIONS_OFF
                  : strcmp (text, "auto") == 0 ? SECTIONS_AUTO
                                               : SECTIONS_FIXED;
  return out->sections != SECTIONS_FIXED || read_parts (c, t, text, &out->section_parts);
}

static bool read_swap_only (call *c, allowed *out) {
  static const char *const others[] = { "sections", "recompute", "order" };
  const char *found = call_first (c, others, sizeof others / sizeof *others);
  if (found)
    return call_usage (c, "give --swap-only or --%s, not both", found);
  *out = (allowed)SWAPS_ALONE;
  return true;
}

/* Requests by name are carried out or refused; the default is cut down in silence. */
static bool may_be_asked (call *c, const trace *t, const allowed *x) {
  if (!trace_has_streams (t))
    return true;
  if (call_text (c, "sections") && x->sections != SECTIONS_OFF)
    return call_usage (c, "--sections: ops of %d streams are not cut; leave it out", t->n_streams);
  return !call_text (c, "order") || x->order == ORDER_AS_IS ||
         call_usage (c, "--order: ops of %d streams keep their order; leave it out", t->n_streams);
}

bool rewriting_read (call *c, const trace *t, allowed *out) {
  *out = t ? allowed_by (t) : (allowed)ALL_ALLOWED;
  if (call_flag (c, "swap-only"))
    return read_swap_only (c, out);
  int drop = out->recompute, order = out->order;
  if (!read_sections (c, t, out) || !call_word (c, "recompute", recompute_words, &drop) ||
      !call_word (c, "order", order_words, &order))
    return false;
  out->recompute = (recompute_mode)drop;
  out->order = (order_mode)order;
  return !t || (may_be_asked (c, t, out) && executor_allows (c, t, out));
}

bool placement_read (call *c, places_mode *out) {
  int mode = PLACES_AUTO;
  if (!call_word (c, "placement", places_words, &mode))
    return false;
  *out = (places_mode)mode;
  return true;
}

bool rewriting_print (FILE *to, call *c, const allowed *x) {
  const char *text = allowed_text (x, c->arena, &c->err);
  if (text)
    fprintf (to, "allowed: %s\n", text);
  return text;
}
