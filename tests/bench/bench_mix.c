/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sections and recompute in tables: each figure the slowdown over compute without any limit of an
   executable plan that check has passed, or the bound beside it.
   bench_mix vgg: any sections, level by level and depth first, on the TITAN X.
   bench_mix mix NETWORK BATCH GB/s [DTYPE [PERCENT [ROWS]]]: swap alone, recompute alone, greedy
   mix, every k-th kept, both, and both with sections (rows s, r, g, k, b, c); without more, bf16
   and 80, 60, 40, 20 % of the peak; H200. "+" behind the network: attention with its score matrix.
   Where both are worse than a column beside them, a line says so and the exit status is 1.
   Both need the folder of device files as the last operand; without any, some of both. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "solver/recompute/recompute.h"
#include "solver/solve.h"
#include "tests/keep_kth.h"
#include "trace/zoo/zoo.h"

/* Of this process on any core: what else runs on the machine does not count. */
static double now_s (void) {
  struct timespec t;
  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool device_of (const char *folder, const char *name, arena *a, device *d, error *err) {
  char path[4096];
  snprintf (path, sizeof path, "%s/%s.json", folder, name);
  return device_load (path, NULL, a, d, err);
}

typedef struct question {
  const char *network, *rows;
  int64_t batch, gb;
  compute_dtype dtype;
  int percent; /* 0: all four */
} question;

static void print_json (const trace *t, const question *q, const char *name, const solution *s,
                        double seconds) {
  printf ("{\"bench\":\"mix\",\"network\":\"%s\",\"batch\":%lld,\"gb_per_s\":%lld,\"dtype\":\"%s\","
          "\"percent\":%d,\"row\":\"%s\",\"ops\":%d,\"baseline_ns\":%lld,\"lower_bound_ns\":%lld,"
          "\"step_ns\":%lld,\"seconds\":%.1f}\n",
          q->network, (long long)q->batch, (long long)q->gb, compute_dtype_names[q->dtype],
          q->percent, name, t->n_ops, (long long)trace_total_ns (t),
          (long long)s->bound.lower_bound_ns, (long long)s->plan->predicted.step_ns, seconds);
}

/* INT64_MAX: none. q NULL: no JSON. */
static int64_t cell (const trace *t, const solve_options *o, const char *name, const question *q) {
  arena *a = arena_new (0);
  error err = { 0 };
  solution s;
  int64_t step_ns = INT64_MAX;
  double start = now_s (), compute = (double)trace_total_ns (t);
  if (!a || !solve (t, o, a, &s, &err))
    printf ("  %-22s none: %s\n", name, err.text);
  else {
    step_ns = s.plan->predicted.step_ns;
    printf ("  %-22s %.4f  bound %.4f (%s)  gap %.2f %%  %d sections in %lld, %d entries, %d moves"
            "  %lld ticks  %.1f s\n",
            name, (double)s.plan->predicted.step_ns / compute,
            (double)s.bound.lower_bound_ns / compute, s.bound.by, 100 * s.plan->certificate.gap,
            s.plan->n_sections, s.plan->n_sections ? (long long)s.plan->sections[0].parts : 1,
            s.plan->n_recomputes, s.plan->n_moves, (long long)s.ticks, now_s () - start);
    if (q != NULL)
      print_json (t, q, name, &s, now_s () - start);
  }
  fflush (stdout);
  arena_free (a);
  return step_ns;
}

static bool vgg (const char *folder, arena *a, error *err) {
  static const int64_t cells[][2] = { { 256, 4 }, { 256, 2 }, { 512, 4 }, { 512, 2 } };
  device d;
  if (!device_of (folder, "titanx-pascal", a, &d, err))
    return false;
  for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
    zoo_request r = { .name = "vgg16",
                      .batch = cells[i][0],
                      .dtype = DTYPE_FP32,
                      .optimizer = ZOO_MOMENTUM,
                      .device = &d };
    trace *t = zoo_trace (&r, a, err);
    if (!t)
      return false;
    solve_options o = { .device = &d,
                        .budget_bytes = cells[i][1] << 30,
                        .host_bytes = d.host_bytes,
                        .sections = SECTIONS_AUTO };
    printf ("vgg16 batch %lld in %lld GiB\n", (long long)cells[i][0], (long long)cells[i][1]);
    o.section_orders = ORDERS_AUTO;
    cell (t, &o, "any sections", NULL);
    o.section_orders = ORDERS_LEVEL;
    cell (t, &o, "level by level", NULL);
    o.section_orders = ORDERS_DEPTH;
    cell (t, &o, "depth first", NULL);
  }
  return true;
}

