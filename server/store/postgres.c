/* SPDX-License-Identifier: GPL-3.0-or-later */
/* PostgreSQL through libpq: one connection, made again when it broke.  A statement that met a
   broken connection outside a transaction is sent once more: each is written so that twice is as
   good as once, or names the attempt that it is of. */
#include "config.h"

#include "server/store/sql.h"

#ifdef HAVE_LIBPQ
#include <libpq-fe.h>
#include <poll.h>
#include <string.h>

static bool failed (PGconn *db, const PGresult *it, error *err) {
  char line[400];
  snprintf (line, sizeof line, "%s", it ? PQresultErrorMessage (it) : PQerrorMessage (db));
  for (char *at = line; *at; at++)
    if (*at == '\n')
      *at = ' ';
  return error_set (err, PQstatus (db) == CONNECTION_OK ? ERR_internal : ERR_unreachable,
                    "the store's PostgreSQL says: %s", line);
}

static bool keep_rows (const PGresult *it, arena *a, sql_rows *out, error *err) {
  *out = (sql_rows){ PQntuples (it), PQnfields (it), NULL };
  if (!ALLOC (a, out->cells, (int64_t)out->rows * out->columns + 1, err))
    return false;
  for (int i = 0; i < out->rows; i++)
    for (int k = 0; k < out->columns; k++)
      if (!PQgetisnull (it, i, k) &&
          !(out->cells[i * out->columns + k] = arena_string (a, PQgetvalue (it, i, k), err)))
        return false;
  return true;
}

static bool run (void *db, const char *text, const char *const *values, int n, arena *a,
                 sql_rows *out, error *err) {
  bool inside = PQtransactionStatus (db) == PQTRANS_INTRANS;
  PGresult *it = PQexecParams (db, text, n, NULL, values, NULL, NULL, 0);
  if (PQstatus (db) != CONNECTION_OK) {
    PQreset (db);
    if (!inside && PQstatus (db) == CONNECTION_OK) {
      PQclear (it);
      it = PQexecParams (db, text, n, NULL, values, NULL, NULL, 0);
    }
  }
  ExecStatusType status = PQresultStatus (it);
  bool ok = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || failed (db, it, err);
  if (ok && out)
    ok = keep_rows (it, a, out, err);
  PQclear (it);
  return ok;
}

static void close_it (void *db) {
  PQfinish (db);
}

static bool told (void *db, int milliseconds) {
  struct pollfd on = { .fd = PQsocket (db), .events = POLLIN };
  bool any = false;
  if (PQstatus (db) != CONNECTION_OK || on.fd < 0) {
    poll (NULL, 0, milliseconds);
    PQreset (db);
    PQclear (PQexec (db, "listen ferry"));
    return PQstatus (db) == CONNECTION_OK;
  }
  if (poll (&on, 1, milliseconds) > 0 && !PQconsumeInput (db))
    return false; /* it is broken: the next call makes it again */
  for (PGnotify *n; (n = PQnotifies (db)); any = true)
    PQfreemem (n);
  return any;
}

static void ignore_notice (void *context, const char *text) {
  (void)context, (void)text;
}

static void *open_it (const char *where, error *err) {
  PGconn *db = PQconnectdb (where);
  if (PQstatus (db) == CONNECTION_OK) {
    PQsetNoticeProcessor (db, ignore_notice, NULL);
    return db;
  }
  failed (db, NULL, err);
  PQfinish (db);
  return NULL;
}

#else

static void *open_it (const char *where, error *err) {
  (void)where;
  error_set (err, ERR_usage, "this ferry was built without libpq: --store postgres needs it");
  return NULL;
}

static void close_it (void *db) {
  (void)db;
}

static bool run (void *db, const char *text, const char *const *values, int n, arena *a,
                 sql_rows *out, error *err) {
  (void)db, (void)text, (void)values, (void)n, (void)a, (void)out;
  return error_set (err, ERR_internal, "there is no libpq");
}

static bool told (void *db, int milliseconds) {
  (void)db, (void)milliseconds;
  return false;
}

#endif

const sql_driver sql_postgres = {
  .claims = " for update skip locked",
  .now_ms = "cast(extract(epoch from clock_timestamp()) * 1000 as bigint)",
  .shared = true,
  .open = open_it,
  .close = close_it,
  .run = run,
  .told = told,
};
