/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/whatif/offline_figures.h"

#include "base/units.h"

#define ONE ((int64_t)1000000)

static figure_point *new_points (arena *a, int32_t n, error *err) {
  return NEW (a, n > 0 ? n : 1, figure_point, err);
}

/* ---- facts ---- */

enum { MOST_FACTS = 8 };

static void add_fact (figure_page *page, figure_fact *facts, arena *a, const char *key,
                      const char *text, int64_t exact, error *err) {
  facts[page->n_facts++] = (figure_fact){ key, arena_string (a, text, err), exact };
}

static void add_bytes (figure_page *page, figure_fact *facts, arena *a, const char *key,
                       int64_t value, error *err) {
  char text[UNITS_TEXT];
  add_fact (page, facts, a, key, units_bytes (text, value), value, err);
}

static void add_time (figure_page *page, figure_fact *facts, arena *a, const char *key,
                      int64_t value, error *err) {
  char text[UNITS_TEXT];
  add_fact (page, facts, a, key, units_time (text, value), value, err);
}

/* ---- a curve ---- */

static const figure_axis budget_axis = { "budget", FIGURE_BYTES, false, NULL, 0 };

static bool curve_steps (const curve *v, arena *a, figure *f, error *err) {
  figure_series *s = NEW (a, 4, figure_series, err);
  figure_mark *marks = NEW (a, 3, figure_mark, err);
  figure_point *step = new_points (a, v->count, err), *low = new_points (a, v->count, err);
  figure_point *band = new_points (a, v->count, err), *dots = new_points (a, v->count, err);
  char text[UNITS_TEXT];
  if (!s || !marks || !step || !low || !band || !dots)
    return false;
  for (int32_t i = 0; i < v->count; i++) {
    const curve_point *p = &v->points[i];
    int64_t ns = p->plan ? p->plan->predicted.step_ns : FIGURE_HOLE;
    int64_t bound = p->lower_bound_ns >= 0 ? p->lower_bound_ns : FIGURE_HOLE;
    step[i] = dots[i] = (figure_point){ p->budget_bytes, ns, 0, NULL };
    low[i] = (figure_point){ p->budget_bytes, bound, 0, NULL };
    bool both = ns != FIGURE_HOLE && bound != FIGURE_HOLE;
    band[i] = (figure_point){ p->budget_bytes, both ? ns : FIGURE_HOLE, both ? bound : 0, NULL };
  }
  s[0] = (figure_series){ "not known", FIGURE_BAND, TONE_plain, false, band, v->count };
  s[1] = (figure_series){ "lower bound", FIGURE_LINE, TONE_bound, true, low, v->count };
  s[2] = (figure_series){ "step", FIGURE_LINE, TONE_compute, false, step, v->count };
  s[3] = (figure_series){ "planned at", FIGURE_POINTS, TONE_compute, false, dots, v->count };
  *f = (figure){ .id = "curve",
                 .title = "A step's time against memory",
                 .x = budget_axis,
                 .y = { "step", FIGURE_NS, false, NULL, 0 },
                 .series = s,
                 .n_series = 4,
                 .marks = marks };
  const char *base = arena_format (a, err, "without swaps %s", units_time (text, v->baseline_ns));
  marks[f->n_marks++] = (figure_mark){ MARK_Y, 0, v->baseline_ns, base, TONE_plain };
  if (v->knee >= 0) {
    const curve_point *k = &v->points[v->knee];
    const char *name = arena_format (a, err, "knee: %s", units_bytes (text, k->budget_bytes));
    marks[f->n_marks++] =
        (figure_mark){ MARK_POINT, k->budget_bytes, k->plan->predicted.step_ns, name, TONE_limit };
    base = name ? base : NULL;
  }
  return base;
}

static bool curve_bytes (const curve *v, arena *a, figure *f, error *err) {
  static const char *const names[] = { "copied out", "copied in", "held on the host" };
  static const figure_tone tones[] = { TONE_out, TONE_in, TONE_copy };
  figure_series *s = NEW (a, 3, figure_series, err);
  if (!s)
    return false;
  for (int k = 0; k < 3; k++) {
    figure_point *at = new_points (a, v->count, err);
    if (!at)
      return false;
    for (int32_t i = 0; i < v->count; i++) {
      const plan *p = v->points[i].plan;
      int64_t bytes = !p       ? FIGURE_HOLE
                      : k == 0 ? p->predicted.d2h_bytes
                      : k == 1 ? p->predicted.h2d_bytes
                               : p->predicted.host_peak_bytes;
      at[i] = (figure_point){ v->points[i].budget_bytes, bytes, 0, NULL };
    }
    s[k] = (figure_series){ names[k], FIGURE_LINE, tones[k], k == 1, at, v->count };
  }
  *f = (figure){ .id = "bytes",
                 .title = "What it moves",
                 .x = budget_axis,
                 .y = { "a step", FIGURE_BYTES, true, NULL, 0 },
                 .series = s,
                 .n_series = 3 };
  return true;
}

