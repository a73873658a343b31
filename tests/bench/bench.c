/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

double bench_cpu_s (void) {
  struct timespec t;
  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool write_all (int fd, const char *from, size_t size) {
  while (size > 0) {
    ssize_t n = write (fd, from, size);
    if (n <= 0)
      return false;
    from += n;
    size -= (size_t)n;
  }
  return true;
}

static bool read_all (int fd, char *to, size_t size) {
  while (size > 0) {
    ssize_t n = read (fd, to, size);
    if (n <= 0)
      return false;
    to += n;
    size -= (size_t)n;
  }
  return true;
}

static int in_child (bool (*row) (const void *, void *, error *), const void *context, size_t size,
                     int limit_s, int fd) {
  error err = { 0 };
  char line[sizeof (error)];
  char *answer = calloc (1, size);
  if (limit_s) {
    struct rlimit limit = { (rlim_t)limit_s, (rlim_t)limit_s + 1 };
    setrlimit (RLIMIT_CPU, &limit);
  }
  bool ok = answer && row (context, answer, &err) && write_all (fd, answer, size);
  if (!ok)
    fprintf (stderr, "  %s\n", error_line (&err, line, sizeof line));
  free (answer);
  return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

bench_end bench_row (bool (*row) (const void *context, void *answer, error *err),
                     const void *context, void *answer, size_t size, int limit_s) {
  bench_end end = { 0 };
  int ends[2];
  fflush (stdout);
  fflush (stderr);
  if (pipe (ends) < 0)
    return end;
  pid_t child = fork ();
  if (child == 0) {
    close (ends[0]);
    _exit (in_child (row, context, size, limit_s, ends[1]));
  }
  close (ends[1]);
  bool whole = child > 0 && read_all (ends[0], answer, size);
  close (ends[0]);
  struct rusage used;
  int status = 0;
  if (child < 0 || wait4 (child, &status, 0, &used) != child)
    return end;
  end.ok = whole && WIFEXITED (status) && WEXITSTATUS (status) == EXIT_SUCCESS;
  end.timed_out =
      WIFSIGNALED (status) && (WTERMSIG (status) == SIGXCPU || WTERMSIG (status) == SIGKILL);
  end.cpu_s = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
              (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
  end.peak_bytes = (int64_t)used.ru_maxrss * 1024;
  return end;
}

const char *bench_argument (int argc, char **argv, int i) {
  return argc > i && strcmp (argv[i], "-") != 0 ? argv[i] : NULL;
}
