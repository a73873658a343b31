/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Completion for bash, zsh and fish, printed from the tables of commands, networks and policies. */
#include <string.h>

#include "cli/call/call.h"
#include "cli/help.h"
#include "solver/policy/policy.h"
#include "trace/zoo/zoo.h"

static void options_of (const cli_command *command, const char *between) {
  const cli_option *o;
  for (int i = 0; (o = option_at (command, i)); i++)
    printf ("%s--%s", i ? between : "", o->name);
}

/* ---- words for options ---- */

static void networks (const char *between) {
  int count;
  const zoo_network *all = zoo_list (&count);
  for (int i = 0; i < count; i++)
    printf ("%s%s", i ? between : "", all[i].name);
}

static void policies (void) {
  for (int i = 0; i < POLICIES; i++)
    printf ("%s%s", i ? " " : "", policy_at ((policy_id)i)->name);
}

static bool is (const char *word, const char *other) {
  return strcmp (word, other) == 0;
}

static bool has_words (const cli_option *o) {
  return is (o->name, "color") || (strchr (o->value, '|') && o->value[0] >= 'a');
}

static bool takes_network (const cli_command *command) {
  return is (command->name, "zoo") || is (command->name, "max-batch");
}

static bool is_card (const cli_option *o) {
  return is (o->value, "NAME|FILE");
}

static bool takes_file (const cli_option *o) {
  return strstr (o->value, "FILE") || strstr (o->value, "FOLDER") || strstr (o->value, "DIR");
}

/* The words after an option, separated by spaces; nothing where anything may follow. */
static void words_of (const cli_option *o, const char *devices) {
  if (is_card (o))
    fputs (devices, stdout);
  else if (is (o->name, "policy") || is (o->name, "policies"))
    policies ();
  else if (has_words (o))
    for (const char *at = o->value; *at; at++)
      fputc (*at == '|' ? ' ' : *at, stdout);
}

static void text_without (const char *text, const char *special, const char *instead) {
  for (; *text; text++)
    if (strchr (special, *text))
      printf ("%s", instead);
    else
      putchar (*text);
}

/* ---- bash ---- */

static void bash_values (const cli_command *command) {
  const cli_option *o;
  for (int i = 0; (o = option_at (command, i)); i++) {
    if (!o->value)
      continue;
    printf ("    %s/--%s", command->name, o->name);
    if (o->letter)
      printf (" | %s/-%c", command->name, o->letter);
    fputs (") words=\"", stdout);
    words_of (o, "$(ferry devices 2>/dev/null)");
    printf ("\"%s ;;\n", takes_file (o) ? "; files=1" : "");
  }
}

static void bash (void) {
  fputs ("# bash completion for ferry\n"
         "_ferry() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  local command=${COMP_WORDS[1]} words= files= commands=\"",
         stdout);
  for (int i = 0; commands[i]; i++)
    printf ("%s%s", i ? " " : "", commands[i]->name);
  fputs ("\"\n"
         "  COMPREPLY=()\n"
         "  if [ \"$COMP_CWORD\" = 1 ]; then\n"
         "    COMPREPLY=($(compgen -W \"$commands help\" -- \"$cur\"))\n"
         "    return\n"
         "  fi\n"
         "  case $command/$prev in\n"
         "    help/*) words=$commands ;;\n",
         stdout);
  for (int i = 0; commands[i]; i++)
    bash_values (commands[i]);
  fputs ("    *) case $cur in\n      -*) case $command in\n", stdout);
  for (int i = 0; commands[i]; i++) {
    printf ("        %s) words='", commands[i]->name);
    options_of (commands[i], " ");
    puts ("' ;;");
  }
  fputs ("      esac ;;\n      *) files=1; case $command in zoo | max-batch) words='", stdout);
  networks (" ");
  fputs ("' ;; completion) words='bash zsh fish' ;; esac ;;\n"
         "    esac ;;\n"
         "  esac\n"
         "  [ -z \"$words\" ] || COMPREPLY+=($(compgen -W \"$words\" -- \"$cur\"))\n"
         "  [ -z \"$files\" ] || COMPREPLY+=($(compgen -f -- \"$cur\"))\n"
         "}\n"
         "complete -o filenames -F _ferry ferry\n",
         stdout);
}

/* ---- zsh ---- */

