/* SPDX-License-Identifier: GPL-3.0-or-later */
/* SQLite: one file in the state folder, of which this process is the only user.  Every commit is
   on the disk before it is answered. */
#include <sqlite3.h>
#include <stdio.h>

#include "server/store/sql.h"

static bool failed (sqlite3 *db, error *err) {
  int code = sqlite3_errcode (db);
  bool away = code == SQLITE_FULL || code == SQLITE_IOERR || code == SQLITE_READONLY ||
              code == SQLITE_CANTOPEN || code == SQLITE_BUSY;
  error_code kind = code == SQLITE_NOMEM ? ERR_memory : away ? ERR_file : ERR_internal;
  return error_set (err, kind, "the store's SQLite says: %s", sqlite3_errmsg (db));
}

static bool keep_row (sqlite3_stmt *it, arena *a, sql_rows *out, int64_t *room, error *err) {
  int columns = sqlite3_column_count (it);
  out->columns = columns;
  if (!GROW (a, out->cells, room, (int64_t)(out->rows + 1) * columns, err))
    return false;
  for (int i = 0; i < columns; i++) {
    const char *text = (const char *)sqlite3_column_text (it, i);
    if (text && !(text = arena_string (a, text, err)))
      return false;
    out->cells[out->rows * columns + i] = text;
  }
  out->rows++;
  return true;
}

static bool run (void *db, const char *text, const char *const *values, int n, arena *a,
                 sql_rows *out, error *err) {
  sqlite3_stmt *it = NULL;
  int64_t room = 0;
  bool ok = sqlite3_prepare_v2 (db, text, -1, &it, NULL) == SQLITE_OK || failed (db, err);
  if (out)
    *out = (sql_rows){ 0 };
  for (int i = 0; ok && i < n; i++) {
    char name[16];
    snprintf (name, sizeof name, "$%d", i + 1);
    int at = sqlite3_bind_parameter_index (it, name);
    ok = !at || sqlite3_bind_text (it, at, values[i], -1, SQLITE_TRANSIENT) == SQLITE_OK ||
         failed (db, err);
  }
  int step = SQLITE_DONE;
  while (ok && (step = sqlite3_step (it)) == SQLITE_ROW)
    ok = !out || keep_row (it, a, out, &room, err);
  ok = ok && (step == SQLITE_DONE || failed (db, err));
  sqlite3_finalize (it);
  return ok;
}

static void close_it (void *db) {
  sqlite3_close (db);
}

static void *open_it (const char *where, error *err) {
  static const char *const first[] = { "pragma journal_mode = wal", "pragma synchronous = full",
                                       "pragma busy_timeout = 5000" };
  sqlite3 *db = NULL;
  int how = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX;
  bool ok = sqlite3_open_v2 (where, &db, how, NULL) == SQLITE_OK ||
            error_set (err, ERR_file, "the store %s cannot be opened: %s", where,
                       db ? sqlite3_errmsg (db) : "no memory for it");
  for (size_t i = 0; ok && i < sizeof first / sizeof *first; i++)
    ok = run (db, first[i], NULL, 0, NULL, NULL, err);
  if (ok)
    return db;
  sqlite3_close (db);
  return NULL;
}

const sql_driver sql_sqlite = {
  .claims = "",
  .now_ms = "cast((julianday('now') - 2440587.5) * 86400000 as integer)",
  .open = open_it,
  .close = close_it,
  .run = run,
};
