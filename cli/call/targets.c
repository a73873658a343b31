/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The files that a command is to write. They are checked before the work, which may take hours and
   would be lost. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/call/call.h"

/* A folder comes first: it is made for those behind it. */
static const char *const targets[] = { "output",     "dump",   "tsv",     "svg",
                                       "html",       "chrome", "report",  "keep-plan",
                                       "keep-trace", "times",  "timeline" };
enum { TARGETS = sizeof targets / sizeof *targets };

/* Two results in one stream could not be told apart. */
static bool have_one_stdout (call *c) {
  const char *taken = c->json ? "json" : NULL;
  for (int i = 0; i < TARGETS; i++) {
    if (!call_is_stdout (call_own_text (c, targets[i])))
      continue;
    if (taken)
      return call_usage (
          c, "only one of --%s and --%s can have standard output: give the other a FILE", taken,
          targets[i]);
    taken = targets[i];
  }
  return true;
}

static bool is_one (const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Files that are not there yet are one by their folder and their last name: x and ./x. */
static bool becomes_same (const char *a, const char *b) {
  struct stat at[2];
  const char *const paths[] = { a, b }, *last[2];
  for (int i = 0; i < 2; i++) {
    char folder[PATH_MAX] = ".";
    const char *slash = strrchr (paths[i], '/');
    size_t length = slash ? (size_t)(slash + 1 - paths[i]) : 0;
    last[i] = paths[i] + length;
    if (length >= sizeof folder)
      return false;
    if (slash) {
      memcpy (folder, paths[i], length);
      folder[length] = 0;
    }
    if (stat (folder, &at[i]) != 0)
      return strcmp (a, b) == 0;
  }
  return is_one (&at[0], &at[1]) && strcmp (last[0], last[1]) == 0;
}

static bool is_same (const char *a, const char *b) {
  struct stat at_a, at_b;
  bool there = stat (a, &at_a) == 0, too = stat (b, &at_b) == 0;
  if (there && too)
    return S_ISREG (at_a.st_mode) && is_one (&at_a, &at_b);
  return !there && !too && becomes_same (a, b);
}

/* Its operands are files that it reads. `convert` alone may put a file in its own place: what was
   in it is still there. */
static bool reads_operands (const cli_command *command) {
  return command->operands && strcmp (command->name, "convert") != 0 &&
         (strstr (command->operands, "TRACE") || strstr (command->operands, "PLAN") ||
          strstr (command->operands, "FILE"));
}

/* Is the path one of a list of files? What has neither a folder nor an ending is the name of a
   card. */
static bool is_listed (const char *path, const char *list) {
  for (size_t length; *list; list += length + (list[length] == ',')) {
    char part[PATH_MAX];
    length = strcspn (list, ",");
    if (length >= sizeof part)
      continue;
    memcpy (part, list, length);
    part[length] = 0;
    if (strpbrk (part, "/.") && is_same (path, part))
      return true;
  }
  return false;
}

bool call_reads (const call *c, const char *path) {
  enum { LISTS = 2, OPTIONS = 4 };
  static const char *const options[OPTIONS] = { "device", "from", "plan", "data" };
  for (int k = 0; reads_operands (c->command) && k < c->n_operands; k++)
    if (is_same (path, c->operands[k]))
      return true;
  for (int k = 0; k < OPTIONS; k++) {
    const char *given = call_own_text (c, options[k]);
    if (given && (k < LISTS ? is_listed (path, given) : is_same (path, given)))
      return true;
  }
  return false;
}

/* A result must not take the place of something that is read, nor of another result. */
static bool are_apart (call *c, int i) {
  const char *path = call_own_text (c, targets[i]);
  if (call_reads (c, path))
    return call_usage (c, "--%s: %s is what is read; give the result another name", targets[i],
                       path);
  for (int k = 0; k < i; k++)
    if (call_own_text (c, targets[k]) && is_same (path, call_own_text (c, targets[k])))
      return call_usage (c, "--%s and --%s name the same file, %s", targets[k], targets[i], path);
  return true;
}

/* The folder of --output, where it is one, or may become one. */
static const char *folder_of (const call *c) {
  const char *path = call_own_text (c, targets[0]);
  struct stat what;
  bool may = path && strstr (call_value (c, targets[0]), "FOLDER");
  return may && (stat (path, &what) != 0 || S_ISDIR (what.st_mode)) ? path : NULL;
}

static bool can_be_made (call *c, int i) {
  const char *path = call_own_text (c, targets[i]), *folder = folder_of (c);
  size_t length = folder ? strlen (folder) : 0;
  bool there = folder && access (folder, F_OK) == 0;
  if (folder && i > 0 && !there && strncmp (path, folder, length) == 0 && path[length] == '/')
    return true;
  if (i > 0 || !there)
    return file_creatable (path, &c->err);
  return access (folder, W_OK | X_OK) == 0 ||
         error_set (&c->err, ERR_file, "%s: cannot be written: %s", folder, strerror (errno));
}

/* Read to its end, standard input is empty. */
static bool have_one_stdin (call *c) {
  int n = 0;
  for (int k = 0; reads_operands (c->command) && k < c->n_operands; k++)
    n += call_is_stdout (c->operands[k]);
  return n <= 1 ||
         call_usage (c, "only one FILE can be standard input: give the name of the other");
}

static bool has_real_folder (call *c) {
  const char *path = call_own_text (c, targets[0]);
  return !call_is_stdout (path) || strcmp (call_value (c, targets[0]), "FOLDER") != 0 ||
         call_usage (c, "--%s: a folder is wanted, not standard output", targets[0]);
}

bool call_has_targets (call *c) {
  if (!have_one_stdout (c) || !have_one_stdin (c) || !has_real_folder (c))
    return false;
  for (int i = 0; i < TARGETS; i++)
    if (call_own_text (c, targets[i]) && !call_is_stdout (call_own_text (c, targets[i])) &&
        (!are_apart (c, i) || !can_be_made (c, i)))
      return false;
  return true;
}