bool curve_figure (const trace *t, const device *d, const curve *v, arena *a, figure_page *out,
                   error *err) {
  figure *figures = NEW (a, 2, figure, err);
  figure_fact *facts = NEW (a, MOST_FACTS, figure_fact, err);
  if (!figures || !facts)
    return false;
  *out = (figure_page){ .title = t->name, .figures = figures, .facts = facts, .n_figures = 2 };
  out->subtitle = arena_format (a, err, "memory and time on %s", d->name);
  add_time (out, facts, a, "without swaps", v->baseline_ns, err);
  add_bytes (out, facts, a, "peak", v->peak_bytes, err);
  add_bytes (out, facts, a, "floor", v->floor_bytes, err);
  if (v->knee >= 0)
    add_bytes (out, facts, a, "knee", v->points[v->knee].budget_bytes, err);
  return !err->code && out->subtitle && curve_steps (v, a, &figures[0], err) &&
         curve_bytes (v, a, &figures[1], err);
}

/* ---- bars ---- */

/* A figure of bars over names; values FIGURE_HOLE where there is none. */
static figure bar_figure (const char *id, const char *title, const char *what, figure_unit unit,
                          const char *const *names, int32_t n) {
  return (figure){ .id = id,
                   .title = title,
                   .x = { "", FIGURE_NAME, false, names, n },
                   .y = { what, unit, true, NULL, 0 } };
}

static bool has_series (figure *f, int32_t n, arena *a, error *err) {
  f->series = NEW (a, n, figure_series, err);
  f->n_series = n;
  return f->series != NULL;
}

static bool add_bars (figure *f, int32_t k, const char *name, figure_tone tone,
                      const int64_t *values, const char *const *notes, arena *a, error *err) {
  figure_point *at = new_points (a, f->x.n_names, err);
  figure_series *s = (figure_series *)&f->series[k];
  if (!at)
    return false;
  for (int32_t i = 0; i < f->x.n_names; i++)
    at[i] = (figure_point){ i, values[i], 0, notes ? notes[i] : NULL };
  *s = (figure_series){ name, FIGURE_BARS, tone, false, at, f->x.n_names };
  return true;
}

/* ---- policies beside each other ---- */

static bool compare_budget (const compared *rows, int32_t n, int32_t which, arena *a, figure *f,
                            error *err) {
  const char **names = NEW (a, n, const char *, err), **notes = NEW (a, n, const char *, err);
  int64_t *steps = NEW (a, n, int64_t, err);
  figure_mark *marks = NEW (a, 2, figure_mark, err);
  char text[UNITS_TEXT];
  if (!names || !notes || !steps || !marks)
    return false;
  for (int32_t i = 0; i < n; i++) {
    names[i] = rows[i].name;
    notes[i] = rows[i].note;
    steps[i] = rows[i].step_ns >= 0 ? rows[i].step_ns : FIGURE_HOLE;
  }
  const char *id = arena_format (a, err, "budget-%d", which + 1);
  const char *title = arena_format (a, err, "A step in %s", units_bytes (text, rows->budget_bytes));
  *f = bar_figure (id, title, "step", FIGURE_NS, names, n);
  if (!id || !title || !has_series (f, 1, a, err) ||
      !add_bars (f, 0, "step", TONE_compute, steps, notes, a, err))
    return false;
  f->marks = marks;
  if (rows->lower_bound_ns > 0)
    marks[f->n_marks++] =
        (figure_mark){ MARK_Y, 0, rows->lower_bound_ns, "lower bound", TONE_limit };
  return true;
}

bool compare_figure (const trace *t, const device *d, const compared *rows, int32_t n, arena *a,
                     figure_page *out, error *err) {
  figure *figures = NEW (a, n > 0 ? n : 1, figure, err);
  if (!figures)
    return false;
  *out = (figure_page){ .title = t->name, .figures = figures };
  out->subtitle = arena_format (a, err, "our planner and the published policies on %s", d->name);
  for (int32_t first = 0, end; first < n; first = end) {
    for (end = first + 1; end < n && rows[end].budget_bytes == rows[first].budget_bytes; end++)
      ;
    if (!compare_budget (rows + first, end - first, out->n_figures, a, &figures[out->n_figures],
                         err))
      return false;
    out->n_figures++;
  }
  return out->subtitle;
}

/* ---- grids ---- */

