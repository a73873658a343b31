#include "executor/train.h"

#include <math.h>
#include <string.h>

#include "executor/host.h"
#include "executor/interpret.h"
#include "trace/check.h"

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
  plain unswapped, whole; /* without an interpreter: not asked for */
  float **before;         /* the parameters before the step, by tensor of the original trace */
  train_result *out;
} training;

/* ---- the plain ones ---- */

static bool plain_open (const training *t, bool cut, plain *p, arena *a, error *err) {
  const plan *n = t->plan;
  interpret_options o = { .feed = t->options->input };
  if (!trace_rewrite (t->trace, n->sections, cut ? n->n_sections : 0, NULL, 0, n->device.section_ns,
                      a, &p->rewritten, err))
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

/* How far apart the two updates are, over the whole one's length. */
static double update_ppm (const training *t) {
  double apart = 0, length = 0;
  for (int32_t i = 0; i < t->trace->n_tensors; i++) {
    const float *x = plain_data (&t->unswapped, i), *y = plain_data (&t->whole, i);
    if (t->before[i] == NULL || x == NULL)
      continue;
    for (int64_t k = 0; k < t->trace->tensors[i].bytes / 4; k++) {
      double d = (double)x[k] - (double)y[k], w = (double)y[k] - (double)t->before[i][k];
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
  /* What is no number is the largest of all. */
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
  if (t->unswapped.it != NULL) {
    if (!interpret_step (t->unswapped.it, step, &s.unswapped, err))
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

/* ---- what was learned ---- */

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
    if (x != NULL)
      y = plain_data (&t->unswapped, r->tensors[i].index);
    int64_t bytes = r->trace->tensors[i].bytes, at = 0;
    if (y == NULL || memcmp (x, y, (size_t)bytes) == 0)
      continue;
    if (t->out->n_tensors++ > 0)
      continue;
    while (at + 4 < bytes && memcmp (x + at, y + at, 4) == 0)
      at += 4;
    t->out->tensor = r->tensors[i].index;
    t->out->element = at / 4;
    memcpy (&t->out->value, x + at, sizeof (float));
    memcpy (&t->out->unswapped, y + at, sizeof (float));
  }
}

static bool open_plain_ones (training *t, arena *a, error *err) {
  bool cuts = t->plan->n_sections > 0;
  if (!t->options->compare)
    return true;
  t->out->compared = true;
  t->out->sectioned = cuts;
  return plain_open (t, true, &t->unswapped, a, err) &&
         (!cuts || (plain_open (t, false, &t->whole, a, err) && make_before (t, a, err)));
}

bool train_run (const trace *t, const plan *p, const train_options *o, arena *a, train_result *out,
                error *err) {
  check_rule broken;
  *out = (train_result){ .first_step = -1, .tensor = -1 };
  training now = { .trace = t, .plan = p, .options = o, .out = out };
  calculation c = { .by = &calculator_emulated,
                    .trace = t,
                    .input = o->input,
                    .spoiled_copy = o->spoiled_copy,
                    .on_step = on_step,
                    .context = &now };
  replay_options r = o->replay;
  r.calculation = &c;
  r.unchecked = true; /* checked here, before anything is made */
  r.iterations = r.iterations > 0 ? r.iterations : TRAIN_STEPS;
  if (!r.emulated)
    return error_set (err, ERR_usage,
                      "ops are calculated on the emulated device only; use --driver "
                      "emulated");
  bool good = (o->replay.unchecked || check_plan (t, p, a, &broken, err)) &&
              open_plain_ones (&now, a, err) && replay_run (t, p, &r, a, &out->replay, err);
  if (good) {
    out->losses = c.losses;
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

/* ---- as JSON ---- */

static void put_comparison (json_writer *w, const train_result *r) {
  json_open_object (w);
  json_add_int (w, "differing_tensors", r->n_tensors);
  json_add_int (w, "first_differing_step", r->first_step);
  if (r->sectioned) {
    json_add_fixed (w, "largest_loss_difference_ppm", r->loss_ppm, 6);
    json_add_fixed (w, "largest_update_difference_ppm", r->update_ppm, 6);
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
  json_begin (&w, 2);
  json_open_object (&w);
  if (r->compared) {
    json_put_key (&w, "compared");
    put_comparison (&w, r);
  }
  json_put_key (&w, "losses");
  json_open_array (&w);
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
