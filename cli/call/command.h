/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A command is one row of data and one function.  Help, manual pages and completion are
   printed from these rows, so that none of them can be forgotten. */
#pragma once

#include <stdbool.h>

#include "base/units.h"
#include "trace/trace.h"

typedef struct call call;

/* value: what is given with it, as the help shows it ("FILE", "SIZE", "auto|always|never"); NULL:
   it is a flag. range: of a quantity, between which values it is taken. */
typedef struct cli_option {
  char letter; /* or 0 */
  const char *name, *value, *says;
  units_range range;
} cli_option;

typedef struct cli_command {
  const char *name, *says;   /* one line */
  const char *operands;      /* as in the usage line */
  int least, most;           /* operands; most < 0: any number */
  const char *about;         /* paragraphs, each ending with a newline */
  const cli_option *options; /* ends with a row without name; NULL: none of its own */
  bool json;                 /* it prints results, so it has --json */
  bool draws;                /* pictures in the terminal, so it has --color */
  int (*run) (call *c);      /* an exit status; a reported error comes before it */
} cli_command;

/* Rows that several commands share, with one meaning everywhere. */
/* Ranges that several rows have. Sizes, rates and times are those that files may hold. */
#define RANGE_SIZE \
  { UNITS_BYTES, 0, MOST_BYTES }
#define RANGE_AMOUNT \
  { UNITS_AMOUNT, 0, MOST_BYTES }
#define RANGE_TIME \
  { UNITS_TIME, 0, MOST_NS }
#define RANGE_SHARE \
  { UNITS_SHARE, 0, 100000000 } /* a hundred times the whole */
#define RANGE_SCALE \
  { UNITS_SHARE, 1000, 100000000 } /* of times: from a thousandth */
#define RANGE_TICKS \
  { UNITS_COUNT, 1, MOST_TICKS }
#define RANGE_SEED \
  { UNITS_COUNT, 0, INT64_MAX }
#define MOST_TICKS ((int64_t)1 << 53)

/* clang-format off */
#define OPTION_DEVICE { 'd', "device", "NAME|FILE", "the card: a name of `ferry devices` or a " \
  "device file; default: the one that the trace was made for" }
#define OPTION_CARD { 'd', "device", "NAME|FILE", "the card, which has to be named: a name of " \
  "`ferry devices` or a device file" }
#define OPTION_BUDGET { 'b', "budget", "SIZE|%", "device memory that may be used, such as 8GiB, or " \
  "a percentage of what the step needs; default: all that the device has to give", RANGE_AMOUNT }
#define OPTION_OUTPUT(says) { 'o', "output", "FILE", says }
#define OPTION_STRICT { 0, "strict", NULL, "an unknown key in a file is an error" }
#define OPTIONS_END { 0, NULL, NULL, NULL }
/* clang-format on */

/* Every command has these; --json and --color only those that print results, and pictures. */
extern const cli_option common_options[];

/* The table: a row a command, in the order in which help shows them; NULL ends it. */
extern const cli_command *const commands[];
const cli_command *command_named (const char *name); /* or NULL */

/* Does row `o` of common_options belong to `command`? */
bool common_applies (const cli_command *command, const cli_option *o);