/* The greedy prefixes alone, without search. */
static int64_t greedy (const trace *t, const solve_options *o) {
  arena *a = arena_new (0);
  recompute_result r = { .value.step_ns = INT64_MAX };
  error err = { 0 };
  if (a && greedy_drops (t, o, false, 200 * (int64_t)t->n_ops, a, &r, &err) &&
      r.value.step_ns != INT64_MAX)
    printf ("  %-22s %.4f  %d entries\n", "greedy mix",
            (double)r.value.step_ns / (double)trace_total_ns (t), r.best.n_recomputes);
  else
    printf ("  %-22s none %s\n", "greedy mix", err.text);
  fflush (stdout);
  arena_free (a);
  return err.code ? INT64_MAX : r.value.step_ns;
}

/* Of what can be dropped every k-th is kept, for the best k, by tensors or by blocks; then swaps.
 */
static int64_t every_kth (const trace *t, const solve_options *o) {
  error err = { 0 };
  kept_kth best;
  if (!keep_kth (t, o, 24, &best, &err) || best.step_ns == INT64_MAX)
    printf ("  %-22s none %s\n", "every k-th kept", err.text);
  else
    printf ("  %-22s %.4f  k = %d%s\n", "every k-th kept",
            (double)best.step_ns / (double)trace_total_ns (t), best.k,
            best.blocks ? ", of blocks" : "");
  fflush (stdout);
  return err.code ? INT64_MAX : best.step_ns;
}

static void say (void *context, log_level level, const char *text) {
  (void)level;
  printf ("    %6.2f s  %s\n", now_s () - *(const double *)context, text);
}

/* False, and a line: what allows all is worse than one of those that allow less. */
static bool holds (const char *name, int64_t both_ns, int64_t ns) {
  if (both_ns <= ns)
    return true;
  printf ("WORSE: both take %lld ns, %s %lld\n", (long long)both_ns, name, (long long)ns);
  return false;
}

static bool cells (const trace *t, const device *d, int64_t budget_bytes, const question *q) {
  enum { SWAP, AGAIN, GREEDY, KTH, BOTH, PARTS, COLUMNS };
  static const char *const names[COLUMNS] = { "swap alone", "recompute alone",
                                              "greedy mix", "every k-th kept",
                                              "both",       "both, and sections" };
  static const char letters[] = "srgkbc";
  solve_options o = { .device = d, .budget_bytes = budget_bytes, .host_bytes = d->host_bytes };
  double start = now_s ();
  logger log = { .say = say, .context = &start };
  bool ok = true;
  int64_t ns[COLUMNS];
  o.log = strchr (q->rows, 'v') ? &log : NULL;
  for (int i = 0; i < COLUMNS; i++) {
    ns[i] = INT64_MAX;
    o.recompute = i == SWAP ? RECOMPUTE_OFF : i == AGAIN ? RECOMPUTE_ONLY : RECOMPUTE_AUTO;
    o.sections = i == PARTS ? SECTIONS_AUTO : SECTIONS_OFF;
    if (!strchr (q->rows, letters[i]) || (i == PARTS && t->n_ops >= 300))
      continue;
    ns[i] = i == GREEDY ? greedy (t, &o) : i == KTH ? every_kth (t, &o) : cell (t, &o, names[i], q);
    for (int k = 0; i == BOTH && k < i; k++)
      ok &= holds (names[k], ns[i], ns[k]);
  }
  return ok;
}

