/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Jobs and their events.  Whoever writes for a running job names its attempt: who has lost it
   writes to no row. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/order.h"
#include "server/store/inner.h"

#define JOB_COLUMNS                                                                       \
  "j.id, j.kind, j.request, j.outcome, j.problem, j.state, j.attempt, j.tries, j.events," \
  " j.created_ms, j.started_ms, j.finished_ms"
#define HELD " where id = $1 and attempt = $2 and state = 'running'"

static job_row job_of (const sql_rows *r, int row) {
  job_row out = { .id = sql_cell (r, row, 0),
                  .kind = sql_cell (r, row, 1),
                  .request = sql_cell (r, row, 2),
                  .outcome = sql_cell (r, row, 3),
                  .problem = sql_cell (r, row, 4),
                  .attempt = store_int (r, row, 6),
                  .tries = store_int (r, row, 7),
                  .events = store_int (r, row, 8),
                  .created_ms = store_int (r, row, 9),
                  .started_ms = store_int (r, row, 10),
                  .finished_ms = store_int (r, row, 11) };
  for (int k = 0; k < JOB_STATES; k++)
    if (strcmp (sql_cell (r, row, 5), job_state_names[k]) == 0)
      out.state = (job_state)k;
  return out;
}

/* ---- in ---- */

/* Room for one more of this owner in the queue. Where there are several, each may have as many as
   are left: one alone gets half, and there is always some for one who comes later. */
static bool has_room (store *s, queue_limit limit, const char *owner, arena *a, bool *room,
                      error *err) {
  sql_rows all, own;
  if (!store_inside (s, "select count(*) from job where state = 'queued'", NULL, 0, a, &all, err) ||
      !STORE_INSIDE (s,
                     "select count(*) from job j, owner o where j.state = 'queued'"
                     " and o.object = j.id and o.owner = $1",
                     a, &own, err, owner))
    return false;
  int64_t left = limit.most - store_int (&all, 0, 0);
  *room = left > 0 && (!limit.shares || store_int (&own, 0, 0) < left);
  return true;
}

static bool submit (store *s, const job_row *job, const char *owner, queue_limit limit, arena *a,
                    submit_answer *answer, error *err) {
  sql_rows there, again = { 0 };
  number_text now = store_number (store_now_ms ());
  bool room = false;
  if (!STORE_INSIDE (s, "select state from job where id = $1", a, &there, err, job->id) ||
      !has_room (s, limit, owner, a, &room, err))
    return false;
  bool ended = there.rows && (strcmp (sql_cell (&there, 0, 0), "failed") == 0 ||
                              strcmp (sql_cell (&there, 0, 0), "cancelled") == 0);
  *answer = !room && (!there.rows || ended) ? SUBMIT_FULL
            : !there.rows                   ? SUBMIT_NEW
            : ended                         ? SUBMIT_AGAIN
                                            : SUBMIT_JOINED;
  if (*answer == SUBMIT_FULL)
    return true;
  bool ok = true;
  if (*answer == SUBMIT_NEW)
    ok =
        STORE_INSIDE (s,
                      "insert into job (id, kind, request, state, attempt, tries, worker, lease_ms,"
                      " created_ms, started_ms, finished_ms, events)"
                      " values ($1, $2, $3, 'queued', 0, 0, '', 0, $4, 0, 0, 0)"
                      " on conflict do nothing",
                      NULL, NULL, err, job->id, job->kind, job->request, now.text);
  else if (*answer == SUBMIT_AGAIN)
    ok = STORE_INSIDE (s,
                       "update job set state = 'queued', tries = 0, problem = null, outcome = null,"
                       " created_ms = $2,"
                       " started_ms = 0, finished_ms = 0"
                       " where id = $1 and state in ('failed', 'cancelled') returning id",
                       a, &again, err, job->id, now.text);
  if (ok && *answer != SUBMIT_JOINED)
    ok = STORE_INSIDE (s,
                       "insert into due (job, at_ms) values ($1, $2)"
                       " on conflict (job) do update set at_ms = excluded.at_ms",
                       NULL, NULL, err, job->id,
                       store_number (store_now_ms () + job->length_ms).text);
  if (ok && job->trace && *answer != SUBMIT_JOINED)
    ok = STORE_INSIDE (s,
                       "insert into origin (job, trace) values ($1, substr ($2, 1, 32))"
                       " on conflict (job) do update set trace = excluded.trace",
                       NULL, NULL, err, job->id, job->trace);
  return ok && STORE_INSIDE (s,
                             "insert into owner (object, owner) values ($1, $2)"
                             " on conflict do nothing",
                             NULL, NULL, err, job->id, owner);
}

