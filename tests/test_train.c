/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Networks that train under plans on the emulated device: bit for bit as they train unswapped, and
   otherwise where something is wrong. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "solver/policy/policy.h"
#include "tests/suite.h"
#include "tests/train_case.h"

enum { STEPS = 20, FEW_STEPS = 8, GPT = 5 /* of the small ones */ };

/* FERRY_SOAK asks for all: so `make bench` does. */
static bool soaks (void) {
  return getenv ("FERRY_SOAK") != NULL;
}

static train_result train (train_case *c, const plan *p, const train_options *o) {
  error err = { 0 };
  train_result r;
  if (!train_run (c->trace, p, o, c->a, &r, &err))
    ck_abort_msg ("%s: %s", c->trace->name, err.text);
  return r;
}

/* ---- the same bits ---- */

static int parted (const plan *p) {
  int n = 0;
  for (int32_t i = 0; i < p->n_moves; i++)
    n += p->moves[i].of > 1;
  return n;
}

static void ck_trains (const small_net *s, train_mode mode, train_room room) {
  train_case c;
  train_case_open (&c, s, mode);
  const plan *p = train_case_plan (&c, room);
  int steps = soaks () ? STEPS : FEW_STEPS;
  train_options o = train_case_options (steps);
  train_result r = train (&c, p, &o);
  const char *m = train_mode_names[mode], *w = train_room_names[room];
  ck_assert_msg (p->n_moves > 5 && parted (p) > 0, "%s, %s, %s: %d moves, %d of parts", s->name, m,
                 w, p->n_moves, parted (p));
  ck_assert_msg (room != FLOOR || p->budget_bytes < c.most_bytes * 2 / 3,
                 "%s, %s: the floor is %lld of %lld", s->name, m, (long long)p->budget_bytes,
                 (long long)c.most_bytes);
  ck_assert_msg (train_same (&r), "%s, %s, %s: differs at step %d, %d tensors", s->name, m, w,
                 r.first_step, r.n_tensors);
  ck_assert_msg (train_within (&r), "%s, %s, %s: %g ppm of the loss, %g ppm of the update", s->name,
                 m, w, r.loss_ppm, r.update_ppm);
  ck_assert_msg (r.replay.largest_ns == 0 && r.replay.predicted.step_ns == r.replay.seen.step_ns,
                 "%s, %s, %s: predicted %lld, seen %lld, starts differ by %lld", s->name, m, w,
                 (long long)r.replay.predicted.step_ns, (long long)r.replay.seen.step_ns,
                 (long long)r.replay.largest_ns);
  for (int i = 0; i < steps; i++)
    ck_assert (isfinite (r.losses[i]));
  train_case_close (&c);
}

/* Each network mixed and in one other way, each way in each budget. */
static bool is_tried (int net, int mode, int room) {
  if (soaks ())
    return true;
  if (mode == MIXED)
    return room == (net + 2) % TRAIN_ROOMS;
  return mode == net % MIXED && room == (net / MIXED + mode) % TRAIN_ROOMS;
}

CLAIM_EACH (what_is_swapped_cut_and_made_again_trains_bit_for_bit_as_it_does_unswapped, 0,
            SMALL_NETS) {
  for (int mode = 0; mode < TRAIN_MODES; mode++)
    for (int room = 0; room < TRAIN_ROOMS; room++)
      if (is_tried (_i, mode, room))
        ck_trains (&small_nets[_i], (train_mode)mode, (train_room)room);
}

/* What others decide: the published rules, each in the room that it needs. */
CLAIM (plans_of_every_rule_train_bit_for_bit) {
  train_case c;
  train_case_open (&c, &small_nets[GPT], SWAPPED);
  train_options o = train_case_options (3);
  int moved = 0, dropped = 0, trained = 0;
  for (int id = 0; id < POLICIES; id++) {
    policy_answer answer;
    error err = { 0 };
    policy_request q = { .trace = c.trace,
                         .device = &c.device,
                         .budget_bytes = c.least_bytes,
                         .host_bytes = c.device.host_bytes };
    bool ran = policy_run ((policy_id)id, &q, c.a, &answer, &err);
    if (ran && !answer.fits) {
      q.budget_bytes = answer.reached_bytes;
      ran = policy_run ((policy_id)id, &q, c.a, &answer, &err);
    }
    ck_assert_msg (ran, "%s: %s", policy_at ((policy_id)id)->name, err.text);
    if (answer.plan == NULL)
      continue;
    train_result r = train (&c, answer.plan, &o);
    ck_assert_msg (train_same (&r), "%s: differs at step %d", policy_at ((policy_id)id)->name,
                   r.first_step);
    trained++;
    moved += answer.plan->n_moves > 0;
    dropped += answer.plan->n_recomputes > 0;
  }
  ck_assert_msg (trained > 15 && moved > 8 && dropped > 3, "%d plans, %d move, %d make again",
                 trained, moved, dropped);
  train_case_close (&c);
}

