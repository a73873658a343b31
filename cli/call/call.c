/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/call/call.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/units.h"

enum { LONGEST_WORD = 64, NARROWEST = 40, WIDEST = 200 };

const cli_option common_options[] = {
  { 0, "json", NULL, "print the result as JSON" },
  { 'q', "quiet", NULL, "print errors only" },
  { 'v', "verbose", NULL, "more messages" },
  { 0, "color", "auto|always|never", "colours in the terminal; auto looks at NO_COLOR too" },
  { 'h', "help", NULL, "print this help" },
  OPTIONS_END,
};

bool common_applies (const cli_command *command, const cli_option *o) {
  return (command->json || strcmp (o->name, "json") != 0) &&
         (command->draws || strcmp (o->name, "color") != 0);
}

/* ---- words ---- */

/* Edits (insert, delete, change, swap of neighbours) that turn one word into the other. */
static int distance (const char *a, const char *b) {
  int n = (int)strlen (a), m = (int)strlen (b);
  int rows[3][LONGEST_WORD + 1];
  if (n > LONGEST_WORD || m > LONGEST_WORD)
    return LONGEST_WORD;
  int *before = rows[0], *last = rows[1], *now = rows[2];
  for (int j = 0; j <= m; j++)
    last[j] = j;
  for (int i = 1; i <= n; i++) {
    now[0] = i;
    for (int j = 1; j <= m; j++) {
      int best =
          last[j - 1] + (tolower ((unsigned char)a[i - 1]) != tolower ((unsigned char)b[j - 1]));
      if (last[j] + 1 < best)
        best = last[j] + 1;
      if (now[j - 1] + 1 < best)
        best = now[j - 1] + 1;
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
          before[j - 2] + 1 < best)
        best = before[j - 2] + 1;
      now[j] = best;
    }
    int *oldest = before;
    before = last;
    last = now;
    now = oldest;
  }
  return last[m];
}

const char *nearest_word (const char *word, const char *const *words, int count) {
  const char *best = NULL;
  int least = (int)strlen (word) / 3 + 1;
  for (int i = 0; i < count; i++) {
    int d = distance (word, words[i]);
    bool starts = strlen (word) >= 3 && strncmp (word, words[i], strlen (word)) == 0;
    if (starts)
      d = 0;
    if (d < least || (d == least && !best)) {
      least = d;
      best = words[i];
    }
  }
  return best;
}

/* ---- the rows of a call: the command's options, then the common ones ---- */

static int own_options (const cli_command *command) {
  int n = 0;
  while (command->options && command->options[n].name)
    n++;
  return n;
}

static const cli_option *row_at (const cli_command *command, int row) {
  int own = own_options (command);
  return row < own ? &command->options[row] : &common_options[row - own];
}

static int row_of (const cli_command *command, const char *name, char letter) {
  for (int i = 0; row_at (command, i)->name; i++) {
    const cli_option *o = row_at (command, i);
    bool same = name ? strcmp (o->name, name) == 0 : letter && o->letter == letter;
    if (same && (i < own_options (command) || common_applies (command, o)))
      return i;
  }
  return -1;
}

static bool unknown_option (call *c, const char *name) {
  const char *names[MOST_OPTIONS];
  int n = 0;
  for (int i = 0; row_at (c->command, i)->name; i++)
    if (i < own_options (c->command) || common_applies (c->command, row_at (c->command, i)))
      names[n++] = row_at (c->command, i)->name;
  const char *near = nearest_word (name, names, n);
  if (near)
    return call_usage (c, "%s has no option --%s; did you mean --%s?", c->command->name, name,
                       near);
  return call_usage (c, "%s has no option --%s; see `ferry %s --help`", c->command->name, name,
                     c->command->name);
}

/* A list may be given in several goes. */
static bool is_list (const cli_option *o) {
  size_t length = strlen (o->value);
  return length > 4 && strcmp (o->value + length - 4, ",...") == 0;
}

