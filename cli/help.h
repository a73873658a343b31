/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A command in words: for the terminal, for man, and as a page of docs/. */
#pragma once

#include <stdio.h>

#include "cli/call/command.h"

void help_program (FILE *out);
void help_command (FILE *out, const cli_command *command);

/* "-o, --output FILE" */
enum { OPTION_TEXT = 96 };
const char *option_text (char text[OPTION_TEXT], const cli_option *o);

/* The options of a command, its own first; NULL behind the last. */
const cli_option *option_at (const cli_command *command, int index);

/* The exit statuses, one a line: status, meaning. */
extern const struct exit_line {
  int status;
  const char *says;
} exit_lines[];
extern const int n_exit_lines;

/* Examples, by command. */
extern const struct example_line { const char *command, *line, *says; } example_lines[];
extern const int n_example_lines;
