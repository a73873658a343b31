/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/whatif/pack.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/units.h"
#include "cli/inputs/devices.h"
#include "cli/inputs/hosts.h"
#include "cli/inputs/inputs.h"
#include "cli/whatif/offline.h"
#include "cli/whatif/offline_figures.h"
#include "cli/figures/columns.h"
#include "cli/figures/picture_files.h"
#include "cli/inputs/policies.h"
#include "cli/inputs/progress.h"
#include "cli/inputs/stopping.h"

/* ---- the question ---- */

static bool is_taken (const packing *p, const char *name) {
  for (int32_t i = 0; i < p->n_jobs; i++)
    if (strcmp (p->jobs[i].name, name) == 0)
      return true;
  return false;
}

/* The file's name; with a number where that is taken. */
static const char *job_name (call *c, const packing *p, const char *path) {
  char *name = call_stem (c, path);
  const char *own = name;
  for (int32_t n = p->n_jobs + 1; own && is_taken (p, own); n++)
    own = arena_format (c->arena, &c->err, "%s.%d", name, n);
  return own;
}

static const char *plan_path (call *c, const char *job) {
  const char *folder = call_text (c, "output");
  return arena_format (c->arena, &c->err, "%s/%s.json", folder, job);
}

/* A plan is named as its trace is, and must not take its place. */
static bool plan_is_apart (call *c, const char *job) {
  const char *path = call_text (c, "output") ? plan_path (c, job) : NULL;
  if (path && call_reads (c, path))
    call_usage (c, "--output: %s is what is read; give the plans another folder", path);
  return !c->err.code;
}

bool pack_read_jobs (call *c, packing *p) {
  if (c->n_operands > CARDS_MOST_JOBS)
    return call_usage (c, "%d jobs: at most %d", c->n_operands, CARDS_MOST_JOBS);
  for (int i = 0; i < c->n_operands; i++) {
    cards_job *j = &p->jobs[p->n_jobs];
    j->trace = offline_trace (c, c->operands[i], NULL);
    j->name = j->trace ? job_name (c, p, c->operands[i]) : NULL;
    if (!j->name || !plan_is_apart (c, j->name) || !rewriting_read (c, j->trace, &j->allowed))
      return false;
    p->n_jobs++;
  }
  return true;
}

/* Two cards of one kind are v100.1 and v100.2, in the order in which they were given. */
static bool name_cards (call *c, packing *p) {
  for (int32_t i = 0; i < p->options.n_cards; i++) {
    int32_t alike = 0, before = 0;
    for (int32_t k = 0; k < p->options.n_cards; k++)
      if (strcmp (p->cards[k].name, p->cards[i].name) == 0) {
        alike++;
        before += k < i;
      }
    p->card_names[i] = p->cards[i].name;
    if (alike > 1 && !(p->card_names[i] =
                           arena_format (c->arena, &c->err, "%s.%d", p->cards[i].name, before + 1)))
      return false;
  }
  return true;
}

/* Each job against each kind of card. */
static bool tell_times (call *c, const packing *p) {
  for (int32_t j = 0; j < p->n_jobs; j++)
    for (int32_t i = 0; i < p->options.n_cards; i++) {
      bool told = false;
      for (int32_t k = 0; k < i; k++)
        told |= strcmp (p->cards[k].name, p->cards[i].name) == 0;
      if (!told && !device_tell_times (c, p->jobs[j].trace, &p->cards[i]))
        return false;
    }
  return true;
}

static bool read_cards (call *c, packing *p) {
  const char *rest = call_text (c, "device"), *part;
  bool found;
  if (!rest) {
    if (!device_for (c, p->jobs[0].trace, &p->cards[0], &found))
      return false;
    p->options.n_cards = 1;
    return found ? name_cards (c, p) && tell_times (c, p)
                 : device_needed (c, p->jobs[0].trace, &p->cards[0]);
  }
  while ((part = next_part (c, &rest))) {
    if (p->options.n_cards == CARDS_MOST)
      return call_usage (c, "more than %d cards", CARDS_MOST);
    if (!device_named (c, part, &p->cards[p->options.n_cards++]))
      return false;
  }
  if (!c->err.code && p->options.n_cards == 0)
    call_usage (c, "--device names no card");
  return !c->err.code && name_cards (c, p) && tell_times (c, p);
}

