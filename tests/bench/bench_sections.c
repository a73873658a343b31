/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tables of what sections and recompute are worth, each figure the slowdown over compute without
   any limit of a plan that passes check, beside its certified bound. bench_sections vgg [TICKS]:
   VGG-16 fp32 with momentum on the TITAN X, chains beside level by level. bench_sections links
   NETWORK BATCH PERCENT [TICKS]: one budget behind links of 12 to 900 GB/s, H200. bench_sections
   greedy [TICKS [NETWORK]]: the zoo's networks behind three links, the mix beside the greedy mix.
   bench_sections attention [TICKS]: the largest batch of seq2seq in 12 GB; meng: of ResNet-50, too.
   Each row is also a line of JSON; where the mix is worse than what stands beside it, a line says
   so and the exit status is 1. Without arguments, the smallest of each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/recompute/recompute.h"
#include "solver/solve.h"
#include "tests/bench/bench.h"
#include "tests/keep_kth.h"
#include "trace/check/check.h"
#include "trace/zoo/zoo.h"

#define GIB ((int64_t)1 << 30)
enum { LIMIT_S = 500 };

typedef struct ask {
  const char *folder; /* of device files */
  const char *device, *network;
  int64_t batch, budget_bytes, seq, gb; /* gb: of the link each way; 0: the device's */
  int percent;                          /* of the peak; 0: budget_bytes, or all of the card */
  compute_dtype dtype;
  sections_mode sections;
  sections_orders orders;
  recompute_mode recompute;
  int64_t ticks;
  bool greedy; /* the best prefix instead of a search */
  bool kth;    /* every k-th kept instead of it */
} ask;

typedef struct got {
  bool found;
  int64_t compute_ns, step_ns, bound_ns, peak_bytes, budget_bytes;
  int32_t n_ops, n_sections, n_entries, n_moves;
  int64_t parts;
  char by[24], why[200];
} got;

static trace *make (const ask *q, device *d, arena *a, error *err) {
  char path[4096];
  snprintf (path, sizeof path, "%s/%s.json", q->folder, q->device);
  if (!device_load (path, NULL, a, d, err))
    return NULL;
  if (q->gb) {
    int64_t rate = q->gb * 1000000000;
    d->link = (device_link){ rate, rate, 2 * rate, 10000 };
  }
  d->host_bytes = (int64_t)1 << 42;
  bool adam = !strncmp (q->network, "gpt", 3) || !strncmp (q->network, "bert", 4) ||
              !strncmp (q->network, "llama", 5) || !strncmp (q->network, "vit", 3);
  zoo_request r = { .name = q->network,
                    .batch = q->batch,
                    .seq = q->seq,
                    .dtype = q->dtype,
                    .optimizer = adam ? ZOO_ADAM : ZOO_MOMENTUM,
                    .device = d };
  return zoo_trace (&r, a, err);
}

static bool peak_of (const trace *t, const device *d, arena *a, int64_t *peak, error *err) {
  units u;
  gaps g;
  if (!units_of (t, NULL, 0, d->granule_bytes, 1 << 20, a, &u, err) ||
      !gaps_of (&u, d->granule_bytes, INT64_MAX / 8, a, &g, err))
    return false;
  *peak = g.peak_bytes;
  return true;
}

