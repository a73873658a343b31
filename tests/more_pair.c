/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/more_pair.h"

#include <stdio.h>

#include "base/order.h"
#include "base/random.h"
#include "base/units.h"
#include "solver/options/allowed.h"
#include "trace/summary.h"
#include "trace/zoo/zoo.h"

const char *const more_kinds[MORE_KINDS] = { "effort", "allowed", "card", "known" };

enum { KIBI = 1024, US = 1000 };
#define GB ((int64_t)1000000000)

/* ---- a cell ---- */

typedef struct relative {
  const char *name;
  int64_t batch, image, seq, width, depth, classes;
} relative;

/* Small ones first. */
static const relative relatives[] = {
  { "vgg16", 8, 32, 0, 16, 0, 10 },     { "unet3d", 3, 8, 0, 8, 0, 3 },
  { "gpt2", 4, 0, 32, 12, 6, 256 },     { "resnet18", 8, 32, 0, 4, 0, 10 },
  { "vgg16", 8, 32, 0, 8, 0, 10 },      { "resnet50", 4, 32, 0, 8, 4, 10 },
  { "unet3d", 3, 8, 0, 4, 0, 3 },       { "charrnn", 5, 0, 8, 4, 0, 64 },
  { "seq2seq", 5, 0, 5, 4, 0, 40 },     { "gpt2", 4, 0, 32, 6, 4, 256 },
  { "llama-1b", 2, 0, 32, 16, 8, 256 }, { "bert-base", 4, 0, 32, 4, 6, 256 },
  { "vit-l", 2, 32, 0, 8, 8, 10 },
};
enum { RELATIVES = sizeof relatives / sizeof *relatives, SMALL = 2 };

typedef struct cell {
  random_state random;
  arena *arena;
  const trace *trace;
  device device;
  int64_t peak_bytes;
  solve_options options;
  tuning tuning;
  char name[120];
} cell;

static int64_t between (cell *c, int64_t least, int64_t most) {
  return random_between (&c->random, least, most);
}

static device a_card (cell *c) {
  int64_t rate = GB << between (c, 3, 7);
  return (device){ .name = "more",
                   .memory_bytes = (int64_t)1 << 46,
                   .granule_bytes = 2 * KIBI,
                   .host_bytes = (int64_t)1 << 46,
                   .section_ns = between (c, 0, 2) * US,
                   .share_ppm = 1000000,
                   .link = { rate, rate, rate + rate / 2, between (c, 1, 10) * US },
                   .has_roofline = true,
                   .roofline = { .fp32_flops = 4000 * GB,
                                 .bf16_flops = 16000 * GB,
                                 .memory_bytes_per_s = 200 * GB,
                                 .op_ns = 2 * US } };
}

/* Granules of which the step needs some hundreds; most budgets ask for something. */
static bool draw (cell *c, bool small, error *err) {
  const relative *n = &relatives[between (c, 0, small ? SMALL - 1 : RELATIVES - 1)];
  summary s;
  c->device = a_card (c);
  zoo_request r = { .name = n->name,
                    .batch = n->batch * between (c, 1, 4),
                    .image = n->image,
                    .seq = n->seq,
                    .dtype = between (c, 0, 1) ? DTYPE_BF16 : DTYPE_FP32,
                    .optimizer = (zoo_optimizer)between (c, 0, ZOO_OPTIMIZERS - 1),
                    .width_divisor = n->width,
                    .depth_divisor = n->depth,
                    .classes = n->classes,
                    .device = &c->device };
  if (!(c->trace = zoo_trace (&r, c->arena, err)) || !summary_of (c->trace, c->arena, &s, err))
    return false;
  c->peak_bytes = s.peak_bytes;
  while (c->device.granule_bytes < c->peak_bytes >> between (c, 8, 10))
    c->device.granule_bytes *= 2;
  int64_t percent = between (c, 40, 85);
  c->options = (solve_options){ .device = &c->device,
                                .placement = PLACES_AUTO,
                                .budget_bytes = c->peak_bytes / 100 * percent,
                                .host_bytes = c->device.host_bytes,
                                .gap_ppm = MORE_GAP_PPM,
                                .seed = 1,
                                .tuning = &c->tuning,
                                .threads = 1 };
  allowed all = allowed_by (c->trace);
  allowed_into (&all, &c->options);
  snprintf (c->name, sizeof c->name, "%s batch %lld %s %s, %lld %%", n->name, (long long)r.batch,
            r.dtype == DTYPE_BF16 ? "bf16" : "fp32", zoo_optimizer_names[r.optimizer],
            (long long)percent);
  return true;
}

