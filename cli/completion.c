/* Completion for bash, printed from the table of commands. */
#include <string.h>

#include "cli/call/call.h"
#include "cli/help.h"

static void options_of (const cli_command *command, const char *between) {
  const cli_option *o;
  for (int i = 0; (o = option_at (command, i)); i++)
    printf ("%s--%s", i ? between : "", o->name);
}

/* What may follow an option: words, a device, or a file. */
static void values_of (const cli_command *command) {
  const cli_option *o;
  for (int i = 0; (o = option_at (command, i)); i++) {
    if (!o->value)
      continue;
    printf ("    %s/--%s", command->name, o->name);
    if (o->letter)
      printf (" | %s/-%c", command->name, o->letter);
    if (strcmp (o->name, "device") == 0) {
      puts (") words=$(ferry devices 2>/dev/null); files=1 ;;");
    } else if (strcmp (o->name, "color") == 0 || (strchr (o->value, '|') && o->value[0] >= 'a')) {
      fputs (") words='", stdout);
      for (const char *at = o->value; *at; at++)
        fputc (*at == '|' ? ' ' : *at, stdout);
      puts ("' ;;");
    } else
      puts (strstr (o->value, "FILE") || strstr (o->value, "FOLDER") ? ") files=1 ;;" : ") ;;");
  }
}

static void bash (void) {
  fputs ("# bash completion for ferry\n"
         "_ferry() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  local command=${COMP_WORDS[1]} words= files=\n"
         "  COMPREPLY=()\n"
         "  if [ \"$COMP_CWORD\" = 1 ]; then\n"
         "    COMPREPLY=($(compgen -W \"",
         stdout);
  for (int i = 0; commands[i]; i++)
    printf ("%s%s", i ? " " : "", commands[i]->name);
  fputs ("\" -- \"$cur\"))\n    return\n  fi\n  case $command/$prev in\n", stdout);
  for (int i = 0; commands[i]; i++)
    values_of (commands[i]);
  fputs ("    *) case $cur in\n      -*) case $command in\n", stdout);
  for (int i = 0; commands[i]; i++) {
    printf ("        %s) words='", commands[i]->name);
    options_of (commands[i], " ");
    puts ("' ;;");
  }
  fputs ("      esac ;;\n"
         "      *) files=1 ;;\n"
         "    esac ;;\n"
         "  esac\n"
         "  [ -z \"$words\" ] || COMPREPLY+=($(compgen -W \"$words\" -- \"$cur\"))\n"
         "  [ -z \"$files\" ] || COMPREPLY+=($(compgen -f -- \"$cur\"))\n"
         "}\n"
         "complete -o filenames -F _ferry ferry\n",
         stdout);
}

static void list (void) {
  for (int i = 0; commands[i]; i++) {
    const cli_option *o;
    for (int j = 0; (o = option_at (commands[i], j)); j++)
      printf ("%s --%s\n", commands[i]->name, o->name);
  }
}

static int run (call *c) {
  if (call_flag (c, "list"))
    list ();
  else
    bash ();
  return EXIT_YES;
}

static const cli_option options[] = {
  { 'l', "list", NULL, "every command with each of its options, one a line" },
  OPTIONS_END,
};

const cli_command command_completion = {
  .name = "completion",
  .says = "print the completion for bash",
  .operands = "",
  .about = "Prints what bash needs to complete commands, options, devices and files: "
           "`eval \"$(ferry completion)\"`.\n",
  .options = options,
  .run = run,
};
