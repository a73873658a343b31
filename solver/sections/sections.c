/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/sections/sections.h"

#include <assert.h>
#include <string.h>

#include "base/units.h"

const char *const sections_form_names[SECTIONS_FORMS + 1] = {
  "level", "level-tight", "depth", "depth-tight", "depth-phases", NULL,
};

/* ---- chains ---- */

/* read_in and written_in: per tensor, first + 1 of the chain that reads it without writing it, or
   writes it, whole. */
static bool may_follow (const trace *t, int32_t k, int32_t mark, const int32_t *read_in,
                        const int32_t *written_in) {
  const op *o = &t->ops[k];
  for (int32_t j = 0; j < o->writes.count; j++) {
    int32_t y = o->writes.at[j];
    if (!t->tensors[y].split &&
        ((written_in[y] == mark && !list_has (&o->reads, y)) || read_in[y] == mark))
      return false;
  }
  for (int32_t j = 0; j < o->reads.count; j++) {
    int32_t y = o->reads.at[j];
    if (!t->tensors[y].split && written_in[y] == mark && !list_has (&o->writes, y))
      return false;
  }
  return true;
}

int32_t sections_chain_end (const trace *t, int32_t first, int32_t end, int64_t parts,
                            int32_t *read_in, int32_t *written_in) {
  assert (first >= 0 && first < end && end <= t->n_ops && parts > 1);
  int32_t mark = first + 1, k = first;
  for (; k < end && t->ops[k].parts >= parts; k++) {
    const op *o = &t->ops[k];
    if (!may_follow (t, k, mark, read_in, written_in))
      return k;
    for (int32_t j = 0; j < o->writes.count; j++)
      if (!t->tensors[o->writes.at[j]].split)
        written_in[o->writes.at[j]] = mark;
    for (int32_t j = 0; j < o->reads.count; j++)
      if (!t->tensors[o->reads.at[j]].split && !list_has (&o->writes, o->reads.at[j]))
        read_in[o->reads.at[j]] = mark;
  }
  return k;
}

/* ---- proposals ---- */

/* [*from, *to): the ops from the first that is over the budget while nothing moves to the last. */
static bool tight_ops (const trace *t, const solve_options *o, arena *a, int32_t *from, int32_t *to,
                       error *err) {
  arena_mark mark = arena_here (a);
  counted_step *step = NEW (a, 1, counted_step, err);
  bool ok = step && step_count_bytes (t, o->budget_bytes, a, step, err);
  const gaps *g = ok ? &step->gaps : NULL;
  *from = *to = 0;
  for (int32_t k = 0; ok && k < t->n_ops; k++)
    if (g->base_bytes[k] - g->unused_bytes > g->room_bytes) {
      *from = *to ? *from : k;
      *to = k + 1;
    }
  arena_back (a, mark);
  return ok;
}

bool sections_propose (const trace *t, const solve_options *o, sections_form form, int64_t parts,
                       arena *a, variant *out, error *err) {
  assert (parts > 0 && form >= 0 && form < SECTIONS_FORMS);
  int32_t from = 0, to = t->n_ops;
  bool depth = form >= SECTIONS_DEPTH_ALL;
  bool tight = form == SECTIONS_LEVEL_TIGHT || form == SECTIONS_DEPTH_TIGHT;
  *out = (variant){ .name = sections_form_names[form] };
  out->sections = NEW (a, t->n_ops, section, err);
  int32_t *read_in = NEW (a, t->n_tensors, int32_t, err);
  int32_t *written_in = NEW (a, t->n_tensors, int32_t, err);
  if (!out->sections || !read_in || !written_in || (tight && !tight_ops (t, o, a, &from, &to, err)))
    return false;
  for (int32_t k = from; k < to;) {
    if (t->ops[k].parts < parts) {
      k++;
      continue;
    }
    int32_t stop = k + 1;
    while (stop < to && t->ops[stop].parts >= parts &&
           (form != SECTIONS_DEPTH_PHASES || t->ops[stop].phase == t->ops[k].phase))
      stop++;
    if (depth)
      stop = sections_chain_end (t, k, stop, parts, read_in, written_in);
    section_order order = depth && stop > k + 1 ? SECTION_DEPTH : SECTION_LEVEL;
    section *last = out->n_sections ? &out->sections[out->n_sections - 1] : NULL;
    if (order == SECTION_LEVEL && last && last->order == SECTION_LEVEL && last->end == k)
      last->end = stop;
    else
      out->sections[out->n_sections++] = (section){ k, stop, parts, order };
    k = stop;
  }
  return true;
}