/* The usual numbers of a search, and the least that it spends, divided. */
static void lower_effort (tuning *by, int part) {
  static const tuning_id ticks[] = { TUNE_search_ticks,      TUNE_search_swaps_ticks,
                                     TUNE_search_cuts_floor, TUNE_search_cuts_least,
                                     TUNE_search_prefixes,   TUNE_place_late_ticks,
                                     TUNE_place_arena_ticks, TUNE_small_ticks };
  *by = tuning_shipped;
  for (size_t i = 0; i < sizeof ticks / sizeof *ticks; i++)
    by->at[ticks[i]] = by->at[ticks[i]] / part + 1;
}

/* ---- questions ---- */

static bool ask (cell *c, const solve_options *o, int64_t *step_ns, solution *s, error *err) {
  error why = { 0 };
  bool fits = solve (c->trace, o, c->arena, s, &why);
  *step_ns = fits ? s->plan->predicted.step_ns : INT64_MAX;
  return fits || why.code == ERR_infeasible || why.code == ERR_limit ||
         error_set (err, why.code, "%s: %s", c->name, why.text);
}

/* Both questions, and how they differ. */
typedef struct questions {
  solve_options less, more;
  device less_card, more_card;
  char what[100];
} questions;

static bool more_effort (cell *c, questions *q, error *err) {
  static const search_level levels[] = { LEVEL_QUICK, LEVEL_NORMAL, LEVEL_THOROUGH };
  static const char *const names[] = { "quick", "normal", "thorough" };
  int64_t limit = (int64_t)2000 << between (c, 0, 8), times = between (c, 2, 20);
  int64_t low = between (c, 0, 1), high = between (c, low + 1, 2);
  (void)err;
  switch (between (c, 0, 2)) {
  case 0:
    q->less.level = levels[low];
    q->more.level = levels[high];
    snprintf (q->what, sizeof q->what, "%s, %s", names[low], names[high]);
    break;
  case 1:
    q->less.limit_ticks = limit;
    q->more.limit_ticks = limit * times;
    snprintf (q->what, sizeof q->what, "%lld ticks, %lld", (long long)limit,
              (long long)(limit * times));
    break;
  default:
    q->more.threads = 2;
    snprintf (q->what, sizeof q->what, "1 thread, 2");
  }
  return true;
}

static bool more_allowed (cell *c, questions *q, error *err) {
  const allowed all = allowed_of (&c->options);
  allowed wide = all, narrow = all;
  (void)err;
  while (allowed_is_same (&wide, &narrow) && q->less.placement == q->more.placement) {
    wide.sections = between (c, 0, 2) ? all.sections : SECTIONS_OFF;
    wide.recompute = (recompute_mode)between (c, RECOMPUTE_OFF, all.recompute);
    wide.order = (order_mode)between (c, ORDER_AS_IS, all.order);
    narrow.sections = between (c, 0, 1) ? wide.sections : SECTIONS_OFF;
    narrow.recompute = (recompute_mode)between (c, RECOMPUTE_OFF, wide.recompute);
    narrow.order = (order_mode)between (c, ORDER_AS_IS, wide.order);
    q->less.placement = between (c, 0, 3) ? PLACES_AUTO : (places_mode)between (c, 0, 1);
  }
  allowed_into (&wide, &q->more);
  allowed_into (&narrow, &q->less);
  snprintf (q->what, sizeof q->what,
            "sections %d, %d; recompute %s, %s; order %s, %s; places %s, auto", narrow.sections,
            wide.sections, recompute_words[narrow.recompute], recompute_words[wide.recompute],
            order_words[narrow.order], order_words[wide.order], places_words[q->less.placement]);
  return true;
}

