/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/whatif/pack.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/units.h"
#include "cli/inputs/devices.h"
#include "cli/whatif/offline.h"
#include "cli/whatif/offline_figures.h"
#include "cli/figures/picture_files.h"
#include "cli/inputs/policies.h"
#include "cli/inputs/stopping.h"

/* ---- the question ---- */

/* The file's name without its folder and endings; with its number where that is taken. */
static const char *job_name (call *c, const packing *p, const char *path) {
  const char *base = strrchr (path, '/');
  base = base ? base + 1 : path;
  char *name = arena_string (c->arena, base, &c->err);
  static const char *const ends[] = { ".gz", ".zst", ".json", ".trace" };
  for (size_t i = 0; name && i < sizeof ends / sizeof *ends; i++) {
    size_t length = strlen (name), end = strlen (ends[i]);
    if (length > end && strcmp (name + length - end, ends[i]) == 0)
      name[length - end] = 0;
  }
  for (int32_t i = 0; name && i < p->n_jobs; i++)
    if (strcmp (p->jobs[i].name, name) == 0)
      return arena_format (c->arena, &c->err, "%s.%d", name, p->n_jobs + 1);
  return name;
}

static bool read_jobs (call *c, packing *p) {
  if (c->n_operands > CARDS_MOST_JOBS)
    return error_set (&c->err, ERR_usage, "%d jobs: at most %d", c->n_operands, CARDS_MOST_JOBS);
  for (int i = 0; i < c->n_operands; i++) {
    cards_job *j = &p->jobs[p->n_jobs];
    j->trace = offline_trace (c, c->operands[i]);
    j->name = j->trace ? job_name (c, p, c->operands[i]) : NULL;
    if (!j->name)
      return false;
    p->n_jobs++;
  }
  return true;
}

static bool read_cards (call *c, packing *p) {
  const char *rest = call_text (c, "device"), *part;
  if (!rest) {
    p->options.n_cards = 1;
    return device_needed (c, p->jobs[0].trace, &p->cards[0]);
  }
  while ((part = next_part (c, &rest))) {
    if (p->options.n_cards == CARDS_MOST)
      return error_set (&c->err, ERR_usage, "more than %d cards", CARDS_MOST);
    if (!device_named (c, part, &p->cards[p->options.n_cards++]))
      return false;
  }
  return !c->err.code &&
         (p->options.n_cards > 0 || error_set (&c->err, ERR_usage, "--device names no card"));
}

static bool read_packing (call *c, packing *p) {
  int64_t points = 8;
  int objective = PACK_WORST;
  *p = (packing){ 0 };
  if (!read_jobs (c, p) || !read_cards (c, p))
    return false;
  p->options.cards = p->cards;
  p->options.sampling = (curve_options){ .device = p->cards,
                                         .limit_ticks = 4000,
                                         .stop = stopping_stop,
                                         .stop_context = c,
                                         .progress = offline_progress,
                                         .context = c };
  p->options.limit_ticks = 200000;
  stopping_begin (c);
  bool ok = call_quantity (c, "budget", &p->options.memory_bytes) &&
            call_quantity (c, "host", &p->options.host_bytes) &&
            call_quantity (c, "points", &points) && effort_read (c, &p->options.limit_ticks) &&
            call_word (c, "objective", pack_objective_names, &objective);
  p->options.points = (int32_t)points;
  p->options.objective = (pack_objective)objective;
  if (p->options.sampling.limit_ticks > p->options.limit_ticks)
    p->options.sampling.limit_ticks = p->options.limit_ticks;
  for (int32_t i = 0; ok && i < p->options.n_cards; i++) {
    char want[UNITS_TEXT], have[UNITS_TEXT];
    int64_t free_bytes = p->cards[i].memory_bytes - p->cards[i].reserved_bytes;
    if (p->options.memory_bytes > free_bytes)
      ok = error_set (&c->err, ERR_usage, "--budget: %s, but %s leaves %s free",
                      units_bytes (want, p->options.memory_bytes), p->cards[i].name,
                      units_bytes (have, free_bytes));
  }
  return ok;
}

/* ---- answers ---- */

bool pack_store (call *c, const packing *p, const cards_answer *v) {
  const char *folder = call_text (c, "output");
  if (!folder)
    return true;
  if (mkdir (folder, 0777) != 0 && errno != EEXIST)
    return error_set (&c->err, ERR_file, "%s: %s", folder, strerror (errno));
  for (int32_t i = 0; i < p->n_jobs; i++) {
    if (!v->places[i].plan)
      continue;
    const char *path = arena_format (c->arena, &c->err, "%s/%s.json", folder, p->jobs[i].name);
    if (!path || !plan_store (v->places[i].plan, path, false, &c->err))
      return false;
  }
  return true;
}