static bool row (const void *context, void *answer, error *err) {
  const ask *q = context;
  got *to = answer;
  device d;
  solution s;
  recompute_result r;
  error why = { 0 };
  arena *a = arena_new (0);
  trace *t = a ? make (q, &d, a, err) : NULL;
  bool ok = t && peak_of (t, &d, a, &to->peak_bytes, err);
  if (!ok)
    goto out;
  to->compute_ns = trace_total_ns (t);
  to->n_ops = t->n_ops;
  to->budget_bytes = q->percent        ? to->peak_bytes / 100 * q->percent
                     : q->budget_bytes ? q->budget_bytes
                                       : d.memory_bytes - d.reserved_bytes;
  solve_options o = { .device = &d,
                      .budget_bytes = to->budget_bytes,
                      .host_bytes = d.host_bytes,
                      .limit_ticks = q->ticks,
                      .sections = q->sections,
                      .section_orders = q->orders,
                      .recompute = q->recompute };
  if (q->greedy) {
    /* Room for every prefix, and little more: a price is a quarter of the ops. */
    to->found = greedy_drops (t, &o, true, 32 * (int64_t)t->n_ops, a, &r, &why) &&
                r.value.step_ns != INT64_MAX;
    to->step_ns = to->found ? r.value.step_ns : 0;
    to->n_entries = to->found ? r.best.n_recomputes : 0;
    snprintf (to->why, sizeof to->why, "%.190s", why.text);
    goto out;
  }
  if (q->kth) {
    kept_kth best;
    to->found = keep_kth (t, &o, 24, &best, &why) && best.step_ns != INT64_MAX;
    to->step_ns = to->found ? best.step_ns : 0;
    snprintf (to->why, sizeof to->why, "%.190s", why.text);
    goto out;
  }
  to->found = solve (t, &o, a, &s, &why) && check_plan (t, s.plan, a, NULL, &why);
  snprintf (to->why, sizeof to->why, "%.190s", why.text);
  if (!to->found)
    goto out;
  to->step_ns = s.plan->predicted.step_ns;
  to->bound_ns = s.bound.lower_bound_ns;
  to->n_sections = s.plan->n_sections;
  to->n_entries = s.plan->n_recomputes;
  to->n_moves = s.plan->n_moves;
  for (int32_t i = 0; i < s.plan->n_sections; i++)
    to->parts = s.plan->sections[i].parts > to->parts ? s.plan->sections[i].parts : to->parts;
  snprintf (to->by, sizeof to->by, "%s", s.plan->certificate.bound_by);
out:
  arena_free (a);
  return ok;
}

static double over (const got *g, int64_t ns) {
  return g->compute_ns ? (double)ns / (double)g->compute_ns : 0;
}

/* One row of the table and its JSON. */
static got tell (const ask *q, const char *name) {
  got g = { 0 };
  bench_end end = bench_row (row, q, &g, sizeof g, LIMIT_S);
  printf ("  %-18s ", name);
  if (!end.ok)
    printf ("no answer%s\n", end.timed_out ? " in time" : "");
  else if (!g.found)
    printf ("none (%.1f s): %s\n", end.cpu_s, g.why);
  else
    printf ("%.4f  bound %.4f (%s)  %d sections, %lld parts, %d entries, %d moves  %.1f s\n",
            over (&g, g.step_ns), over (&g, g.bound_ns), q->greedy || q->kth ? "none" : g.by,
            g.n_sections, (long long)g.parts, g.n_entries, g.n_moves, end.cpu_s);
  printf ("{\"network\":\"%s\",\"batch\":%lld,\"device\":\"%s\",\"gb\":%lld,\"budget_bytes\":%lld,"
          "\"row\":\"%s\",\"found\":%s,\"step_ns\":%lld,\"bound_ns\":%lld,\"compute_ns\":%lld,"
          "\"cpu_s\":%.1f}\n",
          q->network, (long long)q->batch, q->device, (long long)q->gb, (long long)g.budget_bytes,
          name, g.found ? "true" : "false", (long long)g.step_ns, (long long)g.bound_ns,
          (long long)g.compute_ns, end.cpu_s);
  fflush (stdout);
  g.found &= end.ok;
  return g;
}

/* ---- the tables ---- */

static void vgg (ask q) {
  static const int64_t cells[][2] = { { 256, 4 }, { 256, 2 }, { 512, 4 }, { 512, 2 } };
  q.device = "titanx-pascal";
  q.network = "vgg16";
  q.sections = SECTIONS_AUTO;
  for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
    q.batch = cells[i][0];
    q.budget_bytes = cells[i][1] * GIB;
    printf ("vgg16 fp32 momentum, batch %lld in %lld GiB\n", (long long)q.batch,
            (long long)cells[i][1]);
    q.orders = ORDERS_AUTO;
    tell (&q, "any sections");
    q.orders = ORDERS_LEVEL;
    tell (&q, "level by level");
  }
}

/* That allowing both is never worse than what stands beside it, under the same limits. */
static bool holds (const ask *q, const got *both, const got *other, const char *name) {
  if (!other->found || (both->found && both->step_ns <= other->step_ns))
    return true;
  printf ("WORSE: %s batch %lld, %lld GB/s, %d %%: both %.4f, %s %.4f\n", q->network,
          (long long)q->batch, (long long)q->gb, q->percent, over (both, both->step_ns), name,
          over (other, other->step_ns));
  return false;
}