static bool easier_card (cell *c, questions *q, error *err) {
  device *d = &q->more_card;
  int64_t link = between (c, 100, 200), room = between (c, 100, 130), finer = between (c, 0, 3);
  (void)err;
  if (between (c, 0, 1))
    d->link.copy_ns = between (c, 0, 1) ? 0 : d->link.copy_ns / 2;
  while (between (c, 0, 1) && finer-- && d->granule_bytes > KIBI)
    d->granule_bytes /= 2;
  if (between (c, 0, 1)) {
    d->link.d2h_bytes_per_s = d->link.d2h_bytes_per_s / 100 * link;
    d->link.h2d_bytes_per_s = d->link.h2d_bytes_per_s / 100 * link;
    d->link.both_bytes_per_s = d->link.both_bytes_per_s / 100 * link;
  }
  if (between (c, 0, 1))
    q->more.budget_bytes = q->more.budget_bytes / 100 * room;
  if (!between (c, 0, 3))
    q->less.host_bytes = c->peak_bytes / 2;
  snprintf (q->what, sizeof q->what,
            "copy %lld, %lld ns; granule %lld, %lld; link x%.2f; budget x%.2f; host %s",
            (long long)q->less_card.link.copy_ns, (long long)d->link.copy_ns,
            (long long)q->less_card.granule_bytes, (long long)d->granule_bytes,
            (double)d->link.h2d_bytes_per_s / (double)q->less_card.link.h2d_bytes_per_s,
            (double)q->more.budget_bytes / (double)q->less.budget_bytes,
            q->less.host_bytes < q->more.host_bytes ? "half, all" : "all");
  return true;
}

/* The plan of another budget, card or effort. */
static bool known_plan (cell *c, questions *q, error *err) {
  solve_options other = c->options;
  device *card = NEW (c->arena, 1, device, err);
  const plan **known = NEW (c->arena, 1, const plan *, err);
  int64_t percent = between (c, 80, 120), step_ns;
  solution s;
  if (!card || !known)
    return false;
  *card = c->device;
  card->link.copy_ns *= between (c, 1, 2);
  other.device = card;
  other.budget_bytes = other.budget_bytes / 100 * percent;
  other.level = (search_level)between (c, 0, 1);
  if (!ask (c, &other, &step_ns, &s, err))
    return false;
  *known = step_ns < INT64_MAX ? s.plan : NULL;
  q->more.starts = known;
  q->more.n_starts = *known != NULL;
  snprintf (q->what, sizeof q->what, "a plan for %lld %% of the budget%s", (long long)percent,
            *known ? "" : ", which has none");
  return true;
}

static bool compare (cell *c, more_kind kind, more_pair *out, error *err) {
  static bool (*const make[MORE_KINDS]) (cell * c, questions * q,
                                         error * err) = { more_effort, more_allowed, easier_card,
                                                          known_plan };
  questions q = {
    .less = c->options, .more = c->options, .less_card = c->device, .more_card = c->device
  };
  solution less = { 0 }, more = { 0 };
  q.less.device = &q.less_card;
  q.more.device = &q.more_card;
  if (!make[kind](c, &q, err) || !ask (c, &q.less, &out->less_ns, &less, err) ||
      !ask (c, &q.more, &out->more_ns, &more, err))
    return false;
  snprintf (out->what, sizeof out->what, "%s: %s", c->name, q.what);
  out->bound_ns = out->less_ns < INT64_MAX ? less.plan->certificate.lower_bound_ns : 0;
  if (out->less_ns == INT64_MAX)
    return true;
  out->worse_ppm = out->more_ns == INT64_MAX
                       ? MORE_WORST_PPM
                       : units_scale (out->more_ns, 1000000, out->less_ns) - 1000000;
  return true;
}

bool more_pair_of (more_kind kind, uint64_t seed, int index, int part, bool small, more_pair *out,
                   error *err) {
  cell *c = NULL;
  arena *a = arena_made (err);
  *out = (more_pair){ .less_ns = INT64_MAX, .more_ns = INT64_MAX };
  bool ok = a && (c = NEW (a, 1, cell, err));
  if (ok) {
    c->arena = a;
    c->random = random_seed (random_mix (random_mix (kind, (int64_t)seed), index));
    lower_effort (&c->tuning, part);
    ok = draw (c, small, err) && compare (c, kind, out, err);
  }
  arena_free (a);
  return ok;
}
