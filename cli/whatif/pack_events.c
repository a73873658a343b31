/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Jobs that come and go: packed again at every event.  A job changes its plan between two of its
   steps; it first gives up what the new plan does not keep, then takes what the others have given
   up. */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/units.h"
#include "cli/whatif/pack.h"
#include "cli/inputs/policies.h"
#include "solver/fleet/transition.h"

enum { MOST_EVENTS = 2 * CARDS_MOST_JOBS };

typedef struct event {
  int64_t at_ns;
  int32_t job;
  bool leaves;
} event;

/* An event's effect on a job. */
typedef struct change {
  const plan *before, *after;
  int64_t step_ns; /* before, with the others running */
  int32_t card, old_card;
  bool moved;
  transition bytes;
  int64_t waits_ns; /* between its last step before and its first one after, at worst */
} change;

bool pack_has_events (const call *c) {
  return call_text (c, "arrive") || call_text (c, "leave");
}

static bool add_events (call *c, const packing *p, const char *option, event *events, int *n) {
  const char *rest = call_text (c, option), *part;
  while ((part = next_part (c, &rest))) {
    const char *at = strrchr (part, '@');
    char *name = at ? arena_string_n (c->arena, part, (size_t)(at - part), &c->err) : NULL;
    event e = { .job = -1, .leaves = strcmp (option, "leave") == 0 };
    if (!at)
      return call_usage (c, "--%s: %s is not JOB@TIME", option, part);
    if (!name)
      return false;
    for (int32_t i = 0; i < p->n_jobs; i++)
      if (strcmp (p->jobs[i].name, name) == 0)
        e.job = i;
    if (e.job < 0)
      return call_usage (c, "--%s: there is no job %s; the first is %s", option, name,
                         p->jobs[0].name);
    if (!call_part (c, option, at + 1, 0, &e.at_ns))
      return false;
    for (int i = 0; i < *n; i++)
      if (events[i].job == e.job && events[i].leaves == e.leaves)
        return call_usage (c, "--%s: %s is named twice", option, name);
    events[(*n)++] = e;
  }
  return !c->err.code;
}

static int by_time (const void *a, const void *b) {
  const event *x = a, *y = b;
  /* a job that leaves makes room for one that comes */
  return ORDER (x->at_ns, y->at_ns) ?: ORDER (y->leaves, x->leaves) ?: ORDER (x->job, y->job);
}

static bool read_events (call *c, const packing *p, event *events, int *n) {
  *n = 0;
  if (!add_events (c, p, "arrive", events, n))
    return false;
  for (int32_t j = 0; j < p->n_jobs; j++) {
    bool comes = false;
    for (int i = 0; i < *n; i++)
      comes |= events[i].job == j;
    if (!comes)
      events[(*n)++] = (event){ .job = j };
  }
  if (!add_events (c, p, "leave", events, n))
    return false;
  for (int i = 0; i < *n; i++)
    for (int k = 0; k < *n; k++)
      if (events[i].job == events[k].job && !events[i].leaves && events[k].leaves &&
          events[k].at_ns <= events[i].at_ns)
        return call_usage (c, "%s leaves before it arrives", p->jobs[events[i].job].name);
  qsort (events, (size_t)*n, sizeof *events, by_time);
  return true;
}

/* Those that are there, in a packing of their own; of[]: which they are. */
static void present (const packing *p, const bool *here, packing *out, int32_t *of) {
  *out = *p;
  out->options.cards = p->cards;
  out->n_jobs = 0;
  for (int32_t j = 0; j < p->n_jobs; j++)
    if (here[j]) {
      of[out->n_jobs] = j;
      out->jobs[out->n_jobs++] = p->jobs[j];
    }
}

/* A job that shrinks ends its step and copies out; one that grows or begins waits for all of these
   on its card, and then copies in. One after the other on the link of a card, at its full rate. */
