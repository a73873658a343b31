/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The contract of the store, on each database: SQLite always, PostgreSQL where FERRY_POSTGRES is a
   connection with schemas t0, t1, ... (tests/service_postgres.sh makes them). */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/coding.h"
#include "base/file.h"
#include "server/service/folder.h"
#include "server/store/sql.h"
#include "server/store/store.h"
#include "tests/suite.h"

enum { CLAIMERS = 8, JOBS = 40 };

static const char digest[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
static char folder[64], where[512];
static arena *a;
static store *s;
static error err;

static void open_again (void) {
  s = store_open (where, folder, &err);
  ck_assert_msg (s, "%s", err.text);
}

/* _i: 0 SQLite; above it, PostgreSQL in a schema of its own. */
static void begin (int database, int number) {
  char path[96];
  snprintf (folder, sizeof folder, "/tmp/ferry-store-XXXXXX");
  ck_assert (mkdtemp (folder));
  snprintf (path, sizeof path, "%s/blobs", folder);
  ck_assert (mkdir (path, 0700) == 0);
  snprintf (where, sizeof where, "sqlite");
  if (database)
    snprintf (where, sizeof where, "postgres:%s options='-csearch_path=t%d'",
              getenv ("FERRY_POSTGRES"), number);
  a = arena_new (0);
  open_again ();
}

static void end (void) {
  store_close (s);
  arena_free (a);
  folder_remove (folder);
}

static job_row job_named (const char *id) {
  return (job_row){ .id = id, .kind = "schedules", .request = "{}" };
}

static submit_answer submit_job (job_row j, const char *owner, queue_limit limit) {
  submit_answer answer;
  ck_assert_msg (store_submit (s, &j, owner, limit, &answer, &err), "%s", err.text);
  return answer;
}

static submit_answer submit (const char *id, const char *owner) {
  return submit_job (job_named (id), owner, (queue_limit){ 1000, false });
}

static bool claim (job_row *out) {
  bool found = false;
  ck_assert_msg (store_claim (s, "w", 60000, NULL, a, out, &found, &err), "%s", err.text);
  return found;
}

static job_row find (const char *id) {
  job_row j;
  bool found = false;
  ck_assert_msg (store_find_job (s, id, NULL, a, &j, &found, &err), "%s", err.text);
  ck_assert (found);
  return j;
}

static bool finish (const job_row *j, job_state state) {
  bool held = false;
  ck_assert_msg (store_finish (s, j, state, "{}", NULL, &held, &err), "%s", err.text);
  return held;
}

/* For each database, with a store in schema `number`, which no other claim has. */
#define STORE_CLAIM(name, number)                           \
  static void name##_there (int _i);                        \
  CLAIM_EACH (name, 0, getenv ("FERRY_POSTGRES") ? 2 : 1) { \
    begin (_i, number);                                     \
    name##_there (_i);                                      \
    end ();                                                 \
  }                                                         \
  static void name##_there (int _i SUITE_UNUSED)

STORE_CLAIM (the_same_id_is_joined_and_asked_again_after_a_failure, 0) {
  job_row j;
  ck_assert_int_eq (submit ("a", "ada"), SUBMIT_NEW);
  ck_assert_int_eq (submit ("a", "bob"), SUBMIT_JOINED);
  ck_assert (claim (&j) && !claim (&j));
  j = find ("a");
  ck_assert (finish (&j, JOB_failed));
  ck_assert_int_eq (submit ("a", "ada"), SUBMIT_AGAIN);
  ck_assert_int_eq (find ("a").state, JOB_queued);
  ck_assert (claim (&j));
  ck_assert_int_eq (j.attempt, 2);
  ck_assert_int_eq (j.tries, 1);
  ck_assert (finish (&j, JOB_done));
  ck_assert_int_eq (submit ("a", "ada"), SUBMIT_JOINED);
}

STORE_CLAIM (a_full_queue_takes_no_more_and_still_joins, 1) {
  const queue_limit one = { 1, false };
  submit ("a", "ada");
  ck_assert_int_eq (submit_job (job_named ("b"), "ada", one), SUBMIT_FULL);
  ck_assert_int_eq (submit_job (job_named ("a"), "ada", one), SUBMIT_JOINED);
}

STORE_CLAIM (owners_take_turns_and_one_alone_gets_half_of_the_queue, 17) {
  static const char *const want[] = { "a1", "b1", "c1", "a2", "b2", "a3" };
  job_row j;
  int64_t place = 0;
  for (int i = 0; i < 3; i++)
    submit ((const char *[]){ "a1", "a2", "a3" }[i], "ada");
  submit ("b1", "bob");
  submit ("b2", "bob");
  submit ("c1", "cyd");
  ck_assert (claim (&j)); /* the first of all: nobody has had a turn */
  ck_assert_str_eq (j.id, want[0]);
  for (int i = 1; i < 6; i++) {
    usleep (2000); /* turns are told apart by milliseconds */
    j = find (want[i]);
    ck_assert (store_position (s, &j, &place, &err));
    ck_assert_int_le (place, i);
    ck_assert (claim (&j));
    ck_assert (i > 2 || strcmp (j.id, "a2") != 0);
    if (i == 5)
      ck_assert_str_eq (j.id, "a3");
  }
  for (int i = 0; i < 6; i++) {
    char id[] = { 'q', (char)('0' + i), 0 };
    submit_answer answer =
        submit_job (job_named (id), i < 4 ? "ada" : "bob", (queue_limit){ 6, true });
    ck_assert_int_eq (answer, i == 3 ? SUBMIT_FULL : SUBMIT_NEW); /* bob still finds room */
  }
}

typedef struct claimer {
  store *own;
  int n;
  char ids[JOBS][65];
} claimer;

static void *claim_all (void *context) {
  claimer *c = context;
  arena *mine = arena_new (0);
  error e = { 0 };
  job_row j;
  for (bool found = true; found && c->n < JOBS;)
    if (!store_claim (c->own, "w", 60000, NULL, mine, &j, &found, &e))
      found = false;
    else if (found)
      snprintf (c->ids[c->n++], 65, "%s", j.id);
  arena_free (mine);
  return NULL;
}

/* SQLite has one user, with threads; PostgreSQL as many connections as there are claimers. */
STORE_CLAIM (eight_claimers_claim_each_job_once, 2) {
  static claimer c[CLAIMERS];
  pthread_t t[CLAIMERS];
  int seen[JOBS] = { 0 };
  char id[65];
  for (int i = 0; i < JOBS; i++) {
    snprintf (id, sizeof id, "%d", i);
    submit (id, "ada");
  }
  for (int i = 0; i < CLAIMERS; i++) {
    c[i].own = _i ? store_open (where, folder, &err) : s;
    ck_assert (c[i].own && pthread_create (&t[i], NULL, claim_all, &c[i]) == 0);
  }
  for (int i = 0; i < CLAIMERS; i++) {
    pthread_join (t[i], NULL);
    for (int k = 0; k < c[i].n; k++)
      seen[strtol (c[i].ids[k], NULL, 10)]++;
    if (_i)
      store_close (c[i].own);
  }
  for (int i = 0; i < JOBS; i++)
    ck_assert_int_eq (seen[i], 1);
}

STORE_CLAIM (a_stale_attempt_writes_nothing, 3) {
  job_row old, now;
  bool held = true;
  submit ("a", "ada");
  ck_assert (claim (&old) && store_requeue (s, &old, true, &err) && claim (&now));
  ck_assert_int_eq (now.attempt, old.attempt + 1);
  ck_assert (!finish (&old, JOB_done));
  ck_assert (store_event (s, &old, "incumbent", "{}", &held, &err) && !held);
  ck_assert (store_beat (s, &old, 1000, &held, &err) && !held);
  ck_assert_int_eq (find ("a").state, JOB_running);
  ck_assert_int_eq (find ("a").events, 0);
  ck_assert (finish (&now, JOB_done));
}

STORE_CLAIM (a_lease_that_ran_out_is_queued_again_until_it_was_tried_often_enough, 4) {
  job_row j;
  bool found = false;
  submit ("a", "ada");
  for (int tried = 1; tried <= 3; tried++) {
    ck_assert (store_claim (s, "w", -1000, NULL, a, &j, &found, &err) && found);
    ck_assert_int_eq (j.tries, tried);
    ck_assert_msg (store_reap (s, 3, &err), "%s", err.text);
    ck_assert_int_eq (find ("a").state, tried < 3 ? JOB_queued : JOB_failed);
  }
  ck_assert (find ("a").problem);
}

STORE_CLAIM (a_job_is_cancelled_in_each_state_when_no_owner_is_left, 5) {
  job_row j;
  bool stopped = true, found = false;
  submit ("a", "ada");
  submit ("a", "bob");
  ck_assert (store_cancel (s, "a", "ada", &stopped, &err) && !stopped);
  ck_assert_int_eq (find ("a").state, JOB_queued);
  ck_assert (store_cancel (s, "a", "bob", &stopped, &err) && stopped);
  ck_assert_int_eq (find ("a").state, JOB_cancelled);
  ck_assert (!claim (&j));
  submit ("b", "ada");
  ck_assert (claim (&j) && store_cancel (s, "b", "ada", &stopped, &err) && stopped);
  ck_assert (!finish (&j, JOB_done));
  submit ("c", "ada");
  ck_assert (claim (&j) && finish (&j, JOB_done));
  ck_assert (store_cancel (s, "c", "ada", &stopped, &err) && !stopped);
  ck_assert_int_eq (find ("c").state, JOB_done);
  ck_assert (store_find_job (s, "c", "ada", a, &j, &found, &err) && found);
}

STORE_CLAIM (events_come_in_their_order_and_from_where_one_left, 6) {
  job_row j;
  event_row *all;
  int n = 0;
  bool held = false;
  submit ("a", "ada");
  ck_assert (claim (&j));
  for (int i = 0; i < 12; i++) {
    const char *data = i == 11 ? "{\"last\":\"'x'\"}" : "{}";
    ck_assert (store_event (s, &j, "incumbent", data, &held, &err) && held);
  }
  ck_assert (store_events (s, "a", 9, a, &all, &n, &err));
  ck_assert_int_eq (n, 3);
  for (int i = 0; i < 3; i++)
    ck_assert_int_eq (all[i].seq, 10 + i);
  ck_assert_str_eq (all[2].data, "{\"last\":\"'x'\"}");
}

STORE_CLAIM (owners_see_their_own, 7) {
  trace_row t = { "t1", "{}", NULL }, out, *all;
  job_row j;
  bool found = true;
  int n = 0;
  ck_assert (store_add_trace (s, &t, "body", &err) && store_add_trace (s, &t, "body", &err));
  ck_assert (store_find_trace (s, "t1", "ada", a, &out, &found, &err) && !found);
  ck_assert (store_own (s, "t1", "ada", &err) && store_own (s, "t1", "ada", &err));
  ck_assert (store_find_trace (s, "t1", "ada", a, &out, &found, &err) && found);
  ck_assert (store_find_alias (s, "body", "ada", a, &out, &found, &err) && found);
  ck_assert_str_eq (out.id, "t1");
  ck_assert (store_list_traces (s, &(store_page){ "bob", "", NULL, 10 }, a, &all, &n, &err) &&
             n == 0);
  ck_assert (store_disown (s, "t1", "ada", &err));
  ck_assert (store_find_alias (s, "body", "ada", a, &out, &found, &err) && !found);
  submit ("a", "ada");
  ck_assert (store_find_job (s, "a", "bob", a, &j, &found, &err) && !found);
}

static int count_named (const char *owner, const char *print) {
  trace_row *all;
  int n = -1;
  ck_assert_msg (store_list_traces (s, &(store_page){ owner, "", print, 10 }, a, &all, &n, &err),
                 "%s", err.text);
  if (n > 0)
    ck_assert_str_eq (all[0].fingerprint, print);
  return n;
}

static const char *name_of (const char *id, const char *owner) {
  trace_row t;
  bool found = false;
  ck_assert_msg (store_find_trace (s, id, owner, a, &t, &found, &err) && found, "%s", err.text);
  return t.fingerprint;
}

STORE_CLAIM (a_name_is_its_owners_and_a_trace_has_several, 13) {
  trace_row t1 = { "t1", "{}", NULL }, t2 = { "t2", "{}", NULL };
  ck_assert (store_add_trace (s, &t1, "b1", &err) && store_add_trace (s, &t2, "b2", &err));
  ck_assert (store_own (s, "t1", "ada", &err) && store_own (s, "t1", "bob", &err) &&
             store_own (s, "t2", "ada", &err));
  ck_assert_str_eq (name_of ("t1", "ada"), "t1");
  ck_assert (store_name_trace (s, "t1", "ada", "one", 1, &err) &&
             store_name_trace (s, "t1", "bob", "his", 2, &err) &&
             store_name_trace (s, "t1", "ada", "two", 3, &err) &&
             store_name_trace (s, "t2", "ada", "one", 4, &err));
  ck_assert_str_eq (name_of ("t1", "ada"), "two");
  ck_assert_str_eq (name_of ("t1", "bob"), "his");
  ck_assert (store_name_trace (s, "t1", "ada", "one", 5, &err) &&
             store_name_trace (s, "t1", "ada", "two", 1, &err));
  ck_assert_str_eq (name_of ("t1", "ada"), "one");
  ck_assert_int_eq (count_named ("ada", "one"), 2);
  ck_assert_int_eq (count_named ("ada", "two"), 1);
  ck_assert_int_eq (count_named ("ada", "t1"), 1);
  ck_assert_int_eq (count_named ("ada", "his"), 0);
  ck_assert_int_eq (count_named ("bob", "one"), 0);
  ck_assert (store_disown (s, "t1", "ada", &err) && store_own (s, "t1", "ada", &err));
  ck_assert_str_eq (name_of ("t1", "ada"), "t1");
  ck_assert_str_eq (name_of ("t1", "bob"), "his");
}

STORE_CLAIM (all_who_asked_for_an_import_have_its_trace, 14) {
  trace_row t = { "t1", "{}", NULL };
  submit ("i", "ada");
  submit ("i", "bob");
  submit ("other", "eve");
  job_row j = find ("i");
  ck_assert (store_add_trace (s, &t, "b1", &err));
  for (int i = 0; i < 2; i++)
    ck_assert_msg (store_give_trace (s, &j, "t1", "print", &err), "%s", err.text);
  ck_assert_int_eq (count_named ("ada", "print"), 1);
  ck_assert_int_eq (count_named ("bob", "print"), 1);
  ck_assert_int_eq (count_named ("eve", "print"), 0);
}

/* A store of 0.1.0 has the name in the row of the trace. */
STORE_CLAIM (names_of_an_older_store_are_kept_for_all_owners, 15) {
  static const char *const old[] = {
    "drop table naming",
    "insert into trace (id, info, fingerprint, created_ms) values ('t1', '{}', 'print', 1)",
    "insert into owner (object, owner) values ('t1', 'ada')",
    "insert into owner (object, owner) values ('t1', 'bob')",
  };
  char path[96];
  const sql_driver *driver = _i ? &sql_postgres : &sql_sqlite;
  store_close (s);
  snprintf (path, sizeof path, "%s/store.sqlite", folder);
  void *db = driver->open (_i ? where + 9 : path, &err);
  ck_assert (db);
  for (size_t i = 0; i < sizeof old / sizeof *old; i++)
    ck_assert_msg (driver->run (db, old[i], NULL, 0, NULL, NULL, &err), "%s", err.text);
  driver->close (db);
  open_again ();
  ck_assert_int_eq (count_named ("ada", "print"), 1);
  ck_assert_int_eq (count_named ("bob", "print"), 1);
  ck_assert (store_own (s, "t1", "eve", &err));
  store_close (s);
  open_again ();
  ck_assert_int_eq (count_named ("eve", "print"), 0);
}

static void put (const char *digest, const char *text) {
  ck_assert_msg (store_put_bytes (s, digest, text, (int64_t)strlen (text), &err), "%s", err.text);
}

static bool has_bytes (const char *digest, const char *data, int64_t size) {
  bytes text = { 0 };
  const char *file = store_file (s, digest, a, &err);
  bool same = file && file_read_raw (file, 1 << 24, &text, &err) && text.size == size &&
              memcmp (text.data, data, (size_t)size) == 0;
  bytes_free (&text);
  return same;
}

STORE_CLAIM (a_file_is_whole_or_not_there_and_other_replicas_have_it, 8) {
  char other[64] = "/tmp/ferry-store-XXXXXX", path[96];
  bytes packed = { 0 };
  char *large = malloc (3000001);
  ck_assert (large);
  for (int i = 0; i < 3000000; i++)
    large[i] = (char)('a' + (int64_t)i * i % 23);
  large[3000000] = 0;
  put ("d1", large);
  ck_assert (zstd_encode (large, 3000000, &packed, &err)); /* an upload is kept as it came */
  ck_assert (store_put_bytes (s, "d3", packed.data, packed.size, &err));
  ck_assert (!store_file (s, "d2", a, &err) && err.code == ERR_file);
  err = (error){ 0 };
  if (_i) { /* a replica with an empty folder */
    ck_assert (mkdtemp (other));
    snprintf (path, sizeof path, "%s/blobs", other);
    ck_assert (mkdir (path, 0700) == 0);
    store_close (s);
    s = store_open (where, other, &err);
    ck_assert (s);
  }
  ck_assert (has_bytes ("d1", large, 3000000) && has_bytes ("d3", packed.data, packed.size));
  bytes_free (&packed);
  free (large);
  if (!_i)
    return;
  store_close (s);
  folder_remove (other);
  open_again ();
}

/* One user of the database: what was running when it died is queued. Several: a lease decides. */
STORE_CLAIM (opening_again_keeps_all, 9) {
  job_row j;
  store_counts counts;
  submit ("a", "ada");
  submit ("b", "ada");
  ck_assert (claim (&j));
  store_close (s);
  open_again ();
  ck_assert (store_count (s, &counts, &err));
  ck_assert_int_eq (counts.jobs[JOB_queued], _i ? 1 : 2);
  ck_assert_int_eq (counts.jobs[JOB_running], _i ? 1 : 0);
  ck_assert_int_eq (find ("a").tries, _i ? 1 : 0);
}

STORE_CLAIM (what_nobody_looks_at_goes_and_what_somebody_needs_stays, 11) {
  static const char orphan[] = "1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
  char outcome[128];
  job_row j;
  bool held = false, found = true;
  error missing = { 0 };
  snprintf (outcome, sizeof outcome, "{\"files\":{\"result\":\"%s\"}}", digest);
  ck_assert (store_put_bytes (s, digest, "x", 1, &err) &&
             store_put_bytes (s, orphan, "y", 1, &err));
  ck_assert_int_eq (submit ("old", "ada"), SUBMIT_NEW);
  ck_assert (claim (&j) && store_finish (s, &j, JOB_done, outcome, NULL, &held, &err) && held);
  ck_assert_int_eq (submit ("waits", "ada"), SUBMIT_NEW);
  ck_assert_msg (store_sweep (s, 60000, &err), "%s", err.text); /* all is young */
  ck_assert_ptr_nonnull (store_file (s, orphan, a, &err));
  ck_assert (store_saw (s, "old", &err));
  usleep (50000);
  ck_assert_msg (store_sweep (s, 20, &err), "%s", err.text);
  ck_assert (store_find_job (s, "waits", "ada", a, &j, &found, &err) && found);
  ck_assert (store_find_job (s, "old", "ada", a, &j, &found, &err) && !found);
  ck_assert_ptr_null (store_file (s, orphan, a, &missing));
}

/* Its job may have been looked at since: it is not the answer to the next upload. */
STORE_CLAIM (an_import_goes_with_its_trace, 16) {
  trace_row t = { .id = "t1", .info = "{}" };
  char request[100];
  job_row j;
  const queue_limit ten = { 10, false };
  snprintf (request, sizeof request, "{\"body\":\"%s\"}", digest);
  job_row asked = { .id = "i1", .kind = "imports", .request = request };
  ck_assert_int_eq (submit_job (asked, "ada", ten), SUBMIT_NEW);
  ck_assert (claim (&j) && store_add_trace (s, &t, digest, &err) && finish (&j, JOB_done));
  usleep (600000);
  ck_assert (store_saw (s, "i1", &err) && store_own (s, "t1", "ada", &err));
  ck_assert_msg (store_sweep (s, 500, &err), "%s", err.text);
  ck_assert_int_eq (submit_job (asked, "ada", ten), SUBMIT_JOINED);
  ck_assert (store_disown (s, "t1", "ada", &err));
  ck_assert_msg (store_sweep (s, 0, &err), "%s", err.text);
  ck_assert_int_eq (submit_job (asked, "ada", ten), SUBMIT_NEW);
}

STORE_CLAIM (a_key_is_kept_for_one_job_of_an_owner, 12) {
  bool kept = false;
  for (int i = 0; i < 2; i++)
    ck_assert (store_promise (s, "ada", "k", "a", &kept, &err) && kept);
  ck_assert (store_promise (s, "ada", "k", "b", &kept, &err) && !kept);
  ck_assert (store_promise (s, "bob", "k", "b", &kept, &err) && kept);
}

static bool has_curve (const char *kind, const char *print, const char *owner, const char *host) {
  curve_row c;
  bool found = false;
  ck_assert (
      store_find_curve (s, &(curve_wanted){ kind, print, owner, host }, a, &c, &found, &err));
  if (found)
    ck_assert_str_eq (c.trace, "t1");
  return found;
}

/* Not by who has the trace, under that name, and no curve that another asked for. */
STORE_CLAIM (the_newest_curve_of_a_fingerprint_is_found, 10) {
  trace_row t = { "t1", "{}", NULL };
  job_row j = { .id = "c1", .kind = "curves", .request = "{\"points\":3,\"trace\":\"t1\"}" };
  ck_assert (store_add_trace (s, &t, "body", &err) && store_own (s, "t1", "ada", &err) &&
             store_name_trace (s, "t1", "ada", "print", 1, &err));
  submit_job (j, "ada", (queue_limit){ 10, false });
  ck_assert (!has_curve ("curves", "print", "ada", ""));
  ck_assert (claim (&j) && finish (&j, JOB_done));
  ck_assert (has_curve ("curves", "print", "ada", ""));
  ck_assert (!has_curve ("what-if", "print", "ada", ""));
  ck_assert (!has_curve ("curves", "print", "ada", "hgx"));
  ck_assert (!has_curve ("curves", "print", "bob", ""));
  ck_assert (store_own (s, "t1", "bob", &err) &&
             store_name_trace (s, "t1", "bob", "print", 1, &err));
  ck_assert (!has_curve ("curves", "print", "bob", ""));
  ck_assert (store_own (s, "c1", "bob", &err));
  ck_assert (has_curve ("curves", "print", "bob", ""));
  ck_assert (has_curve ("curves", "t1", "bob", ""));
}

int main (void) {
  return suite_run ("store", 30);
}
