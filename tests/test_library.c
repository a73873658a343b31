/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The public library as others use it: NULL and sizes are answered by errors, texts come back as
   they went, several threads may ask at once, and a plan's queues lead to its end. */
#include "tests/suite.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ferry.h"

enum { THREADS = 4 };

static ferry_device *a_card (void) {
  ferry_error err = FERRY_INIT (ferry_error);
  const char *data = getenv ("FERRY_DATADIR");
  ferry_device *d = ferry_device_load ("v100", data ? data : "data", &err);
  ck_assert_msg (d != NULL, "%s", err.text);
  return d;
}

static ferry_trace *a_net (const ferry_device *d) {
  ferry_error err = FERRY_INIT (ferry_error);
  ferry_zoo_request r = FERRY_INIT (ferry_zoo_request);
  r.network = "alexnet";
  r.batch = 32;
  r.image = 64;
  r.width_divisor = 2;
  r.device = d;
  ferry_trace *t = ferry_zoo (&r, &err);
  ck_assert_msg (t != NULL, "%s", err.text);
  return t;
}

static ferry_options for_share (const ferry_trace *t, const ferry_device *d, int percent) {
  ferry_error err = FERRY_INIT (ferry_error);
  ferry_need need = FERRY_INIT (ferry_need);
  ferry_options o = FERRY_INIT (ferry_options);
  ck_assert_msg (ferry_trace_need (t, d, &need, &err), "%s", err.text);
  o.device = d;
  o.budget_bytes = need.bytes / 100 * percent;
  o.limit_ticks = 5000;
  return o;
}

/* Each claim has these of its own. */
static ferry_error err;
static ferry_device *d;
static ferry_trace *t;

static void set_up (void) {
  err = (ferry_error)FERRY_INIT (ferry_error);
  d = a_card ();
  t = a_net (d);
}

static void tear_down (void) {
  ferry_trace_free (t);
  ferry_device_free (d);
}

CLAIM (nothing_given_is_an_error) {
  ferry_result result = { 0 };
  ferry_options unsized = { 0 };
  ck_assert_ptr_null (ferry_trace_load (NULL, &err));
  ck_assert_int_eq (err.exit_status, 2);
  ck_assert_ptr_null (ferry_trace_parse (NULL, 3, &err));
  ck_assert_ptr_null (ferry_solve (NULL, NULL, &err));
  ck_assert_ptr_null (ferry_solve (t, NULL, &err));
  ck_assert_ptr_null (ferry_solve (t, &unsized, &err));
  ck_assert_msg (strstr (err.text, "FERRY_INIT"), "%s", err.text);
  ck_assert (!ferry_simulate (t, NULL, &result, &err));
  ck_assert (!ferry_check (NULL, NULL, NULL));
  ck_assert (!ferry_prove (t, NULL, NULL));
  ck_assert_ptr_null (ferry_plan_text (NULL, NULL, &err));
  ck_assert_ptr_null (ferry_curve_of (NULL, NULL, NULL, 3, &err));
  ck_assert_ptr_null (ferry_pack (NULL, 1, NULL, 1, NULL, &err));
  ck_assert_ptr_null (ferry_import (NULL, 1, NULL, NULL, &err));
  ck_assert_ptr_null (ferry_device_load ("no such card", "nowhere", &err));
  ck_assert_int_eq (err.exit_status, 3);
  ferry_trace_free (NULL);
  ferry_plan_free (NULL);
}

CLAIM (texts_come_back) {
  ferry_options o = for_share (t, d, 70);
  ferry_plan *p = ferry_solve (t, &o, &err);
  ck_assert_msg (p != NULL, "%s", err.text);
  size_t size, again_size;
  char *text = ferry_trace_text (t, &size, &err);
  ferry_trace *u = ferry_trace_parse (text, size, &err);
  ck_assert_msg (u != NULL, "%s", err.text);
  char *plan_text = ferry_plan_text (p, &again_size, &err);
  ferry_plan *q = ferry_plan_parse (plan_text, again_size, &err);
  ferry_result first = FERRY_INIT (ferry_result), second = FERRY_INIT (ferry_result);
  ck_assert_msg (q && ferry_check (u, q, &err), "%s", err.text);
  ck_assert (ferry_simulate (t, p, &first, &err) && ferry_simulate (u, q, &second, &err));
  ck_assert_int_eq (first.step_ns, second.step_ns);
  char *json = ferry_simulate_json (t, p, &err);
  ck_assert (json && strstr (json, "\"lower_bound_ns\"") && strstr (json, "\"step_ns\""));
  ferry_free (json);
  ferry_free (text);
  ferry_free (plan_text);
  ferry_plan_free (p);
  ferry_plan_free (q);
  ferry_trace_free (u);
}

