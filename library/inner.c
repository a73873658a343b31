/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "config.h"

#include "library/inner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/summary.h"

const char *ferry_version (void) {
  return PACKAGE_VERSION;
}

void ferry_free (void *text) {
  free (text);
}

bool library_told (ferry_error *out, const error *err) {
  ferry_error told = { .exit_status = error_exit_status (err->code) };
  if (err->code)
    error_line (err, told.text, sizeof told.text);
  if (out && out->size >= offsetof (ferry_error, text)) {
    size_t size = out->size;
    library_out (out, &told, sizeof told);
    if (size > offsetof (ferry_error, text) && size < sizeof told)
      ((char *)out)[size - 1] = 0;
  }
  return err->code == ERR_none;
}

bool library_given (const void *pointer, const char *name, error *err) {
  return pointer || error_set (err, ERR_usage, "%s is NULL", name);
}

bool library_sized (const void *pointer, size_t least, const char *name, error *err) {
  if (!library_given (pointer, name, err))
    return false;
  size_t size;
  memcpy (&size, pointer, sizeof size);
  return size >= least ||
         error_set (err, ERR_usage, "the size of %s is %zu, less than %zu: begin with FERRY_INIT",
                    name, size, least);
}

void library_out (void *to, const void *from, size_t size) {
  size_t room;
  memcpy (&room, to, sizeof room);
  size_t all = room < size ? room : size;
  memcpy ((char *)to + sizeof room, (const char *)from + sizeof room, all - sizeof room);
}

void library_in (void *to, const void *from, size_t size) {
  size_t given;
  memcpy (&given, from, sizeof given);
  memset (to, 0, size);
  memcpy (to, from, given < size ? given : size);
}

arena *library_arena (error *err) {
  arena *a = arena_new (0);
  if (!a)
    error_memory (err);
  return a;
}

char *library_text (bytes *text, size_t *size, error *err) {
  char *out = malloc ((size_t)text->size + 1);
  if (out) {
    memcpy (out, text->data, (size_t)text->size);
    out[text->size] = 0;
    if (size)
      *size = (size_t)text->size;
  } else {
    error_memory (err);
  }
  bytes_free (text);
  return out;
}

ferry_trace *library_trace (arena *a, trace *t, error *err) {
  summary about;
  ferry_trace *out = t && summary_of (t, a, &about, err) ? calloc (1, sizeof *out) : NULL;
  if (out) {
    *out = (ferry_trace){ a, t, about.peak_bytes };
    return out;
  }
  if (!err->code)
    error_memory (err);
  arena_free (a);
  return NULL;
}

ferry_plan *library_plan (const plan *p, error *err) {
  ferry_plan *out = calloc (1, sizeof *out);
  if (!out)
    error_memory (err);
  else if ((out->arena = library_arena (err)))
    out->plan = plan_copy (p, out->arena, err);
  if (out && out->plan)
    return out;
  ferry_plan_free (out);
  return NULL;
}

static void speak (void *context, log_level level, const char *text) {
  const library_speaker *s = context;
  if (level != LOG_DETAIL)
    s->options.progress (s->options.progress_context, text);
}

/* A word that this version does not know may come from a newer header, or from memory that nobody
   cleared. */
static bool words_are_known (const ferry_options *x, error *err) {
  const struct {
    const char *name;
    int value, last;
  } words[] = {
    { "sections", (int)x->sections, FERRY_SECTIONS_FIXED },
    { "section_order", (int)x->section_order, FERRY_ORDER_DEPTH },
    { "recompute", (int)x->recompute, FERRY_RECOMPUTE_ONLY },
    { "op_order", (int)x->op_order, FERRY_OPS_ANY },
    { "placement", (int)x->placement, FERRY_PLACEMENT_ARENA },
    { "effort", (int)x->effort, FERRY_EFFORT_THOROUGH },
  };
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (words[i].value < 0 || words[i].value > words[i].last)
      return error_set (err, ERR_usage, "the option %s is %d; its last word is %d", words[i].name,
                        words[i].value, words[i].last);
  return true;
}

