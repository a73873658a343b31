/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/calculate/interpret.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "executor/ops/bind.h"
#include "tests/small_nets.h"
#include "tests/suite.h"

/* ---- running ---- */

enum { STEPS = 20 };

typedef struct outcome {
  double loss[STEPS];
  char digest[SHA256_TEXT];
} outcome;

typedef bool on_call (void *context, int32_t op, ops_call *call);

static outcome run (const trace *t, const rewritten *r, int steps, on_call *look, void *context,
                    arena *a) {
  error err = { 0 };
  outcome o = { 0 };
  interpret_options options = { .look = look, .context = context };
  interpreter *p = interpret_new (t, r, &options, a, &err);
  ck_assert_msg (p != NULL, "%s", err.text);
  for (int i = 0; i < steps; i++) {
    ck_assert_msg (interpret_step (p, i, &o.loss[i], &err), "%s", err.text);
    ck_assert_msg (isfinite (o.loss[i]), "%s: the loss of step %d is not finite", t->name, i);
  }
  interpret_digest (p, o.digest);
  interpret_free (p);
  return o;
}

static void ck_same (const outcome *a, const outcome *b, const char *name) {
  for (int i = 0; i < STEPS; i++)
    ck_assert_msg (a->loss[i] == b->loss[i], "%s, step %d: %.17g is not %.17g", name, i, a->loss[i],
                   b->loss[i]);
  ck_assert_str_eq (a->digest, b->digest);
}

/* ---- learning ---- */

static double mean_of (const double *x, int count) {
  double sum = 0;
  for (int i = 0; i < count; i++)
    sum += x[i];
  return sum / count;
}

CLAIM_EACH (networks_of_each_family_learn_in_twenty_steps, 0, SMALL_NETS) {
  const small_net *s = &small_nets[_i];
  arena *a = arena_new (0);
  const trace *t = small_trace (s, a);
  rewritten whole = small_rewrite (t, NULL, 0, NULL, 0, a);
  outcome o = run (t, &whole, STEPS, NULL, NULL, a);
  /* A recurrent network begins slowly; what it must pass is known from its first steps. */
  double first = mean_of (o.loss, 3), last = mean_of (o.loss + STEPS - 3, 3);
  bool slow = s->seq > 0 && s->image == 0 && s->seq < 16;
  ck_assert_msg (last < (slow ? 0.995 : 0.9) * first, "%s: from %g to %g", s->name, first, last);
  arena_free (a);
}

CLAIM (attention_is_the_same_with_and_without_the_scores) {
  static const small_net pairs[] = {
    { "gpt2", 3, 0, 16, 6, 6, 64, ZOO_ADAM, false },
    { "llama-1b", 3, 0, 70, 8, 16, 64, ZOO_ADAM, false },
    { "bert-base", 3, 0, 16, 6, 6, 64, ZOO_ADAM, false },
  };
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
    arena *a = arena_new (0);
    small_net other = pairs[i];
    other.explicit_attention = true;
    const trace *fused = small_trace (&pairs[i], a), *in_memory = small_trace (&other, a);
    rewritten x = small_rewrite (fused, NULL, 0, NULL, 0, a);
    rewritten y = small_rewrite (in_memory, NULL, 0, NULL, 0, a);
    outcome one = run (fused, &x, 3, NULL, NULL, a), two = run (in_memory, &y, 3, NULL, NULL, a);
    for (int k = 0; k < 3; k++)
      ck_assert_msg (fabs (one.loss[k] - two.loss[k]) < 1e-3 * one.loss[k], "%s: %g and %g",
                     pairs[i].name, one.loss[k], two.loss[k]);
    arena_free (a);
  }
}

/* ---- gradients of whole networks ---- */

/* The update is w -= rate g, so the gradient is known from what w was and is. */
typedef struct descent {
  interpreter *p;
  const rewritten *r;
  float **before, **way;
} descent;

static bool is_parameter (const descent *d, int32_t i) {
  return d->r->trace->tensors[i].kind == TENSOR_PARAMETER && interpret_data (d->p, i) != NULL;
}