/* A known plan is not given up for a slower one, and the answer outlives it. */
CLAIM (starts) {
  ferry_options o = for_share (t, d, 60);
  ferry_result first = FERRY_INIT (ferry_result), second = FERRY_INIT (ferry_result);
  o.gap_ppm = 1;
  o.limit_ticks = 100000;
  ferry_plan *p = ferry_solve (t, &o, &err);
  ck_assert_msg (p && ferry_simulate (t, p, &first, &err), "%s", err.text);
  o.budget_bytes += o.budget_bytes / 50;
  o.limit_ticks = 1;
  const ferry_plan *known[] = { p };
  o.starts = known;
  o.n_starts = 1;
  ferry_plan *q = ferry_solve (t, &o, &err);
  ferry_plan_free (p);
  ck_assert_msg (q && ferry_check (t, q, &err), "%s", err.text);
  ck_assert (ferry_simulate (t, q, &second, &err));
  ck_assert_int_le (second.step_ns, first.step_ns);
  ferry_plan_free (q);
  o.starts = NULL;
  ck_assert_ptr_null (ferry_solve (t, &o, &err));
  ck_assert_int_eq (err.exit_status, 2);
}

/* A profile in memory is what the same file is. */
CLAIM (profiles_from_memory) {
  static const char text[] = "ferry-text/1\nname net\nbatch 2\n"
                             "tensor a 1MiB\ntensor b 1MiB parameter\n"
                             "op one forward 10us reads b writes a\n"
                             "op two backward 20us reads a b\n";
  ferry_file f = FERRY_INIT (ferry_file);
  char *report = NULL;
  f.name = "net.txt";
  f.data = text;
  f.bytes = sizeof text - 1;
  ferry_trace *t = ferry_import_memory (&f, 1, NULL, &report, &err);
  ck_assert_msg (t != NULL, "%s", err.text);
  ck_assert_int_eq (ferry_trace_ops (t), 2);
  ck_assert (report && strstr (report, "\"net.txt\""));
  ferry_free (report);
  ferry_trace_free (t);
  ck_assert_ptr_null (ferry_import_memory (NULL, 1, NULL, NULL, &err));
  ck_assert_int_eq (err.exit_status, 2);
  f.data = NULL;
  ck_assert_ptr_null (ferry_import_memory (&f, 1, NULL, NULL, &err));
  f.data = text;
  ck_assert_ptr_null (ferry_import_memory (&f, 3, NULL, NULL, &err));
  ck_assert_msg (strstr (err.text, "1 to 2"), "%s", err.text);
  f.size = 0;
  ck_assert_ptr_null (ferry_import_memory (&f, 1, NULL, NULL, &err));
}

/* A network's flags, and the order of its ops, are the library's as they are the program's. */
CLAIM (flags_and_orders) {
  ferry_zoo_request r = FERRY_INIT (ferry_zoo_request);
  r.network = "bert-base";
  r.batch = 8;
  r.seq = 512;
  r.depth_divisor = 6;
  r.device = d;
  ferry_trace *plain = ferry_zoo (&r, &err);
  r.explicit_attention = true;
  ferry_trace *explicit = ferry_zoo (&r, &err);
  ck_assert_msg (plain && explicit, "%s", err.text);
  ck_assert_int_gt (ferry_trace_peak_bytes (explicit), ferry_trace_peak_bytes (plain));
  ferry_options o = for_share (plain, d, 70);
  o.op_order = FERRY_OPS_UPDATES;
  ferry_plan *p = ferry_solve (plain, &o, &err);
  ck_assert_msg (p && ferry_check (plain, p, &err), "%s", err.text);
  ferry_plan_free (p);
  ferry_trace_free (plain);
  ferry_trace_free (explicit);
}