static double times (int64_t step_ns, int64_t baseline_ns) {
  return baseline_ns > 0 ? (double)step_ns / (double)baseline_ns : 0;
}

void pack_print_places (const packing *p, const cards_answer *v, bool all) {
  printf ("%-16s %-12s %10s %10s %10s %6s %10s %8s %9s %10s\n", "job", "card", "budget", "peak",
          "host", "link", "step", "slower", "predicted", "by itself");
  for (int32_t i = 0; i < p->n_jobs; i++) {
    char a[5][UNITS_TEXT];
    const cards_place *at = &v->places[i];
    if (at->card < 0) {
      if (all)
        printf ("%-16s no place: %s\n", p->jobs[i].name, at->reason);
      continue;
    }
    printf ("%-16s %-12s %10s %10s %10s %5.1f%% %10s %7.2fx %8.2fx %10s\n", p->jobs[i].name,
            p->cards[at->card].name, units_bytes (a[0], at->budget_bytes),
            units_bytes (a[1], at->peak_bytes),
            units_bytes (a[2], at->plan->predicted.host_peak_bytes), (double)at->share_ppm / 10000,
            units_time (a[3], at->together_ns), times (at->together_ns, at->baseline_ns),
            times (at->predicted_ns, at->baseline_ns), units_time (a[4], at->baseline_ns));
  }
}

static void print_rivals (const packing *p) {
  printf ("\n%-16s %8s %8s %8s %8s %8s\n", "on the first card", "worst", "mean", "MSR", "EOR",
          "CBR");
  int32_t n = 0;
  for (int32_t j = 0; j < p->n_jobs; j++)
    n += p->rivals[ALTERNATIVE_OURS].step_ns[j] > 0;
  for (int i = 0; i < ALTERNATIVES; i++) {
    const alternative *r = &p->rivals[i];
    if (!r->fits) {
      printf ("%-16s  does not fit: %s\n", r->name, r->note ? r->note : "no job is there");
      continue;
    }
    printf ("%-16s  %7.2fx %7.2fx %6.1f %% %6.1f %% ", r->name, (double)r->worst_ppm / 1e6,
            (double)r->total_ppm / 1e6 / n, (double)r->msr_ppm / 1e4, (double)r->eor_ppm / 1e4);
    if (r->has_cbr)
      printf ("%8.2f\n", (double)r->cbr_ppm / 1e6);
    else
      printf ("%8s\n", "-");
  }
}

static void print_text (const packing *p, const cards_answer *v) {
  char room[UNITS_TEXT];
  int64_t worst = 0, total = 0;
  pack_print_places (p, v, true);
  for (int32_t i = 0; i < p->n_jobs; i++) {
    const cards_place *at = &v->places[i];
    if (at->card < 0)
      continue;
    int64_t slow = units_scale (at->together_ns, 1000000, at->baseline_ns);
    worst = slow > worst ? slow : worst;
    total += slow;
  }
  if (p->has_rivals)
    print_rivals (p);
  printf ("\n%d of %d jobs have a place", v->n_placed, p->n_jobs);
  if (p->options.n_cards == 1)
    printf (" in %s",
            units_bytes (room, cards_room (&p->options, 0, v->n_placed > 0 ? v->n_placed : 1)));
  else
    printf (" on %d cards", p->options.n_cards);
  if (v->n_placed)
    printf (": the slowest takes %.2f times its step alone, the mean is %.2f", (double)worst / 1e6,
            (double)total / 1e6 / v->n_placed);
  puts ("");
}

void pack_put_place (json_writer *w, const packing *p, const cards_place *at, int32_t job) {
  json_open_object (w);
  json_add_int (w, "baseline_ns", at->baseline_ns);
  json_add_int (w, "budget_bytes", at->card < 0 ? -1 : at->budget_bytes);
  json_add_text (w, "card", at->card < 0 ? NULL : p->cards[at->card].name);
  json_add_int (w, "card_index", at->card);
  json_add_int (w, "chosen_ns", at->chosen_ns);
  json_add_int (w, "floor_bytes", at->floor_bytes);
  json_add_text (w, "name", p->jobs[job].name);
  json_add_int (w, "needs_bytes", at->peak_bytes);
  json_put_key (w, "predicted");
  if (at->plan)
    predicted_write (w, &at->plan->predicted);
  else
    json_put_null (w);
  json_add_int (w, "predicted_ns", at->predicted_ns);
  json_add_text (w, "reason", at->reason);
  json_add_int (w, "share_ppm", at->share_ppm);
  json_add_int (w, "together_ns", at->together_ns);
  json_close_object (w);
}