static bool keep_value (call *c, int row, const char *given) {
  const cli_option *o = row_at (c->command, row);
  if (c->values[row] && o->value && is_list (o))
    given = arena_format (c->arena, &c->err, "%s,%s", c->values[row], given);
  c->values[row] = given;
  return given;
}

/* One argument that starts with "--"; *used counts a value that stands in the next one. */
static bool parse_long (call *c, const char *argument, const char *next, int *used) {
  char name[LONGEST_WORD];
  const char *equals = strchr (argument, '=');
  int length = equals ? (int)(equals - argument) : (int)strlen (argument);
  snprintf (name, sizeof name, "%.*s", length, argument);
  int row = row_of (c->command, name, 0);
  if (row < 0)
    return unknown_option (c, name);
  bool wants = row_at (c->command, row)->value;
  if (!wants && equals)
    return call_usage (c, "--%s takes no value", name);
  if (wants && !equals && !next)
    return call_usage (c, "--%s needs a value: %s", name, row_at (c->command, row)->value);
  *used += wants && !equals;
  return keep_value (c, row, !wants ? "" : equals ? equals + 1 : next);
}

/* One argument of letters: flags may stand together, a value may follow at once. */
static bool parse_letters (call *c, const char *letters, const char *next, int *used) {
  for (const char *at = letters; *at; at++) {
    int row = row_of (c->command, NULL, *at);
    if (row < 0)
      return call_usage (c, "%s has no option -%c; see `ferry %s --help`", c->command->name, *at,
                         c->command->name);
    if (!row_at (c->command, row)->value) {
      c->values[row] = "";
      continue;
    }
    if (!at[1] && !next)
      return call_usage (c, "-%c needs a value: %s", *at, row_at (c->command, row)->value);
    *used += !at[1];
    return keep_value (c, row, at[1] ? at + 1 : next);
  }
  return true;
}

static bool parse_arguments (call *c, int argc, char **argv) {
  bool plain = false;
  c->operands = NEW (c->arena, argc + 1, const char *, &c->err);
  for (int i = 0; c->operands && i < argc; i++) {
    const char *at = argv[i], *next = i + 1 < argc ? argv[i + 1] : NULL;
    bool option = !plain && at[0] == '-' && at[1];
    if (option && strcmp (at, "--") == 0) {
      plain = true;
    } else if (option) {
      if (at[1] == '-' ? !parse_long (c, at + 2, next, &i) : !parse_letters (c, at + 1, next, &i))
        return false;
    } else
      c->operands[c->n_operands++] = at;
  }
  return c->operands;
}

/* ---- the terminal and the environment ---- */

static bool environment_has (const char *name) {
  const char *value = getenv (name);
  return value && *value;
}

static bool locale_is_utf8 (void) {
  static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
  for (int i = 0; i < 3; i++)
    if (environment_has (names[i])) {
      const char *value = getenv (names[i]);
      return strcasestr (value, "utf-8") || strcasestr (value, "utf8");
    }
  return false;
}