static double loss_at (descent *d, double by) {
  error err = { 0 };
  double loss = 0;
  for (int32_t i = 0; i < d->r->trace->n_tensors; i++)
    for (int64_t k = 0; is_parameter (d, i) && k < d->r->trace->tensors[i].bytes / 4; k++)
      ((float *)interpret_data (d->p, i))[k] = d->before[i][k] + (float)by * d->way[i][k];
  ck_assert (interpret_step (d->p, 0, &loss, &err));
  return loss;
}

static void check_descent (const small_net *s) {
  arena *a = arena_new (0);
  error err = { 0 };
  const trace *t = small_trace (s, a);
  rewritten whole = small_rewrite (t, NULL, 0, NULL, 0, a);
  interpret_options o = { 0 };
  descent d = { .r = &whole };
  d.p = interpret_new (t, &whole, &o, a, &err);
  ck_assert_msg (d.p != NULL, "%s", err.text);
  d.before = NEW (a, t->n_tensors, float *, &err);
  d.way = NEW (a, t->n_tensors, float *, &err);
  for (int32_t i = 0; i < t->n_tensors; i++)
    if (is_parameter (&d, i)) {
      d.before[i] = NEW (a, t->tensors[i].bytes / 4, float, &err);
      d.way[i] = NEW (a, t->tensors[i].bytes / 4, float, &err);
      memcpy (d.before[i], interpret_data (d.p, i), (size_t)t->tensors[i].bytes);
    }
  double norm = 0;
  loss_at (&d, 0);
  for (int32_t i = 0; i < t->n_tensors; i++)
    for (int64_t k = 0; is_parameter (&d, i) && k < t->tensors[i].bytes / 4; k++) {
      d.way[i][k] = (d.before[i][k] - ((float *)interpret_data (d.p, i))[k]) / 0.01f;
      norm += (double)d.way[i][k] * d.way[i][k];
    }
  double h = 0.002 / norm, seen = (loss_at (&d, h) - loss_at (&d, -h)) / (2 * h);
  ck_assert_msg (fabs (seen - norm) < 0.03 * norm, "%s: the gradient's square is %g, its slope %g",
                 s->name, norm, seen);
  interpret_free (d.p);
  arena_free (a);
}

static const small_net differentiated[] = {
  { "vgg16", 3, 32, 0, 16, 0, 10, ZOO_SGD, false },
  { "resnet18", 3, 32, 0, 8, 0, 10, ZOO_SGD, false },
  { "resnet50", 3, 32, 0, 8, 3, 10, ZOO_SGD, false },
  { "densenet121", 4, 64, 0, 4, 6, 10, ZOO_SGD, false },
  { "googlenet", 2, 64, 0, 8, 0, 10, ZOO_SGD, false },
  { "inception3", 2, 0, 0, 16, 0, 10, ZOO_SGD, false },
  { "overfeat", 2, 0, 0, 16, 0, 10, ZOO_SGD, false },
  { "alexnet", 2, 64, 0, 16, 0, 10, ZOO_SGD, false },
  { "unet3d", 2, 16, 0, 16, 0, 3, ZOO_SGD, false },
  { "charrnn", 3, 0, 6, 8, 0, 40, ZOO_SGD, false },
  { "seq2seq", 3, 0, 5, 8, 0, 40, ZOO_SGD, false },
  { "seq2seq", 2, 0, 130, 32, 0, 10, ZOO_SGD, false }, /* joined in two levels */
  { "gpt2", 3, 0, 16, 6, 6, 64, ZOO_SGD, false },
  { "gpt2", 3, 0, 16, 6, 6, 64, ZOO_SGD, true },
  { "llama-1b", 3, 0, 16, 8, 8, 64, ZOO_SGD, false },
  { "llama-1b", 3, 0, 16, 8, 8, 64, ZOO_SGD, true },
  { "bert-base", 2, 0, 16, 6, 6, 64, ZOO_SGD, false },
  { "vit-b", 2, 32, 0, 6, 6, 10, ZOO_SGD, false },
};
enum { N_DIFFERENTIATED = sizeof differentiated / sizeof differentiated[0] };

