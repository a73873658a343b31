/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the files of the store. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "server/store/sql.h"
#include "server/store/store.h"

enum { READERS = 3 }; /* the two that answer requests, and one */

typedef struct store_reader {
  void *db;
  pthread_mutex_t lock; /* guards db */
} store_reader;

struct store {
  const sql_driver *driver;
  void *db;    /* all that is written goes through it */
  char *where; /* as the driver takes it */
  char folder[200];
  pthread_mutex_t lock; /* guards db */
  int64_t began_ns;     /* of what holds together, under the lock */
  meter *durations;
  store_reader readers[READERS];
  /* store_watch: */
  pthread_t watching;
  void *ears;
  store_told *told;
  void *told_context;
  atomic_bool deaf;
};

/* One statement that only reads, beside others. */
bool store_read (store *s, const char *text, const char *const *values, int n, arena *a,
                 sql_rows *out, error *err) MUST_CHECK;
/* Other replicas look; called after a change, or before the end of what holds together. */
void store_tell (store *s);

/* One statement under the lock; `values` ends the argument list as in { a, b }, 2. */
bool store_run (store *s, const char *text, const char *const *values, int n, arena *a,
                sql_rows *out, error *err) MUST_CHECK;
/* Several statements that hold together: store_begin takes the lock, store_end gives it back. */
bool store_begin (store *s, error *err) MUST_CHECK;
bool store_inside (store *s, const char *text, const char *const *values, int n, arena *a,
                   sql_rows *out, error *err) MUST_CHECK;
bool store_end (store *s, bool ok, error *err) MUST_CHECK;

/* A number as a value. */
typedef struct number_text {
  char text[24];
} number_text;
number_text store_number (int64_t n);
int64_t store_int (const sql_rows *r, int row, int column);

#define STORE_RUN(s, text, a, out, err, ...)                \
  store_run (s, text, (const char *const[]){ __VA_ARGS__ }, \
             (int)(sizeof ((const char *const[]){ __VA_ARGS__ }) / sizeof (char *)), a, out, err)
#define STORE_READ(s, text, a, out, err, ...)                \
  store_read (s, text, (const char *const[]){ __VA_ARGS__ }, \
              (int)(sizeof ((const char *const[]){ __VA_ARGS__ }) / sizeof (char *)), a, out, err)
#define STORE_INSIDE(s, text, a, out, err, ...)                                                 \
  store_inside (s, text, (const char *const[]){ __VA_ARGS__ },                                  \
                (int)(sizeof ((const char *const[]){ __VA_ARGS__ }) / sizeof (char *)), a, out, \
                err)
