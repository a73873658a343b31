/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "server/store/store.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "server/store/inner.h"

/* A later version adds a row here; what is there already stays as it is. */
static const char *const schema[] = {
  "create table if not exists trace (id text primary key, info text not null,"
  " fingerprint text not null, created_ms bigint not null)",
  "create table if not exists alias (body text primary key, trace text not null)",
  "create table if not exists owner (object text not null, owner text not null,"
  " primary key (object, owner))",
  "create table if not exists naming (owner text not null, fingerprint text not null,"
  " trace text not null, at_ms bigint not null, primary key (owner, fingerprint, trace))",
  /* Once a trace had one name, whoever gave it: it is each owner's now. */
  "insert into naming (owner, fingerprint, trace, at_ms)"
  " select o.owner, t.fingerprint, t.id, t.created_ms from trace t, owner o"
  " where o.object = t.id and t.fingerprint <> t.id on conflict do nothing",
  "update trace set fingerprint = id where fingerprint <> id",
  "create table if not exists job (id text primary key, kind text not null, request text not null,"
  " state text not null, attempt bigint not null, tries bigint not null, worker text not null,"
  " lease_ms bigint not null, outcome text, problem text, created_ms bigint not null,"
  " started_ms bigint not null, finished_ms bigint not null, events bigint not null)",
  "create index if not exists job_ready on job (created_ms, id) where state = 'queued'",
  "create table if not exists event (job text not null, seq bigint not null, type text not null,"
  " data text not null, primary key (job, seq))",
  "create table if not exists promise (owner text not null, name text not null, job text not null,"
  " created_ms bigint not null, primary key (owner, name))",
  "create table if not exists seen (job text primary key, at_ms bigint not null)",
  /* When a job of theirs was last begun: owners take turns. */
  "create table if not exists turn (owner text primary key, at_ms bigint not null)",
  /* A long job goes behind shorter ones of its owner that came soon after it. */
  "create table if not exists due (job text primary key, at_ms bigint not null)",
  "create table if not exists placed (pod text primary key, node text not null,"
  " bytes bigint not null, at_ms bigint not null)",
  "create table if not exists origin (job text primary key, trace text not null)",
  "create table if not exists blob (digest text not null, part bigint not null,"
  " data text not null, primary key (digest, part))",
};

const char *const job_state_names[JOB_STATES + 1] = {
#define STATE(name) #name,
#include "server/store/states.def"
#undef STATE
  NULL,
};