static bool find_changes (call *c, const packing *p, change *all) {
  arena *scratch = arena_new (0);
  bool ok = scratch || error_memory (&c->err);
  int64_t ready_ns[CARDS_MOST] = { 0 }, ins_ns[CARDS_MOST] = { 0 };
  for (int32_t j = 0; ok && j < p->n_jobs; j++) {
    change *it = &all[j];
    if (!it->after)
      continue;
    const plan *from = it->moved ? NULL : it->before;
    ok = transition_between (p->jobs[j].trace, from, it->after, scratch, &it->bytes, &c->err);
    if (ok && it->moved && it->before) { /* all of it leaves the other card */
      transition away;
      ok = transition_between (p->jobs[j].trace, NULL, it->before, scratch, &away, &c->err);
      it->bytes.out_bytes = away.in_bytes;
      it->bytes.out_ns = away.in_ns;
    }
  }
  for (int32_t j = 0; ok && j < p->n_jobs; j++) {
    change *it = &all[j];
    if (!it->after || !it->before)
      continue;
    int64_t given_ns = it->step_ns + it->bytes.out_ns;
    bool shrinks =
        it->moved || it->after->budget_bytes < it->before->budget_bytes || it->bytes.out_bytes > 0;
    if (shrinks && given_ns > ready_ns[it->old_card])
      ready_ns[it->old_card] = given_ns;
  }
  for (int32_t j = 0; ok && j < p->n_jobs; j++) {
    change *it = &all[j];
    if (!it->after)
      continue;
    bool grows = !it->before || it->moved || it->after->budget_bytes > it->before->budget_bytes ||
                 it->bytes.in_bytes > 0;
    ins_ns[it->card] += it->bytes.in_ns;
    it->waits_ns = it->bytes.out_ns;
    if (grows && !it->before)
      it->waits_ns += ready_ns[it->card] + ins_ns[it->card];
    else if (grows)
      it->waits_ns += ins_ns[it->card];
  }
  arena_free (scratch);
  return ok;
}

static bool same_plan (const plan *x, const plan *y) {
  return x && y && x->budget_bytes == y->budget_bytes &&
         x->device.share_ppm == y->device.share_ppm && x->n_moves == y->n_moves;
}

static void put_names (json_writer *w, const packing *p, const char *key, const event *events,
                       int n, bool leaves) {
  json_add_array (w, key);
  for (int i = 0; i < n; i++)
    if (events[i].leaves == leaves)
      json_put_text (w, p->jobs[events[i].job].name);
  json_close_array (w);
}

static void put_events (json_writer *w, const packing *p, const event *events, int n,
                        const cards_answer *v, const packing *now, const change *all) {
  json_open_object (w);
  put_names (w, p, "arrives", events, n, false);
  json_add_int (w, "at_ns", events[0].at_ns);
  json_add_array (w, "changes");
  for (int32_t j = 0; j < p->n_jobs; j++) {
    if (!all[j].before && !all[j].after)
      continue;
    json_open_object (w);
    json_add_int (w, "budget_after_bytes", all[j].after ? all[j].after->budget_bytes : 0);
    json_add_int (w, "budget_before_bytes", all[j].before ? all[j].before->budget_bytes : 0);
    json_add_int (w, "in_bytes", all[j].bytes.in_bytes);
    json_add_text (w, "name", p->jobs[j].name);
    json_add_int (w, "out_bytes", all[j].bytes.out_bytes);
    json_add_int (w, "waits_ns", all[j].waits_ns);
    json_close_object (w);
  }
  json_close_array (w);
  json_add_array (w, "jobs");
  for (int32_t i = 0; i < now->n_jobs; i++)
    pack_put_place (w, now, &v->places[i], i);
  json_close_array (w);
  put_names (w, p, "leaves", events, n, true);
  json_close_object (w);
}

