/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A worker that waits for its one command. All that needs no job is done before: limits, another
   user than root; the rest of the sandbox follows when it has its folder. */
#include "cli/service/waiting.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/child.h"
#include "base/passing.h"
#include "base/sandbox.h"
#include "base/units.h"
#include "cli/inputs/beside.h"
#include "cli/inputs/devices.h"
#include "server/work/spare.h"

enum { MOST_FILES = 64, SPARE_S = 15, NICE = 5, MOST_PROCESSES = 512, MOST_WORDS = 256 };

/* The first limit is told by a signal, where there is one for it; the second one kills. */
static void limit_twice (int what, int64_t most, int64_t at_last) {
  struct rlimit l = { (rlim_t)most, (rlim_t)at_last };
  if (most >= 0)
    setrlimit (what, &l); /* a limit that the system refuses was tighter already */
}

static void limit (int what, int64_t most) {
  limit_twice (what, most, most);
}

/* The address sanitizer reserves terabytes of addresses. */
#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { LIMITS_ADDRESSES = false };
#else
enum { LIMITS_ADDRESSES = true };
#endif

enum { MOST_READS = 128 };

typedef struct reads {
  const char *at[MOST_READS + 1];
  int n;
} reads;

static void add_read (reads *r, const char *path) {
  if (path && *path == '/' && r->n < MOST_READS)
    r->at[r->n++] = path;
}

static int add_library (struct dl_phdr_info *of, size_t size, void *to) {
  (void)size;
  add_read (to, of->dlpi_name);
  return 0;
}

static const char *link_target (call *c, const char *path) {
  char to[4096];
  ssize_t n = readlink (path, to, sizeof to);
  return n > 0 ? arena_string_n (c->arena, to, (size_t)n, &c->err) : NULL;
}

/* The job's own files are links in its folder. */
static void add_links (call *c, reads *r) {
  DIR *all = opendir (".");
  for (struct dirent *e; all && (e = readdir (all));)
    if (e->d_type == DT_LNK)
      add_read (r, link_target (c, e->d_name));
  if (all)
    closedir (all);
}

/* A worker reads its job, the program with its libraries and data, and nothing else. */
static bool enter_sandbox (call *c) {
  reads r = { .n = 0 };
  add_read (&r, "/usr");
  add_read (&r, "/lib");
  add_read (&r, "/lib64");
  add_read (&r, "/etc/ld.so.cache");
  add_read (&r, "/proc/self");
  add_read (&r, "/sys/devices/system/cpu");
  add_read (&r, device_folder (c));
  add_read (&r, data_folder (c, "hosts"));
  dl_iterate_phdr (add_library, &r);
  add_links (c, &r);
  return sandbox_enter (r.at, &c->err);
}

/* MEMORY PARENT USER GROUP */
static bool prepare (call *c) {
  int64_t memory = 0, parent = 0, user = 0, group = 0;
  if (c->n_operands != 5 || !units_parse_bytes (c->operands[1], &memory, &c->err) ||
      !units_parse_count (c->operands[2], 1, INT32_MAX, &parent, &c->err) ||
      !units_parse_count (c->operands[3], 0, UINT32_MAX, &user, &c->err) ||
      !units_parse_count (c->operands[4], 0, UINT32_MAX, &group, &c->err))
    return call_usage (c, "worker wait needs MEMORY PARENT USER GROUP");
  limit (RLIMIT_CORE, 0);
  limit (RLIMIT_NOFILE, MOST_FILES);
  limit (RLIMIT_FSIZE, (int64_t)8 << 30);
  limit (RLIMIT_AS, LIMITS_ADDRESSES && memory ? memory : -1);
  umask (077);
  errno = 0; /* -1 may be the new priority too */
  if (nice (NICE) == -1 && errno)
    call_note (c, "the worker runs with its parent's priority");
  if (!sandbox_become ((unsigned)user, (unsigned)group, &c->err))
    return false;
  limit (RLIMIT_NPROC, user ? MOST_PROCESSES : -1); /* an own user's are the workers' alone */
  return child_ends_with ((pid_t)parent) ||         /* another user would have lost it */
         call_usage (c, "the daemon died before its worker began");
}

/* The words begin with two that are no arguments: seconds of the processor, and a span's name. */
static int read_words (call *c, int from, char **words) {
  struct stat is;
  char *text =
      fstat (from, &is) == 0 && is.st_size > 0 ? NEW (c->arena, is.st_size, char, &c->err) : NULL;
  int n = 0;
  if (!text || pread (from, text, (size_t)is.st_size, 0) != is.st_size || text[is.st_size - 1])
    return 0;
  for (char *at = text; at < text + is.st_size && n < MOST_WORDS; at += strlen (at) + 1)
    words[n++] = at;
  return n;
}

/* False: the daemon has ended, or *err. */
static bool take_job (call *c, char **words, int *n) {
  int files[ERRAND_FILES], null = -1;
  if (!passing_take (STDIN_FILENO, files, ERRAND_FILES))
    return false;
  if (fchdir (files[ERRAND_FOLDER]) != 0 || dup2 (files[ERRAND_ANSWER], STDOUT_FILENO) < 0 ||
      dup2 (files[ERRAND_LOG], STDERR_FILENO) < 0 || (null = open ("/dev/null", O_RDONLY)) < 0 ||
      dup2 (null, STDIN_FILENO) < 0)
    return error_set (&c->err, ERR_internal, "a worker cannot open its job");
  *n = read_words (c, files[ERRAND_WORDS], words);
  for (int i = 0; i < ERRAND_FILES; i++)
    close (files[i]);
  close (null);
  return *n > 2 || error_set (&c->err, ERR_internal, "a worker cannot read its command");
}

void waiting_name (const char *command) {
  char name[16];
  snprintf (name, sizeof name, "ferry %s", command);
  prctl (PR_SET_NAME, name);
}

int waiting_run (call *c) {
  char *words[MOST_WORDS + 1] = { NULL };
  int64_t seconds = 0;
  int n = 0;
  if (!prepare (c) || !take_job (c, words, &n) ||
      !units_parse_count (words[0], 1, INT32_MAX, &seconds, &c->err))
    return c->err.code ? call_failed (c) : EXIT_USAGE;
  limit_twice (RLIMIT_CPU, 2 * seconds + SPARE_S, 2 * seconds + 2 * SPARE_S);
  bool own = n > 3 && strcmp (words[2], "worker") == 0;
  waiting_name (words[own ? 3 : 2]);
  if (setenv ("TRACEPARENT", words[1], true) != 0 || !enter_sandbox (c))
    return call_failed (c);
  words[1] = "ferry";
  return c->program (n - 1, words + 1);
}
