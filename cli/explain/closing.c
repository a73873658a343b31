/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/explain/closing.h"

#include <string.h>

#include "base/units.h"

double closing_gap (int64_t step_ns, int64_t bound_ns) {
  if (bound_ns <= 0 || step_ns <= bound_ns)
    return 0;
  __int128 parts = ((__int128)(step_ns - bound_ns) * 10000 + bound_ns - 1) / bound_ns;
  return (double)parts / 100;
}

bool closing_of (const trace *t, const ask *q, const allowed *most, const plan *p, closing *out,
                 error *err) {
  *out = (closing){ .plan = p };
  return ask_others_of (t, q, most, p->predicted.step_ns, out->others, &out->n_others, err);
}

bool closing_of_plan (const trace *t, const plan *p, closing *out, error *err) {
  ask q = { .device = p->device,
            .options = { .budget_bytes = p->budget_bytes,
                         .host_bytes = p->host_bytes,
                         .sections = p->n_sections ? SECTIONS_AUTO : SECTIONS_OFF,
                         .recompute = p->n_recomputes ? RECOMPUTE_AUTO : RECOMPUTE_OFF } };
  const char *covers = p->certificate.covers;
  if (covers && strstr (covers, "whatever sections"))
    q.options.sections = SECTIONS_AUTO;
  if (covers && (strstr (covers, "made again") || strstr (covers, "recompute entries")))
    q.options.recompute = RECOMPUTE_AUTO;
  allowed all = allowed_by (t);
  return closing_of (t, &q, &all, p, out, err);
}

/* Plain words for each `covers` of the planners; the first whose text is in it. */
static const struct {
  const char *covers, *whom;
} words[] = {
  { "without sections and recompute", " that only swaps" },
  { "with this cut and these recompute entries", " with these cuts and drops" },
  { ", with whatever sections and recompute entries", "" },
  { "with any cheap op made again, cut into", " that swaps, recomputes cheap ops or cuts" },
  { "made again and nothing swapped, cut into", " that recomputes or cuts" },
  { "made again, cut into", " that swaps, recomputes or cuts" },
  { "without recompute entries, cut into", " that swaps or cuts" },
  { "and nothing swapped", " that only recomputes" },
  { "with any cheap op made again", " that swaps or recomputes cheap ops" },
  { "made again", " that swaps or recomputes" },
};

static bool is_compute (const plan *p) {
  return p->certificate.lower_bound_ns <= p->predicted.baseline_ns;
}

const char *closing_covers (const plan *p) {
  return is_compute (p) ? "every plan: the ops alone take as long" : p->certificate.covers;
}

const char *closing_whom (const plan *p) {
  const char *covers = p->certificate.covers;
  if (is_compute (p) || !covers)
    return "";
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strstr (covers, words[i].covers))
      return words[i].whom;
  return " so covered";
}

void closing_line (FILE *to, const closing *x) {
  char step[UNITS_TEXT], peak[UNITS_TEXT];
  const plan *p = x->plan;
  const char *whom = closing_whom (p);
  const char *covers = p->certificate.covers;
  const char *order =
      !is_compute (p) && covers && strstr (covers, "with its ops in") ? " in this order" : "";
  double gap = closing_gap (p->predicted.step_ns, p->certificate.lower_bound_ns);
  fprintf (to, "%s in %s, ", units_time (step, p->predicted.step_ns),
           units_bytes (peak, p->predicted.peak_bytes));
  if (!p->has_certificate)
    fprintf (to, "with no bound beside it");
  else if (gap > 0)
    fprintf (to, "at most %.2f %% above what any plan%s%s can reach", gap, whom, order);
  else
    fprintf (to, "and no plan%s%s is faster", whom, order);
  for (int i = 0; i < x->n_others; i++)
    fprintf (to, "%s%s", i ? " or " : "; ", x->others[i].option);
  fputs (x->n_others ? " may do better\n" : "\n", to);
}

void closing_print (FILE *to, const closing *x) {
  char least[UNITS_TEXT];
  for (int i = 0; i < x->n_others; i++)
    fprintf (to, "%-8s %10s  is not ruled out with %s, by a quick bound\n", i ? "" : "perhaps",
             units_time (least, x->others[i].lower_bound_ns), x->others[i].option);
  fputs ("\n", to);
  closing_line (to, x);
}

void closing_put (json_writer *w, const closing *x) {
  json_put_key (w, "others");
  json_open_array (w);
  for (int i = 0; i < x->n_others; i++) {
    json_open_object (w);
    json_add_int (w, "lower_bound_ns", x->others[i].lower_bound_ns);
    json_add_text (w, "option", x->others[i].option);
    json_close_object (w);
  }
  json_close_array (w);
}
