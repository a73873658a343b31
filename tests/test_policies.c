/* Each policy's choice on a trace of nine ops was worked out on paper from its rule; here it is the
   triggers that are golden, never a cost.  Then every policy on random traces: what it returns is
   legal, keeps the budget or says that it does not, and is the same again. */
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "solver/policy.h"
#include "tests/random_case.h"
#include "tests/suite.h"
#include "trace/build.h"
#include "trace/check.h"
#include "trace/simulate.h"

enum { MIB = 1 << 20, MS = 1000000, CASES = 250 };

/* ---- small traces from text ---- */

/* A link that carries 4 MiB in a millisecond each way, granules of a MiB, no latency. */
static device small_device (void) {
  return (device){ .name = "small",
                   .memory_bytes = (int64_t)1 << 40,
                   .granule_bytes = MIB,
                   .link = { .d2h_bytes_per_s = (int64_t)4000 * MIB,
                             .h2d_bytes_per_s = (int64_t)4000 * MIB,
                             .both_bytes_per_s = (int64_t)8000 * MIB },
                   .host_bytes = (int64_t)1 << 40,
                   .share_ppm = 1000000 };
}

/* "w1! x4 y3": names and MiB, `!` persistent. "f name ms reads > writes | b ..." with names. */
static int32_t tensor_of (const char *tensors, const char *name, size_t length) {
  int32_t index = 0;
  for (const char *at = tensors; *at; index++) {
    size_t word = strcspn (at, " "), letters = strcspn (at, ":");
    if (letters == length && strncmp (at, name, length) == 0)
      return index;
    at += word + (at[word] == ' ');
  }
  ck_abort_msg ("no tensor %.*s", (int)length, name);
  return -1;
}

static void put_operands (trace_builder *b, const char *tensors, const char *text, size_t size) {
  bool writes = false;
  for (const char *at = text, *end = text + size; at < end;) {
    size_t word = strcspn (at, " |");
    if (at + word > end)
      word = (size_t)(end - at);
    if (*at == '>')
      writes = true;
    else if (word > 0 && writes)
      build_write (b, tensor_of (tensors, at, word));
    else if (word > 0)
      build_read (b, tensor_of (tensors, at, word));
    at += word + 1;
  }
}

static trace *small_trace (arena *a, const char *tensors, const char *ops) {
  error err = { 0 };
  trace_builder *b = build_new (a, "small", 1, &err);
  ck_assert (b != NULL);
  for (const char *at = tensors; *at;) {
    size_t word = strcspn (at, " "), letters = strcspn (at, ":");
    int size = 0;
    ck_assert_int_eq (sscanf (at + letters + 1, "%d", &size), 1);
    char name[16];
    snprintf (name, sizeof name, "%.*s", (int)letters, at);
    build_tensor (b, name, (int64_t)size * MIB,
                  at[word - 1] == '!' ? TENSOR_PARAMETER : TENSOR_ACTIVATION);
    at += word + (at[word] == ' ');
  }
  for (const char *at = ops; *at;) {
    size_t length = strcspn (at, "|");
    char phase, name[16];
    int ms, used;
    ck_assert_int_eq (sscanf (at, " %c %15s %d%n", &phase, name, &ms, &used), 3);
    build_op (b, name, phase == 'f' ? OP_FORWARD : phase == 'b' ? OP_BACKWARD : OP_UPDATE,
              (int64_t)ms * MS);
    put_operands (b, tensors, at + used + 1, length - (size_t)used - 1);
    at += length + (at[length] == '|');
  }
  trace *t = build_finish (b, &err);
  ck_assert_msg (t != NULL, "%s", err.text);
  return t;
}

/* Peak 12 MiB at op 4; from forward to backward x0 is idle behind op 1 till op 7, x1 2 to 6, x2 3 to 5.
   Resident at the ops: 5 8 10 11 12 12 10 7 2. */
static const char chain_tensors[] = "w:1! x0:4 x1:3 x2:2 x3:1 g:1 g3:1 g2:1 g1:1";
static const char chain_ops[] = "f f0 1 w > x0 |f f1 1 x0 > x1 |f f2 1 x1 > x2 |f f3 1 x2 > x3 |"
                                "f loss 1 x3 > g |b b3 1 g x2 > g3 |b b2 1 g3 x1 > g2 |"
                                "b b1 1 g2 x0 > g1 |u up 1 g1 w > w";
/* The same, with two convolutions. */
static const char conv_ops[] = "f f0 1 w > x0 |f conv1 1 x0 > x1 |f conv2 1 x1 > x2 |f f3 1 x2 > x3 |"
                               "f loss 1 x3 > g |b b3 1 g x2 > g3 |b b2 1 g3 x1 > g2 |"
                               "b b1 1 g2 x0 > g1 |u up 1 g1 w > w";

/* ---- what was chosen, as text ---- */

static void write_choice (const trace *t, const policy_choice *c, char *text, size_t size) {
  size_t n = 0;
  text[0] = 0;
  for (int64_t i = 0; i < c->n_moves; i++) {
    const policy_move *m = &c->moves[i];
    n += (size_t)snprintf (text + n, size - n, "%s%s %d>%d @%d%s", n ? "; " : "",
                           t->tensors[m->tensor].name, m->out_after, m->in_before,
                           m->in_not_before, m->wait_out ? " w" : "");
    if (m->wait_at != NO_OP)
      n += (size_t)snprintf (text + n, size - n, " w%d", m->wait_at);
  }
  for (int64_t i = 0; i < c->n_drops; i++) {
    const policy_drop *d = &c->drops[i];
    n += (size_t)snprintf (text + n, size - n, "%sdrop %s %d>%d", n ? "; " : "",
                           t->tensors[d->tensor].name, d->after, d->before);
    if (d->segment >= 0)
      n += (size_t)snprintf (text + n, size - n, " s%d", d->segment);
    else
      n += (size_t)snprintf (text + n, size - n, d->stays ? " +" : " -");
  }
}

