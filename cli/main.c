/* SPDX-License-Identifier: GPL-3.0-or-later */
/* ferry: looks up the command, lets it run, says in one line what went wrong. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/call/call.h"
#include "cli/help.h"
#include "cli/inputs/stopping.h"

#define COMMAND(name) extern const cli_command command_##name;
#include "cli/commands.def"
#undef COMMAND

const cli_command *const commands[] = {
#define COMMAND(name) &command_##name,
#include "cli/commands.def"
#undef COMMAND
  NULL,
};

const cli_command *command_named (const char *name) {
  for (int i = 0; commands[i]; i++)
    if (strcmp (commands[i]->name, name) == 0)
      return commands[i];
  return NULL;
}

static int unknown_command (const char *name) {
  const char *names[sizeof commands / sizeof *commands];
  int n = 0;
  for (; commands[n]; n++)
    names[n] = commands[n]->name;
  const char *near = nearest_word (name, names, n);
  if (near)
    fprintf (stderr, "ferry: there is no command `%s`; did you mean `%s`?\n", name, near);
  else
    fprintf (stderr, "ferry: there is no command `%s`; see `ferry --help`\n", name);
  return EXIT_USAGE;
}

/* All that was printed has arrived, or that is the error. */
static void flush_output (error *err) {
  if (!err->code && (fflush (stdout) || ferror (stdout)))
    error_set (err, ERR_file, "standard output cannot be written");
}

static int tell (const error *err, bool verbose) {
  char line[sizeof *err];
  fflush (stdout);
  fprintf (stderr, "ferry: %s\n", error_line (err, line, sizeof line));
  if (verbose && err->more[0])
    fprintf (stderr, "ferry: %s\n", err->more);
  return error_exit_status (err->code);
}

static int program (int argc, char **argv);

static int run (const cli_command *command, int argc, char **argv) {
  call c = { .program = program, .arena = arena_new (0) };
  int status = EXIT_YES;
  if (!c.arena)
    error_memory (&c.err);
  else if (call_parse (&c, command, argc, argv)) {
    if (call_flag (&c, "help"))
      help_command (stdout, command);
    else
      status = command->run (&c);
    if (!c.err.code && stopping_asked (&c)) {
      call_note (&c, "interrupted; what was known by then is written");
      status = EXIT_INTERRUPTED;
    }
  }
  flush_output (&c.err);
  if (c.err.code) {
    int of_error = tell (&c.err, c.verbose);
    status = c.keeps_status ? status : of_error;
  }
  arena_free (c.arena);
  return status;
}

/* `ferry help [COMMAND]` */
static int help (const cli_command *command) {
  error err = { 0 };
  if (command)
    help_command (stdout, command);
  else
    help_program (stdout);
  flush_output (&err);
  return err.code ? tell (&err, false) : EXIT_YES;
}

/* A program that begins with a stream closed would write its results into the first file that it
   opens. A file that grows too large is an error of that file, not the end of the program. */
static void guard_streams (void) {
  static const char *const stand_ins[] = { "/dev/null", "/dev/full", "/dev/null" };
  for (int fd = 0; fd < 3; fd++)
    if (fcntl (fd, F_GETFD) < 0 && open (stand_ins[fd], fd ? O_WRONLY : O_RDONLY) != fd)
      _exit (EXIT_USAGE);
  signal (SIGXFSZ, SIG_IGN);
}

static int program (int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : NULL;
  if (!name) {
    help_program (stderr);
    return EXIT_USAGE;
  }
  if (strcmp (name, "--version") == 0 || strcmp (name, "-V") == 0)
    name = "version";
  bool asks =
      strcmp (name, "--help") == 0 || strcmp (name, "-h") == 0 || strcmp (name, "help") == 0;
  if (asks && argc < 3)
    return help (NULL);
  name = asks ? argv[2] : name;
  const cli_command *command = command_named (name);
  if (!command)
    return unknown_command (name);
  return asks ? help (command) : run (command, argc - 2, argv + 2);
}

int main (int argc, char **argv) {
  guard_streams ();
  return program (argc, argv);
}