/* Nobody knows how many samples the search will want. */
static void count_sample (void *context, int32_t done, int32_t all, int64_t step_ns) {
  call *c = context;
  (void)done, (void)all;
  progress_done (c, c->going.done + 1, 0, step_ns);
}

static bool read_packing (call *c, packing *p) {
  int64_t points = 8;
  int objective = PACK_WORST;
  *p = (packing){ 0 };
  if (!pack_read_jobs (c, p) || !read_cards (c, p))
    return false;
  p->options.cards = p->cards;
  p->options.sampling = (curve_options){ .device = p->cards,
                                         .limit_ticks = CARDS_SAMPLE_TICKS,
                                         .stop = offline_stop,
                                         .stop_context = c,
                                         .progress = count_sample,
                                         .context = c };
  stopping_begin (c);
  bool ok = call_quantity (c, "budget", &p->options.memory_bytes) &&
            call_quantity (c, "host", &p->options.host_bytes) &&
            call_quantity (c, "points", &points) &&
            effort_read_ticks (c, cards_level_ticks, &p->options.limit_ticks) &&
            call_word (c, "objective", pack_objective_names, &objective) &&
            offline_threads (c, &p->options.sampling);
  p->options.total_ticks = call_text (c, "limit") ? p->options.limit_ticks : 0;
  p->options.no_host = call_text (c, "host") && p->options.host_bytes == 0;
  p->options.points = (int32_t)points;
  p->options.objective = (pack_objective)objective;
  if (p->options.sampling.limit_ticks > p->options.limit_ticks)
    p->options.sampling.limit_ticks = p->options.limit_ticks;
  if (ok && call_text (c, "budget") && p->options.memory_bytes == 0)
    ok = call_usage (c, "--budget: nothing is too little");
  for (int32_t i = 0; ok && i < p->options.n_cards; i++) {
    char want[UNITS_TEXT], have[UNITS_TEXT];
    int64_t free_bytes = p->cards[i].memory_bytes - p->cards[i].reserved_bytes;
    if (p->options.memory_bytes > free_bytes)
      ok = call_usage (c, "--budget: %s, but %s leaves %s free",
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
    const char *path = plan_path (c, p->jobs[i].name);
    if (!path || !plan_store (v->places[i].plan, path, false, &c->err))
      return false;
  }
  return true;
}

static double times (int64_t step_ns, int64_t baseline_ns) {
  return baseline_ns > 0 ? (double)step_ns / (double)baseline_ns : 0;
}

static const column heads[] = {
  { "job", 0, true, 0 },        { "card", 0, true, 0 },    { "budget", 0, false, 0 },
  { "needs", 5, false, 0 },     { "host", 1, false, 0 },   { "link", 3, false, 0 },
  { "step", 0, false, 0 },      { "slower", 0, false, 0 }, { "predicted", 4, false, 0 },
  { "by itself", 2, false, 0 },
};

/* For all jobs at once, where their traces allow the same. */
bool pack_print_allowed (call *c, const packing *p) {
  bool same = true;
  for (int32_t i = 1; i < p->n_jobs; i++)
    same &= allowed_is_same (&p->jobs[i].allowed, &p->jobs[0].allowed);
  for (int32_t i = 0; i < (same ? 1 : p->n_jobs); i++) {
    if (!same)
      printf ("%s ", p->jobs[i].name);
    if (!rewriting_print (stdout, c, &p->jobs[i].allowed))
      return false;
  }
  return true;
}

bool pack_print_places (call *c, const packing *p, const cards_answer *v) {
  columns *to = COLUMNS (c, heads);
  for (int32_t i = 0; to && i < p->n_jobs; i++) {
    const cards_place *at = &v->places[i];
    columns_put (to, "%s", p->jobs[i].name);
    if (at->card < 0) {
      if (!(stopping_asked (c) ? columns_end_with (to, "not reached")
                               : columns_end_with (to, "no place: %s", at->reason)))
        return false;
      continue;
    }
    columns_put (to, "%s", p->card_names[at->card]);
    columns_bytes (to, at->budget_bytes);
    columns_bytes (to, at->peak_bytes);
    columns_bytes (to, at->plan->predicted.host_peak_bytes);
    columns_put (to, "%.1f %%", (double)at->share_ppm / 10000);
    columns_time (to, at->together_ns);
    columns_put (to, "%.2fx", times (at->together_ns, at->baseline_ns));
    columns_put (to, "%.2fx", times (at->predicted_ns, at->baseline_ns));
    columns_time (to, at->baseline_ns);
    if (!columns_end (to))
      return false;
  }
  return columns_print (to);
}

static const column rival_heads[] = {
  { "on the first card", 0, true, 0 },
  { "worst", 0, false, 0 },
  { "mean", 0, false, 0 },
  { "MSR", 1, false, 0 },
  { "EOR", 2, false, 0 },
  { "CBR", 3, false, 0 },
};

static bool print_rivals (call *c, const packing *p) {
  columns *to = COLUMNS (c, rival_heads);
  int32_t n = 0;
  puts ("");
  for (int32_t j = 0; j < p->n_jobs; j++)
    n += p->rivals[ALTERNATIVE_OURS].step_ns[j] > 0;
  for (int i = 0; to && i < ALTERNATIVES; i++) {
    const alternative *r = &p->rivals[i];
    columns_put (to, "%s", r->name);
    if (!r->fits) {
      if (!columns_end_with (to, "does not fit: %s", r->note ? r->note : "no job is there"))
        return false;
      continue;
    }
    columns_put (to, "%.2fx", (double)r->worst_ppm / 1e6);
    columns_put (to, "%.2fx", (double)r->total_ppm / 1e6 / n);
    columns_put (to, "%.1f %%", (double)r->msr_ppm / 1e4);
    columns_put (to, "%.1f %%", (double)r->eor_ppm / 1e4);
    columns_put (to, r->has_cbr ? "%.2f" : "-", (double)r->cbr_ppm / 1e6);
    if (!columns_end (to))
      return false;
  }
  if (!columns_print (to))
    return false;
  puts ("MSR is the memory that is saved and EOR the time that is added, both against `nothing\n"
        "moves` on a card with room for that; CBR is MSR / EOR: the more, the better.");
  return true;
}

static bool print_text (call *c, const packing *p, const cards_answer *v) {
  char room[UNITS_TEXT];
  int64_t worst = 0, total = 0;
  if (!pack_print_places (c, p, v))
    return false;
  for (int32_t i = 0; i < p->n_jobs; i++) {
    const cards_place *at = &v->places[i];
    if (at->card < 0)
      continue;
    int64_t slow = units_scale (at->together_ns, 1000000, at->baseline_ns);
    worst = slow > worst ? slow : worst;
    total += slow;
  }
  if (p->has_rivals && !print_rivals (c, p))
    return false;
  printf ("\n%d of %d jobs have a place", v->n_placed, p->n_jobs);
  if (p->options.n_cards == 1 && v->n_placed)
    printf (" in %s", units_bytes (room, cards_room (&p->options, 0, v->n_placed)));
  else if (p->options.n_cards > 1)
    printf (" on %d cards", p->options.n_cards);
  if (v->n_placed)
    printf (": the slowest takes %.2f times its step alone, the mean is %.2f", (double)worst / 1e6,
            (double)total / 1e6 / v->n_placed);
  puts ("");
  return pack_print_allowed (c, p);
}

void pack_put_place (json_writer *w, const packing *p, const cards_place *at, int32_t job) {
  json_open_object (w);
  allowed_write (w, &p->jobs[job].allowed);
  json_add_int (w, "baseline_ns", at->baseline_ns);
  json_add_int (w, "budget_bytes", at->card < 0 ? -1 : at->budget_bytes);
  json_add_text (w, "card", at->card < 0 ? NULL : p->card_names[at->card]);
  json_add_int (w, "card_index", at->card);
  json_add_int (w, "chosen_ns", at->chosen_ns);
  json_add_int (w, "floor_bytes", at->floor_bytes);
  json_add_text (w, "name", p->jobs[job].name);
  json_add_int (w, "needs_bytes", at->peak_bytes);
  predicted_write (w, "predicted", at->plan ? &at->plan->predicted : NULL);
  json_add_int (w, "predicted_ns", at->predicted_ns);
  json_add_text (w, "reason", at->reason);
  json_add_share (w, "share", at->share_ppm);
  json_add_int (w, "together_ns", at->together_ns);
  json_close_object (w);
}

static void put_rivals (json_writer *w, const packing *p) {
  json_add_array (w, "rivals");
  for (int i = 0; p->has_rivals && i < ALTERNATIVES; i++) {
    const alternative *r = &p->rivals[i];
    json_open_object (w);
    if (r->has_cbr)
      json_add_share (w, "cbr", r->cbr_ppm);
    else
      json_add_raw (w, "cbr", "null");
    json_add_share (w, "eor", r->eor_ppm);
    json_add_bool (w, "fits", r->fits);
    json_add_share (w, "msr", r->msr_ppm);
    json_add_text (w, "name", r->name);
    json_add_text (w, "note", r->note);
    json_add_share (w, "total", r->total_ppm);
    json_add_share (w, "worst", r->worst_ppm);
    json_close_object (w);
  }
  json_close_array (w);
}

/* The limit that ended the search for some plan, as that says; NULL: none did. */
static const char *limit_met (const packing *p, const cards_answer *v) {
  for (int32_t i = 0; i < p->n_jobs; i++) {
    const plan *at = v->places[i].plan;
    if (at && at->has_certificate && at->certificate.limit_met)
      return at->certificate.limit_met;
  }
  return NULL;
}

static bool print_json (call *c, const packing *p, const cards_answer *v) {
  json_writer w;
  json_begin_object (&w, 2);
  json_add_array (&w, "jobs");
  for (int32_t i = 0; i < p->n_jobs; i++)
    pack_put_place (&w, p, &v->places[i], i);
  json_close_array (&w);
  json_add_text (&w, "limit_met", limit_met (p, v));
  json_add_text (&w, "objective", pack_objective_names[p->options.objective]);
  json_add_int (&w, "placed", v->n_placed);
  put_rivals (&w, p);
  json_add_int (&w, "sampled", v->sampled);
  json_add_int (&w, "ticks", v->ticks);
  json_add_share (&w, "total", v->total_ppm);
  json_add_int (&w, "visited", v->visited);
  json_add_share (&w, "worst", v->worst_ppm);
  json_close_object (&w);
  return call_print_json (c, &w);
}

static int run (call *c) {
  packing p;
  cards_answer v;
  figure_page page;
  bool any;
  if (host_text (c))
    return pack_run_host (c);
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
  if (!c->json && !print_text (c, &p, &v))
    return call_failed (c);
  return v.n_placed == p.n_jobs ? EXIT_YES : EXIT_NO;
}

/* clang-format off */
static const cli_option options[] = {
  { 'd', "device", "NAME,...", "the card, or several; default: the one that the first trace was "
    "made for" },
  { 'b', "budget", "SIZE", "memory of each card for all plans together; default: all that it has, "
    "less what each process reserves", RANGE_SIZE },
  { 0, "host", "SIZE|NAME|FILE", "host memory of all jobs together, in equal parts for the cards; or "
    "the host whose cards they have, one each: a name of `ferry hosts` or a host file; default: "
    "what the device file gives each card", RANGE_SIZE },
  { 0, "objective", "worst|total", "minimize the worst slowdown, or their sum; default: "
    "worst" },
  { 0, "points", "N",
    "budgets to sample for each job at each share of the link; default: 8",
    { UNITS_COUNT, 3, 64 } },
  OPTIONS_OF_EFFORT ("quick"),
  OPTIONS_OF_REWRITING,
  OPTION_THREADS,
  { 0, "compare", NULL,
    "also show jobs in turn, an even split and TENSILE's rule, on the first card" },
  { 0, "arrive", "JOB@TIME,...",
    "when a job arrives, such as a@30s; other jobs are there from the start", RANGE_TIME },
  { 0, "leave", "JOB@TIME,...", "when a job ends", RANGE_TIME },
  { 'o', "output", "FOLDER", "folder for the plans, as JOB.json" },
  OPTION_WIDE,
  OPTIONS_OF_PICTURES,
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
      "--limit is for all searches together; where it is spent, few budgets are sampled and the "
      "plans are those of the samples. First plans and bounds take their ticks in any case.\n"
      "With --arrive and --leave the jobs are packed again whenever one comes or goes, and the "
      "transition is told: what has to be copied, and how long each job waits.\n"
      "With --host NAME each job has a card of that host to itself, and all share its links and "
      "the "
      "memory that may be pinned, but no step: `alone` is the plan for a card whose link nobody "
      "shares, the other ways are for the rates that are left, and the best beside each other by "
      "--objective are taken.\n",
  .options = options,
  .json = true,
  .run = run,
};
