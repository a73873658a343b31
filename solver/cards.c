/* Slowed down as a whole, a job that computes at an n-th of the speed sees a link that is n times
   as fast beside its ops. So its curve at a share f of the link of a card with n jobs is its curve
   alone at n x f of the link, times n: the curves of one job serve for any number of neighbours,
   and a sample's slowdown is a promise that only the work of jobs that stall can better. */
#include "solver/cards.h"

#include <string.h>

#include "base/units.h"
#include "solver/share.h"

enum { POINTS = 8, LEVELS = 4, LEVEL_PPM = 500000, MOST_JUDGED = 120 };
#define ONE ((int64_t)1000000)

typedef struct samples {
  const trace *trace;
  const char *card;
  curve at[LEVELS]; /* at LEVEL_PPM, twice, ... of the link */
  int32_t n_levels; /* that are known */
} samples;

enum { MOST_KNOWN = 2 * CARDS_MOST_JOBS * CARDS_MOST };

struct cards_known {
  samples at[MOST_KNOWN];
  int32_t count;
};

cards_known *cards_known_new (arena *a, error *err) {
  return NEW (a, 1, cards_known, err);
}

typedef struct placing {
  const cards_job *jobs;
  int32_t n_jobs;
  const cards_options *o;
  arena *a;
  int32_t kind_of[CARDS_MOST]; /* the first card that is the same device */
  samples *of[CARDS_MOST_JOBS][CARDS_MOST];
  int64_t floor_bytes[CARDS_MOST_JOBS][CARDS_MOST], peak_bytes[CARDS_MOST_JOBS][CARDS_MOST];
  cards_answer *out;
} placing;

int64_t cards_room (const cards_options *o, int32_t card, int32_t n_jobs) {
  const device *d = &o->cards[card];
  int64_t room = d->memory_bytes - n_jobs * d->reserved_bytes;
  return o->memory_bytes && o->memory_bytes < room ? o->memory_bytes : room;
}

static int64_t host_room (const cards_options *o, int32_t card) {
  int64_t given = o->cards[card].host_bytes;
  int64_t part = o->host_bytes / o->n_cards;
  return o->host_bytes && part < given ? part : given;
}

/* ---- curves ---- */

/* The floor, then even steps of the whole room, so that budgets of several jobs add up to it, and
   the peak. */
static bool sample_budgets (placing *p, int32_t job, int32_t card, int64_t **budgets, int32_t *n,
                            error *err) {
  int32_t points = p->o->points > 2 ? p->o->points : POINTS;
  int64_t granule = p->o->cards[card].granule_bytes, room = cards_room (p->o, card, 1);
  int64_t floor = units_div_up (p->floor_bytes[job][card], granule) * granule;
  int64_t peak = units_div_up (p->peak_bytes[job][card], granule) * granule;
  if (peak > room)
    peak = room / granule * granule;
  *budgets = NEW (p->a, points + 2, int64_t, err);
  *n = 0;
  if (!*budgets)
    return false;
  (*budgets)[(*n)++] = floor;
  int64_t steps = points - 1, from = units_scale (floor, 2 * steps, room) + 1;
  int64_t to = units_scale (peak, 2 * steps, room), wide = to - from + 1;
  for (int64_t i = 0; i < wide && *n < points; i++) {
    int64_t k = wide > steps - 1 ? from + units_scale (i, wide, steps - 1) : from + i;
    int64_t at = units_scale (room, k, 2 * steps) / granule * granule;
    if (k <= to && at > (*budgets)[*n - 1] && at < peak)
      (*budgets)[(*n)++] = at;
  }
  if (peak > (*budgets)[*n - 1])
    (*budgets)[(*n)++] = peak;
  return true;
}

static samples *samples_for (placing *p, int32_t job, int32_t card, error *err) {
  cards_known *k = p->o->known;
  for (int32_t i = 0; k && i < k->count; i++)
    if (k->at[i].trace == p->jobs[job].trace && strcmp (k->at[i].card, p->o->cards[card].name) == 0)
      return &k->at[i];
  samples *s = k && k->count < MOST_KNOWN ? &k->at[k->count++] : NEW (p->a, 1, samples, err);
  if (s)
    *s = (samples){ .trace = p->jobs[job].trace, .card = p->o->cards[card].name };
  return s;
}