/* Every item of two steps comes, so the waits lead to an end. */
CLAIM (walks_to_the_end) {
  ferry_options o = for_share (t, d, 60);
  o.recompute = FERRY_RECOMPUTE_AUTO;
  ferry_plan *p = ferry_solve (t, &o, &err);
  ck_assert_msg (p != NULL, "%s", err.text);
  ferry_trace *step = ferry_plan_trace (t, p, &err);
  ferry_steps n = FERRY_INIT (ferry_steps);
  ck_assert_msg (step && ferry_plan_steps (t, p, &n, &err), "%s", err.text);
  int64_t each[] = { n.ops, n.outs, n.ins }, done[3] = { 0 };
  for (int64_t before = -1; before != done[0] + done[1] + done[2];) {
    before = done[0] + done[1] + done[2];
    for (int q = 0; q < 3; q++) {
      ferry_wait w = FERRY_INIT (ferry_wait);
      if (!each[q] || done[q] >= 2 * each[q])
        continue;
      int32_t i = (int32_t)(done[q] % each[q]);
      ck_assert_msg (ferry_plan_wait (step, p, (ferry_queue)q, i, &w, &err), "%s", err.text);
      int64_t counts[] = { w.ops, w.outs, w.ins };
      bool ready = true;
      for (int k = 0; k < 3; k++)
        ready &= counts[k] == FERRY_NO_WAIT || done[k] >= done[q] / each[q] * each[k] + counts[k];
      if (ready && q > 0) {
        ferry_move m = FERRY_INIT (ferry_move);
        ck_assert_msg (ferry_plan_move (step, p, (ferry_queue)q, i, &m, &err), "%s", err.text);
        int64_t granules = 0;
        for (int32_t k = 0; k < m.n_granules; k++)
          granules += m.granules[2 * k + 1];
        ck_assert_int_ge (granules * n.granule_bytes, m.bytes);
        ck_assert_int_le (m.host_offset + m.bytes, n.host_bytes);
      }
      done[q] += ready;
    }
  }
  for (int q = 0; q < 3; q++)
    ck_assert_int_eq (done[q], 2 * each[q]);
  ferry_trace_free (step);
  ferry_plan_free (p);
}

CLAIM (curves_and_packs) {
  ferry_options o = for_share (t, d, 100);
  o.limit_ticks = 1000;
  o.op_order = FERRY_OPS_AS_IS; /* else each point has orders tried, and none is asked for here */
  o.sections = FERRY_SECTIONS_OFF;
  ferry_curve *c = ferry_curve_of (t, &o, NULL, 4, &err);
  ck_assert_msg (c != NULL, "%s", err.text);
  int64_t last = INT64_MAX;
  for (int i = 0; i < ferry_curve_count (c); i++) {
    ferry_point at = FERRY_INIT (ferry_point);
    ck_assert (ferry_curve_point (c, i, &at, &err));
    ck_assert (at.step_ns < 0 || at.step_ns <= last);
    last = at.step_ns < 0 ? last : at.step_ns;
  }
  char *json = ferry_curve_json (c, &err);
  ck_assert (json && strstr (json, "\"points\""));
  int64_t none = 0;
  ferry_plan *small = ferry_min_memory (t, &o, 100000, &none, &err);
  ck_assert_msg (small != NULL && ferry_check (t, small, &err), "%s", err.text);
  const ferry_trace *jobs[] = { t, t };
  const ferry_device *cards[] = { d };
  ferry_options both = FERRY_INIT (ferry_options);
  both.budget_bytes = o.budget_bytes * 3 / 2;
  both.limit_ticks = 100;
  both.op_order = FERRY_OPS_AS_IS;
  both.sections = FERRY_SECTIONS_OFF;
  ferry_packing *packed = ferry_pack (jobs, 2, cards, 1, &both, &err);
  ck_assert_msg (packed != NULL, "%s", err.text);
  for (int i = 0; i < 2; i++) {
    ferry_place place = FERRY_INIT (ferry_place);
    ck_assert (ferry_pack_place (packed, i, &place, &err) && place.card == 0);
    ferry_plan *p = ferry_pack_plan (packed, i, &err);
    ck_assert_msg (p && ferry_check (t, p, &err), "%s", err.text);
    ferry_plan_free (p);
  }
  ferry_pack_free (packed);
  ferry_plan_free (small);
  ferry_free (json);
  ferry_curve_free (c);
}

/* Two jobs in a little less than both need. */
static ferry_packing *pack_two (const ferry_trace *t, const ferry_device *d, ferry_recompute again,
                                ferry_error *err) {
  const ferry_trace *jobs[] = { t, t };
  const ferry_device *cards[] = { d };
  ferry_options o = for_share (t, d, 190);
  o.limit_ticks = 100;
  o.recompute = again;
  o.sections = FERRY_SECTIONS_OFF;
  o.op_order = FERRY_OPS_AS_IS;
  return ferry_pack (jobs, 2, cards, 1, &o, err);
}

