/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ranks meet in a collective: each records that it has come and waits for the others' records.  A
   thread goes on once all have recorded, since a wait for what is not recorded is none. */
#include <assert.h>
#include <string.h>

#include "executor/replay/run.h"

/* Names of groups, and where the numbers of their collectives begin. */
typedef struct groups {
  const char **names;
  int32_t *first, count;
} groups;

static int32_t group_of (groups *g, const op *o) {
  const char *name = o->group ? o->group : "";
  int32_t i = 0;
  while (i < g->count && strcmp (g->names[i], name) != 0)
    i++;
  if (i == g->count)
    g->names[g->count++] = name;
  return i;
}

/* Numbers them group by group; many: how many the rank has of each so far. */
static void number_ops (replay_state *s, groups *g, int32_t *many) {
  const trace *t = s->rewritten->trace;
  for (int32_t k = 0; k < t->n_ops; k++) {
    s->meeting_of[k] = -1;
    if (t->ops[k].collective == COLLECTIVE_none)
      continue;
    int32_t group = group_of (g, &t->ops[k]);
    s->meeting_of[k] = g->first[group] + many[group]++;
  }
}

static int32_t count_ops (const replay_team *t) {
  int32_t most = 0;
  for (int32_t i = 0; i < t->n; i++)
    for (int32_t k = 0; k < t->ranks[i].rewritten->trace->n_ops; k++)
      most += t->ranks[i].rewritten->trace->ops[k].collective != COLLECTIVE_none;
  return most;
}

/* Ranks that have a group have as many of it, so the first that does says how many. Numbers are
   right the second time, when the groups have their places. */
static void place_groups (replay_team *t, groups *g, int32_t *many) {
  int32_t n = 0;
  for (int32_t i = 0; i < t->n; i++) {
    int32_t had = g->count;
    number_ops (&t->ranks[i], g, many);
    for (int32_t k = had; k < g->count; k++) {
      g->first[k] = n;
      n += many[k];
    }
    memset (many, 0, (size_t)g->count * sizeof *many);
  }
}

/* ---- their order ---- */

static bool meets (const replay_team *t, int32_t m) {
  int32_t n = 0;
  for (int32_t i = 0; i < t->n; i++)
    n += t->ranks[i].meetings[m].is;
  return n > 1;
}

/* The next op at or behind k that meets others. */
static int32_t next_meeting (const replay_team *t, const replay_state *s, int32_t k) {
  while (k < s->rewritten->trace->n_ops && (s->meeting_of[k] < 0 || !meets (t, s->meeting_of[k])))
    k++;
  return k;
}

static bool all_are_at (const replay_team *t, const int32_t *at, int32_t m) {
  for (int32_t i = 0; i < t->n; i++) {
    const replay_state *s = &t->ranks[i];
    if (s->meetings[m].is && (at[i] == s->rewritten->trace->n_ops || s->meeting_of[at[i]] != m))
      return false;
  }
  return true;
}

static bool orders_agree (const replay_team *t, error *err) {
  int32_t at[HOST_MOST_CARDS];
  bool moved = true;
  for (int32_t i = 0; i < t->n; i++)
    at[i] = next_meeting (t, &t->ranks[i], 0);
  while (moved) {
    moved = false;
    for (int32_t i = 0; i < t->n; i++) {
      if (at[i] == t->ranks[i].rewritten->trace->n_ops)
        continue;
      int32_t m = t->ranks[i].meeting_of[at[i]];
      if (!all_are_at (t, at, m))
        continue;
      for (int32_t k = 0; k < t->n; k++)
        if (t->ranks[k].meetings[m].is)
          at[k] = next_meeting (t, &t->ranks[k], at[k] + 1);
      moved = true;
    }
  }
  for (int32_t i = 0; i < t->n; i++)
    if (at[i] < t->ranks[i].rewritten->trace->n_ops)
      return error_set (err, ERR_usage,
                        "rank %d comes to its collective at op %d before others of its group do: a "
                        "replay issues them in the order of each list",
                        i, at[i]);
  return true;
}

bool replay_find_meetings (replay_team *t, arena *a, error *err) {
  int32_t most = count_ops (t);
  if (t->n == 1 || most == 0)
    return true;
  groups g = { .names = NEW (a, most, const char *, err), .first = NEW (a, most, int32_t, err) };
  int32_t *many = NEW (a, most, int32_t, err);
  bool ok = g.names && g.first && many;
  for (int32_t i = 0; ok && i < t->n; i++)
    ok = (t->ranks[i].meeting_of = NEW (a, t->ranks[i].rewritten->trace->n_ops, int32_t, err));
  if (!ok)
    return false;
  place_groups (t, &g, many);
  place_groups (t, &g, many);
  for (int32_t i = 0; i < t->n; i++) {
    replay_state *s = &t->ranks[i];
    s->n_meetings = most;
    if (!(s->meetings = NEW (a, most, replay_meeting, err)))
      return false;
    for (int32_t k = 0; k < s->rewritten->trace->n_ops; k++)
      if (s->meeting_of[k] >= 0)
        s->meetings[s->meeting_of[k]].is = true;
  }
  return orders_agree (t, err);
}

/* ---- arrivals ---- */

bool replay_make_arrivals (replay_state *s, error *err) {
  for (int32_t m = 0; m < s->n_meetings; m++)
    for (int odd = 0; s->meetings[m].is && odd < 2; odd++)
      if (!driver_ok (
              &s->driver,
              s->driver.event_create (&s->meetings[m].arrived[odd], CU_EVENT_DISABLE_TIMING),
              "cuEventCreate", err))
        return false;
  return true;
}

void replay_drop_arrivals (const replay_state *s) {
  for (int32_t m = 0; m < s->n_meetings; m++)
    for (int odd = 0; odd < 2; odd++)
      if (s->meetings[m].arrived[odd] != NULL)
        s->driver.event_destroy (s->meetings[m].arrived[odd]);
}

/* All ranks that have it have recorded this step's arrival. */
static bool all_came (const replay_team *t, int32_t m, int64_t times) {
  for (int32_t i = 0; i < t->n; i++)
    if (t->ranks[i].meetings[m].is && t->ranks[i].meetings[m].came < times)
      return false;
  return true;
}

bool replay_arrive (replay_state *s, CUstream on, int32_t op, int32_t step, error *err) {
  replay_team *t = s->team;
  int32_t m = s->meeting_of[op];
  assert (m >= 0 && s->meetings[m].is);
  int64_t times = s->base + step + 1;
  if (!driver_ok (&s->driver, s->driver.event_record (s->meetings[m].arrived[step % 2], on),
                  "cuEventRecord", err))
    return false;
  pthread_mutex_lock (&t->lock);
  s->meetings[m].came = times;
  pthread_cond_broadcast (&t->all);
  while (!t->failed && !all_came (t, m, times))
    pthread_cond_wait (&t->all, &t->lock);
  s->gave_up = t->failed;
  pthread_mutex_unlock (&t->lock);
  if (s->gave_up)
    return error_set (err, ERR_device, "another rank failed");
  for (int32_t i = 0; i < t->n; i++) {
    const replay_meeting *other = &t->ranks[i].meetings[m];
    if (i != s->rank && other->is &&
        !driver_ok (&s->driver, s->driver.stream_wait_event (on, other->arrived[step % 2], 0),
                    "cuStreamWaitEvent", err))
      return false;
  }
  return true;
}
