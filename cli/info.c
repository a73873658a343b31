/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry info`: what a trace needs, and whether that is there. */
#include <string.h>

#include "base/units.h"
#include "cli/inputs/executors.h"
#include "cli/inputs/devices.h"
#include "cli/inputs/inputs.h"
#include "cli/figures/pictures.h"
#include "cli/inputs/policies.h"
#include "solver/ask/ask.h"
#include "solver/fleet/needs.h"
#include "trace/summary.h"

enum { SHOWN_HOLDERS = 5 };

/* The question "will it fit", where one was asked. */
typedef struct question {
  bool asked, has_device;
  device device;
  needs needs;
  int64_t reserve_ppm;
  int64_t total_bytes; /* needed, the reserve included */
  int64_t budget_bytes, missing_bytes;
  const char *of; /* the memory's owner, as it is shown */
} question;

static const char *op_name (const trace *t, int32_t op) {
  return *t->ops[op].name ? t->ops[op].name : "no name";
}

static const char *tensor_name (const trace *t, int32_t x) {
  return *t->tensors[x].name ? t->tensors[x].name : "no name";
}

/* With no card named anywhere, granules are those of all cards that ferry ships, or of torch's
   allocator. */
static device any_device (call *c, const trace *t) {
  enum { GRANULE = 2 << 20 };
  return (device){ .name = "any card",
                   .memory_bytes = MOST_BYTES,
                   .granule_bytes = executor_granule (c, t, GRANULE),
                   .share_ppm = 1000000 };
}

/* --budget, or what --device has to give; the trace's own device only if it is named. */
static bool read_question (call *c, const trace *t, question *q) {
  const char *budget = call_text (c, "budget");
  if (!device_for (c, t, &q->device, &q->has_device))
    return false;
  if (!q->has_device)
    q->device = any_device (c, t);
  if (!needs_of (t, &q->device, c->arena, &q->needs, &c->err))
    return false;
  q->reserve_ppm = reserve_ppm (t);
  q->total_bytes = reserve_onto (q->needs.bytes, q->reserve_ppm);
  q->of = "the budget";
  q->asked = budget || call_text (c, "device");
  if (budget && !call_amount (c, "budget", q->total_bytes, &q->budget_bytes))
    return false;
  if (budget && call_text (c, "device") && !ask_room (&q->device, q->budget_bytes, &c->err))
    return false;
  if (!budget && q->asked) {
    q->budget_bytes = q->device.memory_bytes - q->device.reserved_bytes;
    q->of = q->device.name;
  }
  if (q->asked && q->total_bytes > q->budget_bytes)
    q->missing_bytes = q->total_bytes - q->budget_bytes;
  return true;
}

/* True if something outlives the step. If nothing does, the profile began too late to see weights
   being made. */
static bool shows_state (const trace *t) {
  for (int32_t i = 0; i < t->n_tensors; i++)
    if (t->tensors[i].persistent || t->tensors[i].kind == TENSOR_PARAMETER)
      return true;
  return false;
}

static void put_op (json_writer *w, const trace *t, const char *key, int32_t op) {
  json_add_object (w, key);
  json_add_text (w, "name", t->ops[op].name);
  json_add_int (w, "op", op);
  json_close_object (w);
}

static void put_kinds (json_writer *w, const summary *s) {
  static const tensor_kind sorted[] = { TENSOR_ACTIVATION, TENSOR_GRADIENT,  TENSOR_INPUT,
                                        TENSOR_OPTIMIZER,  TENSOR_PARAMETER, TENSOR_TEMPORARY,
                                        TENSOR_WORKSPACE };
  json_add_object (w, "kinds");
  for (int i = 0; i < TENSOR_KINDS; i++) {
    json_add_object (w, tensor_kind_names[sorted[i]]);
    json_add_int (w, "bytes", s->kinds[sorted[i]].bytes);
    json_add_int (w, "tensors", s->kinds[sorted[i]].count);
    json_close_object (w);
  }
  json_close_object (w);
}

static void put_checks (json_writer *w, const trace_source *from) {
  json_add_array (w, "checks");
  for (int32_t i = 0; i < from->n_checks; i++)
    json_put_text (w, from->checks[i]);
  json_close_array (w);
}

/* Profiles do not say how many items a step has, and ops of an import have no parts: 1 is no
 * answer. */
static bool knows_batch (const trace *t) {
  return t->batch > 1 || !t->source.kind || strcmp (t->source.kind, "import") != 0;
}

static bool print_json (call *c, const trace *t, const summary *s, const question *q) {
  json_writer w;
  json_begin_object (&w, 1);
  if (knows_batch (t))
    json_add_int (&w, "batch", t->batch);
  if (q->asked)
    json_add_int (&w, "budget_bytes", q->budget_bytes);
  put_checks (&w, &t->source);
  json_add_int (&w, "compute_ns", s->compute_ns);
  confidence_write (&w, t->source.confidence, t->source.doubt);
  if (q->asked)
    json_add_bool (&w, "fits", q->missing_bytes == 0);
  json_add_int (&w, "floor_bytes", s->floor_bytes);
  put_op (&w, t, "floor_op", s->floor_op);
  json_add_int (&w, "floor_sections_bytes", s->floor_sections_bytes);
  put_op (&w, t, "floor_sections_op", s->floor_sections_op);
  json_add_array (&w, "holders");
  for (int32_t i = 0; i < s->n_holders && i < SHOWN_HOLDERS; i++) {
    json_open_object (&w);
    json_add_int (&w, "bytes", t->tensors[s->holders[i]].bytes);
    json_add_text (&w, "name", t->tensors[s->holders[i]].name);
    json_add_int (&w, "tensor", s->holders[i]);
    json_close_object (&w);
  }
  json_close_array (&w);
  json_add_int (&w, "idle_ns", s->idle_ns);
  put_kinds (&w, s);
  if (q->asked)
    json_add_int (&w, "missing_bytes", q->missing_bytes);
  json_add_text (&w, "name", t->name);
  json_add_object (&w, "needs");
  json_add_int (&w, "bytes", q->total_bytes);
  json_add_text (&w, "device", q->has_device ? q->device.name : NULL);
  json_add_int (&w, "granule_bytes", q->needs.granule_bytes);
  json_add_int (&w, "reserve_bytes", q->total_bytes - q->needs.bytes);
  json_add_int (&w, "tensor_bytes", q->needs.tensor_bytes);
  json_close_object (&w);
  json_add_int (&w, "ops", t->n_ops);
  json_add_int (&w, "peak_bytes", s->peak_bytes);
  put_op (&w, t, "peak_op", s->peak_op);
  json_add_int (&w, "persistent_bytes", s->persistent_bytes);
  json_add_bool (&w, "shows_state", shows_state (t));
  json_add_int (&w, "tensor_bytes", s->tensor_bytes);
  json_add_int (&w, "tensors", t->n_tensors);
  json_close_object (&w);
  return call_print_json (c, &w);
}

static void print_amount (const char *what, int64_t bytes, const char *note) {
  char text[UNITS_TEXT];
  printf ("%-12s %10s%s%s\n", what, units_bytes (text, bytes), *note ? "  " : "", note);
}

/* One number, and what it is made of. */
static void print_needs (const question *q) {
  char note[160], tensors[UNITS_TEXT], granules[UNITS_TEXT], reserve[UNITS_TEXT];
  int64_t kept = q->total_bytes - q->needs.bytes;
  snprintf (note, sizeof note, "on %s: %s of tensors, %s of rounding to granules%s%s",
            q->device.name, units_bytes (tensors, q->needs.tensor_bytes),
            units_bytes (granules, q->needs.granule_bytes), kept ? ", a reserve of " : "",
            kept ? units_bytes (reserve, kept) : "");
  print_amount ("needs", q->total_bytes, note);
}

static void print_numbers (const trace *t, const summary *s, const question *q) {
  char compute[UNITS_TEXT], idle[UNITS_TEXT], note[160];
  printf ("%s: %d ops, %d tensors, batch ", *t->name ? t->name : "trace", t->n_ops, t->n_tensors);
  if (knows_batch (t))
    printf ("%lld\n", (long long)t->batch);
  else
    puts ("not known");
  printf ("%-12s %10s  and %s idle between ops\n", "compute", units_time (compute, s->compute_ns),
          units_time (idle, s->idle_ns));
  for (int k = 0; k < TENSOR_KINDS; k++)
    if (s->kinds[k].count) {
      snprintf (note, sizeof note, "in %d tensors", s->kinds[k].count);
      print_amount (tensor_kind_names[k], s->kinds[k].bytes, note);
    }
  print_needs (q);
  snprintf (note, sizeof note, "of tensors at op %d (%.60s), everything on the device", s->peak_op,
            op_name (t, s->peak_op));
  print_amount ("fullest", s->peak_bytes, note);
  for (int32_t i = 0; i < s->n_holders && i < SHOWN_HOLDERS; i++) {
    snprintf (note, sizeof note, "%.60s", tensor_name (t, s->holders[i]));
    print_amount ("  holds", t->tensors[s->holders[i]].bytes, note);
  }
  snprintf (note, sizeof note, "op %d (%.60s) alone", s->floor_op, op_name (t, s->floor_op));
  print_amount ("floor", s->floor_bytes, note);
  if (s->floor_sections_bytes < s->floor_bytes) {
    snprintf (note, sizeof note, "with sections: op %d (%.60s)", s->floor_sections_op,
              op_name (t, s->floor_sections_op));
    print_amount ("", s->floor_sections_bytes, note);
  }
}

/* The last line is the answer. */
static void print_answer (const trace *t, const summary *s, const question *q) {
  char needs[UNITS_TEXT], has[UNITS_TEXT], missing[UNITS_TEXT], floor[UNITS_TEXT];
  units_bytes (needs, q->total_bytes);
  units_bytes (has, q->budget_bytes);
  units_bytes (missing, q->missing_bytes);
  if (!q->missing_bytes) {
    printf ("\nfits%s: it needs %s, %s has %s\n",
            shows_state (t) ? ""
                            : ", without weights and optimizer state, which this profile does not "
                              "show",
            needs, q->of, has);
    return;
  }
  printf ("\ndoes not fit: it needs %s, %s has %s, %s are missing\n", needs, q->of, has, missing);
  bool whole = s->floor_bytes <= q->budget_bytes;
  if (whole || s->floor_sections_bytes <= q->budget_bytes)
    printf ("a plan may fit: no op needs more than %s at once%s\n",
            units_bytes (floor, whole ? s->floor_bytes : s->floor_sections_bytes),
            whole ? "" : ", if it runs in sections");
  else
    printf ("no plan fits: op %d (%.60s) alone needs %s, even in its most sections\n",
            s->floor_sections_op, op_name (t, s->floor_sections_op),
            units_bytes (floor, s->floor_sections_bytes));
}

static int run (call *c) {
  summary s;
  question q = { 0 };
  int64_t checked;
  if (!call_amount (c, "budget", 0, &checked)) /* before a long file is read */
    return call_failed (c);
  const trace *given = call_trace (c, c->operands[0]);
  const trace *t = given ? executor_trace (c, given) : NULL;
  if (!t || !read_question (c, t, &q) || !summary_of (t, c->arena, &s, &c->err))
    return call_failed (c);
  if (c->json) {
    if (!print_json (c, t, &s, &q))
      return call_failed (c);
  } else {
    print_numbers (t, &s, &q);
    for (int32_t i = 0; i < t->source.n_checks; i++)
      printf ("%-12s %s\n", i ? "" : "checks", t->source.checks[i]);
    printf ("%-12s %s%s%s\n", "confidence", confidence_words[t->source.confidence],
            *t->source.doubt ? ": " : "", t->source.doubt);
    putchar ('\n');
    if (!picture_needs (c, t, s.bytes_at, q.asked ? q.budget_bytes : -1))
      return call_failed (c);
    if (q.asked)
      print_answer (t, &s, &q);
  }
  return q.missing_bytes ? EXIT_NO : EXIT_YES;
}

static const cli_option options[] = {
  OPTION_DEVICE, OPTION_BUDGET, OPTION_FOR, OPTION_STRICT, OPTIONS_END,
};

const cli_command command_info = {
  .name = "info",
  .says = "say what a trace needs, and whether it fits",
  .operands = "TRACE",
  .least = 1,
  .most = 1,
  .about =
      "Prints the ops, the tensors by kind, what the step needs with everything on the device, "
      "its fullest moment and who holds it, and the floor: what the largest op needs at once, "
      "whole and in sections. Below that no plan can go.\n"
      "In a budget of what the step needs, nothing has to move. That number counts granules and, "
      "where the trace is not exact, the reserve.\n"
      "With --device or --budget the last lines answer whether it fits without any plan, and what "
      "is missing; the exit status is 0 or 1.\n",
  .options = options,
  .json = true,
  .draws = true,
  .run = run,
};