CLAIM (packs_do_only_what_the_options_allow) {
  ferry_recompute words[] = { FERRY_RECOMPUTE_OFF, FERRY_RECOMPUTE_ONLY };
  for (int k = 0; k < 2; k++) {
    int64_t moved_bytes = 0;
    ferry_packing *packed = pack_two (t, d, words[k], &err);
    ck_assert_msg (packed != NULL, "%s", err.text);
    for (int i = 0; i < 2; i++) {
      ferry_result cost = FERRY_INIT (ferry_result);
      ferry_plan *p = ferry_pack_plan (packed, i, &err);
      ck_assert_msg (p && ferry_simulate (t, p, &cost, &err), "%s", err.text);
      moved_bytes += cost.h2d_bytes;
      ferry_plan_free (p);
    }
    ck_assert_int_eq (moved_bytes > 0, words[k] == FERRY_RECOMPUTE_OFF);
    ferry_pack_free (packed);
  }
  ck_assert_ptr_null (pack_two (t, d, (ferry_recompute)17, &err));
  ck_assert_int_eq (err.exit_status, 2);
  ck_assert_ptr_nonnull (strstr (err.text, "recompute"));
}

typedef struct worker {
  const ferry_trace *trace;
  const ferry_device *device;
  int64_t step_ns;
} worker;

static void *work (void *context) {
  worker *w = context;
  ferry_error err = FERRY_INIT (ferry_error);
  ferry_result cost = FERRY_INIT (ferry_result);
  ferry_options o = for_share (w->trace, w->device, 60);
  o.recompute = FERRY_RECOMPUTE_AUTO;
  ferry_plan *p = ferry_solve (w->trace, &o, &err);
  if (p && ferry_simulate (w->trace, p, &cost, &err))
    w->step_ns = cost.step_ns;
  ferry_plan_free (p);
  return NULL;
}

/* A word beyond the last one is no plan that happens to come out. */
CLAIM (unknown_words_are_refused) {
  for (int i = 0; i < 6; i++) {
    ferry_options o = for_share (t, d, 60);
    o.sections = i == 0 ? (ferry_sections)4 : o.sections;
    o.section_order = i == 1 ? (ferry_order)3 : o.section_order;
    o.recompute = i == 2 ? (ferry_recompute)5 : o.recompute;
    o.op_order = i == 3 ? (ferry_op_order)4 : o.op_order;
    o.placement = i == 4 ? (ferry_placement)3 : o.placement;
    o.effort = i == 5 ? (ferry_effort)3 : o.effort;
    ck_assert_ptr_null (ferry_solve (t, &o, &err));
    ck_assert_int_eq (err.exit_status, 2);
    ck_assert_ptr_nonnull (strstr (err.text, "last word"));
  }
}

static bool always (void *context) {
  (void)context;
  return true;
}

/* In so little some op fits only in parts, for which a search that is stopped at once has no time.
 */
CLAIM (stopped_rules_nothing_out) {
  ferry_zoo_request r = FERRY_INIT (ferry_zoo_request);
  r.network = "vgg16";
  r.batch = 17;
  r.width_divisor = 4;
  r.depth_divisor = 2;
  r.device = d;
  ferry_trace *t = ferry_zoo (&r, &err);
  ck_assert_msg (t != NULL, "%s", err.text);
  ferry_options o = for_share (t, d, 40);
  o.placement = FERRY_PLACEMENT_ARENA;
  ferry_plan *p = ferry_solve (t, &o, &err);
  ck_assert_msg (p != NULL, "%s", err.text);
  o.stop = always;
  ck_assert_ptr_null (ferry_solve (t, &o, &err));
  ck_assert_int_eq (err.exit_status, 4);
  ck_assert_msg (strstr (err.text, "none is ruled out"), "%s", err.text);
  ferry_plan_free (p);
  ferry_trace_free (t);
}

/* An error by the command line's own status, and no aborted caller. */
CLAIM (values_that_cannot_be_are_refused) {
  const ferry_trace *jobs[] = { t };
  const ferry_device *cards[] = { d };
  for (int i = 0; i < 9; i++) {
    ferry_error err = FERRY_INIT (ferry_error);
    ferry_options o = for_share (t, d, 60);
    const int64_t budgets[] = { i == 7 ? -1 : INT64_MAX };
    o.sections = i < 3 ? FERRY_SECTIONS_FIXED : o.sections;
    o.section_parts = i == 1 ? 1 : i == 2 ? 33 : 0;
    o.budget_bytes = i == 3 ? -5 : i == 4 ? (int64_t)1 << 50 : o.budget_bytes;
    o.host_bytes = i == 5 ? -1 : 0;
    o.has_reserve = i == 6;
    o.reserve_bytes = -1;
    if (i < 7) {
      ck_assert_ptr_null (ferry_solve (t, &o, &err));
      ck_assert_int_eq (err.exit_status, 2);
      ck_assert_ptr_null (ferry_pack (jobs, 1, cards, 1, &o, &err));
    } else {
      ck_assert_ptr_null (ferry_curve_of (t, &o, budgets, 1, &err));
    }
    ck_assert_msg (err.exit_status == 2, "%d: status %d, %s", i, err.exit_status, err.text);
  }
}

