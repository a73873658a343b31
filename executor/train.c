/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/train.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "executor/ops/bf16.h"
#include "executor/calculate/cuda.h"
#include "executor/driver/host.h"
#include "executor/calculate/interpret.h"
#include "trace/check/check.h"

/* The same network in plain memory. */
typedef struct plain {
  rewritten rewritten;
  interpreter *it;
  int32_t *tensors; /* its persistent ones by those of the original trace; -1: none */
} plain;

typedef struct training {
  const trace *trace;
  const plan *plan;
  const train_options *options;
  const feed *feed;       /* knows the tensors in bf16 */
  plain unswapped, whole; /* without an interpreter: unused */
  const double *losses;   /* of the device's own unswapped run; NULL: there is none */
  void **values;          /* and what it left, by tensor of the original trace */
  float **before;         /* the parameters before the step, by tensor of the original trace */
  train_result *out;
} training;

/* ---- the plain ones ---- */

static bool plain_open (const training *t, bool cut, plain *p, arena *a, error *err) {
  const plan *n = t->plan;
  interpret_options o = { .feed = t->options->input, .kernels = t->out->by_kernels };
  bool ok = cut && n->n_sections
                ? plan_cut (t->trace, n, a, &p->rewritten, err)
                : trace_rewrite (t->trace, &(rewriting){ 0 }, a, &p->rewritten, err);
  if (!ok)
    return false;
  int64_t bytes = 0;
  host_limits limits = host_limits_read ();
  for (int32_t i = 0; i < p->rewritten.trace->n_tensors; i++)
    bytes += p->rewritten.trace->tensors[i].bytes;
  if (!host_has_room (&limits, bytes, err) ||
      (p->it = interpret_new (t->trace, &p->rewritten, &o, a, err)) == NULL ||
      (p->tensors = NEW (a, t->trace->n_tensors, int32_t, err)) == NULL)
    return false;
  memset (p->tensors, 0xff, (size_t)t->trace->n_tensors * sizeof (int32_t));
  for (int32_t i = 0; i < p->rewritten.trace->n_tensors; i++)
    if (p->rewritten.trace->tensors[i].persistent)
      p->tensors[p->rewritten.tensors[i].index] = i;
  return true;
}

static void *plain_data (const plain *p, int32_t tensor) {
  return p->tensors[tensor] < 0 ? NULL : interpret_data (p->it, p->tensors[tensor]);
}

/* ---- in sections against the whole ---- */

static bool make_before (training *t, arena *a, error *err) {
  t->before = NEW (a, t->trace->n_tensors, float *, err);
  for (int32_t i = 0; t->before != NULL && i < t->trace->n_tensors; i++)
    if (t->trace->tensors[i].kind == TENSOR_PARAMETER && plain_data (&t->whole, i) != NULL &&
        (t->before[i] = NEW (a, (t->trace->tensors[i].bytes + 3) / 4, float, err)) == NULL)
      return false;
  return t->before != NULL;
}

/* Both begin where the step in sections stands. */
static void begin_together (training *t) {
  for (int32_t i = 0; i < t->trace->n_tensors; i++) {
    const void *from = plain_data (&t->unswapped, i);
    void *to = plain_data (&t->whole, i);
    if (from == NULL || to == NULL)
      continue;
    memcpy (to, from, (size_t)t->trace->tensors[i].bytes);
    if (t->before[i] != NULL)
      memcpy (t->before[i], from, (size_t)t->trace->tensors[i].bytes);
  }
}

static double number_at (const training *t, int32_t tensor, const void *at, int64_t i) {
  return feed_is_bf16 (t->feed, tensor) ? (double)bf16_number (((const uint16_t *)at)[i])
                                        : (double)((const float *)at)[i];
}

static int64_t count_of (const training *t, int32_t tensor) {
  return t->trace->tensors[tensor].bytes / (feed_is_bf16 (t->feed, tensor) ? 2 : 4);
}

/* How far apart the two updates are, over the whole one's length. */
static double update_ppm (const training *t) {
  double apart = 0, length = 0;
  for (int32_t i = 0; i < t->trace->n_tensors; i++) {
    const void *x = plain_data (&t->unswapped, i), *y = plain_data (&t->whole, i);
    if (t->before[i] == NULL || x == NULL)
      continue;
    for (int64_t k = 0; k < count_of (t, i); k++) {
      double whole = number_at (t, i, y, k), d = number_at (t, i, x, k) - whole;
      double w = whole - number_at (t, i, t->before[i], k);
      apart += d * d;
      length += w * w;
    }
  }
  return length > 0 ? 1e6 * sqrt (apart / length) : apart > 0 ? INFINITY : 0;
}