CLAIM_EACH (gradients_of_whole_networks_are_their_slopes, 0, N_DIFFERENTIATED) {
  check_descent (&differentiated[_i]);
}

/* ---- sections ---- */

/* What sections may change is the order of sums: each loss within 1 in 10^4 over the first steps,
   before small differences have grown. */
static void check_sections (const small_net *s, int64_t parts, section_order order, int32_t most) {
  arena *a = arena_new (0);
  error err = { 0 };
  const trace *t = small_trace (s, a);
  section *sections = NEW (a, t->n_ops, section, &err);
  int32_t n = small_cut (t, parts, order, most, sections, a);
  ck_assert_int_gt (n, 0);
  rewritten whole = small_rewrite (t, NULL, 0, NULL, 0, a);
  rewritten cut = small_rewrite (t, sections, n, NULL, 0, a);
  ck_assert_int_gt (cut.trace->n_ops, t->n_ops);
  outcome one = run (t, &whole, 4, NULL, NULL, a), two = run (t, &cut, 4, NULL, NULL, a);
  outcome again = run (t, &cut, 4, NULL, NULL, a);
  ck_same (&two, &again, s->name);
  for (int i = 0; i < 4; i++)
    ck_assert_msg (fabs (one.loss[i] - two.loss[i]) <= (i < 2 ? 1e-4 : 1e-2) * one.loss[i],
                   "%s, step %d: %.9g whole, %.9g in parts", s->name, i, one.loss[i], two.loss[i]);
  arena_free (a);
}

CLAIM_EACH (parts_train_as_the_whole_does, 0, SMALL_NETS) {
  check_sections (&small_nets[_i], 2, SECTION_LEVEL, INT32_MAX);
  check_sections (&small_nets[_i], 3, SECTION_DEPTH, 7);
}

/* ---- recomputed copies ---- */

typedef struct seen {
  int copies, norms, dropouts;
  int spoil; /* the number of a copy of dropout that sees another step; 0: none */
} seen;

static bool count_copies (void *context, int32_t op, ops_call *call) {
  seen *s = context;
  (void)op;
  if (!call->copy)
    return true;
  s->copies++;
  s->norms += call->c->kind == COMPUTE_batchnorm_fwd;
  if (call->c->kind == COMPUTE_dropout_fwd && ++s->dropouts == s->spoil)
    call->step++;
  return true;
}

static rewritten recomputed (const trace *t, const section *sections, int32_t n_sections,
                             arena *a) {
  error err = { 0 };
  rewritten cut = small_rewrite (t, sections, n_sections, NULL, 0, a);
  recompute *entries = NEW (a, cut.trace->n_ops, recompute, &err);
  int32_t n = small_copies (t, sections, n_sections, cut.trace, entries, a);
  return small_rewrite (t, sections, n_sections, entries, n, a);
}

static seen check_copies (const small_net *s) {
  arena *a = arena_new (0);
  const trace *t = small_trace (s, a);
  rewritten whole = small_rewrite (t, NULL, 0, NULL, 0, a), again = recomputed (t, NULL, 0, a);
  seen counted = { 0 };
  outcome kept = run (t, &whole, 3, NULL, NULL, a);
  outcome twice = run (t, &whole, 3, NULL, NULL, a);
  ck_same (&kept, &twice, s->name);
  outcome made = run (t, &again, 3, count_copies, &counted, a);
  ck_same (&kept, &made, s->name);
  ck_assert_int_gt (counted.copies, 3 * 3);
  arena_free (a);
  return counted;
}

CLAIM_EACH (copies_are_what_was_kept, 0, SMALL_NETS) {
  const char *name = small_nets[_i].name;
  seen counted = check_copies (&small_nets[_i]);
  if (strcmp (name, "resnet18") == 0)
    ck_assert_int_gt (counted.norms, 0);
  if (strcmp (name, "gpt2") == 0 || strcmp (name, "vgg16") == 0)
    ck_assert_int_gt (counted.dropouts, 0);
}