/* ---- the search ---- */

static bool same (const variant *a, const variant *b) {
  if (a->n_sections != b->n_sections)
    return false;
  for (int32_t i = 0; i < a->n_sections; i++) {
    const section *x = &a->sections[i], *y = &b->sections[i];
    if (x->first != y->first || x->end != y->end || x->parts != y->parts || x->order != y->order)
      return false;
  }
  return true;
}

static bool allowed (const solve_options *o, sections_form form) {
  bool depth = form >= SECTIONS_DEPTH_ALL;
  return o->section_orders == ORDERS_AUTO || depth == (o->section_orders == ORDERS_DEPTH);
}

/* Somebody wants it to end; or the ticks are spent, and something fits. */
static bool is_over (const solve_options *o, const sections_family *f) {
  return solve_stops (o) || (f->count && f->ticks >= f->limit_ticks);
}

static bool better (const variant_value *a, const variant_value *b) {
  if (a->step_ns != b->step_ns)
    return a->step_ns < b->step_ns;
  return a->bound_ns < b->bound_ns;
}

/* Values it, and puts it where it belongs. */
static bool consider (const trace *t, const solve_options *o, variant *v, arena *scratch,
                      sections_family *f, error *err) {
  variant_value value;
  for (int32_t i = 0; i < f->count; i++)
    if (same (v, &f->at[i]))
      return true;
  int64_t ops = t->n_ops;
  for (int32_t i = 0; i < v->n_sections; i++)
    ops += (v->sections[i].end - v->sections[i].first) * (v->sections[i].parts - 1);
  if (ops > tuned (o->tuning, TUNE_cuts_ops))
    return true;
  f->proposed++;
  int64_t beat_ns = f->count && f->values[0].step_ns != INT64_MAX ? f->values[0].step_ns : 0;
  if (!variant_try (t, v, o, beat_ns, scratch, &value, err))
    return false;
  f->ticks += value.ticks / solve_events_per_tick (value.n_ops);
  if (!value.legal) {
    f->refused++;
    return true;
  }
  if (value.floor_bytes < f->least_floor_bytes)
    f->least_floor_bytes = value.floor_bytes;
  if (value.bound_ns == INT64_MAX) {
    f->too_large++;
    return true;
  }
  if (value.bound_ns < f->least_bound_ns)
    f->least_bound_ns = value.bound_ns;
  int32_t at = f->count++;
  for (; at > 0 && better (&value, &f->values[at - 1]); at--) {
    f->at[at] = f->at[at - 1];
    f->values[at] = f->values[at - 1];
  }
  f->at[at] = *v;
  f->values[at] = value;
  log_say (o->log, LOG_DETAIL, "cut %s in %lld: %lld sections, %.6g s, at least %.6g s", v->name,
           (long long)v->sections[0].parts, (long long)v->n_sections,
           value.step_ns == INT64_MAX ? -1 : (double)value.step_ns / 1e9,
           (double)value.bound_ns / 1e9);
  return true;
}

/* ---- changes of the best one ---- */

typedef struct changing {
  const trace *t;
  const solve_options *o;
  section *at;  /* with room for two more */
  int32_t n, i; /* how many, and which is changed */
} changing;

static void insert (changing *c, int32_t at, section s) {
  memmove (c->at + at + 1, c->at + at, (size_t)(c->n - at) * sizeof *c->at);
  c->at[at] = s;
  c->n++;
}

static bool leave_out (changing *c) {
  if (c->n == 1)
    return false;
  memmove (c->at + c->i, c->at + c->i + 1, (size_t)(c->n - c->i - 1) * sizeof *c->at);
  c->n--;
  return true;
}

static bool coarser (changing *c) {
  section *s = &c->at[c->i];
  if (c->o->sections == SECTIONS_FIXED || s->parts < 4)
    return false;
  s->parts /= 2;
  return true;
}