static bool sample_to (placing *p, int32_t job, int32_t card, int32_t levels, error *err) {
  if (!p->of[job][card] && !(p->of[job][card] = samples_for (p, job, card, err)))
    return false;
  samples *s = p->of[job][card];
  int64_t *budgets;
  int32_t n;
  if (s->n_levels >= levels)
    return true;
  if (!sample_budgets (p, job, card, &budgets, &n, err))
    return false;
  for (; s->n_levels < levels; s->n_levels++) {
    device d = share_link (&p->o->cards[card], (s->n_levels + 1) * LEVEL_PPM);
    curve_options o = p->o->sampling;
    o.device = &d;
    o.host_bytes = host_room (p->o, card);
    curve *c = &s->at[s->n_levels];
    if (!curve_of (p->jobs[job].trace, &o, budgets, n, p->a, c, err))
      return false;
    for (int32_t i = 0; i < c->count; i++)
      p->out->sampled += c->points[i].searched;
  }
  return true;
}

/* With n jobs on a card a whole link is 2 n levels, and nobody has more than 2 n - (n - 1) of them.
 */
static int32_t levels_with (int32_t n_jobs) {
  int32_t most = n_jobs == 1 ? 2 : n_jobs + 1;
  return most < LEVELS ? most : LEVELS;
}

static int64_t share_of (int32_t level, int32_t n_jobs) {
  return units_scale (level + 1, ONE, 2 * (int64_t)n_jobs);
}

/* What a job may choose on this card beside n_jobs - 1 others. */
static bool offer (void *context, int32_t job, int32_t card, int32_t n_jobs, pack_job *out,
                   error *err) {
  placing *p = context;
  int32_t levels = levels_with (n_jobs), count = 0;
  if (!sample_to (p, job, card, levels, err))
    return false;
  const samples *s = p->of[job][card];
  pack_choice *choices = NEW (p->a, (int64_t)levels * s->at[0].count, pack_choice, err);
  if (!choices)
    return false;
  int64_t baseline = p->out->places[job].baseline_ns;
  for (int32_t l = 0; l < levels; l++)
    for (int32_t i = 0; i < s->at[l].count; i++) {
      const plan *found = s->at[l].points[i].plan;
      if (found)
        choices[count++] = (pack_choice){ .budget_bytes = found->budget_bytes,
                                          .host_bytes = found->predicted.host_peak_bytes,
                                          .share_ppm = share_of (l, n_jobs),
                                          .slowdown_ppm = units_scale (found->predicted.step_ns,
                                                                       n_jobs * ONE, baseline) };
    }
  *out = (pack_job){ choices, count };
  return true;
}

/* Which sample that was. */
static const plan *offered_plan (const placing *p, int32_t job, int32_t card, int32_t n_jobs,
                                 int32_t choice) {
  const samples *s = p->of[job][card];
  for (int32_t l = 0; l < levels_with (n_jobs); l++)
    for (int32_t i = 0; i < s->at[l].count; i++)
      if (s->at[l].points[i].plan && choice-- == 0)
        return s->at[l].points[i].plan;
  return NULL;
}

static bool may_share (void *context, int32_t card, const int32_t *jobs, int32_t n,
                       pack_limits *out) {
  placing *p = context;
  int64_t floors = 0;
  for (int32_t i = 0; i < n; i++)
    floors += p->floor_bytes[jobs[i]][card];
  *out = (pack_limits){ .memory_bytes = cards_room (p->o, card, n),
                        .host_bytes = host_room (p->o, card),
                        .share_ppm = ONE };
  return floors <= out->memory_bytes;
}

/* ---- plans at the chosen point ---- */

