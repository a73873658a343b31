/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A database as the store sees it: one statement at a time, every value a text, rows in an arena.
   The statements are the same for SQLite and PostgreSQL; they stand in store_*.c alone. */
#pragma once

#include "base/arena.h"

typedef struct sql_rows {
  int rows, columns;
  const char **cells; /* row by row; NULL stands for null */
} sql_rows;

typedef struct sql_driver {
  const char *claims; /* behind the choice of a row that nobody else may choose */
  const char *now_ms; /* the database's own time: replicas' clocks may differ */
  bool shared;        /* other processes may use the same database */
  void *(*open) (const char *where, error *err);
  void (*close) (void *db);
  /* `out` may be NULL. */
  bool (*run) (void *db, const char *text, const char *const *values, int n, arena *a,
               sql_rows *out, error *err);
  /* Waits on a connection of its own, at most so long; true: somebody has said `notify ferry`, or
     may have while the connection was away.  NULL: nobody else uses the database. */
  bool (*told) (void *db, int milliseconds);
} sql_driver;

extern const sql_driver sql_sqlite;
extern const sql_driver sql_postgres; /* open says so where ferry was built without libpq */

static inline const char *sql_cell (const sql_rows *r, int row, int column) {
  return r->cells[row * r->columns + column];
}