static void put_rivals (json_writer *w, const packing *p) {
  json_put_key (w, "rivals");
  json_open_array (w);
  for (int i = 0; p->has_rivals && i < ALTERNATIVES; i++) {
    const alternative *r = &p->rivals[i];
    json_open_object (w);
    json_put_key (w, "cbr_ppm");
    if (r->has_cbr)
      json_put_int (w, r->cbr_ppm);
    else
      json_put_null (w);
    json_add_int (w, "eor_ppm", r->eor_ppm);
    json_add_bool (w, "fits", r->fits);
    json_add_int (w, "msr_ppm", r->msr_ppm);
    json_add_text (w, "name", r->name);
    json_add_text (w, "note", r->note);
    json_add_int (w, "total_ppm", r->total_ppm);
    json_add_int (w, "worst_ppm", r->worst_ppm);
    json_close_object (w);
  }
  json_close_array (w);
}

static bool print_json (call *c, const packing *p, const cards_answer *v) {
  json_writer w;
  json_begin (&w, 2);
  json_open_object (&w);
  json_put_key (&w, "jobs");
  json_open_array (&w);
  for (int32_t i = 0; i < p->n_jobs; i++)
    pack_put_place (&w, p, &v->places[i], i);
  json_close_array (&w);
  json_add_text (&w, "objective", pack_objective_names[p->options.objective]);
  json_add_int (&w, "placed", v->n_placed);
  put_rivals (&w, p);
  json_add_int (&w, "sampled", v->sampled);
  json_add_int (&w, "total_ppm", v->total_ppm);
  json_add_int (&w, "visited", v->visited);
  json_add_int (&w, "worst_ppm", v->worst_ppm);
  json_close_object (&w);
  return call_print_json (c, &w);
}

static int run (call *c) {
  packing p;
  cards_answer v;
  figure_page page;
  bool any;
  if (!read_packing (c, &p))
    return call_failed (c);
  if (pack_has_events (c))
    return pack_run_events (c, &p);
  if (!cards_place_jobs (p.jobs, p.n_jobs, &p.options, c->arena, &v, &c->err))
    return call_failed (c);
  p.has_rivals = call_flag (c, "compare") && v.n_placed > 0;
  if ((p.has_rivals &&
       !alternatives_of (p.jobs, p.n_jobs, &p.options, &v, c->arena, p.rivals, &c->err)) ||
      !pack_store (c, &p, &v) || !pack_figure (&p, &v, c->arena, &page, &c->err) ||
      !picture_files (c, &page, &any) || (c->json && !print_json (c, &p, &v)))
    return call_failed (c);
  if (!c->json)
    print_text (&p, &v);
  return v.n_placed == p.n_jobs ? EXIT_YES : EXIT_NO;
}

/* clang-format off */
static const cli_option options[] = {
  { 'd', "device", "NAME,...", "the card, or several; without it, the one that the first trace was "
    "made for" },
  { 'b', "budget", "SIZE", "of each card, for all plans together; without it, all that it has, less "
    "what each process reserves", RANGE_SIZE },
  { 0, "host", "SIZE", "of all jobs together, in equal parts for the cards; without it, what the "
    "device file gives each card", RANGE_SIZE },
  { 0, "objective", "worst|total", "what is least: the worst slowdown, or their sum; without it, "
    "worst" },
  { 0, "points", "N",
    "budgets sampled of each job, at each share of the link; without it, 8",
    { UNITS_COUNT, 3, 64 } },
  OPTIONS_OF_EFFORT ("low"),
  { 0, "compare", NULL, "beside turns, an even split and TENSILE's rule, on the first card" },
  { 0, "arrive", "JOB@TIME,...", "when a job comes, such as a@30s; those that are not named are "
    "there from the start", RANGE_TIME },
  { 0, "leave", "JOB@TIME,...", "when a job ends", RANGE_TIME },
  OPTION_OUTPUT ("a folder for the plans, as JOB.json"),
  OPTIONS_OF_PICTURES,
  OPTION_STRICT,
  OPTIONS_END,
};
/* clang-format on */

const cli_command command_pack = {
  .name = "pack",
  .says = "several jobs on one card, or on several",
  .operands = "TRACE...",
  .least = 1,
  .most = CARDS_MOST_JOBS,
  .about =
      "Chooses how much memory and how much of the link each job has, so that the worst slowdown "
      "(or "
      "the sum of all) is least: exactly so over the budgets and shares that were sampled of each "
      "job's curve. Then every job is planned at its point, and all plans of a card are simulated "
      "together; `slower` is what came out, against the job alone with memory without limit, and "
      "`predicted` what was expected. Ops of different jobs share a card's speed equally.\n"
      "Where not all jobs have a place, as many as can be are placed, the others are told why they "
      "are not, and the exit status is 1.\n"
      "With --arrive and --leave the jobs are packed again whenever one comes or goes, and the "
      "transition is told: what has to be copied, and how long each job waits.\n",
  .options = options,
  .json = true,
  .run = run,
};