static int terminal_columns (void) {
  struct winsize size = { 0 };
  int64_t columns = 80;
  error ignored = { 0 };
  if (environment_has ("COLUMNS") &&
      units_parse_count (getenv ("COLUMNS"), 1, 10000, &columns, &ignored))
    ;
  else if (ioctl (STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    columns = size.ws_col;
  return columns < NARROWEST ? NARROWEST : columns > WIDEST ? WIDEST : (int)columns;
}

static bool wants_color (call *c, bool *out) {
  static const char *const words[] = { "auto", "always", "never", NULL };
  int when = 0;
  if (call_has_option (c, "color") && !call_word (c, "color", words, &when))
    return false;
  const char *terminal = getenv ("TERM");
  bool able = isatty (STDOUT_FILENO) && terminal && strcmp (terminal, "dumb") != 0;
  *out = when == 1 || (when == 0 && able && !environment_has ("NO_COLOR"));
  return true;
}

void call_clear_line (const call *c) {
  if (c->going.live)
    fputs ("\r\033[K", stderr);
}

static void say (void *context, log_level level, const char *text) {
  const call *c = context;
  if (c->quiet || (level != LOG_WARNING && !c->verbose))
    return;
  call_clear_line (c);
  fprintf (stderr, "ferry: %s%s\n", level == LOG_WARNING ? "warning: " : "", text);
}

/* Before any file is read, and whether or not the command comes to ask: what is wrong with a value
   that is a quantity and nothing else. Lists and words are looked at where they are taken apart. */
static bool quantities_are_in_range (call *c) {
  for (const cli_option *o = c->command->options; o && o->name; o++) {
    const char *mixed = o->value ? strpbrk (o->value, ",@|") : NULL;
    int64_t ignored = 0;
    if (o->range.kind != UNITS_NONE && (!mixed || strcmp (mixed, "|%") == 0) &&
        !call_quantity (c, o->name, &ignored))
      return false;
  }
  return true;
}

/* The last plan is kept for the line of progress. The plans that a worker of `ferry serve`
   has found, as lines of JSON to the pipe that its parent gave it. A parent that does not read is
   no reason to stop. */
static void tell_found (void *context, const char *by, int64_t step_ns, int64_t bound_ns) {
  call *c = context;
  char line[256];
  going *g = &c->going;
  if (g->best_ns > 0 && g->best_of == g->done && step_ns >= g->best_ns)
    return;
  g->best_of = g->done;
  g->best_ns = step_ns;
  g->bound_ns = bound_ns;
  if (c->progress_fd <= 0)
    return;
  int n = snprintf (line, sizeof line, "{\"bound_ns\":%lld,\"by\":\"%.64s\",\"step_ns\":%lld}\n",
                    (long long)bound_ns, by, (long long)step_ns);
  if (n > 0 && write (c->progress_fd, line, (size_t)n) < 0)
    return;
}

void call_tell_done (const call *c) {
  char line[256];
  const going *g = &c->going;
  if (c->progress_fd <= 0)
    return;
  int n = g->all ? snprintf (line, sizeof line, "{\"all\":%d,\"done\":%d}\n", g->all, g->done)
                 : snprintf (line, sizeof line, "{\"done\":%d}\n", g->done);
  if (n > 0 && write (c->progress_fd, line, (size_t)n) < 0)
    return;
}

static void tell_parent (call *c) {
  error ignored = { 0 };
  int64_t fd = 0;
  if (!environment_has ("FERRY_PROGRESS_FD") ||
      !units_parse_count (getenv ("FERRY_PROGRESS_FD"), 3, 1000, &fd, &ignored))
    return;
  c->progress_fd = (int)fd;
}

bool call_parse (call *c, const cli_command *command, int argc, char **argv) {
  c->command = command;
  if (!parse_arguments (c, argc, argv))
    return false;
  c->json = command->json && call_flag (c, "json");
  c->quiet = call_flag (c, "quiet");
  c->verbose = call_flag (c, "verbose");
  c->utf8 = locale_is_utf8 ();
  c->columns = terminal_columns ();
  c->log = (logger){ .say = say, .found = tell_found, .context = c };
  tell_parent (c);
  if (!wants_color (c, &c->color))
    return false;
  if (call_flag (c, "help"))
    return true;
  if (!quantities_are_in_range (c))
    return false;
  if (c->n_operands == 2 && strcmp (command->operands, "TRACE") == 0)
    return call_usage (c,
                       "usage: ferry %s [OPTIONS] TRACE; two profiles of one run become a trace by "
                       "`ferry import %s %s -o TRACE`",
                       command->name, c->operands[0], c->operands[1]);
  if (c->n_operands == 1 && strcmp (command->operands, "TRACE PLAN") == 0)
    return call_usage (c, "ferry %s needs a plan beside %s; `ferry solve %s -o PLAN` makes one",
                       command->name, c->operands[0], c->operands[0]);
  if (c->n_operands < command->least || (command->most >= 0 && c->n_operands > command->most))
    return call_usage (c, "usage: ferry %s%s%s%s; see `ferry %s --help`", command->name,
                       command->options ? " [OPTIONS]" : "", *command->operands ? " " : "",
                       command->operands, command->name);
  return call_flag (c, "help") || call_has_targets (c);
}

bool call_has_option (const call *c, const char *option) {
  return row_of (c->command, option, 0) >= 0;
}

bool call_given (const call *c, const char *option) {
  int row = row_of (c->command, option, 0);
  return row >= 0 && c->values[row];
}

const char *call_text (const call *c, const char *option) {
  int row = row_of (c->command, option, 0);
  assert (row >= 0 && "a command asks for its own options only");
  if (c->values[row] || !row_at (c->command, row)->value)
    return c->values[row];
  char name[LONGEST_WORD + 8];
  snprintf (name, sizeof name, "FERRY_%s", option);
  for (char *at = name; *at; at++)
    *at = *at == '-' ? '_' : (char)toupper ((unsigned char)*at);
  return environment_has (name) ? getenv (name) : NULL;
}

const char *call_own_text (const call *c, const char *option) {
  return call_has_option (c, option) ? call_text (c, option) : NULL;
}

bool call_flag (const call *c, const char *option) {
  return call_text (c, option);
}

const char *call_first (const call *c, const char *const *options, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (call_own_text (c, options[i]))
      return options[i];
  return NULL;
}

int32_t call_same_operand (const call *c, int32_t operand) {
  int32_t same = 0;
  while (strcmp (c->operands[same], c->operands[operand]) != 0)
    same++;
  return same;
}

const char *call_value (const call *c, const char *option) {
  return row_at (c->command, row_of (c->command, option, 0))->value;
}

bool call_part (call *c, const char *option, const char *text, int64_t whole_bytes, int64_t *out) {
  const cli_option *o = row_at (c->command, row_of (c->command, option, 0));
  error wrong = { 0 };
  if (units_parse_within (text, &o->range, whole_bytes, out, &wrong))
    return true;
  return error_set (&c->err, wrong.code, "--%s: %s", option, wrong.text);
}

bool call_amount (call *c, const char *option, int64_t whole_bytes, int64_t *out) {
  const char *text = call_text (c, option);
  return !text || call_part (c, option, text, whole_bytes, out);
}

bool call_jobs (call *c, int64_t *out) {
  int64_t there = sysconf (_SC_NPROCESSORS_ONLN);
  *out = there < 1 ? 1 : there;
  return call_quantity (c, "jobs", out);
}

bool call_quantity (call *c, const char *option, int64_t *out) {
  return call_amount (c, option, 0, out);
}

bool call_percent (call *c, const char *option, int64_t *out) {
  enum { PERCENT = 10000 };
  int64_t ppm = *out * PERCENT;
  if (!call_quantity (c, option, &ppm))
    return false;
  *out = ppm / PERCENT;
  return ppm % PERCENT == 0 ||
         call_usage (c, "--%s: %s is not a whole percentage", option, call_text (c, option));
}

bool call_word (call *c, const char *option, const char *const *words, int *out) {
  const char *text = call_text (c, option);
  if (!text)
    return true;
  int count = 0;
  for (; words[count]; count++)
    if (strcmp (words[count], text) == 0) {
      *out = count;
      return true;
    }
  const char *near = nearest_word (text, words, count);
  return call_usage (c, "--%s: `%s` is not one of %s%s%s", option, text,
                     row_at (c->command, row_of (c->command, option, 0))->value,
                     near ? "; did you mean " : "", near ? near : "");
}
