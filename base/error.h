/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One error, on the caller's stack.  The first report wins; later ones are consequences.
   Functions that can fail take `error *err` last and return false or NULL.  A message is one lower
   case line: the value, the limit, and the next step where there is one. */
#pragma once

#include <stdbool.h>

#define MUST_CHECK __attribute__ ((warn_unused_result))
#define PRINTF_LIKE(text, first) __attribute__ ((format (printf, text, first)))

typedef enum error_code {
#define ERROR(name, exit, when) ERR_##name,
#include "base/error.def"
#undef ERROR
  ERROR_CODES
} error_code;

typedef struct error {
  error_code code; /* ERR_none: nothing happened */
  int line;        /* of the input, 1-based; 0: not known */
  char path[256];  /* the file, "" where there is none */
  char where[256]; /* a JSON pointer or another place in the file */
  char text[512];
  char more[512]; /* behind it, for those who ask for more; "" where there is none */
} error;

/* Record the first failure; always returns false, so that `return error_set (...)` reads well. */
bool error_set (error *err, error_code code, const char *format, ...) PRINTF_LIKE (3, 4);

/* The reasons behind the failure that was recorded; always false. */
bool error_more (error *err, const char *format, ...) PRINTF_LIKE (2, 3);

/* Memory is out: the same error everywhere. */
bool error_memory (error *err);

/* error_set with the place in the input. */
bool error_at (error *err, error_code code, const char *where, const char *format, ...)
    PRINTF_LIKE (4, 5);

/* Adds the file that an error came from, unless it has one. */
void error_in_file (error *err, const char *path);

/* A value in a message may come from a hostile file: what is no printable character is a blank. */
void error_one_line (char *text);

/* The whole message as one line: path, line, place, text.  Returns buffer. */
char *error_line (const error *err, char *buffer, int size);

const char *error_name (error_code code);
int error_exit_status (error_code code);