static void zsh_option (const cli_option *o) {
  printf (" \\\n      '--%s%s[", o->name, o->value ? "=" : "");
  text_without (o->says, "'[]:`\\", "");
  putchar (']');
  if (o->value) {
    printf (":value:");
    if (takes_file (o) && !is_card (o))
      printf ("_files");
    else {
      putchar ('(');
      words_of (o, "$(ferry devices 2>/dev/null)");
      putchar (')');
    }
  }
  putchar ('\'');
}

static void zsh (void) {
  puts ("#compdef ferry\n# zsh completion for ferry\n_ferry() {\n  local -a commands=(");
  for (int i = 0; commands[i]; i++) {
    printf ("    '%s:", commands[i]->name);
    text_without (commands[i]->says, "':`\\", "");
    puts ("'");
  }
  puts ("    'help:what a command does')\n"
        "  if ((CURRENT == 2)); then\n    _describe command commands\n    return\n  fi\n"
        "  case $words[2] in\n    help) _describe command commands ;;");
  for (int i = 0; commands[i]; i++) {
    const cli_option *o;
    printf ("    %s) shift words; ((CURRENT--)); _arguments", commands[i]->name);
    for (int k = 0; (o = option_at (commands[i], k)); k++)
      zsh_option (o);
    if (takes_network (commands[i])) {
      printf (" \\\n      '1:network:(");
      networks (" ");
      printf (")'");
    } else {
      printf (" \\\n      '*:file:_files'");
    }
    puts (" ;;");
  }
  puts ("  esac\n}\ncompdef _ferry ferry 2>/dev/null\n[ \"$funcstack[1]\" = _ferry ] && _ferry "
        "\"$@\"");
}

/* ---- fish ---- */

static void fish (void) {
  puts ("# fish completion for ferry");
  for (int i = 0; commands[i]; i++) {
    const cli_option *o;
    printf ("complete -c ferry -n __fish_use_subcommand -x -a %s -d '", commands[i]->name);
    text_without (commands[i]->says, "'\\", "");
    puts ("'");
    printf ("complete -c ferry -n '__fish_seen_subcommand_from help' -x -a %s\n",
            commands[i]->name);
    for (int k = 0; (o = option_at (commands[i], k)); k++) {
      printf ("complete -c ferry -n '__fish_seen_subcommand_from %s' -l %s", commands[i]->name,
              o->name);
      if (o->letter)
        printf (" -s %c", o->letter);
      if (o->value) {
        printf (" -r%s -a '", takes_file (o) ? " -F" : " -f");
        words_of (o, "(ferry devices 2>/dev/null)");
        putchar ('\'');
      }
      printf (" -d '");
      text_without (o->says, "'\\", "");
      puts ("'");
    }
    if (takes_network (commands[i])) {
      printf ("complete -c ferry -n '__fish_seen_subcommand_from %s' -a '", commands[i]->name);
      networks (" ");
      puts ("'");
    }
  }
}

static void list (void) {
  for (int i = 0; commands[i]; i++) {
    const cli_option *o;
    for (int j = 0; (o = option_at (commands[i], j)); j++)
      printf ("%s --%s\n", commands[i]->name, o->name);
  }
}

static int run (call *c) {
  const char *shell = c->n_operands ? c->operands[0] : "bash";
  static const struct {
    const char *name;
    void (*print) (void);
  } shells[] = { { "bash", bash }, { "zsh", zsh }, { "fish", fish } };
  if (call_flag (c, "list")) {
    list ();
    return EXIT_YES;
  }
  for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
    if (is (shell, shells[i].name)) {
      shells[i].print ();
      return EXIT_YES;
    }
  call_usage (c, "`%s` is not one of bash|zsh|fish", shell);
  return call_failed (c);
}

static const cli_option options[] = {
  { 'l', "list", NULL, "every command with each of its options, one a line" },
  OPTIONS_END,
};

const cli_command command_completion = {
  .name = "completion",
  .says = "print the completion for a shell",
  .operands = "[bash|zsh|fish]",
  .least = 0,
  .most = 1,
  .about =
      "Prints what the shell needs to complete commands, options, networks, policies, devices, "
      "help topics and files: `eval \"$(ferry completion bash)\"`. `make install` puts all three "
      "where the shells look. With --list every command with each of its options, as data for any "
      "other shell.\n",
  .options = options,
  .run = run,
};
