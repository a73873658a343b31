/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One call of the program: what the command line said, and the means every command uses to read its
   files and to answer.  Only here is the environment read. */
#pragma once

#include <stdio.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/call/command.h"

enum { MOST_OPTIONS = 48 };

/* Exit statuses that are no error's; the others are in base/error.def. */
enum { EXIT_YES = 0, EXIT_NO = 1, EXIT_USAGE = 2, EXIT_INTERRUPTED = 130 };

/* A long command on its way: cli/inputs/progress. */
typedef struct going {
  int64_t began_ns, shown_ns;
  int64_t best_ns, bound_ns; /* 0: none yet */
  int32_t best_of;           /* of `done`, when that was found */
  int32_t done, all;
  bool live;   /* a line stands on the terminal */
  bool silent; /* another process shows it */
} going;

struct call {
  int (*program) (int argc, char **argv); /* all that `ferry` does with its words; an exit status */
  const cli_command *command;
  const char **operands; /* NULL behind the last */
  int n_operands;
  const char *values[MOST_OPTIONS]; /* by row: the command's own, then common_options */
  bool json, quiet, verbose, color, utf8;
  bool keeps_status;   /* the status is of the program that it ran, whatever err says */
  bool stoppable;      /* interrupts are kept: cli/inputs/stopping */
  int64_t deadline_ns; /* searches end then; 0: never */
  int columns;         /* of the terminal, or 80 */
  logger log;
  int progress_fd; /* of a worker: where plans are told of */
  going going;
  arena *arena;
  error err;
};

/* Fills everything but the arena; false: c->err says what is wrong with the command line. */
bool call_parse (call *c, const cli_command *command, int argc, char **argv) MUST_CHECK;

/* Is it one of the command's? The functions below are for those alone. */
bool call_has_option (const call *c, const char *option);
/* It stands on the command line, not only in the environment. */
bool call_given (const call *c, const char *option);
/* The text given with an option ("" for a flag), else the environment's FERRY_NAME where the option
   has a value, else NULL. */
const char *call_text (const call *c, const char *option);
/* The same; NULL where the command has no such option. */
const char *call_own_text (const call *c, const char *option);
bool call_flag (const call *c, const char *option);
/* The first of n options that call_own_text has something for; NULL: none. */
const char *call_first (const call *c, const char *const *options, size_t n);
/* The first operand that is that one's text: a file that is named twice is worked on once. */
int32_t call_same_operand (const call *c, int32_t operand);
/* The word that stands for its value in the help. */
const char *call_value (const call *c, const char *option);
/* The number that --jobs says; default: that of processors. */
bool call_jobs (call *c, int64_t *out) MUST_CHECK;
/* These leave *out as it is where the option was not given. */
bool call_quantity (call *c, const char *option, int64_t *out) MUST_CHECK; /* but an amount */
bool call_amount (call *c, const char *option, int64_t whole_bytes, int64_t *out) MUST_CHECK;
/* The same of a text that is part of what was given, in a list or behind a name. */
bool call_part (call *c, const char *option, const char *text, int64_t whole_bytes,
                int64_t *out) MUST_CHECK;
/* Whole percents; the range is in millionths. */
bool call_percent (call *c, const char *option, int64_t *out) MUST_CHECK;
bool call_word (call *c, const char *option, const char *const *words, int *out) MUST_CHECK;

/* FILE for rank 0, FILE with .1, .2 before its ending for the others. */
const char *call_rank_path (call *c, const char *file, int32_t rank) MUST_CHECK;

/* Prints what json_finish gives, on standard output. */
bool call_print_json (call *c, json_writer *w) MUST_CHECK;
/* An object of one text. */
bool call_print_text (call *c, const char *key, const char *text) MUST_CHECK;
/* ERR_usage where --json and the file of that option, or its absence, both ask for standard output.
 */
bool call_json_beside (call *c, const char *option) MUST_CHECK;
bool call_is_stdout (const char *path);
/* Can all files be written that the command line names for results? */
bool call_has_targets (call *c) MUST_CHECK;
/* Is it one of the files that the command line gives to be read? */
bool call_reads (const call *c, const char *path);
/* Text that is a result, to a file or ("-" or NULL) standard output. */
bool call_write (call *c, const char *path, const void *data, int64_t size) MUST_CHECK;

/* Tells the daemon, if it is one's parent, how much of the work is done. */
void call_tell_done (const call *c);
/* The line of progress goes, for what is printed next. */
void call_clear_line (const call *c);
/* A message beside the result, on standard error; silent with -q. */
void call_note (const call *c, const char *format, ...) PRINTF_LIKE (2, 3);

/* ERR_usage, with these words; false. */
bool call_usage (call *c, const char *format, ...) PRINTF_LIKE (2, 3);
/* The exit status of the error that was reported. */
int call_failed (const call *c);

/* The nearest of some words, for "did you mean"; NULL where none is near. */
const char *nearest_word (const char *word, const char *const *words, int count);