static void print_changes (const packing *p, const change *all) {
  char a[5][UNITS_TEXT];
  for (int32_t j = 0; j < p->n_jobs; j++) {
    const change *it = &all[j];
    if (!it->before && !it->after)
      continue;
    if (!it->after)
      printf ("  %-14s gives back %s\n", p->jobs[j].name,
              units_bytes (a[0], it->before->budget_bytes));
    else if (!it->before)
      printf ("  %-14s begins in %s: %s in; it waits %s at most\n", p->jobs[j].name,
              units_bytes (a[0], it->after->budget_bytes), units_bytes (a[1], it->bytes.in_bytes),
              units_time (a[2], it->waits_ns));
    else if (same_plan (it->before, it->after) && !it->moved)
      printf ("  %-14s keeps its plan\n", p->jobs[j].name);
    else
      printf ("  %-14s %s to %s%s: %s out, %s in; it waits %s between two steps\n", p->jobs[j].name,
              units_bytes (a[0], it->before->budget_bytes),
              units_bytes (a[1], it->after->budget_bytes), it->moved ? " on another card" : "",
              units_bytes (a[2], it->bytes.out_bytes), units_bytes (a[3], it->bytes.in_bytes),
              units_time (a[4], it->waits_ns));
  }
}

/* Running jobs go on until there is a plan for those that are there now. */
typedef struct running {
  const plan *plan[CARDS_MOST_JOBS];
  int32_t card[CARDS_MOST_JOBS];
  int64_t step_ns[CARDS_MOST_JOBS];
  bool here[CARDS_MOST_JOBS];
} running;

/* All that happens at one moment. */
static bool run_moment (call *c, packing *p, const event *events, int n, running *r, json_writer *w,
                        bool *all_placed) {
  packing now;
  cards_answer v = { 0 };
  change all[CARDS_MOST_JOBS] = { 0 };
  int32_t of[CARDS_MOST_JOBS];
  char at[UNITS_TEXT];
  for (int i = 0; i < n; i++)
    r->here[events[i].job] = !events[i].leaves;
  present (p, r->here, &now, of);
  if (now.n_jobs &&
      (!cards_place_jobs (now.jobs, now.n_jobs, &now.options, c->arena, &v, &c->err) ||
       !pack_store (c, &now, &v)))
    return false;
  for (int32_t j = 0; j < p->n_jobs; j++) {
    all[j] = (change){ .before = r->plan[j], .step_ns = r->step_ns[j], .old_card = r->card[j] };
    r->plan[j] = NULL;
  }
  for (int32_t i = 0; i < now.n_jobs; i++) {
    const cards_place *place = &v.places[i];
    int32_t j = of[i];
    if (place->card < 0) {
      *all_placed = false;
      continue;
    }
    all[j].after = r->plan[j] = place->plan;
    all[j].card = r->card[j] = place->card;
    all[j].moved = all[j].before && all[j].card != all[j].old_card;
    r->step_ns[j] = place->together_ns;
  }
  if (!find_changes (c, p, all))
    return false;
  if (c->json) {
    put_events (w, p, events, n, &v, &now, all);
    return true;
  }
  printf ("%s:", events[0].at_ns ? units_time (at, events[0].at_ns) : "0 s");
  for (int i = 0; i < n; i++)
    printf ("%s %s %s", i ? "," : "", p->jobs[events[i].job].name,
            events[i].leaves ? "leaves" : "arrives");
  puts ("");
  print_changes (p, all);
  if (now.n_jobs && !pack_print_places (c, &now, &v))
    return false;
  puts ("");
  return true;
}

int pack_run_events (call *c, packing *p) {
  event events[MOST_EVENTS];
  running r = { 0 };
  json_writer w;
  bool all_placed = true;
  int n;
  if (!read_events (c, p, events, &n) || !(p->options.known = cards_known_new (c->arena, &c->err)))
    return call_failed (c);
  json_begin_object (&w, 2);
  json_add_array (&w, "events");
  bool ok = true;
  for (int i = 0, end; ok && i < n; i = end) {
    for (end = i + 1; end < n && events[end].at_ns == events[i].at_ns; end++)
      ;
    ok = run_moment (c, p, events + i, end - i, &r, &w, &all_placed);
  }
  json_close_array (&w);
  json_close_object (&w);
  if (ok && c->json)
    ok = call_print_json (c, &w);
  else
    bytes_free (&w.out);
  return !ok ? call_failed (c) : all_placed ? EXIT_YES : EXIT_NO;
}
