/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The manual pages, printed from the table of commands. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "cli/call/call.h"
#include "cli/help.h"

static const char *const environment[][2] = {
  { "FERRY_DATADIR", "where the folder devices/ is looked up first" },
  { "FERRY_NAME", "the value of option --name where the command line does not give it, such as "
                  "FERRY_DEVICE; a dash becomes an underscore; options without a value have none" },
  { "NO_COLOR", "no colours, unless --color says so" },
};
enum { N_ENVIRONMENT = sizeof environment / sizeof *environment };

/* ---- roff ---- */

/* Text whose dashes can be searched and pasted, and whose first letter is no request. */
static void roff (FILE *out, const char *text) {
  bool start = true;
  for (; *text; text++) {
    if (start && (*text == '.' || *text == '\''))
      fputs ("\\&", out);
    start = *text == '\n';
    if (*text == '-' || *text == '\\')
      fputs (*text == '-' ? "\\-" : "\\e", out);
    else if (*text == '\n' && text[1])
      fputs ("\n.PP\n", out);
    else
      fputc (*text, out);
  }
}

static void row (FILE *out, const char *term, const char *says) {
  fputs (".TP\n.B ", out);
  roff (out, term);
  fputc ('\n', out);
  roff (out, says);
  fputc ('\n', out);
}

static void head (FILE *out, const char *page, const char *says) {
  fprintf (out, ".TH %s 1 \"" FERRY_DATE "\" \"ferry %s\" \"ferry\"\n.SH NAME\n", page,
           PACKAGE_VERSION);
  roff (out, page);
  fputs (" \\- ", out);
  roff (out, says);
  fputs ("\n.SH SYNOPSIS\n", out);
}

static void tail (FILE *out) {
  fputs (".SH EXIT STATUS\n", out);
  for (int i = 0; i < n_exit_lines; i++) {
    char status[16];
    snprintf (status, sizeof status, "%d", exit_lines[i].status);
    row (out, status, exit_lines[i].says);
  }
  fputs (".SH ENVIRONMENT\n", out);
  for (int i = 0; i < N_ENVIRONMENT; i++)
    row (out, environment[i][0], environment[i][1]);
}

static void examples (FILE *out, const char *command) {
  bool any = false;
  for (int i = 0; i < n_example_lines; i++) {
    const struct example_line *at = &example_lines[i];
    if (command && strcmp (at->command, command) != 0)
      continue;
    if (!any)
      fputs (".SH EXAMPLES\n", out);
    any = true;
    row (out, at->line, at->says);
  }
}

static void page_command (FILE *out, const cli_command *command) {
  char text[OPTION_TEXT];
  snprintf (text, sizeof text, "ferry-%s", command->name);
  head (out, text, command->says);
  fprintf (out, ".B ferry %s\n[\\fIOPTIONS\\fR] ", command->name);
  roff (out, command->operands);
  fputs ("\n.SH DESCRIPTION\n", out);
  roff (out, command->about);
  fputs (".SH OPTIONS\n", out);
  const cli_option *o;
  for (int i = 0; (o = option_at (command, i)); i++)
    row (out, option_text (text, o), o->says);
  examples (out, command->name);
  tail (out);
  fputs (".SH SEE ALSO\n.BR ferry (1)\n", out);
}

static void page_program (FILE *out) {
  head (out, "ferry",
        "what a GPU should carry, what the host should hold, and when each tensor "
        "crosses the link between them");
  fputs (".B ferry\n.I COMMAND\n[\\fIOPTIONS\\fR] ...\n.SH DESCRIPTION\n", out);
  roff (out, "Reads a trace of one training step, and finds, checks, costs and runs plans for it. "
             "Files may be gzip or zstd compressed; - is standard input or output. Results are on "
             "standard output, messages on standard error.\n");
  fputs (".SH COMMANDS\n", out);
  for (int i = 0; commands[i]; i++) {
    char text[OPTION_TEXT];
    snprintf (text, sizeof text, "ferry-%s(1)", commands[i]->name);
    row (out, text, commands[i]->says);
  }
  examples (out, NULL);
  tail (out);
  fputs (".SH SEE ALSO\n.BR ferry (3)\n", out);
}

/* A stream over memory that grows would lose what it cannot hold without a word, so it is of one
   size. NULL: no memory. */
static char *page_text (call *c, const cli_command *command, int64_t *size) {
  enum { ROOM = 1 << 20 };
  char *text = NEW (c->arena, ROOM, char, &c->err);
  FILE *out = text ? fmemopen (text, ROOM, "w") : NULL;
  if (!out) {
    (void)error_memory (&c->err);
    return NULL;
  }
  if (command)
    page_command (out, command);
  else
    page_program (out);
  bool whole = fflush (out) == 0 && !ferror (out);
  *size = ftell (out);
  whole = fclose (out) == 0 && whole;
  if (!whole)
    (void)error_memory (&c->err);
  return whole ? text : NULL;
}

static bool page_to (call *c, const char *folder, const cli_command *command) {
  int64_t size = 0;
  arena_mark mark = arena_here (c->arena);
  char *path = command ? arena_format (c->arena, &c->err, "%s/ferry-%s.1", folder, command->name)
                       : arena_format (c->arena, &c->err, "%s/ferry.1", folder);
  char *text = path ? page_text (c, command, &size) : NULL;
  bool ok = text && call_write (c, path, text, size);
  arena_back (c->arena, mark);
  return ok;
}

static bool print_page (call *c, const cli_command *command) {
  int64_t size = 0;
  char *text = page_text (c, command, &size);
  return text && call_write (c, NULL, text, size);
}

static int run (call *c) {
  const char *folder = call_text (c, "all");
  const cli_command *command = c->n_operands ? command_named (c->operands[0]) : NULL;
  bool ok = true;
  if (folder) {
    ok = page_to (c, folder, NULL);
    for (int i = 0; commands[i] && ok; i++)
      ok = page_to (c, folder, commands[i]);
  } else if (c->n_operands && !command)
    ok = call_usage (c, "there is no command `%s`", c->operands[0]);
  else
    ok = print_page (c, command);
  return ok ? EXIT_YES : call_failed (c);
}

static const cli_option options[] = {
  { 'a', "all", "FOLDER", "write every page into a folder that is there" },
  OPTIONS_END,
};

const cli_command command_man = {
  .name = "man",
  .says = "print the manual page of a command",
  .operands = "[COMMAND]",
  .most = 1,
  .about =
      "Prints a manual page as roff: `ferry man info | man -l -`. Without a command, the page of "
      "ferry itself.\n",
  .options = options,
  .run = run,
};