int64_t store_now_ms (void) {
  struct timespec t;
  clock_gettime (CLOCK_REALTIME, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

number_text store_number (int64_t n) {
  number_text out;
  snprintf (out.text, sizeof out.text, "%lld", (long long)n);
  return out;
}

int64_t store_int (const sql_rows *r, int row, int column) {
  assert (row >= 0 && column >= 0);
  const char *text = sql_cell (r, row, column);
  return text ? strtoll (text, NULL, 10) : 0;
}

bool store_is_shared (const store *s) {
  return s->driver->shared;
}

bool store_inside (store *s, const char *text, const char *const *values, int n, arena *a,
                   sql_rows *out, error *err) {
  return s->driver->run (s->db, text, values, n, a, out, err);
}

meter *store_meter (const store *s) {
  return s->durations;
}

/* Time with the statement, and of waiting for the connection. */
static void measure (store *s, const char *op, int64_t from_ns) {
  meter_observe (s->durations, (meter_labels){ { op } }, monotonic_ns () - from_ns);
}

bool store_run (store *s, const char *text, const char *const *values, int n, arena *a,
                sql_rows *out, error *err) {
  assert (s && text && n >= 0);
  int64_t from_ns = monotonic_ns ();
  pthread_mutex_lock (&s->lock);
  bool ok = store_inside (s, text, values, n, a, out, err);
  pthread_mutex_unlock (&s->lock);
  measure (s, "write", from_ns);
  return ok;
}

/* Any reader that is free, or the first that will be. */
bool store_read (store *s, const char *text, const char *const *values, int n, arena *a,
                 sql_rows *out, error *err) {
  assert (text && n >= 0 && (values || n == 0));
  store_reader *r = NULL;
  int64_t from_ns = monotonic_ns ();
  for (int i = 0; i < READERS && !r; i++)
    if (pthread_mutex_trylock (&s->readers[i].lock) == 0)
      r = &s->readers[i];
  if (!r) {
    r = &s->readers[0];
    pthread_mutex_lock (&r->lock);
  }
  bool ok = s->driver->run (r->db, text, values, n, a, out, err);
  pthread_mutex_unlock (&r->lock);
  measure (s, "read", from_ns);
  return ok;
}

bool store_begin (store *s, error *err) {
  pthread_mutex_lock (&s->lock);
  s->began_ns = monotonic_ns ();
  if (store_inside (s, "begin", NULL, 0, NULL, NULL, err))
    return true;
  pthread_mutex_unlock (&s->lock);
  return false;
}

bool store_end (store *s, bool ok, error *err) {
  error second = { 0 };
  if (ok)
    ok = store_inside (s, "commit", NULL, 0, NULL, NULL, err);
  if (!ok && !store_inside (s, "rollback", NULL, 0, NULL, NULL, &second))
    error_set (err, second.code, "%s", second.text); /* the first report stays */
  measure (s, "transaction", s->began_ns);
  pthread_mutex_unlock (&s->lock);
  return ok;
}

/* Jobs that a daemon left behind when it died are nobody's: with one user of the database, all. */
static bool take_back (store *s, error *err) {
  return s->driver->shared || store_run (s,
                                         "update job set state = 'queued', lease_ms = 0,"
                                         " tries = tries - 1 where state = 'running'",
                                         NULL, 0, NULL, NULL, err);
}

/* It changes with the meaning of the tables; rows of an older one are moved forward by the
   statements above. */
enum { SCHEMA = 3 };

static bool take_version (store *s, error *err) {
  sql_rows rows;
  number_text ours = store_number (SCHEMA);
  arena *a = arena_new (0);
  bool ok = a || error_memory (err);
  ok = ok &&
       store_run (s,
                  "create table if not exists version (one bigint primary key,"
                  " number bigint not null)",
                  NULL, 0, NULL, NULL, err) &&
       store_run (s, "select number from version", NULL, 0, a, &rows, err);
  if (ok && rows.rows && store_int (&rows, 0, 0) > SCHEMA)
    ok = error_set (err, ERR_file,
                    "the store is of a newer ferry: it has version %lld, this one knows %d",
                    (long long)store_int (&rows, 0, 0), SCHEMA);
  ok = ok && STORE_RUN (s,
                        "insert into version (one, number) values (1, $1)"
                        " on conflict (one) do update set number = excluded.number",
                        NULL, NULL, err, ours.text);
  arena_free (a);
  return ok;
}

/* ---- news of other replicas ---- */

void store_tell (store *s) {
  error ignored = { 0 }; /* they also look by themselves, now and then */
  if (s->driver->told && !store_run (s, "notify ferry", NULL, 0, NULL, NULL, &ignored))
    return;
}

static void *watch (void *context) {
  enum { ONCE_MS = 250 };
  store *s = context;
  while (!atomic_load (&s->deaf))
    if (s->driver->told (s->ears, ONCE_MS))
      s->told (s->told_context);
  return NULL;
}

bool store_watch (store *s, store_told *told, void *context, error *err) {
  if (!s->driver->told)
    return true;
  s->told = told;
  s->told_context = context;
  s->ears = s->driver->open (s->where, err);
  if (!s->ears || !s->driver->run (s->ears, "listen ferry", NULL, 0, NULL, NULL, err))
    return false;
  if (pthread_create (&s->watching, NULL, watch, s) == 0)
    return true;
  s->driver->close (s->ears);
  s->ears = NULL;
  return error_set (err, ERR_internal, "no thread for what other replicas say");
}

void store_deafen (store *s) {
  if (!s->ears)
    return;
  atomic_store (&s->deaf, true);
  pthread_join (s->watching, NULL);
  s->driver->close (s->ears);
  s->ears = NULL;
}

/* ---- life ---- */

static bool open_readers (store *s, error *err) {
  for (int i = 0; i < READERS; i++)
    if (!(s->readers[i].db = s->driver->open (s->where, err)))
      return false;
  return true;
}

store *store_open (const char *where, const char *folder, error *err) {
  char path[256];
  bool postgres = strncmp (where, "postgres:", 9) == 0;
  if (!postgres && strcmp (where, "sqlite") != 0) {
    error_set (err, ERR_usage, "--store: `%s` is neither sqlite nor postgres:CONNECTION", where);
    return NULL;
  }
  store *s = calloc (1, sizeof *s);
  if (!s) {
    error_memory (err);
    return NULL;
  }
  pthread_mutex_init (&s->lock, NULL);
  for (int i = 0; i < READERS; i++)
    pthread_mutex_init (&s->readers[i].lock, NULL);
  snprintf (s->folder, sizeof s->folder, "%s", folder);
  snprintf (path, sizeof path, "%s/store.sqlite", folder);
  s->driver = postgres ? &sql_postgres : &sql_sqlite;
  s->where = strdup (postgres ? where + 9 : path);
  s->durations = meter_new ("op", true);
  bool ok = s->where && s->durations ? (s->db = s->driver->open (s->where, err)) != NULL
                                     : error_memory (err);
  ok = ok && take_version (s, err);
  for (size_t i = 0; ok && i < sizeof schema / sizeof *schema; i++)
    ok = store_run (s, schema[i], NULL, 0, NULL, NULL, err);
  if (ok && take_back (s, err) && open_readers (s, err))
    return s;
  store_close (s);
  return NULL;
}

void store_close (store *s) {
  if (!s)
    return;
  store_deafen (s);
  for (int i = 0; i < READERS; i++) {
    if (s->readers[i].db)
      s->driver->close (s->readers[i].db);
    pthread_mutex_destroy (&s->readers[i].lock);
  }
  if (s->db)
    s->driver->close (s->db);
  pthread_mutex_destroy (&s->lock);
  free (s->where);
  meter_free (s->durations);
  free (s);
}

/* ---- counts ---- */

bool store_count (store *s, store_counts *out, error *err) {
  sql_rows rows;
  *out = (store_counts){ 0 };
  arena *a = arena_new (0);
  bool ok = a || error_memory (err);
  ok = ok && store_read (s, "select state, count(*), min(created_ms) from job group by state", NULL,
                         0, a, &rows, err);
  for (int i = 0; ok && i < rows.rows; i++)
    for (int k = 0; k < JOB_STATES; k++)
      if (strcmp (sql_cell (&rows, i, 0), job_state_names[k]) == 0) {
        out->jobs[k] = store_int (&rows, i, 1);
        if (k == JOB_queued)
          out->oldest_queued_ms = store_int (&rows, i, 2);
      }
  arena_free (a);
  return ok;
}

bool store_count_kinds (store *s, arena *a, kind_count **out, int *n, error *err) {
  sql_rows rows;
  if (!store_read (s,
                   "select kind, state, count(*) from job group by kind, state"
                   " order by kind, state",
                   NULL, 0, a, &rows, err) ||
      !(*out = NEW (a, rows.rows, kind_count, err)))
    return false;
  for (*n = 0; *n < rows.rows; (*n)++)
    (*out)[*n] =
        (kind_count){ sql_cell (&rows, *n, 0), sql_cell (&rows, *n, 1), store_int (&rows, *n, 2) };
  return true;
}