bool store_submit (store *s, const job_row *job, const char *owner, queue_limit limit,
                   submit_answer *answer, error *err) {
  assert (s && job);
  arena *a = arena_new (0);
  bool ok = a ? store_begin (s, err) : error_memory (err);
  if (ok)
    ok = store_end (s, submit (s, job, owner, limit, a, answer, err), err);
  if (ok && *answer != SUBMIT_JOINED)
    store_tell (s);
  arena_free (a);
  return ok;
}

bool store_promise (store *s, const char *owner, const char *name, const char *job, bool *kept,
                    error *err) {
  sql_rows rows = { 0 };
  number_text now = store_number (store_now_ms ());
  arena *a = arena_new (0);
  bool ok = a || error_memory (err);
  ok = ok &&
       STORE_RUN (s,
                  "insert into promise (owner, name, job, created_ms)"
                  " values ($1, $2, $3, $4) on conflict do nothing",
                  NULL, NULL, err, owner, name, job, now.text) &&
       STORE_READ (s, "select job from promise where owner = $1 and name = $2", a, &rows, err,
                   owner, name);
  *kept = ok && rows.rows && strcmp (sql_cell (&rows, 0, 0), job) == 0;
  arena_free (a);
  return ok;
}

/* ---- at work ---- */

#define DUE "coalesce ((select d.at_ms from due d where d.job = job.id), created_ms)"
#define FIRST_OWNER "(select min (o.owner) from owner o where o.object = job.id)"

/* The turn that it took; a replica that claims at the same moment may take it twice. */
static bool take_turn (store *s, const char *job, const char *now_ms, error *err) {
  return STORE_RUN (s,
                    "insert into turn (owner, at_ms) select min (o.owner), cast ($2 as bigint)"
                    " from owner o where o.object = $1 having count(*) > 0"
                    " on conflict (owner) do update set at_ms = excluded.at_ms",
                    NULL, NULL, err, job, now_ms);
}

bool store_claim (store *s, const char *worker, int64_t lease_ms, const char *only, arena *a,
                  job_row *out, bool *found, error *err) {
  assert (s && worker && out && found);
  sql_rows rows;
  char text[1536];
  number_text now = store_number (store_now_ms ()), lease = store_number (lease_ms);
  snprintf (text, sizeof text,
            "update job as j set state = 'running', attempt = attempt + 1, tries = tries + 1,"
            " worker = $1, lease_ms = %s + cast($2 as bigint), started_ms = $3"
            " where id = (select id from job"
            " where state = 'queued' and ($4 = '' or kind = $4) order by coalesce ((select t.at_ms"
            " from turn t where t.owner = " FIRST_OWNER "), 0), case kind when 'imports' then 0"
            " else 1 end, " DUE ", id limit 1%s) and state = 'queued'"
            " returning id, kind, request, outcome, problem, state, attempt, tries, events,"
            " created_ms, started_ms, finished_ms",
            s->driver->now_ms, s->driver->claims);
  if (!STORE_RUN (s, text, a, &rows, err, worker, lease.text, now.text, only ? only : ""))
    return false;
  *found = rows.rows > 0;
  if (!*found)
    return true;
  *out = job_of (&rows, 0);
  error ignored = { 0 }; /* it is claimed: what follows is of less weight */
  if (!take_turn (s, out->id, now.text, &ignored))
    ignored = (error){ 0 };
  bool known =
      STORE_READ (s, "select trace from origin where job = $1", a, &rows, &ignored, out->id);
  out->trace = known && rows.rows ? sql_cell (&rows, 0, 0) : NULL;
  return true;
}

/* A statement that changes the row of a held job and returns it. */
static bool held_run (store *s, const char *text, const char *const *values, int n, bool *held,
                      error *err) {
  sql_rows rows;
  arena *a = arena_new (0);
  bool ok = a ? store_run (s, text, values, n, a, &rows, err) : error_memory (err);
  *held = ok && rows.rows > 0;
  arena_free (a);
  return ok;
}

