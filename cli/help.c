/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/help.h"

#include <string.h>

enum { WIDTH = 80, INDENT = 28 };

const struct exit_line exit_lines[] = {
  { 0, "done; the answer is yes" },
  { 1, "the answer is no: nothing fits, a check failed" },
  { 2, "the command line is not understood" },
  { 3, "a file is malformed, says something impossible or cannot be read or written" },
  { 4,
    "--gap was asked for and not reached (the plan is written), or a limit came before any plan" },
  { 69, "a service or a device does not answer" },
  { 70, "out of memory, a device error, or a mistake of ferry's own" },
  { 130, "stopped by an interrupt; what was known by then is written" },
};
const int n_exit_lines = sizeof exit_lines / sizeof *exit_lines;

const struct example_line example_lines[] = {
#define EXAMPLE(command, line, says) { command, line, says },
#include "cli/examples.def"
#undef EXAMPLE
};
const int n_example_lines = sizeof example_lines / sizeof *example_lines;

const cli_option *option_at (const cli_command *command, int index) {
  for (const cli_option *o = command->options; o && o->name; o++)
    if (index-- == 0)
      return o;
  for (const cli_option *o = common_options; o->name; o++)
    if (common_applies (command, o) && index-- == 0)
      return o;
  return NULL;
}

const char *option_text (char text[OPTION_TEXT], const cli_option *o) {
  char letter[8] = "";
  if (o->letter)
    snprintf (letter, sizeof letter, "-%c, ", o->letter);
  snprintf (text, OPTION_TEXT, "%s--%s%s%s", letter, o->name, o->value ? " " : "",
            o->value ? o->value : "");
  return text;
}

/* Words from column `from` on, the first line being at column `at` already. */
static void put_wrapped (FILE *out, const char *text, int from, int at) {
  while (*text) {
    int length = (int)strcspn (text, " \n");
    if (at > from && at + 1 + length > WIDTH) {
      fprintf (out, "\n%*s", from, "");
      at = from;
    } else if (at > from) {
      fputc (' ', out);
      at++;
    }
    fprintf (out, "%.*s", length, text);
    at += length;
    text += length;
    while (*text == ' ')
      text++;
    if (*text == '\n') { /* a paragraph ends */
      text++;
      fprintf (out, *text ? "\n\n%*s" : "%*s", *text ? from : 0, "");
      at = from;
    }
  }
  fputc ('\n', out);
}

void help_program (FILE *out) {
  fputs ("ferry: what a GPU should carry, what the host should hold, and when each\n"
         "tensor crosses the link between them\n\nusage: ferry COMMAND [OPTIONS] ...\n\n",
         out);
  for (int i = 0; commands[i]; i++)
    fprintf (out, "  %-12s %s\n", commands[i]->name, commands[i]->says);
  fputs ("\n`ferry COMMAND --help` says more. Files may be gzip or zstd compressed; - is\n"
         "standard input or output. Results are on standard output, messages on\n"
         "standard error.\n",
         out);
}

void help_command (FILE *out, const cli_command *command) {
  char text[OPTION_TEXT];
  fprintf (out, "usage: ferry %s [OPTIONS]%s%s\n\n", command->name, *command->operands ? " " : "",
           command->operands);
  put_wrapped (out, command->about, 0, 0);
  fputs ("\noptions:\n", out);
  const cli_option *o;
  for (int i = 0; (o = option_at (command, i)); i++) {
    int length = fprintf (out, "  %s%s", o->letter ? "" : "    ", option_text (text, o));
    if (length >= INDENT) {
      fputc ('\n', out);
      length = 0;
    }
    fprintf (out, "%*s", INDENT - length, "");
    put_wrapped (out, o->says, INDENT, INDENT);
  }
}
