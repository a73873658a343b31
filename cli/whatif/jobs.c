/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/whatif/jobs.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/child.h"
#include "cli/inputs/progress.h"
#include "cli/inputs/stopping.h"

/* Pieces that may be begun before the oldest of them has ended. */
enum { MOST_JOBS = 64, AHEAD = 4, MOST_BEGUN = MOST_JOBS * AHEAD };

typedef struct job {
  pid_t pid, parent;
  bool ended;
  int status;
  FILE *printed, *failed; /* files without a name; `failed` holds an error, or nothing */
} job;

static void end_job (job *j) {
  if (j->printed)
    fclose (j->printed);
  if (j->failed)
    fclose (j->failed);
  *j = (job){ 0 };
}

/* The child's standard output is its file; it ends without the parent's buffers. In a group of its
   own the terminal's interrupt reaches it through the parent only, so that one is not taken for
   two; and it does not outlive the parent. */
static void be_job (const call *c, const sigset_t *was, const job *j, int piece, jobs_piece *run,
                    void *context) {
  error err = { 0 };
  /* nobody waits for it any more once the parent has ended, however that came about */
  if (setpgid (0, 0) != 0 || !child_ends_with (j->parent))
    _exit (2);
  stopping_in_child (c, was);
  bool ok = dup2 (fileno (j->printed), STDOUT_FILENO) >= 0 && run (context, piece, &err);
  ok = fflush (stdout) == 0 && ok;
  if (!ok && err.code == ERR_none)
    error_set (&err, ERR_file, "a job could not print what it found");
  if (!ok && (fwrite (&err, sizeof err, 1, j->failed) != 1 || fflush (j->failed) != 0))
    _exit (2);
  _exit (ok ? 0 : 1);
}

/* In memory: a worker of the service has no folder for others' files. */
static FILE *scratch_file (void) {
  int fd = memfd_create ("ferry", MFD_CLOEXEC);
  FILE *out = fd >= 0 ? fdopen (fd, "w+") : NULL;
  if (!out && fd >= 0)
    close (fd);
  return out;
}

static bool start_job (call *c, job *j, int piece, jobs_piece *run, void *context, error *err) {
  sigset_t was;
  *j = (job){ .printed = scratch_file (), .failed = scratch_file (), .parent = getpid () };
  stopping_hold (&was);
  pid_t child = j->printed && j->failed && fflush (stdout) == 0 ? fork () : -1;
  int why = errno;
  if (child != 0)
    sigprocmask (SIG_SETMASK, &was, NULL);
  errno = why;
  if (child < 0 && errno == ENOMEM)
    return error_memory (err);
  if (child < 0)
    return error_set (err, ERR_file, "no process or file for a job; try --jobs 1");
  j->pid = child;
  if (j->pid == 0)
    c->going.silent = true; /* the parent shows how it goes */
  if (j->pid == 0)
    be_job (c, &was, j, piece, run, context);
  return true;
}

static void tell_all (const job *at) {
  for (int i = 0; i < MOST_BEGUN; i++)
    if (at[i].pid > 0 && !at[i].ended)
      stopping_tell (at[i].pid);
}

/* For whichever ends first; now and then a look at whether all should. */
static bool wait_any (call *c, job *at, bool *told, error *err) {
  static const struct timespec moment = { .tv_nsec = 20000000 };
  int status = 0;
  pid_t pid;
  while ((pid = waitpid (-1, &status, WNOHANG)) == 0 || (pid < 0 && errno == EINTR)) {
    if (!*told && stopping_asked (c)) {
      tell_all (at);
      *told = true;
    }
    progress_look (c);
    nanosleep (&moment, NULL);
  }
  if (pid < 0)
    return error_set (err, ERR_internal, "no process to wait for: %s", strerror (errno));
  for (int i = 0; i < MOST_BEGUN; i++)
    if (at[i].pid == pid && !at[i].ended) {
      at[i].ended = true;
      at[i].status = status;
    }
  return true;
}

static bool went_well (const job *j, error *err) {
  error why;
  if (WIFEXITED (j->status) && WEXITSTATUS (j->status) == 0)
    return true;
  rewind (j->failed);
  if (fread (&why, sizeof why, 1, j->failed) != 1)
    return error_set (err, ERR_internal, "a job ended without an answer");
  *err = why;
  return false;
}

bool jobs_print (void *context, int piece, FILE *printed, error *err) {
  char buffer[4096];
  (void)context, (void)piece;
  for (size_t n; (n = fread (buffer, 1, sizeof buffer, printed)) > 0;)
    if (fwrite (buffer, 1, n, stdout) != n)
      return error_set (err, ERR_file, "cannot write to standard output");
  return fflush (stdout) == 0 || error_set (err, ERR_file, "cannot write to standard output");
}

/* The oldest piece comes out, in order, once it has ended. */
static bool take_oldest (job *j, int piece, jobs_take *take, void *context, error *err) {
  bool ok = went_well (j, err);
  if (ok) {
    rewind (j->printed);
    ok = take (context, piece, j->printed, err);
  }
  return ok;
}

bool jobs_run (call *c, int pieces, int jobs, jobs_piece *run, jobs_take *take, void *context,
               error *err) {
  job at[MOST_BEGUN] = { { 0 } };
  int started = 0, done = 0, running = 0;
  bool ok = true, told = false;
  jobs = jobs > MOST_JOBS ? MOST_JOBS : jobs;
  if (jobs == 1 && take == jobs_print) { /* as it goes */
    for (; ok && done < pieces && !stopping_asked (c); done++)
      ok = run (context, done, err);
    return ok;
  }
  while (done < pieces && (ok || running > 0)) {
    if (stopping_asked (c))
      pieces = started;
    while (ok && running < jobs && started < pieces && started < done + jobs * AHEAD) {
      ok = start_job (c, &at[started % MOST_BEGUN], started, run, context, err);
      running += ok;
      started += ok;
    }
    job *oldest = &at[done % MOST_BEGUN];
    if (running > 0 && !(ok && done < started && oldest->ended)) {
      error why = { 0 };
      if (!wait_any (c, at, &told, &why)) {
        ok = ok ? error_set (err, why.code, "%s", why.text) : false;
        break;
      }
      running--;
      continue;
    }
    if (done == started) /* all that was begun before an interrupt */
      break;
    ok = ok && take_oldest (oldest, done, take, context, err);
    if (ok)
      end_job (&at[done++ % MOST_BEGUN]);
  }
  for (int i = 0; i < MOST_BEGUN; i++)
    end_job (&at[i]);
  return ok;
}