static bool held_change (store *s, const char *text, const char *const *values, int n, bool *held,
                         error *err) {
  bool ok = held_run (s, text, values, n, held, err);
  if (*held)
    store_tell (s);
  return ok;
}

bool store_beat (store *s, const job_row *job, int64_t lease_ms, bool *held, error *err) {
  assert (s && job && held);
  char text[400];
  number_text attempt = store_number (job->attempt), lease = store_number (lease_ms);
  snprintf (text, sizeof text,
            "update job set lease_ms = %s + cast($3 as bigint)" HELD " returning id",
            s->driver->now_ms);
  return held_run (s, text, (const char *[]){ job->id, attempt.text, lease.text }, 3, held, err);
}

bool store_event (store *s, const job_row *job, const char *type, const char *data, bool *held,
                  error *err) {
  sql_rows rows = { 0 };
  number_text attempt = store_number (job->attempt);
  arena *a = arena_new (0);
  bool ok = a ? store_begin (s, err) : error_memory (err);
  if (ok) {
    ok = STORE_INSIDE (s, "update job set events = events + 1" HELD " returning events", a, &rows,
                       err, job->id, attempt.text);
    *held = ok && rows.rows > 0;
    if (*held)
      ok = STORE_INSIDE (s, "insert into event (job, seq, type, data) values ($1, $2, $3, $4)",
                         NULL, NULL, err, job->id, sql_cell (&rows, 0, 0), type, data);
    ok = store_end (s, ok, err);
    if (*held)
      store_tell (s);
  }
  arena_free (a);
  return ok;
}

bool store_finish (store *s, const job_row *job, job_state state, const char *outcome,
                   const char *problem, bool *held, error *err) {
  assert (s && job && state < JOB_STATES);
  number_text attempt = store_number (job->attempt), now = store_number (store_now_ms ());
  return held_change (
      s,
      "update job set state = $3, outcome = $4, problem = $5, finished_ms = $6, lease_ms = 0" HELD
      " returning id",
      (const char *[]){ job->id, attempt.text, job_state_names[state], outcome, problem, now.text },
      6, held, err);
}

bool store_requeue (store *s, const job_row *job, bool blamed, error *err) {
  number_text attempt = store_number (job->attempt), less = store_number (blamed ? 0 : 1);
  bool held;
  return held_change (s,
                      "update job set state = 'queued', lease_ms = 0,"
                      " tries = tries - cast($3 as bigint)" HELD " returning id",
                      (const char *[]){ job->id, attempt.text, less.text }, 3, &held, err);
}

bool store_cancel (store *s, const char *id, const char *owner, bool *stopped, error *err) {
  sql_rows rows = { 0 };
  number_text now = store_number (store_now_ms ());
  arena *a = arena_new (0);
  bool ok = a ? store_begin (s, err) : error_memory (err);
  if (ok) {
    /* One that has ended meanwhile stays its owner's, who may ask what it has found. */
    ok = STORE_INSIDE (s,
                       "delete from owner where object = $1 and owner = $2 and exists"
                       " (select 1 from job where id = $1 and state in ('queued', 'running'))",
                       NULL, NULL, err, id, owner) &&
         STORE_INSIDE (s,
                       "update job set state = 'cancelled', finished_ms = $2, lease_ms = 0"
                       " where id = $1 and state in ('queued', 'running')"
                       " and not exists (select 1 from owner where object = $1) returning id",
                       a, &rows, err, id, now.text);
    /* A job that nobody owns any more stays to be asked for by whoever stopped it. */
    if (ok && rows.rows)
      ok = STORE_INSIDE (s, "insert into owner (object, owner) values ($1, $2)", NULL, NULL, err,
                         id, owner);
    ok = store_end (s, ok, err);
    store_tell (s);
  }
  *stopped = ok && rows.rows > 0;
  arena_free (a);
  return ok;
}