allowed library_allowed (const ferry_options *x, const trace *t) {
  allowed out = allowed_by (t);
  if (x->sections)
    out.sections = (sections_mode)(x->sections - FERRY_SECTIONS_OFF);
  if (x->recompute)
    out.recompute = (recompute_mode)(x->recompute - FERRY_RECOMPUTE_OFF);
  if (x->op_order)
    out.order = (order_mode)(x->op_order - FERRY_OPS_AS_IS);
  out.section_parts = x->section_parts;
  out.section_orders = (sections_orders)x->section_order;
  return out;
}

places_mode library_places (const ferry_options *x) {
  static const places_mode of[] = { [FERRY_PLACEMENT_AUTO] = PLACES_AUTO,
                                    [FERRY_PLACEMENT_GRANULES] = PLACES_GRANULES,
                                    [FERRY_PLACEMENT_ARENA] = PLACES_ARENA };
  return of[x->placement];
}

bool library_options (const ferry_options *o, library_speaker *speaker, error *err) {
  if (!library_sized (o, offsetof (ferry_options, progress_context), "the options", err))
    return false;
  library_in (&speaker->options, o, sizeof speaker->options);
  speaker->log = (logger){ speak, speaker };
  const ferry_options *x = &speaker->options;
  if (x->gap_ppm < 0 || x->limit_ticks < 0 || x->noise_percent < 0 || x->section_parts < 0 ||
      x->budget_bytes < 0 || x->host_bytes < 0 || (x->has_reserve && x->reserve_bytes < 0))
    return error_set (err, ERR_usage, "an option is below 0");
  if (x->sections == FERRY_SECTIONS_FIXED && x->section_parts < 2)
    return error_set (err, ERR_usage, "section_parts is %lld: at least 2",
                      (long long)x->section_parts);
  return words_are_known (x, err);
}

static bool read_starts (library_speaker *s, solve_options *out, error *err) {
  const ferry_options *x = &s->options;
  if (x->n_starts < 0 || x->n_starts > LIBRARY_STARTS)
    return error_set (err, ERR_usage, "n_starts is %d; it is 0 to %d", x->n_starts, LIBRARY_STARTS);
  if (x->n_starts && !library_given (x->starts, "starts", err))
    return false;
  for (int32_t i = 0; i < x->n_starts; i++) {
    if (!library_given (x->starts[i], "one of the starts", err))
      return false;
    s->starts[i] = x->starts[i]->plan;
  }
  out->starts = s->starts;
  out->n_starts = x->n_starts;
  return true;
}

bool library_parts (const ferry_options *x, const trace *t, error *err) {
  int64_t most = allowed_most_parts (t);
  return x->sections != FERRY_SECTIONS_FIXED || x->section_parts <= most ||
         error_set (err, ERR_usage, "section_parts is %lld: no op can run in more than %lld",
                    (long long)x->section_parts, (long long)most);
}

bool library_ask (const ferry_trace *t, const ferry_options *o, library_speaker *speaker, ask *out,
                  error *err) {
  if (!library_given (t, "the trace", err) || !library_options (o, speaker, err))
    return false;
  const ferry_options *x = &speaker->options;
  if (!library_given (x->device, "the options' device", err) || !trace_must_plan (t->trace, err) ||
      !library_parts (x, t->trace, err))
    return false;
  *out = ask_default (t->trace, &x->device->device);
  if (x->has_reserve) {
    out->reserve_ppm = -1;
    out->reserve_bytes = x->reserve_bytes;
  }
  solve_options *s = &out->options;
  s->gap_ppm = x->gap_ppm;
  s->limit_ticks = x->limit_ticks;
  s->seed = x->seed ? x->seed : s->seed;
  allowed asked = library_allowed (x, t->trace);
  allowed_into (&asked, s);
  s->level = (search_level)x->effort;
  s->noise_percent = x->noise_percent;
  s->same_places = x->same_places;
  s->placement = library_places (x);
  s->keep_proof = x->keep_proof;
  s->stop = x->stop;
  s->stop_context = x->stop_context;
  s->log = x->progress ? &speaker->log : NULL;
  s->host_bytes = x->host_bytes ? x->host_bytes : s->host_bytes;
  return read_starts (speaker, s, err) &&
         ask_budget (out, x->budget_bytes ? x->budget_bytes : out->asked_bytes, err) &&
         ask_host (&out->device, s->host_bytes, err);
}
