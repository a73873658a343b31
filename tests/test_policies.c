/* Each policy's choice on a trace of nine ops was worked out on paper from its rule; here it is the
   triggers that are golden, never a cost.  Then every policy on random traces: what it returns is
   legal, keeps the budget or says that it does not, and is the same again. */
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "solver/policy.h"
#include "tests/policy_case.h"
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
    build_op (b, name,
              phase == 'f'   ? OP_FORWARD
              : phase == 'b' ? OP_BACKWARD
                             : OP_UPDATE,
              (int64_t)ms * MS);
    put_operands (b, tensors, at + used + 1, length - (size_t)used - 1);
    at += length + (at[length] == '|');
  }
  trace *t = build_finish (b, &err);
  ck_assert_msg (t != NULL, "%s", err.text);
  return t;
}

/* Peak 12 MiB at op 4; from forward to backward x0 is idle behind op 1 till op 7, x1 2 to 6, x2 3
   to 5. Resident at the ops: 5 8 10 11 12 12 10 7 2. */
static const char chain_tensors[] = "w:1! x0:4 x1:3 x2:2 x3:1 g:1 g3:1 g2:1 g1:1";
static const char chain_ops[] = "f f0 1 w > x0 |f f1 1 x0 > x1 |f f2 1 x1 > x2 |f f3 1 x2 > x3 |"
                                "f loss 1 x3 > g |b b3 1 g x2 > g3 |b b2 1 g3 x1 > g2 |"
                                "b b1 1 g2 x0 > g1 |u up 1 g1 w > w";
/* The same, with two convolutions. */
static const char conv_ops[] =
    "f f0 1 w > x0 |f conv1 1 x0 > x1 |f conv2 1 x1 > x2 |f f3 1 x2 > x3 |"
    "f loss 1 x3 > g |b b3 1 g x2 > g3 |b b2 1 g3 x1 > g2 |"
    "b b1 1 g2 x0 > g1 |u up 1 g1 w > w";

/* ---- what was chosen, as text ---- */