static bool links (ask q, const char *network, int64_t batch, int percent) {
  bool ok = true;
  static const int64_t gbs[] = { 12, 25, 50, 450, 900 };
  q.device = "h200";
  q.network = network;
  q.batch = batch;
  q.percent = percent;
  q.dtype = DTYPE_BF16;
  for (size_t i = 0; i <= sizeof gbs / sizeof *gbs; i++) {
    bool last = i == sizeof gbs / sizeof *gbs; /* NVLink-C2C as measured */
    q.gb = last ? 0 : gbs[i];
    q.device = last ? "gh200" : "h200";
    printf ("%s batch %lld bf16, %d %% of the peak, %s, link %lld GB/s\n", network,
            (long long)batch, percent, q.device, (long long)q.gb);
    q.recompute = RECOMPUTE_OFF;
    got swap = tell (&q, "swap alone");
    q.recompute = RECOMPUTE_ONLY;
    got drop = tell (&q, "recompute alone");
    q.recompute = RECOMPUTE_AUTO;
    got both = tell (&q, "both");
    q.kth = true;
    got kth = tell (&q, "every k-th kept");
    q.kth = false;
    ok &= holds (&q, &both, &kth, "every k-th kept");
    ok &= holds (&q, &both, &swap, "swap alone");
    ok &= holds (&q, &both, &drop, "recompute alone");
  }
  return ok;
}

typedef struct zoo_cell {
  const char *network;
  int64_t batch;
  int percent; /* 0: 60; where one op alone needs more than that */
} zoo_cell;

static const zoo_cell zoo_cells[] = {
  { "vgg16", 64, 0 },      { "vgg19", 64, 0 },       { "alexnet", 256, 0 },
  { "overfeat", 128, 70 }, { "resnet18", 64, 0 },    { "resnet34", 64, 0 },
  { "resnet50", 64, 0 },   { "resnet101", 32, 0 },   { "googlenet", 64, 0 },
  { "inception3", 32, 0 }, { "densenet121", 32, 0 }, { "unet3d", 2, 0 },
  { "dcgan", 128, 0 },     { "charrnn", 64, 0 },     { "seq2seq", 64, 0 },
  { "bert-base", 16, 0 },  { "bert-large", 8, 0 },   { "gpt2", 4, 0 },
  { "gpt2-medium", 4, 0 }, { "vit-b", 32, 0 },       { "vit-l", 16, 0 },
  { "resnet152", 16, 0 },  { "llama-1b", 2, 0 },     { "gpt2-large", 2, 0 },
  { "resnet200", 16, 0 },  { "gpt2-xl", 2, 0 },
};
enum { CELLS = sizeof zoo_cells / sizeof *zoo_cells };

static int by_value (const void *x, const void *y) {
  double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
}

/* How much longer the greedy mix takes than the mix, and where it is as good. */
static bool greedy (ask q, const char *only) {
  bool ok = true;
  static const int64_t gbs[] = { 12, 50, 450 };
  double more[3 * CELLS];
  int n = 0, as_good = 0, alone = 0;
  q.device = "h200";
  q.dtype = DTYPE_BF16;
  for (int i = 0; i < CELLS; i++)
    for (int k = 0; k < 3; k++) {
      q.network = zoo_cells[i].network;
      if (only && strcmp (only, q.network))
        continue;
      q.batch = zoo_cells[i].batch;
      q.percent = zoo_cells[i].percent ? zoo_cells[i].percent : 60;
      q.gb = gbs[k];
      q.recompute = RECOMPUTE_AUTO;
      printf ("%s batch %lld bf16, %d %% of the peak, %lld GB/s\n", q.network, (long long)q.batch,
              q.percent, (long long)q.gb);
      got both = tell (&q, "mix");
      q.greedy = true;
      got first = tell (&q, "greedy mix");
      q.greedy = false;
      q.kth = true;
      got kth = tell (&q, "every k-th kept");
      q.kth = false;
      ok &= holds (&q, &both, &first, "greedy mix");
      ok &= holds (&q, &both, &kth, "every k-th kept");
      alone += both.found && !first.found;
      if (both.found && first.found) {
        more[n] = 100.0 * (double)first.step_ns / (double)both.step_ns - 100;
        as_good += first.step_ns <= both.step_ns + both.step_ns / 1000;
        n++;
      }
    }
  if (!n)
    return ok;
  qsort (more, (size_t)n, sizeof *more, by_value);
  printf ("greedy over the mix, %d cells: least %.2f %%, a tenth below %.2f, median %.2f, a tenth "
          "above %.2f, most %.2f %%; as good to 0.1 %% in %d; none found in %d more\n",
          n, more[0], more[n / 10], more[n / 2], more[n - 1 - n / 10], more[n - 1], as_good, alone);
  return ok;
}