static bool finer (changing *c) {
  section *s = &c->at[c->i];
  if (c->o->sections == SECTIONS_FIXED)
    return false;
  s->parts += (s->parts + 1) / 2;
  return true;
}

static bool turn_round (changing *c) {
  section *s = &c->at[c->i];
  if (c->o->section_orders != ORDERS_AUTO)
    return false;
  s->order = s->order == SECTION_DEPTH ? SECTION_LEVEL : SECTION_DEPTH;
  return true;
}

/* The op at which half of the section's time has passed. */
static int32_t middle (const changing *c) {
  const section *s = &c->at[c->i];
  int64_t all_ns = 0, ns = 0;
  int32_t k = s->first;
  for (int32_t i = s->first; i < s->end; i++)
    all_ns += c->t->ops[i].ns;
  while (k + 1 < s->end && 2 * ns < all_ns)
    ns += c->t->ops[k++].ns;
  return k > s->first ? k : s->first + 1;
}

static bool halve (changing *c) {
  section *s = &c->at[c->i], second = *s;
  if (s->end - s->first < 2)
    return false;
  s->end = second.first = middle (c);
  insert (c, c->i + 1, second);
  return true;
}

/* The half that needs less memory in fewer parts: a stretch of its own. */
static bool coarser_half (changing *c, bool first) {
  if (c->o->sections == SECTIONS_FIXED || c->at[c->i].parts < 4 || !halve (c))
    return false;
  c->at[first ? c->i : c->i + 1].parts /= 2;
  return true;
}

static bool coarser_first (changing *c) {
  return coarser_half (c, true);
}

static bool coarser_second (changing *c) {
  return coarser_half (c, false);
}

static bool join (changing *c) {
  section *s = &c->at[c->i];
  if (c->i + 1 == c->n || s[1].first != s->end)
    return false;
  s->end = s[1].end;
  c->i++;
  return leave_out (c);
}

static bool longer (changing *c) {
  section *s = &c->at[c->i];
  int32_t most = c->i + 1 < c->n ? s[1].first : c->t->n_ops;
  if (s->end == most || c->t->ops[s->end].parts < s->parts)
    return false;
  s->end++;
  return true;
}

static bool shorter (changing *c) {
  section *s = &c->at[c->i];
  if (s->end - s->first < 2)
    return false;
  s->end--;
  return true;
}

static bool earlier (changing *c) {
  section *s = &c->at[c->i];
  int32_t least = c->i ? s[-1].end : 0;
  if (s->first == least || c->t->ops[s->first - 1].parts < s->parts)
    return false;
  s->first--;
  return true;
}

static bool later (changing *c) {
  section *s = &c->at[c->i];
  if (s->end - s->first < 2)
    return false;
  s->first++;
  return true;
}

static bool (*const changes[]) (changing *c) = { leave_out,      coarser, finer,
                                                 turn_round,     halve,   coarser_first,
                                                 coarser_second, join,    longer,
                                                 shorter,        earlier, later };
enum { CHANGES = sizeof changes / sizeof *changes };

typedef struct improving {
  const trace *t;
  const solve_options *o;
  arena *a, *scratch;
  sections_family *f;
  int32_t room;
} improving;

static bool try_changed (improving *w, const changing *c, error *err) {
  variant v = { "changed", c->at, NULL, c->n, 0 };
  return consider (w->t, w->o, &v, w->scratch, w->f, err);
}

static bool copy_best (improving *w, const variant *best, changing *c, error *err) {
  section *list = NEW (w->a, best->n_sections + 2, section, err);
  *c = (changing){ w->t, w->o, list, best->n_sections, 0 };
  if (list)
    memcpy (list, best->sections, (size_t)best->n_sections * sizeof *list);
  return list;
}

/* One op more in a section of its own, where the trace is small enough to try them all. */
static bool add_one (improving *w, const variant *best, error *err) {
  int64_t few = tuned (w->o->tuning, TUNE_cuts_few_ops);
  for (int32_t k = 0; w->t->n_ops <= few && k < w->t->n_ops && w->f->count < w->room && !is_over (w->o, w->f); k++) {
    int32_t at = 0;
    changing c;
    while (at < best->n_sections && best->sections[at].end <= k)
      at++;
    section one = { k, k + 1, best->sections[0].parts, SECTION_LEVEL };
    if ((at < best->n_sections && best->sections[at].first <= k) ||
        w->t->ops[k].parts < one.parts || w->o->section_orders == ORDERS_DEPTH)
      continue;
    if (!copy_best (w, best, &c, err))
      return false;
    insert (&c, at, one);
    if (!try_changed (w, &c, err))
      return false;
  }
  return true;
}