/* Their losses need not fall. */
CLAIM (two_networks_against_each_other_run_in_parts_and_copies) {
  static const small_net s = { "dcgan", 5, 16, 0, 8, 0, 0, ZOO_ADAM, false };
  check_sections (&s, 2, SECTION_LEVEL, INT32_MAX);
  check_sections (&s, 3, SECTION_DEPTH, 4);
  ck_assert_int_gt (check_copies (&s).norms, 0);
}

CLAIM_EACH (copies_of_parts_are_what_was_kept, 0, SMALL_NETS) {
  const small_net *s = &small_nets[_i];
  arena *a = arena_new (0);
  error err = { 0 };
  const trace *t = small_trace (s, a);
  section *sections = NEW (a, t->n_ops, section, &err);
  int32_t n = small_cut (t, 2, SECTION_DEPTH, 5, sections, a);
  rewritten cut = small_rewrite (t, sections, n, NULL, 0, a);
  rewritten again = recomputed (t, sections, n, a);
  seen counted = { 0 };
  outcome kept = run (t, &cut, 2, NULL, NULL, a);
  outcome made = run (t, &again, 2, count_copies, &counted, a);
  ck_same (&kept, &made, s->name);
  ck_assert_int_gt (counted.copies, 2 * 3);
  arena_free (a);
}

/* ---- faults that must be seen ---- */

CLAIM_IN_ARENA (a_copy_of_dropout_with_a_wrong_counter_changes_the_loss) {
  const trace *t = small_trace (&small_nets[5], a);
  rewritten again = recomputed (t, NULL, 0, a);
  seen right = { 0 }, wrong = { .spoil = 1 };
  outcome one = run (t, &again, 3, count_copies, &right, a);
  outcome two = run (t, &again, 3, count_copies, &wrong, a);
  ck_assert_int_gt (right.dropouts, 0);
  ck_assert (one.loss[0] == two.loss[0]); /* the way back comes later */
  ck_assert (one.loss[2] != two.loss[2]);
  ck_assert_str_ne (one.digest, two.digest);
}

/* The second part of a product overwrites what it should add to. */
static bool forget_the_first (void *context, int32_t op, ops_call *call) {
  (void)op;
  if (call->c->kind != COMPUTE_conv_bwd_weights || call->first_item == 0 || ++*(int *)context > 1)
    return true;
  call->end_item -= call->first_item;
  call->first_item = 0;
  return true;
}

static bool leave_out (void *context, int32_t op, ops_call *call) {
  (void)call;
  return op != *(int32_t *)context;
}

/* Whatever is left out on the way to the loss, in the second step, where another's buffers would
   hold what the first has left. */
CLAIM_IN_ARENA (what_nobody_has_written_is_seen) {
  const trace *t = small_trace (&small_nets[3], a);
  rewritten whole = small_rewrite (t, NULL, 0, NULL, 0, a);
  int tried = 0;
  for (int32_t i = 0; i < t->n_ops && t->ops[i].phase == OP_FORWARD; i += 4) {
    int32_t left_out = -1;
    double loss;
    interpret_options o = { .look = leave_out, .context = &left_out };
    interpreter *p = interpret_new (t, &whole, &o, a, &err);
    ck_assert_ptr_nonnull (p);
    ck_assert (interpret_step (p, 0, &loss, &err));
    ck_assert (isfinite (loss));
    left_out = i;
    ck_assert (interpret_step (p, 1, &loss, &err));
    bool is_loss = strstr (t->ops[i].name, "entropy") != NULL; /* then it is not counted */
    ck_assert_msg (isnan (loss) || is_loss, "without op %d the loss is %g", i, loss);
    tried += !is_loss;
    interpret_free (p);
  }
  ck_assert_int_gt (tried, 5);
}