static bool step_whole (training *t, train_step *s, error *err) {
  if (!interpret_step (t->whole.it, s->step, &s->whole, err))
    return false;
  double loss_ppm = 1e6 * fabs (s->unswapped - s->whole) / fabs (s->whole);
  s->update_ppm = update_ppm (t);
  /* NaN is the largest of all. */
  if (!(loss_ppm <= t->out->loss_ppm)) {
    t->out->loss_ppm = loss_ppm;
    t->out->loss_step = s->step;
  }
  if (!(s->update_ppm <= t->out->update_ppm)) {
    t->out->update_ppm = s->update_ppm;
    t->out->update_step = s->step;
  }
  return true;
}

/* ---- steps ---- */

static bool on_step (void *context, int32_t step, double loss, error *err) {
  training *t = context;
  train_step s = { .step = step, .loss = loss, .same = true };
  if (t->whole.it != NULL)
    begin_together (t);
  if (t->losses != NULL || t->unswapped.it != NULL) {
    if (t->losses != NULL)
      s.unswapped = t->losses[step];
    else if (!interpret_step (t->unswapped.it, step, &s.unswapped, err))
      return false;
    s.same = memcmp (&s.loss, &s.unswapped, sizeof s.loss) == 0;
    if (!s.same && t->out->first_step < 0)
      t->out->first_step = step;
  }
  if (t->whole.it != NULL && !step_whole (t, &s, err))
    return false;
  if (t->options->on_step != NULL)
    t->options->on_step (t->options->context, &s);
  return true;
}

/* ---- losses and values ---- */

static int32_t allowed_ppm (const calculation *c, int32_t n_ops) {
  for (int32_t i = 0; i < n_ops; i++)
    if (c->ops[i].binding.c.kind == COMPUTE_adam)
      return TRAIN_ADAM_PPM;
  return TRAIN_UPDATE_PPM;
}

static void note_values (training *t, const calculation *c) {
  const rewritten *r = &t->out->replay.rewritten;
  sha256 s;
  sha256_start (&s);
  for (int32_t i = 0; i < r->trace->n_tensors; i++)
    if (c->values[i] != NULL) {
      sha256_add (&s, c->values[i], (size_t)r->trace->tensors[i].bytes);
      t->out->values_bytes += r->trace->tensors[i].bytes;
    }
  sha256_text (&s, t->out->digest);
}

static void compare_values (training *t, const calculation *c) {
  const rewritten *r = &t->out->replay.rewritten;
  for (int32_t i = 0; i < r->trace->n_tensors; i++) {
    const char *x = c->values[i], *y = NULL;
    int32_t tensor = r->tensors[i].index;
    if (x != NULL)
      y = t->values != NULL ? t->values[tensor] : plain_data (&t->unswapped, tensor);
    if (y == NULL || memcmp (x, y, (size_t)r->trace->tensors[i].bytes) == 0)
      continue;
    if (t->out->n_tensors++ > 0)
      continue;
    int64_t at = 0, each = feed_is_bf16 (t->feed, tensor) ? 2 : 4;
    while (at + 1 < count_of (t, tensor) &&
           memcmp (x + at * each, y + at * each, (size_t)each) == 0)
      at++;
    t->out->tensor = tensor;
    t->out->element = at;
    t->out->value = (float)number_at (t, tensor, x, at);
    t->out->unswapped = (float)number_at (t, tensor, y, at);
  }
}

static bool open_plain_ones (training *t, arena *a, error *err) {
  bool cuts = t->plan->n_sections > 0;
  if (!t->options->compare)
    return true;
  t->out->compared = true;
  if (t->options->unswapped != NULL)
    return true;
  t->out->sectioned = cuts;
  return plain_open (t, true, &t->unswapped, a, err) &&
         (!cuts || (plain_open (t, false, &t->whole, a, err) && make_before (t, a, err)));
}

static bool any_bf16 (const trace *t, error *err) {
  for (int32_t i = 0; i < t->n_ops; i++) {
    compute c;
    if (t->ops[i].compute != NULL && compute_parse (t->ops[i].compute, &c, err) &&
        c.dtype == DTYPE_BF16)
      return true;
  }
  return false;
}

static calculation calculation_of (training *t) {
  return (calculation){ .by = t->out->by_kernels ? &calculator_cuda : &calculator_emulated,
                        .trace = t->trace,
                        .input = t->options->input,
                        .libraries = t->options->libraries };
}