/* A device and batch: a line a link over the budgets, or bars by link where there is one. */
static const figure_tone line_tones[] = { TONE_compute,   TONE_out,      TONE_in,       TONE_stall,
                                          TONE_optimizer, TONE_gradient, TONE_copy,     TONE_bound,
                                          TONE_input,     TONE_plain,    TONE_workspace };
enum { LINE_TONES = sizeof line_tones / sizeof *line_tones };

static bool whatif_lines (const whatif_grid *g, const whatif_row *rows, arena *a, figure *f,
                          error *err) {
  figure_series *s = NEW (a, g->n_links, figure_series, err);
  figure_mark *mark = NEW (a, 1, figure_mark, err);
  char text[UNITS_TEXT];
  if (!s || !mark)
    return false;
  for (int32_t l = 0; l < g->n_links; l++) {
    figure_point *at = new_points (a, g->n_budgets, err);
    if (!at)
      return false;
    for (int32_t b = 0; b < g->n_budgets; b++) { /* budgets may be given in any order */
      const whatif_row *r = &rows[l * g->n_budgets + b];
      int32_t k = b;
      for (; k > 0 && at[k - 1].x > r->budget_bytes; k--)
        at[k] = at[k - 1];
      at[k] =
          (figure_point){ r->budget_bytes, r->step_ns >= 0 ? r->step_ns : FIGURE_HOLE, 0, NULL };
    }
    s[l] = (figure_series){ .name = arena_string (
                                a, units_rate (text, rows[l * g->n_budgets].link_bytes_per_s), err),
                            .kind = FIGURE_LINE,
                            .tone = line_tones[l % LINE_TONES],
                            .dashed = l >= LINE_TONES,
                            .points = at,
                            .n_points = g->n_budgets };
    if (!s[l].name)
      return false;
  }
  const char *base =
      arena_format (a, err, "without swaps %s", units_time (text, rows->baseline_ns));
  *mark = (figure_mark){ MARK_Y, 0, rows->baseline_ns, base, TONE_plain };
  f->x = budget_axis;
  f->y = (figure_axis){ "step", FIGURE_NS, false, NULL, 0 };
  f->series = s;
  f->n_series = g->n_links;
  f->marks = mark;
  f->n_marks = 1;
  return base;
}

static bool whatif_bars (const whatif_grid *g, const whatif_row *rows, arena *a, figure *f,
                         error *err) {
  const char **names = NEW (a, g->n_links, const char *, err);
  const char **notes = NEW (a, g->n_links, const char *, err);
  int64_t *steps = NEW (a, g->n_links, int64_t, err), *bases = NEW (a, g->n_links, int64_t, err);
  char text[UNITS_TEXT];
  if (!names || !notes || !steps || !bases)
    return false;
  for (int32_t l = 0; l < g->n_links; l++) {
    names[l] = arena_string (a, units_rate (text, rows[l].link_bytes_per_s), err);
    notes[l] = rows[l].step_ns < 0 ? "no plan" : NULL;
    steps[l] = rows[l].step_ns < 0 ? FIGURE_HOLE : rows[l].step_ns;
    bases[l] = rows[l].baseline_ns;
    if (!names[l])
      return false;
  }
  *f = bar_figure (f->id, f->title, "step", FIGURE_NS, names, g->n_links);
  return has_series (f, 2, a, err) && add_bars (f, 0, "step", TONE_compute, steps, notes, a, err) &&
         add_bars (f, 1, "without swaps", TONE_plain, bases, NULL, a, err);
}

bool whatif_figure (const whatif_grid *g, const whatif_row *rows, int32_t n, arena *a,
                    figure_page *out, error *err) {
  int32_t per = g->n_links * g->n_budgets, figures = g->slices > 1 ? 0 : n / per;
  figure *f = NEW (a, figures > 0 ? figures : 1, figure, err);
  *out = (figure_page){ .title = "What if", .figures = f, .n_figures = f ? figures : 0 };
  out->subtitle =
      g->slices > 1 ? "a slice of a grid has no picture" : "a step by card, link and memory";
  for (int32_t i = 0; f && i < figures; i++) {
    const whatif_row *at = &rows[i * per];
    char peak[UNITS_TEXT];
    f[i].id = arena_format (a, err, "case-%d", i + 1);
    f[i].title =
        arena_format (a, err, "%s, batch x%lld: %s without swaps", g->devices[at->device].name,
                      (long long)at->batch, units_bytes (peak, at->peak_bytes));
    if (!f[i].id || !f[i].title ||
        !(g->n_budgets > 1 ? whatif_lines (g, at, a, &f[i], err)
                           : whatif_bars (g, at, a, &f[i], err)))
      return false;
  }
  return f;
}

/* ---- packings ---- */