bool store_reap (store *s, int64_t most_tries, error *err) {
  assert (most_tries > 0);
  char lost[400], again[200];
  number_text now = store_number (store_now_ms ()), most = store_number (most_tries);
  snprintf (lost, sizeof lost,
            "update job set state = 'failed', lease_ms = 0, finished_ms = $1,"
            " problem = '{\"detail\":\"its worker was lost too often\","
            "\"type\":\"/problems/worker-lost\"}'"
            " where state = 'running' and lease_ms < %s and tries >= cast($2 as bigint)",
            s->driver->now_ms);
  snprintf (again, sizeof again,
            "update job set state = 'queued', lease_ms = 0"
            " where state = 'running' and lease_ms < %s",
            s->driver->now_ms);
  return STORE_RUN (s, lost, NULL, NULL, err, now.text, most.text) &&
         store_run (s, again, NULL, 0, NULL, NULL, err);
}

/* ---- out ---- */

bool store_find_job (store *s, const char *id, const char *owner, arena *a, job_row *out,
                     bool *found, error *err) {
  sql_rows rows;
  if (!STORE_READ (s,
                   "select " JOB_COLUMNS " from job j where j.id = $1 and ($2 = '' or exists"
                   " (select 1 from owner o where o.object = j.id and o.owner = $2))",
                   a, &rows, err, id, owner ? owner : ""))
    return false;
  *found = rows.rows > 0;
  if (*found)
    *out = job_of (&rows, 0);
  return true;
}

bool store_list_jobs (store *s, const store_page *page, arena *a, job_row **out, int *count,
                      error *err) {
  sql_rows rows;
  number_text most = store_number (page->limit);
  if (!STORE_READ (
          s,
          "select " JOB_COLUMNS " from job j, owner o where o.object = j.id and o.owner = $1"
          " and ($2 = '' or j.kind = $2) and j.id > $3 order by j.id"
          " limit cast($4 as bigint)",
          a, &rows, err, page->owner, page->only ? page->only : "", page->after, most.text) ||
      !(*out = NEW (a, rows.rows, job_row, err)))
    return false;
  for (*count = 0; *count < rows.rows; (*count)++)
    (*out)[*count] = job_of (&rows, *count);
  return true;
}

bool store_events (store *s, const char *id, int64_t after, arena *a, event_row **out, int *count,
                   error *err) {
  assert (after >= 0);
  sql_rows rows;
  number_text from = store_number (after), most = store_number (STORE_EVENTS);
  if (!STORE_READ (s,
                   "select seq, type, data from event where job = $1 and seq > cast($2 as bigint)"
                   " order by seq limit cast($3 as bigint)",
                   a, &rows, err, id, from.text, most.text) ||
      !(*out = NEW (a, rows.rows, event_row, err)))
    return false;
  for (*count = 0; *count < rows.rows; (*count)++)
    (*out)[*count] = (event_row){ store_int (&rows, *count, 0), sql_cell (&rows, *count, 1),
                                  sql_cell (&rows, *count, 2) };
  return true;
}

/* Each other owner has as many go first as its own owner has before it, and one more if their turn
   is earlier. */
static int64_t before_in_turn (const sql_rows *r, int64_t rank, int64_t own_ms) {
  int64_t sum = rank;
  for (int i = 0; i < r->rows; i++)
    sum += min_of (store_int (r, i, 0), rank + (store_int (r, i, 1) < own_ms));
  return sum;
}

bool store_position (store *s, const job_row *job, int64_t *out, error *err) {
  sql_rows own, others;
  arena *a = arena_new (0);
  bool ok = a || error_memory (err);
  *out = 0;
  ok =
      ok &&
      STORE_READ (s,
                  "select (select count(*) from job where state = 'queued' and (" DUE " < m.due"
                  " or (" DUE " = m.due and id < $1)) and " FIRST_OWNER
                  " = m.owner), coalesce ((select at_ms from turn t where t.owner ="
                  " m.owner), 0), m.owner from (select min (o.owner) as owner, min (" DUE ") as due"
                  " from owner o, job where o.object = $1 and job.id = $1) m",
                  a, &own, err, job->id) &&
      own.rows && sql_cell (&own, 0, 2) &&
      STORE_READ (s,
                  "select count(*), coalesce ((select t.at_ms from turn t where t.owner = q.owner),"
                  " 0) from (select " FIRST_OWNER " as owner from job where state = 'queued') q"
                  " where q.owner <> $1 group by q.owner",
                  a, &others, err, sql_cell (&own, 0, 2));
  if (ok)
    *out = before_in_turn (&others, store_int (&own, 0, 0), store_int (&own, 0, 1));
  arena_free (a);
  return ok;
}