/* Loss in percent at a batch; -1: no plan. */
static double loss (ask *q, int64_t batch, const char *name) {
  q->batch = batch;
  got g = tell (q, name);
  return g.found ? 100 * over (&g, g.step_ns) - 100 : -1;
}

/* The largest batch that fits: as it is, and by dropping. */
static void meng_attention (ask q) {
  static const int64_t batches[] = { 1, 2, 4, 8, 16, 32, 60, 96, 128 };
  int64_t whole = 0, most = 0;
  q.device = "m40";
  q.network = "seq2seq";
  q.seq = 400;
  q.recompute = RECOMPUTE_ONLY;
  q.greedy = true; /* tens of thousands of ops: prefixes, no program */
  printf ("seq2seq with additive attention, 400 steps, fp32, M40\n");
  for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
    q.batch = batches[i];
    got g = tell (&q, "recompute alone");
    if (!g.found)
      break;
    whole = g.n_entries ? whole : q.batch;
    most = q.batch;
  }
  printf ("largest batch tried that fits: %lld as it is, %lld by dropping (published 2 and 60)\n",
          (long long)whole, (long long)most);
}

static void meng_images (ask q) {
  static const int64_t images[] = { 144, 208, 272, 336, 400, 464, 528, 592, 628, 664 };
  int64_t most = 0;
  q.device = "m40";
  q.network = "resnet50";
  q.recompute = RECOMPUTE_AUTO;
  printf ("ResNet-50 fp32, M40, 12 GB, less than 10 %% slower; published: 664\n");
  for (size_t i = 0; i < sizeof images / sizeof *images; i++) {
    double at = loss (&q, images[i], "swap and recompute");
    if (at < 0 || at >= 10)
      break;
    most = images[i];
  }
  printf ("largest batch under 10 %%: %lld (published 664)\n", (long long)most);
}

int main (int argc, char **argv) {
  const char *source = getenv ("srcdir"), *what = argc > 1 ? argv[1] : "";
  char folder[4096];
  snprintf (folder, sizeof folder, "%s/data/devices", source ? source : ".");
  bool ok = true; /* no mix was worse than what stands beside it */
  ask q = { .folder = folder, .dtype = DTYPE_FP32, .ticks = 1000000 };
  int ticks_at = !strcmp (what, "links") ? 5 : 2;
  if (argc > ticks_at)
    q.ticks = strtoll (argv[ticks_at], NULL, 10);
  if (!strcmp (what, "vgg"))
    vgg (q);
  else if (!strcmp (what, "links") && argc > 4)
    ok = links (q, argv[2], strtoll (argv[3], NULL, 10), (int)strtol (argv[4], NULL, 10));
  else if (!strcmp (what, "greedy"))
    ok = greedy (q, bench_argument (argc, argv, 3));
  else if (!strcmp (what, "meng")) {
    meng_attention (q);
    meng_images (q);
  } else if (!strcmp (what, "attention"))
    meng_attention (q);
  else if (argc == 1) {
    q.ticks = 200000;
    vgg (q);
    ok = links (q, "resnet18", 64, 60);
    ok &= greedy (q, "alexnet");
  } else {
    fprintf (stderr, "bench_sections vgg|meng|attention [TICKS] | greedy [TICKS [NETWORK]] | "
                     "links NETWORK BATCH PERCENT [TICKS]\n");
    return 2;
  }
  return ok ? 0 : 1;
}