CLAIM_IN_ARENA (a_skipped_accumulation_changes_the_loss) {
  const trace *t = small_trace (&small_nets[0], a);
  section *sections = NEW (a, t->n_ops, section, &err);
  int32_t n = small_cut (t, 2, SECTION_LEVEL, INT32_MAX, sections, a);
  rewritten cut = small_rewrite (t, sections, n, NULL, 0, a);
  int times = 0;
  outcome one = run (t, &cut, 3, NULL, NULL, a);
  outcome two = run (t, &cut, 3, forget_the_first, &times, a);
  ck_assert (one.loss[0] == two.loss[0]);
  ck_assert (one.loss[1] != two.loss[1]);
}

/* ---- data ---- */

CLAIM_IN_ARENA (a_text_is_what_is_learned) {
  static const small_net s = { "charrnn", 2, 0, 4, 8, 0, 128, ZOO_ADAM, false };
  static const char text[] = "abcdefghijklmnopqrst";
  const trace *t = small_trace (&s, a);
  feed_options o = { .text = text, .text_bytes = 20 };
  feed *f = feed_new (t, &o, a, &err);
  ck_assert_ptr_nonnull (f);
  for (int32_t i = 0; i < t->n_tensors; i++) {
    const char *name = t->tensors[i].name;
    int32_t got[2];
    if (!feed_is_input (f, i))
      continue;
    int64_t place = name[strlen (name) - 1] - '0' + (name[0] == 't');
    feed_input (f, i, 0, 0, 2, got);
    ck_assert_int_eq (got[0], text[place]);
    ck_assert_int_eq (got[1], text[10 + place]);
    feed_input (f, i, 1, 1, 2, got); /* the next window of 4 */
    ck_assert_int_eq (got[0], text[(14 + place) % 20]);
  }
  o.text_bytes = 1;
  ck_assert_ptr_null (feed_new (t, &o, a, &err));
  ck_says (&err, "a text of 1 bytes: nothing can be learned from it");
}

/* Whole, every second one (FERRY_SOAK: each) in two parts level by level, and with every optimizer.
 */
CLAIM (every_network_as_published_can_be_bound) {
  int count = 0, bound = 0;
  const zoo_network *all = zoo_list (&count);
  for (int i = 0; i < count; i++) {
    arena *a = arena_new (0);
    error err = { 0 };
    small_net s = { .name = all[i].name,
                    .batch = 2,
                    .optimizer = (zoo_optimizer)(i % ZOO_OPTIMIZERS),
                    .explicit_attention = i % 2 };
    const trace *t = small_trace (&s, a);
    section *sections = NEW (a, t->n_ops, section, &err);
    int32_t n = 0;
    for (int32_t k = 0; k < t->n_ops; k++)
      if (t->ops[k].parts > 1)
        sections[n++] = (section){ k, k + 1, 2, SECTION_LEVEL };
    rewritten r[] = { small_rewrite (t, NULL, 0, NULL, 0, a),
                      small_rewrite (t, sections, n, NULL, 0, a) };
    int ways = getenv ("FERRY_SOAK") != NULL || i % 2 == 0 ? 2 : 1;
    for (int k = 0; k < ways; k++)
      for (int32_t o = 0; o < r[k].trace->n_ops; o++) {
        ops_binding b;
        arena_mark mark = arena_here (a);
        ck_assert_msg (ops_bind (&r[k], o, a, &b, &err), "%s: %s", s.name, err.text);
        arena_back (a, mark);
        bound++;
      }
    arena_free (a);
  }
  ck_assert_int_gt (bound, 10000);
}

CLAIM_IN_ARENA (a_trace_that_does_not_say_what_it_calculates_is_refused) {
  trace *t = small_trace (&small_nets[3], a);
  t->ops[7].compute = NULL;
  t->ops[7].name = "strange";
  rewritten whole = small_rewrite (t, NULL, 0, NULL, 0, a);
  interpret_options o = { 0 };
  ck_assert_ptr_null (interpret_new (t, &whole, &o, a, &err));
  ck_says (&err, "op 7 (strange) does not say what it calculates: traces of `ferry zoo` do");
}

int main (void) {
  return suite_run ("interpret", 120);
}