static void write_choice (const trace *t, const policy_choice *c, char *text, size_t size) {
  size_t n = 0;
  text[0] = 0;
  for (int64_t i = 0; i < c->n_moves; i++) {
    const policy_move *m = &c->moves[i];
    n += (size_t)snprintf (text + n, size - n, "%s%s %d>%d @%d%s", n ? "; " : "",
                           t->tensors[m->tensor].name, m->out_after, m->in_before, m->in_not_before,
                           m->wait_out ? " w" : "");
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
  policy_request r = { .trace = t,
                       .device = &d,
                       .budget_bytes = (int64_t)p->budget_mib * MIB,
                       .host_bytes = d.host_bytes,
                       .values = &values };
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

/* ---- where descriptions mislead: which side was taken ---- */

/* Two backward users of x, far apart. */
static const char twice_ops[] = "f f0 1 w > x |f f1 1 x > y |f loss 1 y > g |b b1 1 g > h |"
                                "b b2 1 h x > i |b b3 1 i > j |b b4 1 j > k |b b5 1 k x > l |"
                                "u up 1 l w > w";
static const char twice_tensors[] = "w:1! x:4 y:1 g:1 h:1 i:1 j:1 k:1 l:1";
/* x1 is dear to make, x2 cheap; both are idle at the peak, and copies are far too slow for either.
 */
static const char cheap_ops[] = "f f0 1 w > x0 |f f1 90 x0 > x1 |f f2 1 x0 > x2 |"
                                "f loss 1 x1 x2 > g |b b0 1 g > h |b b2 1 h x2 > i |"
                                "b b1 1 i x1 > j |u up 1 j w > w";
static const char cheap_tensors[] = "w:1! x0:1 x1:40 x2:40 g:1 h:1 i:1 j:1";

static const paper traps[] = {
  /* A small value that was passed over is forgotten, although it would do later. */
  { "alvaro-earliest", "floor=3MiB", NULL, NULL, 15, "" },
  /* The first value that was pushed never leaves. */
  { "alvaro-earliest", NULL, NULL, NULL, 11, "x1 2>6 @6 w; x2 3>5 @5 w" },
  /* At 70 % exactly nothing leaves: above, not at. */
  { "tf-latest", "occupancy=1", NULL, NULL, 12, "" },
  /* Without fusing, a tensor travels once for each backward user. */
  { "tflms-v1", "n_tensors=1", twice_tensors, twice_ops, 9, "x 1>4 @4; x 4>7 @5" },
  { "tflms-v1", "n_tensors=1,fuse_swapins=on", twice_tensors, twice_ops, 9, "x 1>4 @4" },
  { "tflms-v1", "n_tensors=0", NULL, NULL, 9, "" },
  /* Groups are by distance of levels: 7 - 4 = 3 joins the two users, 2 does not. */
  { "tflms-v2", "threshold=2,groupby=3", twice_tensors, twice_ops, 4, "x 1>4 @3" },
  { "tflms-v2", "threshold=2,groupby=2", twice_tensors, twice_ops, 4, "x 1>4 @3; x 4>7 @6" },
  { "tflms-v2", "threshold=2,sync_mode=3", NULL, NULL, 9, "x0 1>7 @7 w; x1 2>6 @6 w; x2 3>5 @5 w" },
  /* vDNN++ does without the waits at the end of a layer. */
  { "vdnn-all", "sync=off", NULL, NULL, 9, "x0 1>7 @6; x1 2>6 @5; x2 3>5 @5" },
  /* Without convolutions nothing moves. */
  { "vdnn-conv", NULL, NULL, NULL, 9, "" },
  /* No checkpoint at all: one segment, larger than any op, and each op makes its own again. */
  { "superneurons", NULL, NULL, NULL, 7, "drop x0 1>7 -; drop x1 2>6 -; drop x2 3>5 -" },
  { "superneurons", "recompute=off,cache=off", NULL, conv_ops, 7, "x1 2>6 @6; x2 3>5 @5" },
  /* What hides well goes before what is large, or behind it; the limit is met strictly. */
  { "autoswap", "score=doa", NULL, NULL, 11, "w 0>8 @7; x0 1>7 @6" },
  { "autoswap", "score=aoa", NULL, NULL, 11, "x0 1>7 @6" },
  { "autoswap", "score=vote", NULL, NULL, 11, "w 0>8 @7; x0 1>7 @6" },
  { "autoswap", "score=swdoa", NULL, NULL, 11, "w 0>8 @7; x0 1>7 @6" },
  { "autoswap", "floor=2MiB", NULL, NULL, 11, "x0 1>7 @6" },
  /* Bytes per time: the cheap tensor is run again, not the dear one. */
  { "capuchin", NULL, cheap_tensors, cheap_ops, 70, "w 0>7 @6; drop x2 3>5 +" },
  { "capuchin", "recompute=off", cheap_tensors, cheap_ops, 70, "w 0>7 @6; x1 3>6 @6" },
  /* The sum of all saved tensors counts, not the peak: too little room for weights and the largest
     op, and nothing is even tried. */
  { "flashneuron", NULL, NULL, NULL, 8, "" },
  /* Tensors that do not live long enough stay. */
  { "tf-grappler", "life=8ms", NULL, NULL, 10, "" },
  /* Nothing hides behind 1 ms ops: what saves most bytes per time is run again. */
  { "tensile", NULL, cheap_tensors, cheap_ops, 70, "w 0>7 @6; drop x2 3>5 +; drop x1 3>6 +" },
  /* What is still in the stash when the forward pass ends is used from there. */
  { "torchtune", NULL, NULL, NULL, 9, "" },
  { "torchtune", "stash=0,lead=0", NULL, NULL, 9, "x0 1>7 @7; x1 2>6 @6; x2 3>5 @5" },
  /* The prefetching relative looks at one op ahead only: room for x0 costs x1, which is next. */
  { "lru", "ahead=2", NULL, NULL, 10, "x0 3>7 @5; x1 4>6 @6; w 2>8 @6" },
  /* Every output a checkpoint: nothing is run again. */
  { "checkpoint-every-k", "k=1", NULL, NULL, 9, "" },
  { "checkpoint-every-k", "k=2", NULL, NULL, 9, "drop x1 2>6 s0" },
  /* What is dearest per byte is kept first; 56 % of 9 MiB have room for x2 and x1, 45 % for x2. */
  { "knapsack", "solver=greedy,c=56%", NULL, NULL, 10, "drop x0 1>7 +" },
  { "knapsack", "solver=greedy,c=45%", NULL, NULL, 10, "drop x1 2>6 +; drop x0 1>7 +" },
  { "knapsack", "solver=dp,c=45%", NULL, NULL, 10, "drop x1 2>6 +; drop x0 1>7 +" },
};

START_TEST (where_a_description_misleads_one_side_is_taken) {
  for (size_t i = 0; i < sizeof traps / sizeof *traps; i++)
    holds (&traps[i]);
}
END_TEST

/* ---- random traces ---- */

typedef struct attempt {
  policy_case c;
  error err;
} attempt;

static void set_up (attempt *x, uint64_t seed) {
  *x = (attempt){ 0 };
  ck_assert_msg (policy_case_make (seed, &x->c, &x->err), "%s", x->err.text);
}

/* So many percent of the way from the largest op's need to the peak. */
static int64_t budget_at (const attempt *x, int percent) {
  return policy_case_budget (&x->c, percent);
}

static void ask (attempt *x, policy_id id, int64_t budget_bytes, uint64_t seed,
                 policy_answer *out) {
  char line[sizeof (error)];
  policy_request r = { .trace = x->c.trace,
                       .device = &x->c.device,
                       .budget_bytes = budget_bytes,
                       .host_bytes = x->c.device.host_bytes };
  ck_assert_msg (policy_run (id, &r, x->c.arena, out, &x->err), "seed %d, %s: %s", (int)seed,
                 policy_at (id)->name, error_line (&x->err, line, sizeof line));
}

static void is_legal (attempt *x, policy_id id, int64_t budget_bytes, uint64_t seed,
                      const policy_answer *a) {
  char line[sizeof (error)];
  if (!a->fits) {
    ck_assert (a->plan == NULL && a->note != NULL);
    ck_assert_msg (a->reached_bytes > budget_bytes, "seed %d, %s", (int)seed, policy_at (id)->name);
    return;
  }
  predicted cost;
  ck_assert_msg (check_plan (x->c.trace, a->plan, x->c.arena, NULL, &x->err), "seed %d, %s: %s",
                 (int)seed, policy_at (id)->name, error_line (&x->err, line, sizeof line));
  ck_assert (simulate_plan (x->c.trace, a->plan, x->c.arena, &cost, &x->err));
  ck_assert_int_eq (cost.step_ns, a->cost.step_ns);
  ck_assert_int_le (cost.peak_bytes, budget_bytes);
  ck_assert_int_eq (a->plan->budget_bytes, budget_bytes);
}

START_TEST (an_answer_is_legal_or_says_that_it_does_not_fit) {
  static const int percent[] = { 100, 90, 60, 30 };
  int fits = 0, moved = 0, dropped = 0;
  for (uint64_t seed = 0; seed < CASES; seed++) {
    attempt x;
    set_up (&x, seed);
    for (int i = 0; i < POLICIES; i++)
      for (int n = 0; n < 4; n++) {
        policy_answer a;
        int64_t budget = budget_at (&x, percent[n]);
        ask (&x, (policy_id)i, budget, seed, &a);
        is_legal (&x, (policy_id)i, budget, seed, &a);
        fits += n > 0 && a.fits;
        moved += n > 0 && a.moves > 0;
        dropped += n > 0 && a.drops > 0;
      }
    arena_free (x.c.arena);
  }
  /* The cases have teeth. */
  ck_assert_int_gt (fits, CASES * POLICIES);
  ck_assert_int_gt (moved, CASES * POLICIES / 2);
  ck_assert_int_gt (dropped, CASES / 2);
}
END_TEST

START_TEST (nothing_moves_where_everything_fits) {
  for (uint64_t seed = 0; seed < CASES; seed++) {
    attempt x;
    set_up (&x, seed);
    for (int i = 0; i < POLICIES; i++) {
      policy_answer a;
      if (policy_at ((policy_id)i)->budget != POLICY_KEEPS)
        continue;
      ask (&x, (policy_id)i, x.c.peak_bytes, seed, &a);
      ck_assert_msg (a.fits && a.moves == 0 && a.drops == 0, "seed %d, %s", (int)seed,
                     policy_at ((policy_id)i)->name);
    }
    arena_free (x.c.arena);
  }
}
END_TEST

START_TEST (the_same_request_makes_the_same_bytes) {
  for (uint64_t seed = 0; seed < 30; seed++)
    for (int i = 0; i < POLICIES; i++) {
      bytes text[2] = { { 0 }, { 0 } };
      bool fits[2];
      for (int n = 0; n < 2; n++) {
        attempt x;
        policy_answer a;
        set_up (&x, seed);
        ask (&x, (policy_id)i, budget_at (&x, 70), seed, &a);
        fits[n] = a.fits;
        ck_assert (!a.fits || plan_text (a.plan, false, &text[n], &x.err));
        arena_free (x.c.arena);
      }
      ck_assert_int_eq (fits[0], fits[1]);
      if (fits[0])
        ck_assert_str_eq (text[0].data, text[1].data);
      bytes_free (&text[0]);
      bytes_free (&text[1]);
    }
}
END_TEST

START_TEST (a_policy_moves_nothing_below_its_own_floor) {
  int moves = 0;
  for (uint64_t seed = 0; seed < CASES; seed++) {
    attempt x;
    set_up (&x, seed);
    for (int n = 0; n < POLICY_OPTIONS; n++) {
      const policy_option_row *o = policy_option_at ((policy_option)n);
      if (strcmp (o->key, "floor") != 0)
        continue;
      policy_values values = policy_standard ();
      policy_view v;
      policy_choice c;
      policy_request r = { .trace = x.c.trace,
                           .device = &x.c.device,
                           .budget_bytes = budget_at (&x, 60),
                           .host_bytes = x.c.device.host_bytes,
                           .values = &values };
      values.at[n] = 700;
      ck_assert (policy_choose (o->policy, &r, x.c.arena, &v, &c, &x.err));
      for (int64_t i = 0; i < c.n_moves; i++)
        ck_assert_int_ge (x.c.trace->tensors[c.moves[i].tensor].bytes, 700);
      moves += (int)c.n_moves;
    }
    arena_free (x.c.arena);
  }
  ck_assert_int_gt (moves, 0);
}
END_TEST

START_TEST (every_failed_allocation_is_told) {
  for (int i = 0; i < POLICIES; i++) {
    bool made = false;
    for (int64_t n = 1; !made; n += 1 + n / 8) {
      attempt x;
      policy_answer a;
      ck_assert_int_lt (n, 100000);
      set_up (&x, 12);
      policy_request r = { .trace = x.c.trace,
                           .device = &x.c.device,
                           .budget_bytes = budget_at (&x, 70),
                           .host_bytes = x.c.device.host_bytes };
      arena_fuse (x.c.arena, n);
      made = policy_run ((policy_id)i, &r, x.c.arena, &a, &x.err);
      if (!made)
        ck_assert_msg (x.err.code == ERR_memory, "%s: %s", policy_at ((policy_id)i)->name,
                       x.err.text);
      arena_free (x.c.arena);
    }
  }
}
END_TEST

START_TEST (an_option_that_is_wrong_gets_one_line) {
  static const struct {
    const char *policy, *text, *says;
  } wrong[] = {
    { "g10", "line", "`line` is not key=value" },
    { "g10", "slope=1", "g10 has no option slope; see `ferry solve --policy list`" },
    { "autoswap", "score=best", "score of autoswap: `best` is none of: doa aoa wdoa swdoa vote" },
    { "tflms-v1", "lb=0", "lb of tflms-v1: 0 is not between 1 and 2147483647" },
    { "knapsack", "c=200%", "c of knapsack is 0 to 1000000" },
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    error err = { 0 };
    policy_values values = policy_standard ();
    ck_assert (!policy_set (policy_named (wrong[i].policy), wrong[i].text, &values, &err));
    ck_says (&err, wrong[i].says);
  }
}
END_TEST

int main (void) {
  const TTest *const tests[] = { a_choice_on_paper_is_the_choice_made,
                                 every_policy_was_worked_on_paper,
                                 where_a_description_misleads_one_side_is_taken,
                                 an_answer_is_legal_or_says_that_it_does_not_fit,
                                 nothing_moves_where_everything_fits,
                                 the_same_request_makes_the_same_bytes,
                                 a_policy_moves_nothing_below_its_own_floor,
                                 every_failed_allocation_is_told,
                                 an_option_that_is_wrong_gets_one_line,
                                 NULL };
  return suite_run ("policies", tests, 60);
}