/* ---- twice, and with threads ---- */

/* Delays and threads change when things happen, and nothing else. */
CLAIM (threads_and_delays_learn_the_same_bits) {
  train_case c;
  train_case_open (&c, &small_nets[GPT], MIXED);
  const plan *p = train_case_plan (&c, FLOOR);
  train_options o = train_case_options (4);
  train_result first = train (&c, p, &o);
  o.replay.races = true;
  train_result raced = train (&c, p, &o);
  ck_assert_msg (raced.replay.n_races == 0, "%s", raced.replay.races[0].text);
  o.replay.races = false;
  o.replay.fuzz_ns = 20000;
  train_result delayed = train (&c, p, &o);
  o.replay.fuzz_ns = 0;
  o.replay.clock = EMU_REAL;
  train_result threads = train (&c, p, &o);
  ck_assert (train_same (&first) && train_same (&threads) && train_same (&delayed));
  ck_assert_str_eq (first.digest, threads.digest);
  ck_assert_str_eq (first.digest, delayed.digest);
  for (int i = 0; i < 4; i++)
    ck_assert (first.losses[i] == threads.losses[i] && first.losses[i] == delayed.losses[i]);
  train_case_close (&c);
}

/* More steps than are timed: the figures and the bits stay what they are. */
CLAIM (long_runs_are_fed_as_they_go_and_predicted_to_the_nanosecond) {
  static const small_net tiny = { "charrnn", 2, 0, 2, 32, 0, 32, ZOO_SGD, false };
  train_case c;
  train_case_open (&c, &tiny, SWAPPED);
  const plan *p = train_case_plan (&c, FLOOR);
  train_options o = train_case_options (100);
  train_result r = train (&c, p, &o);
  ck_assert (train_same (&r));
  ck_assert_int_eq (r.replay.steps, 100);
  ck_assert_int_eq (r.replay.timed, REPLAY_TIMED);
  ck_assert_int_eq (r.replay.predicted.step_ns, r.replay.seen.step_ns);
  train_case_close (&c);
}

/* ---- faults that must be seen ---- */

/* One block with dropout. */
static const small_net little = { "gpt2", 3, 0, 8, 12, 12, 32, ZOO_ADAM, false };

static int32_t outs_and_ins (const plan *p) {
  return p->n_outs + p->n_ins;
}

/* Some copies of the second step, each left out in a run of its own. Unmissed are those of bytes
   that are the same in every step, that nobody reads again, or that come back to where they still
   lie. */
CLAIM (a_copy_that_is_left_out_is_seen) {
  train_case c;
  train_case_open (&c, &little, SWAPPED);
  const plan *p = train_case_plan (&c, FLOOR);
  train_options o = train_case_options (3);
  int tried = 0, seen = 0, in_loss = 0;
  for (int32_t n = outs_and_ins (p); n < 2 * outs_and_ins (p); n += soaks () ? 7 : 17) {
    error err = { 0 };
    train_result r;
    o.replay.lost_copy = n + 1;
    tried++;
    arena_mark mark = arena_here (c.a);
    bool ran = train_run (c.trace, p, &o, c.a, &r, &err); /* a token may be out of range */
    seen += !ran || !train_same (&r);
    in_loss += !ran || r.first_step >= 0;
    arena_back (c.a, mark);
  }
  ck_assert_msg (tried > 12 && seen * 10 >= tried * 9 && in_loss * 2 > tried,
                 "%d of %d lost copies were seen, %d in the losses", seen, tried, in_loss);
  train_case_close (&c);
}

/* What a wait is for may have happened all the same; where the bits differ, the race checker must
   know the two accesses that nothing orders. */