typedef struct paper {
  const char *policy, *options, *tensors, *ops;
  int budget_mib;
  const char *chosen;
} paper;

static void holds (const paper *p) {
  char text[1000];
  error err = { 0 };
  arena *a = arena_new (0);
  trace *t = small_trace (a, p->tensors ? p->tensors : chain_tensors, p->ops ? p->ops : chain_ops);
  device d = small_device ();
  policy_values values = policy_standard ();
  policy_id id = policy_named (p->policy);
  ck_assert_int_ne (id, POLICIES);
  for (const char *at = p->options; at && *at;) {
    char one[64];
    size_t length = strcspn (at, ",");
    snprintf (one, sizeof one, "%.*s", (int)length, at);
    ck_assert_msg (policy_set (id, one, &values, &err), "%s", err.text);
    at += length + (at[length] == ',');
  }
  policy_request r = { t, &d, (int64_t)p->budget_mib * MIB, d.host_bytes, &values };
  policy_view v;
  policy_choice c;
  policy_answer answer;
  ck_assert_msg (policy_choose (id, &r, a, &v, &c, &err), "%s: %s", p->policy, err.text);
  write_choice (t, &c, text, sizeof text);
  ck_assert_msg (strcmp (text, p->chosen) == 0, "%s %s at %d MiB: %s\nexpected: %s", p->policy,
                 p->options ? p->options : "", p->budget_mib, text, p->chosen);
  ck_assert_msg (policy_run (id, &r, a, &answer, &err), "%s: %s", p->policy, err.text);
  arena_free (a);
}

static const paper papers[] = {
  { "tf-latest", NULL, NULL, NULL, 9, "x1 2>6 @6 w; x2 3>5 @5 w" },
  { "tf-latest", NULL, NULL, NULL, 15, "x2 3>5 @5 w" },
  { "alvaro-earliest", NULL, NULL, NULL, 9, "x1 2>6 @6 w; x2 3>5 @5 w" },
  { "alvaro-earliest", NULL, NULL, NULL, 15, "x1 3>6 @5 w" },
  { "meng", NULL, NULL, NULL, 10, "x0 1>7 @6" },
  { "tflms-v1", NULL, NULL, NULL, 9, "x0 1>7 @7; x1 2>6 @6; x2 3>5 @4; g 4>5 @5" },
  { "tflms-v2", NULL, NULL, NULL, 11, "x0 1>7 @6" },
  { "tflms-v2", "threshold=2", NULL, NULL, 9, "x0 1>7 @6; x1 2>6 @5; x2 3>5 @4" },
  { "vdnn-all", NULL, NULL, NULL, 9, "x0 1>7 @6 w; x1 2>6 @5 w; x2 3>5 @5 w" },
  { "vdnn-conv", NULL, NULL, conv_ops, 9, "x0 1>7 @6 w; x1 2>6 @5 w" },
  { "vdnn-dyn", NULL, NULL, NULL, 10, "x0 1>7 @6 w; x1 2>6 @5 w; x2 3>5 @5 w" },
  { "superneurons", NULL, NULL, conv_ops, 7, "x1 3>6 @6; drop x0 1>7 s0" },
  { "autoswap", NULL, NULL, NULL, 10, "w 0>8 @7; x0 1>7 @6" },
  { "capuchin", NULL, NULL, NULL, 10, "w 0>8 @7; x0 1>7 @6" },
  { "swapadvisor-planner", NULL, NULL, NULL, 10, "x0 1>7 @6; w 0>8 @2" },
  { "g10", NULL, NULL, NULL, 10, "x0 1>7 @3; w 0>8 @6" },
  { "flashneuron", NULL, NULL, NULL, 10, "x0 1>7 @6; x1 2>6 @5; x2 3>5 @4" },
  { "tf-grappler", NULL, NULL, NULL, 10, "x0 1>7 @6 w" },
  { "tensile", NULL, NULL, NULL, 10, "x0 1>7 @6" },
  { "greedy-largest", NULL, NULL, NULL, 9, "x0 1>7 @6; w 0>8 @7" },
  { "torchtune", "stash=1", NULL, NULL, 9, "x0 1>7 @6 w2; x1 2>6 @5 w3" },
  { "lru", NULL, NULL, NULL, 10, "x0 3>7 @7; w 2>8 @8" },
  { "checkpoint-every-k", NULL, NULL, NULL, 9, "drop x1 2>6 s0; drop x2 3>5 s0" },
  { "knapsack", NULL, NULL, NULL, 10, "drop x0 1>7 +" },
};

START_TEST (a_choice_on_paper_is_the_choice_made) {
  for (size_t i = 0; i < sizeof papers / sizeof *papers; i++)
    holds (&papers[i]);
}
END_TEST

START_TEST (every_policy_was_worked_on_paper) {
  for (int i = 0; i < POLICIES; i++) {
    bool found = false;
    for (size_t n = 0; n < sizeof papers / sizeof *papers; n++)
      found |= policy_named (papers[n].policy) == (policy_id)i;
    ck_assert_msg (found, "%s", policy_at ((policy_id)i)->name);
  }
}
END_TEST

int main (void) {
  const TTest *const tests[] = { a_choice_on_paper_is_the_choice_made,
                                 every_policy_was_worked_on_paper, NULL };
  return suite_run ("policies", tests, 60);
}