static bool bind_plan (placing *p, int32_t job, const plan *found, int32_t card, int64_t share_ppm,
                       const plan **out, error *err) {
  plan *mine = NEW (p->a, 1, plan, err);
  bound b;
  error why = { 0 };
  if (!mine)
    return false;
  *mine = *found;
  mine->device = p->o->cards[card];
  mine->device.share_ppm = share_ppm;
  solve_options how = { .device = &mine->device,
                        .budget_bytes = mine->budget_bytes,
                        .host_bytes = mine->host_bytes };
  arena *scratch = arena_new (0);
  bool ok = scratch || error_set (err, ERR_memory, "out of memory");
  ok = ok && simulate_plan (p->jobs[job].trace, mine, scratch, &mine->predicted, err);
  if (ok && solve_bound (p->jobs[job].trace, &how, scratch, &b, &why)) {
    mine->certificate.lower_bound_ns = b.lower_bound_ns;
    mine->certificate.bound_by = b.by;
    mine->certificate.gap = (double)mine->predicted.step_ns / (double)b.lower_bound_ns - 1;
  } else {
    mine->has_certificate = false;
  }
  arena_free (scratch);
  *out = mine;
  return ok;
}

/* The sample's plan, or a better one with what was left over. */
static bool plan_place (placing *p, int32_t job, const plan *sample, int64_t link_ppm,
                        int64_t host_bytes, const cards_place *at, const plan **out, error *err) {
  *out = sample;
  device d = share_link (&p->o->cards[at->card], link_ppm);
  curve_options o = p->o->sampling;
  curve again;
  predicted old;
  plan before = *sample;
  o.device = &d;
  o.host_bytes = host_bytes;
  o.progress = NULL;
  if (p->o->limit_ticks)
    o.limit_ticks = p->o->limit_ticks;
  before.device = d;
  arena *scratch = arena_new (0);
  bool ok = scratch || error_set (err, ERR_memory, "out of memory");
  ok = ok && simulate_plan (p->jobs[job].trace, &before, scratch, &old, err) &&
       curve_of (p->jobs[job].trace, &o, &at->budget_bytes, 1, p->a, &again, err);
  arena_free (scratch);
  if (!ok)
    return false;
  if (again.points[0].plan && again.points[0].plan->predicted.step_ns < old.step_ns)
    *out = again.points[0].plan;
  return true;
}

/* Whether x is the slower one, with all of them running. */
static bool slower_one (const cards_place *x, const cards_place *y) {
  return (__int128)x->together_ns * y->baseline_ns > (__int128)y->together_ns * x->baseline_ns;
}

/* What is left over goes to the slowest first. */
static void share_out (cards_place **at, int32_t n, int64_t bytes, int64_t share_ppm,
                       int64_t granule) {
  bool given[CARDS_MOST_JOBS] = { false };
  for (int32_t i = 0; i < n; i++) {
    bytes -= at[i]->budget_bytes;
    share_ppm -= at[i]->share_ppm;
  }
  for (int32_t turn = 0; turn < n; turn++) {
    int32_t k = -1;
    for (int32_t i = 0; i < n; i++)
      if (!given[i] && (k < 0 || slower_one (at[i], at[k])))
        k = i;
    given[k] = true;
    int64_t wants = units_div_up (at[k]->peak_bytes, granule) * granule - at[k]->budget_bytes;
    int64_t gets = wants < bytes ? wants : bytes / granule * granule;
    at[k]->budget_bytes += gets > 0 ? gets : 0;
    bytes -= gets > 0 ? gets : 0;
    if (turn == 0)
      at[k]->share_ppm += share_ppm;
  }
}

/* ---- the machine model's say ---- */

typedef struct sharing {
  int32_t n, jobs[CARDS_MOST_JOBS];
  cards_place *at[CARDS_MOST_JOBS];
  const plan *plans[CARDS_MOST_JOBS];
  int64_t step_ns[CARDS_MOST_JOBS], worst_ppm, total_ppm;
} sharing;