/* *ok becomes false where both are worse than another row. */
static bool mix (const char *folder, const question *q, arena *a, bool *ok, error *err) {
  static const int percents[] = { 80, 60, 40, 20 };
  char network[64];
  device d;
  units u;
  gaps g;
  if (!device_of (folder, "h200", a, &d, err))
    return false;
  snprintf (network, sizeof network, "%.*s", (int)strcspn (q->network, "+"), q->network);
  int64_t rate = q->gb * 1000000000;
  d.link = (device_link){ rate, rate, 2 * rate, 10000 };
  d.host_bytes = (int64_t)1 << 42;
  zoo_request r = { .name = network,
                    .batch = q->batch,
                    .dtype = q->dtype,
                    .optimizer = strncmp (network, "gpt", 3) ? ZOO_MOMENTUM : ZOO_ADAM,
                    .explicit_attention = strchr (q->network, '+') != NULL,
                    .device = &d };
  trace *t = zoo_trace (&r, a, err);
  if (!t || !units_of (t, NULL, 0, d.granule_bytes, 1 << 20, a, &u, err) ||
      !gaps_of (&u, d.granule_bytes, INT64_MAX / 8, a, &g, err))
    return false;
  d.memory_bytes = g.peak_bytes + d.reserved_bytes; /* a network too large for the card, too */
  for (size_t i = 0; i < sizeof percents / sizeof *percents; i++) {
    if (q->percent && q->percent != percents[i])
      continue;
    printf ("%s batch %lld, %s, %lld GB/s, %d %% of the peak of %lld MiB, %d ops\n", q->network,
            (long long)q->batch, compute_dtype_names[q->dtype], (long long)q->gb, percents[i],
            (long long)(g.peak_bytes >> 20), t->n_ops);
    question one = *q;
    one.percent = percents[i];
    *ok &= cells (t, &d, g.peak_bytes / 100 * percents[i], &one);
  }
  return true;
}

static bool dtype_of (const char *name, compute_dtype *out, error *err) {
  for (int i = 0; i < DTYPES; i++)
    if (strcmp (name, compute_dtype_names[i]) == 0) {
      *out = (compute_dtype)i;
      return true;
    }
  return error_set (err, ERR_usage, "no such type: %s", name);
}

int main (int count, char **words) {
  error err = { 0 };
  arena *a = arena_new (0);
  bool ok = a, holds = true;
  if (count == 3 && strcmp (words[1], "vgg") == 0)
    ok = ok && vgg (words[2], a, &err);
  else if (count >= 6 && count <= 9 && strcmp (words[1], "mix") == 0) {
    question q = { .network = words[2],
                   .batch = strtoll (words[3], NULL, 10),
                   .gb = strtoll (words[4], NULL, 10),
                   .dtype = DTYPE_BF16,
                   .percent = count > 7 ? (int)strtoll (words[6], NULL, 10) : 0,
                   .rows = count > 8 ? words[7] : "srgkbc" };
    ok = ok && (count < 7 || dtype_of (words[5], &q.dtype, &err)) &&
         mix (words[count - 1], &q, a, &holds, &err);
  } else if (count == 1 && a) {
    const char *source = getenv ("srcdir");
    const char *folder = arena_format (a, &err, "%s/data/devices", source ? source : ".");
    question q = { "vgg16", "srgkbc", 512, 50, DTYPE_BF16, 0 };
    ok = folder && vgg (folder, a, &err) && mix (folder, &q, a, &holds, &err);
    q.network = "resnet50";
    ok = ok && mix (folder, &q, a, &holds, &err);
    q.network = "gpt2";
    q.batch = 8;
    ok = ok && mix (folder, &q, a, &holds, &err);
  } else
    ok = error_set (&err, ERR_usage,
                    "bench_mix vgg DEVICES | mix NETWORK BATCH GB/s [DTYPE [PERCENT [ROWS]]] "
                    "DEVICES");
  if (!ok)
    fprintf (stderr, "bench_mix: %s\n", err.text);
  arena_free (a);
  return ok && holds ? 0 : 1;
}
