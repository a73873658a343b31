/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/replay/replay_real.h"

#include <stdlib.h>

#include "base/order.h"
#include "base/units.h"
#include "executor/train.h"
#include "solver/place/schedule.h"
#include "trace/rewrite/order.h"

/* ---- step by step ---- */

static void print_step (void *context, const train_step *s) {
  const train_options *o = context;
  if (s->step == 0)
    printf (o->compare ? "%5s  %14s  %14s\n" : "%5s  %14s\n", "step", "loss", "unswapped");
  printf ("%5d  %14.6f", s->step, s->loss);
  if (o->compare)
    printf ("  %14.6f  %s", s->unswapped, s->same ? "equal" : "DIFFERENT");
  if (s->update_ppm > 0 || s->whole > 0)
    printf ("; whole %.6f, updates %.2g %% apart", s->whole, s->update_ppm / 1e4);
  printf ("\n");
  fflush (stdout);
}

/* ---- the result ---- */

static void print_same (const trace *t, const train_result *r) {
  if (train_same (r)) {
    printf ("losses and parameters are, bit for bit, those of the unswapped step\n");
    return;
  }
  if (r->first_step >= 0)
    printf ("the loss of step %d is the first that is not that of the unswapped step\n",
            r->first_step);
  if (r->n_tensors > 0)
    printf ("%d tensors are not what the unswapped step made, the first: %s, element %lld: %.9g, "
            "and %.9g unswapped\n",
            r->n_tensors, t->tensors[r->tensor].name, (long long)r->element, (double)r->value,
            (double)r->unswapped);
}

static void print_whole (const train_result *r) {
  printf (
      "in sections: the loss is within %.2g %% of the whole step's (allowed: %g %%), the update "
      "within %.2g %% (%g %%)\n",
      r->loss_ppm / 1e4, TRAIN_LOSS_PPM / 1e4, r->update_ppm / 1e4, r->allowed_ppm / 1e4);
  if (!train_within (r))
    printf ("that is more than the order of sums explains: step %d, step %d\n", r->loss_step,
            r->update_step);
}

static void print_result (const trace *t, const train_result *r) {
  char size[UNITS_TEXT];
  replay_print (&r->replay);
  if (r->by_kernels)
    printf ("calculated by %s%s\n", r->how,
            r->how[0] != '\0' ? ", and the rest by our kernels" : "our kernels");
  printf ("trained: %s of parameters and the like, sha256:%s\n",
          units_bytes (size, r->values_bytes), r->digest);
  if (r->compared)
    print_same (t, r);
  if (r->compared && r->sectioned)
    print_whole (r);
}

static bool write_json (call *c, const train_result *r) {
  bytes text = { 0 };
  bool good = train_json (r, &text, &c->err) && call_write (c, NULL, text.data, text.size);
  bytes_free (&text);
  return good;
}

/* ---- the times that the ops took, as a trace ---- */

/* The median of op k in the timed steps but the first; `gap`: from the end of the op before. */
static int64_t median_ns (const replay_result *r, int32_t k, bool gap, int64_t *scratch) {
  int32_t n = 0, n_ops = r->rewritten.trace->n_ops;
  for (int32_t i = r->timed > 1 ? 1 : 0; i < r->timed; i++) {
    const span *s = &r->ops[(int64_t)i * n_ops + k];
    scratch[n++] = !gap ? s->end_ns - s->start_ns : k > 0 ? s->start_ns - (s - 1)->end_ns : 0;
  }
  qsort (scratch, (size_t)n, sizeof *scratch, order_int64);
  return n > 0 && scratch[n / 2] > 0 ? scratch[n / 2] : 0;
}

static bool write_times (call *c, trace *t, const plan *p, const replay_result *r,
                         const char *path) {
  int64_t *scratch = NEW (c->arena, r->timed + 1, int64_t, &c->err);
  if (scratch == NULL)
    return false;
  if (p->n_sections > 0 || p->n_recomputes > 0 || p->n_moves > 0)
    return call_usage (
        c, "--times is for a plan that moves, cuts and makes again nothing, so that the "
           "ops take what they take alone");
  for (int32_t k = 0; k < t->n_ops; k++) {
    t->ops[k].ns = median_ns (r, k, false, scratch);
    t->ops[k].gap_ns = median_ns (r, k, true, scratch);
  }
  return trace_store (t, path, TRACE_PLAIN, &c->err);
}

/* ---- the command ---- */

/* The same sections in as much memory as they take, nothing moved and nothing made again: what a
   GPU's steps are compared with. */
static const plan *unswapped_plan (call *c, const trace *t, const plan *p) {
  rewritten rw;
  schedule_shortage shortage;
  schedule_options o = { .budget_bytes = p->device.memory_bytes - p->device.reserved_bytes,
                         .host_bytes = p->device.host_bytes,
                         .pool_below_bytes = -1 };
  const trace *ordered = t;
  int32_t *order;
  bool cut = p->n_sections > 0; /* else the order as it is, to which any other must be the same */
  if ((cut && !trace_reorder (t, p->order, p->n_order, c->arena, &ordered, &order, &c->err)) ||
      !trace_rewrite (ordered,
                      &(rewriting){ .sections = p->sections,
                                    .n_sections = p->n_sections,
                                    .section_ns = p->device.section_ns },
                      c->arena, &rw, &c->err))
    return NULL;
  plan *made = schedule (&(schedule_request){ .original = ordered,
                                              .rewritten = &rw,
                                              .sections = p->sections,
                                              .n_sections = p->n_sections,
                                              .device = &p->device,
                                              .options = &o },
                         c->arena, &shortage, &c->err);
  if (made && cut) {
    made->order = p->order;
    made->n_order = p->n_order;
    made->trace_digest = p->trace_digest;
  }
  return made;
}

static bool read_training (call *c, train_options *o, bytes *text) {
  const char *path = call_text (c, "data");
  if (o->replay.iterations == 0)
    o->replay.iterations = TRAIN_STEPS;
  o->compare = call_flag (c, "compare");
  if (!c->json)
    o->on_step = print_step;
  o->context = o;
  if (path != NULL && !file_read (path, 0, text, &c->err))
    return false;
  if (path != NULL)
    o->input = (feed_options){ .text = text->data, .text_bytes = text->size };
  return true;
}

int replay_real (call *c, const replay_options *o, int64_t spoiled_copy, trace *t, const plan *p) {
  train_options train = { .replay = *o, .spoiled_copy = spoiled_copy };
  train_result r;
  bytes text = { 0 };
  const char *times = call_text (c, "times");
  setenv ("OPENBLAS_NUM_THREADS", "1",
          1); /* it makes its threads when it is opened; none has work */
  bool good = read_training (c, &train, &text);
  train.libraries.search = !o->emulated && !call_flag (c, "own-kernels");
  if (good && train.compare && !o->emulated)
    good = (train.unswapped = unswapped_plan (c, t, p)) != NULL;
  good = good && train_run (t, p, &train, c->arena, &r, &c->err) &&
         replay_write_chrome (c, &(sim_job){ .plan = p }, &r.replay, 1) &&
         (times == NULL || write_times (c, t, p, &r.replay, times)) &&
         (!c->json || write_json (c, &r));
  bytes_free (&text);
  if (!good) {
    if (c->err.where[0]) /* a rule that the plan breaks */
      error_in_file (&c->err, c->operands[1]);
    return call_failed (c);
  }
  if (!c->json)
    print_result (t, &r);
  int verdict = c->json && r.replay.n_races == 0 ? EXIT_YES : replay_verdict (o, &r.replay);
  return train_same (&r) && train_within (&r) ? verdict : EXIT_NO;
}