/* The best cut again and again, each time with one section changed: where its bound is not below
   the plan that stands, no plan is tried. */
static bool change_one (improving *w, error *err) {
  int64_t rounds = tuned (w->o->tuning, TUNE_cuts_rounds);
  int64_t most_sections = tuned (w->o->tuning, TUNE_cuts_sections);
  sections_family *f = w->f;
  int64_t before_ns = f->count ? f->values[0].step_ns : 0;
  for (int round = 0; f->count && round < rounds; round++) {
    variant best = f->at[0];
    if (best.n_sections > most_sections ||
        f->values[0].step_ns <= solve_enough_ns (w->o->gap_ppm, f->compute_ns))
      return true;
    for (int32_t i = 0; i < best.n_sections; i++)
      for (int how = 0; how < CHANGES; how++) {
        changing c;
        if (f->count >= w->room || is_over (w->o, f))
          return true;
        if (!copy_best (w, &best, &c, err))
          return false;
        c.i = i;
        if (changes[how](&c) && !try_changed (w, &c, err))
          return false;
      }
    if (!add_one (w, &best, err))
      return false;
    if (f->values[0].step_ns >= before_ns)
      return true;
    before_ns = f->values[0].step_ns;
  }
  return true;
}

/* If nothing fits so far: cuts of single ops, ever finer. */
static bool fit_each (const trace *t, const solve_options *o, arena *a, arena *scratch,
                      sections_family *f, error *err) {
  enum { SHARES = TUNE_cuts_fit_ppm_last - TUNE_cuts_fit_ppm + 1 };
  for (int i = 0; !f->count && i < SHARES; i++) {
    variant v;
    if (!sections_fit (t, o, tuned (o->tuning, TUNE_cuts_fit_ppm + (tuning_id)i), a, &v, err) ||
        (v.n_sections && !consider (t, o, &v, scratch, f, err)))
      return false;
  }
  return true;
}

/* Every form in every number of parts. */
static bool propose_all (const trace *t, const solve_options *o, arena *a, arena *scratch,
                         sections_family *out, error *err) {
  enum { TRIES = TUNE_cuts_parts_last - TUNE_cuts_parts + 1 };
  bool fixed = o->sections == SECTIONS_FIXED;
  for (int i = 0; i < (fixed ? 1 : TRIES); i++) {
    int64_t parts = fixed ? o->section_parts : tuned (o->tuning, TUNE_cuts_parts + (tuning_id)i);
    if (parts > t->batch)
      return true;
    for (int form = 0; form < SECTIONS_FORMS; form++) {
      variant v;
      if (!allowed (o, (sections_form)form))
        continue;
      if (!sections_propose (t, o, (sections_form)form, parts, a, &v, err) ||
          (v.n_sections && !consider (t, o, &v, scratch, out, err)))
        return false;
      if (is_over (o, out))
        return true;
    }
  }
  return true;
}

bool sections_search (const trace *t, const solve_options *o, int64_t limit_ticks, arena *a,
                      sections_family *out, error *err) {
  assert (o->sections != SECTIONS_OFF);
  assert (o->sections != SECTIONS_FIXED || o->section_parts > 0);
  enum { ROOM = 400 };
  *out = (sections_family){ .least_bound_ns = INT64_MAX,
                            .least_floor_bytes = INT64_MAX,
                            .compute_ns = trace_total_ns (t),
                            .limit_ticks = limit_ticks };
  out->at = NEW (a, ROOM, variant, err);
  out->values = NEW (a, ROOM, variant_value, err);
  arena *scratch = arena_made (err);
  improving w = { t, o, a, scratch, out, (int32_t)tuned (o->tuning, TUNE_cuts_room) };
  bool ok = scratch && out->at && out->values && propose_all (t, o, a, scratch, out, err) &&
            (is_over (o, out) || (fit_each (t, o, a, scratch, out, err) && change_one (&w, err)));
  arena_free (scratch);
  return ok;
}