static int64_t step_of (const ferry_trace *t, const ferry_options *o) {
  ferry_error err = FERRY_INIT (ferry_error);
  ferry_result cost = FERRY_INIT (ferry_result);
  ferry_plan *p = ferry_solve (t, o, &err);
  ck_assert_msg (p && ferry_simulate (t, p, &cost, &err), "%s", err.text);
  ferry_plan_free (p);
  return cost.step_ns;
}

/* Zero stands for either kind of places; a point of a curve is a budget solved. */
CLAIM (places_and_reserves_are_those_of_a_solve) {
  for (int i = 0; i < 4; i++) {
    ferry_options o = for_share (t, d, 60);
    ferry_point point = FERRY_INIT (ferry_point);
    o.placement = i < 3 ? (ferry_placement)i : FERRY_PLACEMENT_AUTO;
    o.has_reserve = i == 3;
    o.reserve_bytes = o.budget_bytes / 32;
    ferry_curve *c = ferry_curve_of (t, &o, &o.budget_bytes, 1, &err);
    ck_assert_msg (c && ferry_curve_point (c, 0, &point, &err), "%s", err.text);
    ck_assert_int_eq (point.step_ns, step_of (t, &o));
    ferry_curve_free (c);
  }
}

/* It was read, and nobody has checked it. */
CLAIM (a_plan_of_something_else_is_refused) {
  ferry_trace *other;
  ferry_zoo_request r = FERRY_INIT (ferry_zoo_request);
  ferry_steps steps = FERRY_INIT (ferry_steps);
  ferry_move move = FERRY_INIT (ferry_move);
  ferry_options o = for_share (t, d, 60);
  o.recompute = FERRY_RECOMPUTE_OFF;
  o.sections = FERRY_SECTIONS_OFF;
  ferry_plan *p = ferry_solve (t, &o, &err);
  r.network = "alexnet";
  r.batch = 8;
  r.device = d;
  ck_assert_msg (p && (other = ferry_zoo (&r, &err)), "%s", err.text);
  ck_assert_ptr_null (ferry_plan_trace (other, p, &err));
  ck_assert_int_eq (err.exit_status, 1);
  ck_assert (!ferry_plan_steps (other, p, &steps, &err));
  char *text = ferry_plan_text (p, NULL, &err), *at = text ? strstr (text, "\"unit\":") : NULL;
  ck_assert_ptr_nonnull (at);
  size_t head = (size_t)(at - text) + 7, rest = strcspn (text + head, ",}\n");
  size_t room = strlen (text) + 16;
  char *bad = malloc (room);
  ck_assert_ptr_nonnull (bad);
  snprintf (bad, room, "%.*s2000000000%s", (int)head, text, text + head + rest);
  ferry_plan *q = ferry_plan_parse (bad, strlen (bad), &err);
  ck_assert_msg (q != NULL, "%s", err.text);
  int refused = 0;
  ck_assert_msg (ferry_plan_steps (t, p, &steps, &err), "%s", err.text);
  for (int32_t i = 0; i < steps.outs; i++)
    refused += !ferry_plan_move (t, q, FERRY_OUTS, i, &move, &err);
  for (int32_t i = 0; i < steps.ins; i++)
    refused += !ferry_plan_move (t, q, FERRY_INS, i, &move, &err);
  ck_assert_int_gt (refused, 0);
  free (bad);
  ferry_free (text);
  ferry_plan_free (q);
  ferry_plan_free (p);
  ferry_trace_free (other);
}

CLAIM (threads_share_objects) {
  worker w[THREADS];
  pthread_t at[THREADS];
  for (int i = 0; i < THREADS; i++) {
    w[i] = (worker){ t, d, 0 };
    ck_assert_int_eq (pthread_create (&at[i], NULL, work, &w[i]), 0);
  }
  for (int i = 0; i < THREADS; i++)
    pthread_join (at[i], NULL);
  for (int i = 0; i < THREADS; i++) {
    ck_assert_int_gt (w[i].step_ns, 0);
    ck_assert_int_eq (w[i].step_ns, w[0].step_ns);
  }
}

int main (void) {
  return suite_run_with ("library", set_up, tear_down, 120);
}