static bool judge (const placing *p, sharing *s, error *err) {
  share_job together[CARDS_MOST_JOBS];
  plan bound[CARDS_MOST_JOBS]; /* samples were planned for links of other speeds */
  arena *scratch = arena_new (0);
  if (!scratch)
    return error_set (err, ERR_memory, "out of memory");
  for (int32_t k = 0; k < s->n; k++) {
    bound[k] = *s->plans[k];
    bound[k].device = p->o->cards[s->at[k]->card];
    together[k] = (share_job){ p->jobs[s->jobs[k]].trace, &bound[k] };
  }
  bool ok = share_simulate (together, s->n, false, scratch, s->step_ns, err);
  arena_free (scratch);
  s->worst_ppm = s->total_ppm = 0;
  for (int32_t k = 0; ok && k < s->n; k++) {
    int64_t slow = units_scale (s->step_ns[k], ONE, s->at[k]->baseline_ns);
    s->worst_ppm = slow > s->worst_ppm ? slow : s->worst_ppm;
    s->total_ppm += slow;
  }
  return ok;
}

static bool better (const placing *p, const sharing *x, const sharing *y) {
  int64_t a[] = { x->worst_ppm, x->total_ppm }, b[] = { y->worst_ppm, y->total_ppm };
  int first = p->o->objective == PACK_WORST ? 0 : 1;
  return a[first] != b[first] ? a[first] < b[first] : a[1 - first] < b[1 - first];
}

static bool within (const placing *p, const sharing *s, int32_t card) {
  int64_t bytes = 0, host = 0;
  for (int32_t k = 0; k < s->n; k++) {
    bytes += s->plans[k]->budget_bytes;
    host += s->plans[k]->predicted.host_peak_bytes;
  }
  return bytes <= cards_room (p->o, card, s->n) && host <= host_room (p->o, card);
}

/* Shares of the link are not enforced by anyone, so the choice over samples is only nearly right:
   from there on, one job at a time takes the sample with which all of them come out best. */
static bool climb (placing *p, int32_t card, sharing *s, error *err) {
  int32_t judged = 0, kind = p->kind_of[card];
  if (!judge (p, s, err))
    return false;
  for (bool again = s->n > 1; again && judged < MOST_JUDGED;) {
    again = false;
    for (int32_t k = 0; k < s->n; k++) {
      sharing best = *s;
      const plan *other, *last = NULL;
      for (int32_t i = 0; (other = offered_plan (p, s->jobs[k], kind, s->n, i)); i++) {
        sharing trial = *s;
        trial.plans[k] = other;
        if (other == s->plans[k] || other == last || !within (p, &trial, card) ||
            judged >= MOST_JUDGED)
          continue;
        judged++;
        last = other;
        if (!judge (p, &trial, err))
          return false;
        if (better (p, &trial, &best))
          best = trial;
      }
      again |= best.plans[k] != s->plans[k];
      *s = best;
    }
  }
  return true;
}

/* ---- one card ---- */

static void begin_card (placing *p, int32_t card, const pack_spread_answer *how, sharing *s) {
  int32_t kind = p->kind_of[card];
  *s = (sharing){ 0 };
  for (int32_t j = 0; j < p->n_jobs; j++)
    s->n += how->card[j] == card;
  for (int32_t j = 0, k = 0; j < p->n_jobs; j++) {
    if (how->card[j] != card)
      continue;
    cards_place *at = &p->out->places[j];
    const pack_choice *c = &how->choice[j];
    at->card = card;
    at->share_ppm = c->share_ppm;
    at->chosen_ns = units_scale (at->baseline_ns, c->slowdown_ppm, ONE);
    at->floor_bytes = p->floor_bytes[j][kind];
    at->peak_bytes = p->peak_bytes[j][kind];
    s->jobs[k] = j;
    s->at[k] = at;
    s->plans[k++] = offered_plan (p, j, kind, s->n, how->chosen[j]);
  }
}

/* Equal parts of the memory and the link; *found is false where a job has no plan in that. */
static bool split_evenly (placing *p, int32_t card, const sharing *from, sharing *out, bool *found,
                          error *err) {
  const device *d = &p->o->cards[card];
  int64_t granule = d->granule_bytes;
  int64_t part = cards_room (p->o, card, from->n) / from->n / granule * granule;
  *out = *from;
  *found = true;
  for (int32_t k = 0; *found && k < out->n; k++) {
    curve_options o = p->o->sampling;
    curve v;
    int64_t peak = units_div_up (out->at[k]->peak_bytes, granule) * granule;
    int64_t budget = part < peak ? part : peak;
    o.device = d;
    o.host_bytes = host_room (p->o, card) / out->n;
    o.progress = NULL;
    if (budget < out->at[k]->floor_bytes)
      *found = false;
    else if (!curve_of (p->jobs[out->jobs[k]].trace, &o, &budget, 1, p->a, &v, err))
      return false;
    else
      *found = (out->plans[k] = v.points[0].plan);
  }
  return !*found || judge (p, out, err);
}

