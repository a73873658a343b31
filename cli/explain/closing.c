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
  const cover *c = &p->certificate.cover;
  if (p->certificate.has_cover && c->sections >= COVER_SECTIONS_LEVEL)
    q.options.sections = SECTIONS_AUTO;
  if (p->certificate.has_cover && c->drops >= COVER_DROPS_CHEAP)
    q.options.recompute = RECOMPUTE_AUTO;
  allowed all = allowed_by (t);
  return closing_of (t, &q, &all, p, out, err);
}

/* A path of ops on several streams may be shorter where they are cut or in another order. */
static bool is_compute (const plan *p) {
  const char *by = p->certificate.bound_by;
  return p->certificate.lower_bound_ns <= p->predicted.baseline_ns &&
         (!by || strcmp (by, "path") != 0);
}

const char *closing_covers (const plan *p, char text[COVER_TEXT]) {
  const certificate *c = &p->certificate;
  if (is_compute (p))
    return "every plan: the ops alone take as long";
  return c->has_cover ? cover_text (&c->cover, text)
                      : "plans that this file of an older version does not name";
}

const char *closing_whom (const plan *p, char text[COVER_TEXT]) {
  const certificate *c = &p->certificate;
  if (is_compute (p))
    return "";
  return c->has_cover ? cover_whom (&c->cover, text) : " so covered";
}

void closing_line (FILE *to, const closing *x) {
  char step[UNITS_TEXT], peak[UNITS_TEXT];
  const plan *p = x->plan;
  char text[COVER_TEXT];
  const char *whom = closing_whom (p, text);
  double gap = closing_gap (p->predicted.step_ns, p->certificate.lower_bound_ns);
  fprintf (to, "%s in %s, ", units_time (step, p->predicted.step_ns),
           units_bytes (peak, p->predicted.peak_bytes));
  if (!p->has_certificate)
    fprintf (to, "with no bound beside it");
  else if (gap > 0)
    fprintf (to, "at most %.2f %% above what any plan%s can reach", gap, whom);
  else
    fprintf (to, "and no plan%s is faster", whom);
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
  json_add_array (w, "others");
  for (int i = 0; i < x->n_others; i++) {
    json_open_object (w);
    json_add_int (w, "lower_bound_ns", x->others[i].lower_bound_ns);
    json_add_text (w, "option", x->others[i].option);
    json_close_object (w);
  }
  json_close_array (w);
}
