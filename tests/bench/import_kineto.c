/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How fast a Kineto file is read, and in how much memory: files of 10, 20 and 40 MB are made up, so
   that growth shows; the promise is 40 MB in 2 s and in 6 times its text. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/random.h"
#include "trace/import/import.h"

static void say (bytes *b, const char *format, ...) PRINTF_LIKE (2, 3);
static void say (bytes *b, const char *format, ...) {
  char text[1024];
  error err = { 0 };
  va_list args;
  va_start (args, format);
  int n = vsnprintf (text, sizeof text, format, args);
  va_end (args);
  if (n < 0 || !bytes_append (b, text, n, &err))
    exit (EXIT_FAILURE);
}

/* One step after another of a layer's ops: two cpu ops around each other, a launch, a kernel with
   the usual arguments, an alloc and the free of an earlier one. */
static void make (bytes *b, int64_t size) {
  random_state r = random_seed (1);
  int64_t now = 1719746639000000, gpu = now;
  int correlation = 0, op = 0;
  say (b, "{\"schemaVersion\":1,\"traceEvents\":[");
  for (int step = 0; b->size < size; step++) {
    int64_t start = now;
    for (int i = 0; i < 1000; i++, op++) {
      int64_t took = random_between (&r, 2, 60);
      say (b,
           "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::layer_%d\",\"pid\":17,\"tid\":17,"
           "\"ts\":%lld.%03d,\"dur\":30.5,\"args\":{\"External id\":%d,\"Sequence number\":%d,"
           "\"Fwd thread id\":0,\"Record function id\":%d,\"Ev Idx\":%d,\"Input "
           "Dims\":[[32,64,56,56],"
           "[64,64,3,3]],\"Input type\":[\"float\",\"float\"]}},\n",
           i % 200, (long long)now, i % 1000, op, i, op, op);
      say (b,
           "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":17,"
           "\"tid\":17,"
           "\"ts\":%lld.5,\"dur\":4.25,\"args\":{\"External "
           "id\":%d,\"cbid\":211,\"correlation\":%d}},"
           "\n",
           (long long)now + 10, op, ++correlation);
      if (gpu < now)
        gpu = now;
      say (
          b,
          "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"void "
          "at::native::vectorized_elementwise_kernel<"
          "4, "
          "at::native::add_%d>(int)\",\"pid\":0,\"tid\":7,\"ts\":%lld.25,\"dur\":%lld.125,\"args\":"
          "{"
          "\"External "
          "id\":%d,\"queued\":0,\"device\":0,\"context\":1,\"stream\":7,\"correlation\":%d,"
          "\"registers per thread\":32,\"shared memory\":0,\"blocks per SM\":2.5,\"grid\":[50,1,1],"
          "\"block\":[256,1,1]}},\n",
          i % 50, (long long)gpu + 15, (long long)took, op, correlation);
      gpu += took + 2;
      for (int f = 0; f < 2; f++)
        say (b,
             "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]\","
             "\"pid\":17,"
             "\"tid\":17,\"ts\":%lld.%d,\"args\":{\"Device Type\":1,\"Device Id\":0,\"Addr\":%lld,"
             "\"Bytes\":%d,\"Total Allocated\":%lld,\"Total Reserved\":99999999999}},\n",
             (long long)now + 2, f + 1, 1000000LL + (i - 20 * f + 1000) % 1000 * 4096,
             f ? -1048576 : 1048576, 1000000000LL + (f ? 20 : 21) * 1048576LL);
      now += 40;
    }
    say (b,
         "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#%d\",\"pid\":17,"
         "\"tid\":17,"
         "\"ts\":%lld,\"dur\":%lld},\n",
         step, (long long)start, (long long)(now - start));
  }
  say (b, "{\"ph\":\"M\",\"name\":\"process_name\"}]}\n");
}

static double seconds (void) {
  struct timespec t;
  clock_gettime (CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* In a process of its own, so that its peak is its own. */
static bool measure (const char *path, int64_t size, double *took, int64_t *peak) {
  double start = seconds ();
  pid_t child = fork ();
  if (child == 0) {
    arena *a = arena_new (0);
    import_report r;
    error err = { 0 };
    trace *t;
    bool ok = import_files (&path, 1, NULL, a, &t, &r, &err);
    if (!ok)
      fprintf (stderr, "%s\n", err.text);
    _exit (ok ? EXIT_SUCCESS : EXIT_FAILURE);
  }
  int status;
  struct rusage usage;
  if (child < 0 || wait4 (child, &status, 0, &usage) != child || status != 0)
    return false;
  *took = seconds () - start;
  *peak = (int64_t)usage.ru_maxrss * 1024;
  printf ("%6.1f MB of text: %5.2f s, %6.1f MB/s, peak %6.1f MB = %.1f times the text\n",
          (double)size / 1e6, *took, (double)size / 1e6 / *took, (double)*peak / 1e6,
          (double)*peak / (double)size);
  fflush (stdout);
  return true;
}

int main (void) {
  static const int64_t sizes[] = { 10000000, 20000000, 40000000 };
  char path[] = "/tmp/ferry-bench-XXXXXX";
  int fd = mkstemp (path);
  bool good = fd >= 0;
  for (int i = 0; good && i < 3; i++) {
    /* The text is made in a child too: a fork would count its pages. */
    pid_t maker = fork ();
    if (maker == 0) {
      bytes b = { 0 };
      error err = { 0 };
      make (&b, sizes[i]);
      _exit (file_write (path, b.data, b.size, FILE_PLAIN, &err) ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    int status;
    double took;
    int64_t peak;
    good = maker > 0 && waitpid (maker, &status, 0) == maker && status == 0 &&
           measure (path, sizes[i], &took, &peak);
    if (good && i == 2)
      good = took < 2 && peak < 6 * sizes[i];
  }
  if (fd >= 0) {
    close (fd);
    unlink (path);
  }
  printf ("%s\n", good ? "within 2 s and 6 times the text" : "NOT within 2 s and 6 times the text");
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