/* Plans once more, with all of the memory; they are taken where they are better together. */
static bool plan_card (placing *p, int32_t card, sharing *s, error *err) {
  sharing again = *s;
  int64_t host = host_room (p->o, card);
  for (int32_t k = 0; k < s->n; k++) {
    s->at[k]->budget_bytes = s->plans[k]->budget_bytes;
    s->at[k]->together_ns = s->step_ns[k];
    host -= s->plans[k]->predicted.host_peak_bytes;
  }
  share_out (s->at, s->n, cards_room (p->o, card, s->n), ONE, p->o->cards[card].granule_bytes);
  for (int32_t k = 0; k < s->n; k++)
    if (!plan_place (p, s->jobs[k], s->plans[k], s->n * s->at[k]->share_ppm,
                     s->plans[k]->predicted.host_peak_bytes + host / s->n, s->at[k],
                     &again.plans[k], err))
      return false;
  if (!judge (p, &again, err))
    return false;
  if (!better (p, s, &again))
    *s = again;
  return true;
}

static bool finish_card (placing *p, int32_t card, const pack_spread_answer *how, error *err) {
  sharing s;
  share_job together[CARDS_MOST_JOBS];
  int64_t expected_ns[CARDS_MOST_JOBS];
  begin_card (p, card, how, &s);
  if (!s.n)
    return true;
  sharing even;
  bool found = false;
  if (!climb (p, card, &s, err) || (s.n > 1 && !split_evenly (p, card, &s, &even, &found, err)))
    return false;
  if (found && better (p, &even, &s)) {
    s = even;
    for (int32_t k = 0; k < s.n; k++)
      s.at[k]->share_ppm = ONE / s.n;
  }
  if (!plan_card (p, card, &s, err))
    return false;
  for (int32_t k = 0; k < s.n; k++) {
    if (!bind_plan (p, s.jobs[k], s.plans[k], card, s.at[k]->share_ppm, &s.at[k]->plan, err))
      return false;
    s.at[k]->budget_bytes = s.at[k]->plan->budget_bytes;
    s.at[k]->together_ns = s.n > 1 ? s.step_ns[k] : s.at[k]->plan->predicted.step_ns;
    together[k] = (share_job){ p->jobs[s.jobs[k]].trace, s.at[k]->plan };
  }
  arena *scratch = arena_new (0);
  bool ok = scratch || error_set (err, ERR_memory, "out of memory");
  ok = ok && share_predict (together, s.n, scratch, expected_ns, err);
  arena_free (scratch);
  for (int32_t k = 0; ok && k < s.n; k++)
    s.at[k]->predicted_ns = expected_ns[k];
  return ok;
}

/* ---- who is left out, and why ---- */