/* The device's results where nothing moves, before the plan's own run. */
static bool run_unswapped (training *t, const replay_options *o, arena *a, error *err) {
  calculation c = calculation_of (t);
  replay_options r = *o;
  replay_result *seen = NEW (a, 1, replay_result, err);
  if (seen == NULL || t->options->unswapped == NULL || !t->options->compare)
    return seen != NULL;
  r.calculation = &c;
  r.lost_copy = r.lost_wait = r.failed_copy = 0; /* faults are the plan's own run's */
  if (!replay_run (t->trace, t->options->unswapped, &r, a, seen, err) ||
      (t->values = NEW (a, t->trace->n_tensors, void *, err)) == NULL)
    return false;
  t->losses = c.losses;
  for (int32_t i = 0; i < seen->rewritten.trace->n_tensors; i++)
    if (c.values[i] != NULL)
      t->values[seen->rewritten.tensors[i].index] = c.values[i];
  return true;
}

bool train_run (const trace *t, const plan *p, const train_options *o, arena *a, train_result *out,
                error *err) {
  assert (t && p && o && out);
  check_rule broken;
  *out = (train_result){ .first_step = -1, .tensor = -1 };
  training now = { .trace = t, .plan = p, .options = o, .out = out };
  out->by_kernels = !o->replay.emulated || o->kernels || any_bf16 (t, err);
  if (err->code != ERR_none)
    return false;
  replay_options r = o->replay;
  r.unchecked = true; /* checked here, before anything is made */
  r.iterations = r.iterations > 0 ? r.iterations : TRAIN_STEPS;
  if (!r.emulated && o->compare && o->unswapped == NULL)
    return error_set (err, ERR_usage,
                      "a GPU does not round as the CPU does, so it needs a plan that moves nothing "
                      "to compare with");
  if ((now.feed = feed_new (t, &o->input, a, err)) == NULL)
    return false;
  calculation c = calculation_of (&now);
  c.spoiled_copy = o->spoiled_copy;
  c.on_step = on_step;
  c.context = &now;
  r.calculation = &c;
  bool good = (o->replay.unchecked || check_plan (t, p, a, &broken, err)) &&
              open_plain_ones (&now, a, err) && run_unswapped (&now, &r, a, err) &&
              replay_run (t, p, &r, a, &out->replay, err);
  if (good) {
    out->losses = c.losses;
    memcpy (out->how, c.how, sizeof out->how);
    out->allowed_ppm = allowed_ppm (&c, out->replay.rewritten.trace->n_ops);
    note_values (&now, &c);
    if (o->compare)
      compare_values (&now, &c);
  }
  interpret_free (now.unswapped.it);
  interpret_free (now.whole.it);
  return good;
}

bool train_same (const train_result *r) {
  return r->first_step < 0 && r->n_tensors == 0;
}

bool train_within (const train_result *r) {
  return r->loss_ppm <= TRAIN_LOSS_PPM && r->update_ppm <= r->allowed_ppm;
}

/* ---- JSON ---- */

static void put_comparison (json_writer *w, const train_result *r) {
  json_open_object (w);
  json_add_int (w, "differing_tensors", r->n_tensors);
  json_add_int (w, "first_differing_step", r->first_step);
  if (r->sectioned) {
    json_add_fixed (w, "largest_loss_difference", r->loss_ppm / 1e6, 12);
    json_add_fixed (w, "largest_update_difference", r->update_ppm / 1e6, 12);
  }
  json_add_bool (w, "same", train_same (r));
  if (r->sectioned)
    json_add_bool (w, "within_tolerance", train_within (r));
  json_close_object (w);
}

bool train_json (const train_result *r, bytes *out, error *err) {
  json_writer w;
  bytes replay = { 0 };
  if (!replay_json (&r->replay, &replay, err))
    return false;
  json_begin_object (&w, 2);
  if (r->by_kernels)
    json_add_text (&w, "calculated_by", r->how[0] != '\0' ? r->how : "kernels");
  if (r->compared) {
    json_put_key (&w, "compared");
    put_comparison (&w, r);
  }
  json_add_array (&w, "losses");
  for (int32_t i = 0; i < r->replay.steps; i++)
    json_put_fixed (&w, r->losses[i], 9);
  json_close_array (&w);
  json_add_text (&w, "parameters", r->digest);
  json_add_int (&w, "parameters_bytes", r->values_bytes);
  json_put_key (&w, "replay");
  json_put_raw (&w, replay.data);
  json_close_object (&w);
  bytes_free (&replay);
  return json_finish (&w, out, err);
}
