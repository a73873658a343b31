/* What a command is: one row of data and one function.  Help, manual pages and completion are
   printed from these rows, so that none of them can be forgotten. */
#ifndef FERRY_CLI_CALL_COMMAND_H
#define FERRY_CLI_CALL_COMMAND_H

#include <stdbool.h>

typedef struct call call;

/* value: what is given with it, as the help shows it ("FILE", "SIZE", "auto|always|never"); NULL:
   it is a flag. */
typedef struct cli_option {
  char letter; /* or 0 */
  const char *name, *value, *says;
} cli_option;

typedef struct cli_command {
  const char *name, *says;   /* one line */
  const char *operands;      /* as in the usage line */
  int least, most;           /* operands; most < 0: any number */
  const char *about;         /* paragraphs, each ending with a newline */
  const cli_option *options; /* ends with a row without name; NULL: none of its own */
  bool json;                 /* it prints results, so it has --json */
  int (*run) (call *c);      /* an exit status; a reported error comes before it */
} cli_command;

/* Rows that several commands share, with one meaning everywhere. */
/* clang-format off */
#define OPTION_DEVICE { 'd', "device", "NAME|FILE", "the card: a name of `ferry devices` or a " \
  "device file; without it, the one that the trace was made for" }
#define OPTION_BUDGET { 'b', "budget", "SIZE", "device memory that may be used, such as 8GiB; " \
  "without it, all that the device has to give" }
#define OPTION_OUTPUT(says) { 'o', "output", "FILE", says }
#define OPTION_STRICT { 0, "strict", NULL, "an unknown key in a file is an error" }
#define OPTIONS_END { 0, NULL, NULL, NULL }
/* clang-format on */

/* Every command has these; --json only those that print results. */
extern const cli_option common_options[];

/* The table: a row a command, in the order in which help shows them; NULL ends it. */
extern const cli_command *const commands[];
const cli_command *command_named (const char *name); /* or NULL */

/* Whether row `o` of common_options belongs to `command`. */
bool common_applies (const cli_command *command, const cli_option *o);

#endif