/* On the card with the most room for it beside those that are there, at their floors. */
static bool find_reason (placing *p, int32_t job, error *err) {
  char need[UNITS_TEXT], have[UNITS_TEXT], floors[UNITS_TEXT], host[UNITS_TEXT];
  cards_place *at = &p->out->places[job];
  int32_t best = -1, best_n = 0;
  int64_t most = INT64_MIN, best_floors = 0;
  int64_t least = INT64_MAX, widest = INT64_MIN;
  for (int32_t card = 0; card < p->o->n_cards; card++) {
    int64_t taken = 0;
    int32_t n = 0;
    for (int32_t j = 0; j < p->n_jobs; j++)
      if (p->out->places[j].card == card) {
        taken += p->floor_bytes[j][p->kind_of[card]];
        n++;
      }
    int64_t left = cards_room (p->o, card, n + 1) - taken;
    int64_t mine = p->floor_bytes[job][p->kind_of[card]];
    least = mine < least ? mine : least;
    if (cards_room (p->o, card, 1) > widest)
      widest = cards_room (p->o, card, 1);
    if (left - mine > most) {
      most = left - mine;
      best = card;
      best_n = n;
      best_floors = taken;
    }
  }
  const char *name = p->jobs[job].name, *on = p->o->cards[best].name;
  at->floor_bytes = p->floor_bytes[job][p->kind_of[best]];
  at->peak_bytes = p->peak_bytes[job][p->kind_of[best]];
  units_bytes (need, at->floor_bytes);
  if (least > widest)
    at->reason = arena_format (p->a, err,
                               "%s needs at least %s even alone, and no card gives more "
                               "than %s: cut its ops into sections, or take a larger card",
                               name, units_bytes (need, least), units_bytes (have, widest));
  else if (most < 0)
    at->reason = arena_format (p->a, err,
                               "%s needs at least %s, but on %s the %d others need at "
                               "least %s, which leaves %s",
                               name, need, on, best_n, units_bytes (floors, best_floors),
                               units_bytes (have, at->floor_bytes + most));
  else
    at->reason = arena_format (p->a, err,
                               "%s would have the %s that it needs at least on %s, but "
                               "no sampled plans of all of them fit into its memory and %s of host "
                               "memory",
                               name, need, on, units_bytes (host, host_room (p->o, best)));
  return at->reason;
}

static bool meet_jobs (placing *p, error *err) {
  for (int32_t card = 0; card < p->o->n_cards; card++) {
    p->kind_of[card] = card;
    for (int32_t other = card - 1; other >= 0; other--)
      if (strcmp (p->o->cards[card].name, p->o->cards[other].name) == 0)
        p->kind_of[card] = p->kind_of[other];
  }
  for (int32_t j = 0; j < p->n_jobs; j++) {
    cards_place *at = &p->out->places[j];
    *at = (cards_place){ .card = -1, .baseline_ns = trace_total_ns (p->jobs[j].trace) };
    if (at->baseline_ns <= 0)
      return error_set (err, ERR_input, "%s has no duration: it cannot share a card",
                        p->jobs[j].name);
    for (int32_t card = 0; card < p->o->n_cards; card++)
      if (p->kind_of[card] == card &&
          !curve_range (p->jobs[j].trace, &p->o->cards[card], p->a, &p->floor_bytes[j][card],
                        &p->peak_bytes[j][card], err))
        return false;
  }
  return true;
}

bool cards_place_jobs (const cards_job *jobs, int32_t n_jobs, const cards_options *o, arena *a,
                       cards_answer *out, error *err) {
  *out = (cards_answer){ 0 };
  if (n_jobs < 1 || n_jobs > CARDS_MOST_JOBS || o->n_cards < 1 || o->n_cards > CARDS_MOST)
    return error_set (err, ERR_usage, "%d jobs on %d cards: 1 to %d jobs on 1 to %d cards", n_jobs,
                      o->n_cards, CARDS_MOST_JOBS, CARDS_MOST);
  placing *p = NEW (a, 1, placing, err);
  out->places = NEW (a, n_jobs, cards_place, err);
  if (!p || !out->places)
    return false;
  *p = (placing){ .jobs = jobs, .n_jobs = n_jobs, .o = o, .a = a, .out = out };
  pack_spread_answer how;
  pack_spread_jobs all = { .n_jobs = n_jobs,
                           .n_cards = o->n_cards,
                           .kind_of = p->kind_of,
                           .objective = o->objective,
                           .offer = offer,
                           .may_share = may_share,
                           .context = p };
  if (!meet_jobs (p, err) || !pack_spread (&all, a, &how, err))
    return false;
  out->n_placed = how.n_placed;
  out->worst_ppm = how.worst_ppm;
  out->total_ppm = how.total_ppm;
  out->visited = how.visited;
  for (int32_t card = 0; card < o->n_cards; card++)
    if (!finish_card (p, card, &how, err))
      return false;
  for (int32_t j = 0; j < n_jobs; j++)
    if (out->places[j].card < 0 && !find_reason (p, j, err))
      return false;
  return true;
}
