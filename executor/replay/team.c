/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ranks that run together, each in a thread: they meet before and behind every step. */
#include <assert.h>

#include "executor/replay/run.h"
#include "executor/replay/steady.h"

void replay_team_init (replay_team *t, replay_state *ranks, int32_t n) {
  assert (n > 0 && n <= HOST_MOST_CARDS);
  *t = (replay_team){ .ranks = ranks, .n = n };
  pthread_mutex_init (&t->lock, NULL);
  pthread_cond_init (&t->all, NULL);
}

void replay_team_end (replay_team *t) {
  pthread_cond_destroy (&t->all);
  pthread_mutex_destroy (&t->lock);
}

bool replay_meet (replay_state *s, error *err) {
  replay_team *t = s->team;
  if (t->n == 1)
    return true;
  pthread_mutex_lock (&t->lock);
  int64_t round = t->round;
  if (++t->there == t->n) {
    t->there = 0;
    t->round++;
    pthread_cond_broadcast (&t->all);
  }
  while (t->round == round && !t->failed)
    pthread_cond_wait (&t->all, &t->lock);
  s->gave_up = t->failed;
  pthread_mutex_unlock (&t->lock);
  return !s->gave_up || error_set (err, ERR_device, "another rank failed");
}

/* Nobody waits for the others any more. */
static void fail (replay_team *t) {
  pthread_mutex_lock (&t->lock);
  t->failed = true;
  pthread_cond_broadcast (&t->all);
  pthread_mutex_unlock (&t->lock);
}

typedef struct rank_thread {
  replay_state *state;
  bool laden, good;
  error err;
  pthread_t id;
} rank_thread;

static void *run_rank (void *of) {
  rank_thread *r = of;
  replay_state *s = r->state;
  r->good = driver_ok (&s->driver, s->driver.ctx_set_current (s->driver.context), "cuCtxSetCurrent",
                       &r->err) &&
            replay_steps (s, r->laden, &r->err);
  if (!r->good)
    fail (s->team);
  return NULL;
}

/* The ranks that have no thread are as if they had failed, so that those that have one end. */
static int32_t start_threads (replay_team *t, bool laden, rank_thread *of) {
  int32_t n = 0;
  for (; n < t->n; n++) {
    of[n] = (rank_thread){ .state = &t->ranks[n], .laden = laden };
    if (pthread_create (&of[n].id, NULL, run_rank, &of[n]) != 0)
      break;
  }
  if (n < t->n)
    fail (t);
  return n;
}

bool replay_together (replay_team *t, bool laden, error *err) {
  if (t->n == 1)
    return replay_steps (t->ranks, laden, err);
  rank_thread of[HOST_MOST_CARDS];
  int32_t n = start_threads (t, laden, of);
  for (int32_t i = 0; i < n; i++)
    pthread_join (of[i].id, NULL);
  for (int32_t i = 0; i < n; i++)
    if (!of[i].good && !t->ranks[i].gave_up)
      return error_set (err, of[i].err.code, "rank %d: %s", i, of[i].err.text);
  return n == t->n || error_memory (err);
}

int64_t replay_steady (const replay_team *t, int32_t steps, bool *settled) {
  assert (steps > 0 && t->n > 0 && t->n <= HOST_MOST_CARDS);
  steady_input in[HOST_MOST_CARDS];
  for (int32_t i = 0; i < t->n; i++) {
    const replay_state *s = &t->ranks[i];
    in[i] = (steady_input){ s->times, s->starts, steps, 2 * s->walk.n_items };
  }
  return steady_step_ns (in, t->n, settled);
}
