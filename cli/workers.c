#include "cli/workers.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_PROCESSES = 256 };

/* All processes map it. errors[i] is written by process i alone, and read when it has ended; so are
   results, each by the one process that took its item. */
typedef struct board {
  _Atomic int32_t next;
  error errors[MOST_PROCESSES];
  char results[] __attribute__ ((aligned (16)));
} board;

static bool alone (const workers_job *job, char *results, error *err) {
  for (int32_t i = 0; i < job->n_items; i++) {
    if (!job->work (job->context, i, results + (size_t)i * job->size, err))
      return false;
    if (job->progress)
      job->progress (job->context, i + 1, job->n_items);
  }
  return true;
}

/* Never returns; a byte into the pipe for each item. */
static void serve (const workers_job *job, board *b, int32_t me, int done) {
  int32_t item;
  while ((item = atomic_fetch_add (&b->next, 1)) < job->n_items) {
    if (!job->work (job->context, item, b->results + (size_t)item * job->size, &b->errors[me]))
      _exit (1);
    if (write (done, "", 1) != 1)
      _exit (2);
  }
  _exit (0);
}

static void follow (const workers_job *job, int done) {
  char bytes[64];
  int32_t count = 0;
  ssize_t n;
  while ((n = read (done, bytes, sizeof bytes)) > 0 || (n < 0 && errno == EINTR)) {
    if (n < 0)
      continue;
    count += (int32_t)n;
    if (job->progress)
      job->progress (job->context, count, job->n_items);
  }
}

static bool share (const workers_job *job, int32_t n, board *b, error *err) {
  pid_t pids[MOST_PROCESSES];
  int ends[2];
  int32_t started = 0;
  bool ok = true;
  if (pipe (ends) != 0)
    return error_set (err, ERR_internal, "no pipe: %s", strerror (errno));
  fflush (NULL); /* what is buffered is printed once */
  for (; started < n; started++) {
    pids[started] = fork ();
    if (pids[started] == 0) {
      close (ends[0]);
      serve (job, b, started, ends[1]);
    }
    if (pids[started] < 0)
      break;
  }
  close (ends[1]);
  if (!started)
    ok = error_set (err, ERR_internal, "no process: %s", strerror (errno));
  follow (job, ends[0]);
  close (ends[0]);
  for (int32_t i = 0; i < started; i++) {
    int status = 0;
    while (waitpid (pids[i], &status, 0) < 0 && errno == EINTR)
      ;
    if (ok && b->errors[i].code) {
      *err = b->errors[i];
      ok = false;
    } else if (ok && status != 0) {
      ok = error_set (err, ERR_internal, "a process of --jobs ended early, with status %d", status);
    }
  }
  return ok;
}

bool workers_run (const workers_job *job, void *results, error *err) {
  int32_t n = job->processes < job->n_items ? job->processes : job->n_items;
  if (n > MOST_PROCESSES)
    n = MOST_PROCESSES;
  if (n <= 1)
    return alone (job, results, err);
  size_t size = sizeof (board) + (size_t)job->n_items * job->size;
  board *b = mmap (NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (b == MAP_FAILED)
    return error_set (err, ERR_memory, "no %zu bytes of shared memory", size);
  bool ok = share (job, n, b, err);
  if (ok)
    memcpy (results, b->results, (size_t)job->n_items * job->size);
  munmap (b, size);
  return ok;
}
