/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Traces, the uploads they came from, and their owners. */
#include <assert.h>

#include "server/store/inner.h"

bool store_own (store *s, const char *object, const char *owner, error *err) {
  return STORE_RUN (s, "insert into owner (object, owner) values ($1, $2) on conflict do nothing",
                    NULL, NULL, err, object, owner);
}

bool store_disown (store *s, const char *object, const char *owner, error *err) {
  if (!store_begin (s, err))
    return false;
  bool ok = STORE_INSIDE (s, "delete from owner where object = $1 and owner = $2", NULL, NULL, err,
                          object, owner) &&
            STORE_INSIDE (s, "delete from naming where trace = $1 and owner = $2", NULL, NULL, err,
                          object, owner);
  return store_end (s, ok, err);
}

/* Its id stands in the column of its only name of old. */
bool store_add_trace (store *s, const trace_row *t, const char *body_digest, error *err) {
  assert (s && t && body_digest);
  number_text now = store_number (store_now_ms ());
  if (!store_begin (s, err))
    return false;
  bool ok =
      STORE_INSIDE (s,
                    "insert into trace (id, info, fingerprint, created_ms)"
                    " values ($1, $2, $1, $3) on conflict do nothing",
                    NULL, NULL, err, t->id, t->info, now.text) &&
      STORE_INSIDE (s, "insert into alias (body, trace) values ($1, $2) on conflict do nothing",
                    NULL, NULL, err, body_digest, t->id);
  return store_end (s, ok, err);
}

bool store_name_trace (store *s, const char *id, const char *owner, const char *fingerprint,
                       int64_t at_ms, error *err) {
  number_text at = store_number (at_ms);
  return STORE_RUN (s,
                    "insert into naming (owner, fingerprint, trace, at_ms) values ($1, $2, $3, $4)"
                    " on conflict (owner, fingerprint, trace) do update set at_ms = excluded.at_ms"
                    " where naming.at_ms < excluded.at_ms",
                    NULL, NULL, err, owner, fingerprint, id, at.text);
}

/* Behind a `$2` that is the owner: the newest name of theirs, or the id. */
#define NEWEST_NAME                                                                     \
  "coalesce ((select n.fingerprint from naming n where n.trace = t.id and n.owner = $2" \
  " order by n.at_ms desc, n.fingerprint limit 1), t.id)"

bool store_give_trace (store *s, const job_row *import, const char *id, const char *fingerprint,
                       error *err) {
  number_text at = store_number (store_now_ms ());
  if (!store_begin (s, err))
    return false;
  bool ok = STORE_INSIDE (s,
                          "insert into owner (object, owner) select cast ($2 as text), o.owner"
                          " from owner o where o.object = $1 on conflict do nothing",
                          NULL, NULL, err, import->id, id);
  if (ok && fingerprint)
    ok = STORE_INSIDE (s,
                       "insert into naming (owner, fingerprint, trace, at_ms) select o.owner,"
                       " cast ($3 as text), cast ($2 as text), cast ($4 as bigint) from owner o"
                       " where o.object = $1 on conflict (owner, fingerprint, trace)"
                       " do update set at_ms = excluded.at_ms",
                       NULL, NULL, err, import->id, id, fingerprint, at.text);
  return store_end (s, ok, err);
}

/* The traces that $1 stands for where $2 asks: those that they named so, or the one of that id. */
#define NAMED                                                                           \
  "select n.trace from naming n where (n.owner = $2 or $2 = '') and n.fingerprint = $1" \
  " union select id from trace where id = $1"

static trace_row trace_of (const sql_rows *r, int row) {
  return (trace_row){ sql_cell (r, row, 0), sql_cell (r, row, 1), sql_cell (r, row, 2) };
}

static bool one_trace (const sql_rows *r, trace_row *out, bool *found) {
  *found = r->rows > 0;
  if (*found)
    *out = trace_of (r, 0);
  return true;
}

bool store_find_trace (store *s, const char *id, const char *owner, arena *a, trace_row *out,
                       bool *found, error *err) {
  sql_rows rows;
  return STORE_READ (s,
                     "select t.id, t.info, " NEWEST_NAME
                     " from trace t where t.id = $1 and ($2 = '' or exists"
                     " (select 1 from owner o where o.object = t.id and o.owner = $2))",
                     a, &rows, err, id, owner ? owner : "") &&
         one_trace (&rows, out, found);
}

bool store_find_alias (store *s, const char *body_digest, const char *owner, arena *a,
                       trace_row *out, bool *found, error *err) {
  sql_rows rows;
  return STORE_READ (s,
                     "select t.id, t.info, " NEWEST_NAME " from trace t, alias b where b.body = $1"
                     " and t.id = b.trace and ($2 = '' or exists"
                     " (select 1 from owner o where o.object = t.id and o.owner = $2))",
                     a, &rows, err, body_digest, owner ? owner : "") &&
         one_trace (&rows, out, found);
}

bool store_list_traces (store *s, const store_page *page, arena *a, trace_row **out, int *count,
                        error *err) {
  sql_rows rows;
  number_text most = store_number (page->limit);
  if (!STORE_READ (s,
                   "select t.id, t.info, case when $1 = '' then " NEWEST_NAME " else $1 end"
                   " from trace t, owner o where o.object = t.id and o.owner = $2 and ($1 = ''"
                   " or t.id in (" NAMED ")) and t.id > $3 order by t.id limit cast($4 as bigint)",
                   a, &rows, err, page->only ? page->only : "", page->owner, page->after,
                   most.text) ||
      !(*out = NEW (a, rows.rows, trace_row, err)))
    return false;
  for (*count = 0; *count < rows.rows; (*count)++)
    (*out)[*count] = trace_of (&rows, *count);
  return true;
}

bool store_find_curve (store *s, const curve_wanted *w, arena *a, curve_row *out, bool *found,
                       error *err) {
  sql_rows rows;
  if (!STORE_READ (
          s,
          "select j.id, t.id, j.outcome, j.request from trace t, job j"
          " where t.id in (" NAMED ") and j.kind = $3 and j.state = 'done'"
          " and j.request like '%\"trace\":\"' || t.id || '\"%'"
          " and ($2 = '' or (exists (select 1 from owner o where o.object = t.id and o.owner = $2)"
          " and exists (select 1 from owner p where p.object = j.id and p.owner = $2)))"
          /* A host's own name stands before what may be pinned, those of its groups do not. */
          " and case when $4 = '' then j.request not like '%\"host\":%'"
          " else j.request like '%\"host\":\"' || $4 || '\"%' or"
          " j.request like '%\"name\":\"' || $4 || '\",\"pinned_bytes\":%' end"
          " order by j.finished_ms desc, j.id limit 1",
          a, &rows, err, w->fingerprint, w->owner, w->kind, w->host))
    return false;
  *found = rows.rows > 0;
  if (*found)
    *out = (curve_row){ sql_cell (&rows, 0, 0), sql_cell (&rows, 0, 1), sql_cell (&rows, 0, 2),
                        sql_cell (&rows, 0, 3) };
  return true;
}
