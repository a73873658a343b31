/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How well a language model of characters learns a text in a minute of CPU time, in 60 % of the
   memory that it would take, and how fast beside the same steps in plain memory: `bench_train
   SECONDS FILE`. Without a file the text is made. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "executor/calculate/interpret.h"
#include "executor/train.h"
#include "solver/flow/gaps.h"
#include "solver/solve.h"
#include "tests/bench/made_text.h"
#include "trace/zoo/zoo.h"

enum {
  BATCH = 32,
  WINDOW = 50,
  TRIAL = 12,
  MEAN = 50,
  SHARE_PERCENT = 60,
  TICKS = 100000,
  MADE_BYTES = 300 << 10
};

static const device card = { .name = "card",
                             .memory_bytes = (int64_t)1 << 40,
                             .granule_bytes = 4096,
                             .link = { 12000000000, 12000000000, 22000000000, 10000 },
                             .host_bytes = (int64_t)1 << 40,
                             .section_ns = 10000,
                             .share_ppm = 1000000,
                             .has_roofline = true,
                             .roofline = { .fp32_flops = 1000000000000,
                                           .memory_bytes_per_s = 100000000000 } };

/* Of this process: others may be at work beside. */
static double seconds (void) {
  struct timespec t;
  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must (bool ok, const error *err) {
  if (ok)
    return;
  fprintf (stderr, "bench_train: %s\n", err->text);
  exit (EXIT_FAILURE);
}

static trace *model (arena *a) {
  error err = { 0 };
  zoo_request q = { .name = "charrnn",
                    .batch = BATCH,
                    .seq = WINDOW,
                    .width_divisor = 4,
                    .classes = 128,
                    .optimizer = ZOO_ADAM,
                    .device = &card };
  trace *t = zoo_trace (&q, a, &err);
  must (t != NULL, &err);
  return t;
}

/* In 60 % of what the step takes with nothing moved. */
static plan *plan_of (const trace *t, arena *a, int64_t *peak_bytes) {
  error err = { 0 };
  units u;
  gaps g;
  solution s;
  must (units_of (t, NULL, 0, card.granule_bytes, 0, a, &u, &err) &&
            gaps_of (&u, card.granule_bytes, 0, a, &g, &err),
        &err);
  *peak_bytes = g.peak_bytes;
  solve_options o = { .device = &card,
                      .budget_bytes = g.peak_bytes * SHARE_PERCENT / 100 / card.granule_bytes *
                                      card.granule_bytes,
                      .host_bytes = card.host_bytes,
                      .limit_ticks = TICKS };
  must (solve (t, &o, a, &s, &err), &err);
  return s.plan;
}

static double in_plain_memory (const trace *t, const feed_options *input, int steps, arena *a) {
  error err = { 0 };
  rewritten whole;
  interpret_options o = { .feed = *input };
  must (trace_rewrite (t, &(rewriting){ 0 }, a, &whole, &err), &err);
  interpreter *p = interpret_new (t, &whole, &o, a, &err);
  must (p != NULL, &err);
  double start = seconds (), loss;
  for (int i = 0; i < steps; i++)
    must (interpret_step (p, i, &loss, &err), &err);
  interpret_free (p);
  return (seconds () - start) / steps;
}

typedef struct course {
  double start, sum;
  int32_t printed;
} course;

static void on_step (void *context, const train_step *s) {
  course *c = context;
  c->sum += s->loss;
  if (s->step % MEAN < MEAN - 1)
    return;
  printf ("step %5d, %6.1f s, loss %.3f nats a letter\n", s->step + 1, seconds () - c->start,
          c->sum / MEAN);
  fflush (stdout);
  c->sum = 0;
}

static train_result train (const trace *t, const plan *p, const feed_options *input, int32_t steps,
                           course *c, arena *a) {
  error err = { 0 };
  train_result r;
  train_options o = { .replay = { .library = getenv ("FERRY_EMU"),
                                  .emulated = true,
                                  .clock = EMU_VIRTUAL,
                                  .bytes = EMU_ALL,
                                  .iterations = steps },
                      .input = *input,
                      .on_step = c != NULL ? on_step : NULL,
                      .context = c };
  must (train_run (t, p, &o, a, &r, &err), &err);
  return r;
}

static double last_losses (const train_result *r) {
  double sum = 0;
  int32_t n = r->replay.steps < MEAN ? r->replay.steps : MEAN;
  for (int32_t i = r->replay.steps - n; i < r->replay.steps; i++)
    sum += r->losses[i];
  return sum / n;
}

int main (int argc, char **argv) {
  error err = { 0 };
  bytes file = { 0 };
  double limit_s = argc > 1 ? strtod (argv[1], NULL) : 60, nats = 0, one, two;
  if (argc > 2)
    must (file_read (argv[2], 0, &file, &err), &err);
  feed_options input = { .text = file.data, .text_bytes = file.size };
  char *made = argc > 2 ? NULL : made_text (MADE_BYTES, &nats);
  if (made != NULL)
    input = (feed_options){ .text = made, .text_bytes = MADE_BYTES };
  text_entropies (input.text, input.text_bytes, &one, &two);
  printf ("a text of %lld bytes, its entropy: %.3f nats a letter, %.3f knowing the one before\n",
          (long long)input.text_bytes, one, two);
  if (made != NULL)
    printf ("its grammar's entropy: %.3f nats a letter\n", nats);
  arena *a = arena_new (0);
  const trace *t = model (a);
  int64_t peak_bytes;
  const plan *p = plan_of (t, a, &peak_bytes);
  printf ("charrnn 2 x 128: %lld bytes of %lld, %d moves\n", (long long)p->budget_bytes,
          (long long)peak_bytes, p->n_moves);
  double plain = in_plain_memory (t, &input, TRIAL, a), start = seconds ();
  train (t, p, &input, TRIAL, NULL, a);
  double each = (seconds () - start) / TRIAL;
  int32_t steps = (int32_t)(limit_s / each);
  steps = steps < 1 ? 1 : steps > REPLAY_MOST_STEPS ? REPLAY_MOST_STEPS : steps;
  course c = { .start = seconds () };
  train_result r = train (t, p, &input, steps, &c, a);
  double took = seconds () - c.start, loss = last_losses (&r);
  printf ("a step takes %.1f ms under the plan, %.1f ms in plain memory\n", 1e3 * took / steps,
          1e3 * plain);
  printf ("{\"bench\":\"train\",\"budget_bytes\":%lld,\"letters_per_s\":%.0f,\"loss\":%.3f,"
          "\"peak_bytes\":%lld,\"plain_letters_per_s\":%.0f,\"steps\":%d,\"text_bytes\":%lld}\n",
          (long long)p->budget_bytes, BATCH * WINDOW * steps / took, loss, (long long)peak_bytes,
          BATCH * WINDOW / plain, steps, (long long)input.text_bytes);
  arena_free (a);
  bytes_free (&file);
  free (made);
  return loss < two ? EXIT_SUCCESS : EXIT_FAILURE; /* better than knowing one letter */
}