static int64_t longer (int64_t step_ns, int64_t baseline_ns) {
  return step_ns > 0 ? units_scale (step_ns, ONE, baseline_ns) - ONE : FIGURE_HOLE;
}

static bool rival_figure (const packing *p, arena *a, figure *f, error *err) {
  const char **names = NEW (a, ALTERNATIVES, const char *, err),
             **notes = NEW (a, ALTERNATIVES, const char *, err);
  const char *told[ALTERNATIVES]; /* the other bar has said it */
  int64_t worst[ALTERNATIVES], mean[ALTERNATIVES];
  int32_t n = 0;
  if (!names || !notes)
    return false;
  for (int32_t j = 0; j < p->n_jobs; j++)
    n += p->rivals[ALTERNATIVE_OURS].step_ns[j] > 0;
  for (int i = 0; i < ALTERNATIVES; i++) {
    const alternative *r = &p->rivals[i];
    names[i] = r->name;
    notes[i] = r->fits ? NULL : r->note ? r->note : "does not fit";
    told[i] = "";
    worst[i] = r->fits ? r->worst_ppm - ONE : FIGURE_HOLE;
    mean[i] = r->fits && n ? r->total_ppm / n - ONE : FIGURE_HOLE;
  }
  *f = bar_figure ("rivals", "Longer than alone, by who decides", "longer", FIGURE_SHARE, names,
                   ALTERNATIVES);
  return has_series (f, 2, a, err) &&
         add_bars (f, 0, "slowest job", TONE_stall, worst, notes, a, err) &&
         add_bars (f, 1, "mean", TONE_compute, mean, told, a, err);
}

bool pack_figure (const packing *p, const cards_answer *v, arena *a, figure_page *out, error *err) {
  int32_t n = p->n_jobs;
  figure *f = NEW (a, 3, figure, err);
  const char **names = NEW (a, n, const char *, err), **notes = NEW (a, n, const char *, err);
  int64_t budget[CARDS_MOST_JOBS], peak[CARDS_MOST_JOBS], floor[CARDS_MOST_JOBS];
  int64_t seen[CARDS_MOST_JOBS], expected[CARDS_MOST_JOBS];
  if (!f || !names || !notes)
    return false;
  for (int32_t i = 0; i < n; i++) {
    const cards_place *at = &v->places[i];
    names[i] = p->jobs[i].name;
    notes[i] = at->card < 0 ? "no place" : p->card_names[at->card];
    budget[i] = at->card < 0 ? FIGURE_HOLE : at->budget_bytes;
    peak[i] = at->peak_bytes;
    floor[i] = at->floor_bytes;
    seen[i] = at->card < 0 ? FIGURE_HOLE : longer (at->together_ns, at->baseline_ns);
    expected[i] = at->card < 0 ? FIGURE_HOLE : longer (at->predicted_ns, at->baseline_ns);
  }
  *out =
      (figure_page){ .title = "Jobs that share", .figures = f, .n_figures = p->has_rivals ? 3 : 2 };
  out->subtitle = arena_format (a, err, "%d of %d jobs have a place on %s%s", v->n_placed, n,
                                p->cards[0].name, p->options.n_cards > 1 ? " and others" : "");
  f[0] = bar_figure ("memory", "Memory of each job", "memory", FIGURE_BYTES, names, n);
  f[1] = bar_figure ("slowdown", "Longer than alone", "longer", FIGURE_SHARE, names, n);
  return out->subtitle && has_series (&f[0], 3, a, err) &&
         add_bars (&f[0], 0, "budget", TONE_compute, budget, notes, a, err) &&
         add_bars (&f[0], 1, "needs without swaps", TONE_plain, peak, NULL, a, err) &&
         add_bars (&f[0], 2, "needs at least", TONE_limit, floor, NULL, a, err) &&
         has_series (&f[1], 2, a, err) &&
         add_bars (&f[1], 0, "all together", TONE_stall, seen, notes, a, err) &&
         add_bars (&f[1], 1, "as predicted", TONE_bound, expected, notes, a, err) &&
         (!p->has_rivals || rival_figure (p, a, &f[2], err));
}

bool batch_figure (const char *title, const char *subtitle, const char *const *names,
                   const int64_t *batches, int32_t n, arena *a, figure_page *out, error *err) {
  figure *f = NEW (a, 1, figure, err);
  *out = (figure_page){ .title = title, .subtitle = subtitle, .figures = f, .n_figures = 1 };
  if (!f)
    return false;
  *f = bar_figure ("batch", "Largest batch", "items", FIGURE_COUNT, names, n);
  return has_series (f, 1, a, err) &&
         add_bars (f, 0, "largest batch", TONE_compute, batches, NULL, a, err);
}