CLAIM (a_wait_that_is_left_out_is_seen_where_it_matters) {
  train_case c;
  train_case_open (&c, &little, SWAPPED);
  const plan *p = train_case_plan (&c, FLOOR);
  train_options o = train_case_options (2);
  int tried = 0, seen = 0;
  o.replay.races = true;
  for (int32_t n = 1; n < 700; n += soaks () ? 11 : 27) {
    error err = { 0 };
    train_result r;
    o.replay.lost_wait = n;
    tried++;
    arena_mark mark = arena_here (c.a);
    bool ran = train_run (c.trace, p, &o, c.a, &r, &err);
    seen += !ran || !train_same (&r);
    if (ran && !train_same (&r))
      ck_assert_msg (r.replay.n_races > 0, "without wait %d the bits differ, and nothing races", n);
    arena_back (c.a, mark);
  }
  ck_assert_msg (tried > 20 && seen > 2, "%d of %d lost waits were seen", seen, tried);
  train_case_close (&c);
}

CLAIM (a_copy_of_dropout_with_a_wrong_counter_is_seen) {
  train_case c;
  train_case_open (&c, &little, MADE_AGAIN);
  const plan *p = train_case_plan (&c, FLOOR);
  train_options o = train_case_options (4);
  train_result right = train (&c, p, &o);
  ck_assert (train_same (&right));
  for (int n = 1; n <= 3; n++) {
    o.spoiled_copy = n;
    train_result wrong = train (&c, p, &o);
    ck_assert_msg (!train_same (&wrong), "the counter of copy %d does not matter", n);
    ck_assert_int_eq (wrong.first_step, 1); /* its gradients are wrong, and then the next loss */
    ck_assert_int_gt (wrong.n_tensors, 0);
    ck_assert_str_ne (wrong.digest, right.digest);
  }
  train_case_close (&c);
}

/* ---- as on a GPU ---- */

/* A device that can only be compared with itself runs the other plan first. */
CLAIM (a_device_is_compared_with_its_own_run_of_another_plan) {
  train_case c;
  train_case_open (&c, &little, SWAPPED);
  const plan *p = train_case_plan (&c, FLOOR);
  train_options o = train_case_options (3);
  o.kernels = true;
  o.unswapped = train_case_plan (&c, AMPLE);
  train_result right = train (&c, p, &o);
  ck_assert (right.compared && right.by_kernels && train_same (&right));
  int tried = 0, seen = 0;
  for (int32_t n = outs_and_ins (p); n < 2 * outs_and_ins (p); n += soaks () ? 29 : 61) {
    o.replay.lost_copy = n + 1;
    train_result wrong = train (&c, p, &o);
    tried++;
    seen += !train_same (&wrong);
    ck_assert (train_same (&wrong) == (strcmp (wrong.digest, right.digest) == 0));
  }
  ck_assert_msg (tried > 2 && 2 * seen > tried, "%d of %d lost copies were seen", seen, tried);
  train_case_close (&c);
}

/* ---- refusals ---- */

static void ck_refused (train_case *c, const plan *p, const train_options *o, const char *says) {
  error err = { 0 };
  train_result r;
  ck_assert (!train_run (c->trace, p, o, c->a, &r, &err));
  ck_says (&err, says);
}

CLAIM (what_cannot_be_calculated_is_refused_before_anything_runs) {
  train_case c;
  train_case_open (&c, &little, SWAPPED);
  const plan *p = train_case_plan (&c, AMPLE);
  train_options o = train_case_options (2), with;
  with = o;
  with.replay.emulated = false;
  ck_refused (&c, p, &with,
              "a GPU does not round as the CPU does, so it needs a plan that moves nothing to "
              "compare with");
  with = o;
  with.replay.verify = true;
  ck_refused (&c, p, &with,
              "what is calculated stands in the bytes: do without --verify, which puts patterns "
              "there");
  with = o;
  with.replay.bytes = EMU_NONE;
  ck_refused (&c, p, &with, "what is calculated stands in the bytes: do without --bytes none");
  with = o;
  with.input.text = "a";
  with.input.text_bytes = 1;
  ck_refused (&c, p, &with, "a text of 1 bytes: nothing can be learned from it");
  with.compare = false;
  ck_refused (&c, p, &with, "a text of 1 bytes: nothing can be learned from it");
  train_case_close (&c);
  train_case_open (&c, &small_nets[0], SWAPPED);
  p = train_case_plan (&c, AMPLE);
  with.input.text_bytes = 2;
  with.input.text = "ab";
  ck_refused (&c, p, &with, "a text is given, and this network learns pictures");
  train_case_close (&c);
}

int main (void) {
  return suite_run ("train", soaks () ? 1200 : 120);
}
