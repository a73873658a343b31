/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The stack of TensorFlow's while loops: forward values are pushed behind their last forward use
   and popped at their first backward use.  Two generations: the pushed value itself leaves, fetched
   on demand; or the oldest leaves, and each pop fetches the newest that is away. */
#include "base/units.h"
#include "solver/policy/policy.h"

typedef struct stack {
  policy_view *v;
  int64_t line_bytes, floor_bytes;
  int64_t away_bytes;
  int32_t *pushed; /* in order; -1 where it was taken out */
  int32_t n_pushed, next_young;
  int32_t *away, n_away; /* gaps; the newest last */
  int32_t *out_trigger;  /* per gap: op, or NO_OP while it is on the device */
  int32_t *in_trigger;   /* per gap: op, or NO_OP */
  int32_t first;         /* the first pushed gap */
} stack;

static bool start_stack (stack *s, policy_view *v, int64_t occupancy_ppm, int64_t floor_bytes,
                         error *err) {
  *s = (stack){ .v = v,
                .line_bytes = units_scale (v->budget_bytes, occupancy_ppm, 1000000),
                .floor_bytes = floor_bytes,
                .first = -1 };
  if (!ALLOC (v->arena, s->pushed, v->n_tensors, err) ||
      !ALLOC (v->arena, s->away, v->n_tensors, err) ||
      !ALLOC (v->arena, s->out_trigger, v->n_gaps, err) ||
      !ALLOC (v->arena, s->in_trigger, v->n_gaps, err))
    return false;
  for (int32_t g = 0; g < v->n_gaps; g++)
    s->out_trigger[g] = s->in_trigger[g] = NO_OP;
  return true;
}

static bool over (const stack *s, int32_t k) {
  return s->v->res[k] - s->away_bytes > s->line_bytes;
}

static void leave (stack *s, int32_t g, int32_t k) {
  s->out_trigger[g] = k;
  s->away_bytes += s->v->held[s->v->gaps[g].tensor];
  s->away[s->n_away++] = g;
}

static bool too_small (const stack *s, int32_t g) {
  return s->v->trace->tensors[s->v->gaps[g].tensor].bytes <= s->floor_bytes;
}

static void push_latest (stack *s, int32_t g, int32_t k) {
  if (g != s->first && !too_small (s, g) && over (s, k))
    leave (s, g, k);
}

/* A value passed over because of its size is never looked at again. */
static void push_oldest (stack *s, int32_t g, int32_t k) {
  s->pushed[s->n_pushed++] = g;
  if (!over (s, k))
    return;
  while (s->next_young < s->n_pushed) {
    int32_t victim = s->pushed[s->next_young++];
    if (victim < 0 || victim == s->first || too_small (s, victim))
      continue;
    leave (s, victim, k);
    return;
  }
}

static void come_back (stack *s, int32_t g, int32_t k) {
  s->in_trigger[g] = k;
  s->away_bytes -= s->v->held[s->v->gaps[g].tensor];
}

static void take_out (stack *s, int32_t g) {
  for (int32_t i = s->next_young; i < s->n_pushed; i++)
    if (s->pushed[i] == g)
      s->pushed[i] = -1;
  for (int32_t i = 0; i < s->n_away; i++)
    if (s->away[i] == g) {
      for (; i + 1 < s->n_away; i++)
        s->away[i] = s->away[i + 1];
      s->n_away--;
    }
}

static void pop (stack *s, int32_t g, int32_t k, bool fetches) {
  take_out (s, g);
  if (s->out_trigger[g] != NO_OP && s->in_trigger[g] == NO_OP)
    come_back (s, g, k);
  if (fetches && !over (s, k) && s->n_away > 0)
    come_back (s, s->away[--s->n_away], k);
}

static bool hand_over (stack *s, policy_choice *out, error *err) {
  for (int32_t g = 0; g < s->v->n_gaps; g++) {
    if (s->out_trigger[g] == NO_OP)
      continue;
    const view_gap *at = &s->v->gaps[g];
    policy_move m = { .tensor = at->tensor,
                      .out_after = s->out_trigger[g],
                      .in_before = at->b,
                      .in_not_before = s->in_trigger[g],
                      .wait_out = true, /* a push ends when its copy has */
                      .wait_at = NO_OP };
    if (m.out_after < at->b && !policy_add_move (s->v, out, m, err))
      return false;
  }
  return true;
}

bool policy_tf_stack (policy_view *v, policy_choice *out, error *err) {
  bool oldest = v->policy == POLICY_alvaro_earliest;
  stack s;
  int64_t occupancy = v->option[oldest ? POLICY_OPTION_alvaro_earliest_occupancy
                                       : POLICY_OPTION_tf_latest_occupancy];
  int64_t floor =
      v->option[oldest ? POLICY_OPTION_alvaro_earliest_floor : POLICY_OPTION_tf_latest_floor];
  if (!start_stack (&s, v, occupancy, floor, err))
    return false;
  view_events events;
  if (!view_fb_events (v, &events, err))
    return false;
  for (int32_t k = 0; k < v->n_ops; k++) {
    for (int32_t i = events.ends.offset[k]; i < events.ends.offset[k + 1]; i++)
      pop (&s, events.ends.at[i], k, oldest);
    for (int32_t i = events.begins.offset[k]; i < events.begins.offset[k + 1]; i++) {
      int32_t g = events.begins.at[i];
      s.first = s.first < 0 ? g : s.first;
      if (oldest)
        push_oldest (&s, g, k);
      else
        push_latest (&s, g, k);
    }
  }
  return hand_over (&s, out, err);
}
