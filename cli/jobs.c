#include "cli/jobs.h"

#include <sys/wait.h>
#include <unistd.h>

enum { MOST_JOBS = 64 };

typedef struct job {
  pid_t pid;
  FILE *printed, *failed; /* files without a name; `failed` holds an error, or nothing */
} job;

static void end_job (job *j) {
  if (j->printed)
    fclose (j->printed);
  if (j->failed)
    fclose (j->failed);
  *j = (job){ 0 };
}

/* The child's standard output is its file; it ends without the parent's buffers. */
static void be_job (const job *j, int piece, jobs_piece *run, void *context) {
  error err = { 0 };
  bool ok = dup2 (fileno (j->printed), STDOUT_FILENO) >= 0 && run (context, piece, &err);
  ok = fflush (stdout) == 0 && ok;
  if (!ok && err.code == ERR_none)
    error_set (&err, ERR_file, "a job could not print what it found");
  if (!ok && (fwrite (&err, sizeof err, 1, j->failed) != 1 || fflush (j->failed) != 0))
    _exit (2);
  _exit (ok ? 0 : 1);
}

static bool start_job (job *j, int piece, jobs_piece *run, void *context, error *err) {
  *j = (job){ .printed = tmpfile (), .failed = tmpfile () };
  if (j->printed && j->failed && fflush (stdout) == 0)
    j->pid = fork ();
  if (!j->printed || !j->failed || j->pid < 0)
    return error_set (err, ERR_file, "no process or file for a job; try --jobs 1");
  if (j->pid == 0)
    be_job (j, piece, run, context);
  return true;
}

static bool wait_job (const job *j, error *err) {
  int status = 0;
  error why;
  while (waitpid (j->pid, &status, 0) < 0)
    continue;
  if (WIFEXITED (status) && WEXITSTATUS (status) == 0)
    return true;
  rewind (j->failed);
  if (fread (&why, sizeof why, 1, j->failed) != 1)
    return error_set (err, ERR_internal, "a job ended without an answer");
  if (!err->code)
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

bool jobs_run (int pieces, int jobs, jobs_piece *run, jobs_take *take, void *context, error *err) {
  job at[MOST_JOBS] = { { 0 } };
  int started = 0, done = 0;
  bool ok = true;
  jobs = jobs > MOST_JOBS ? MOST_JOBS : jobs;
  if (jobs == 1 && take == jobs_print) { /* as it goes */
    for (; ok && done < pieces; done++)
      ok = run (context, done, err);
    return ok;
  }
  for (; done < pieces && (ok || done < started); done++) {
    for (; ok && started < pieces && started < done + jobs; started++)
      ok = start_job (&at[started % jobs], started, run, context, err);
    job *j = &at[done % jobs];
    if (j->pid > 0)
      ok = wait_job (j, err) && ok;
    if (ok) {
      rewind (j->printed);
      ok = take (context, done, j->printed, err);
    }
    end_job (j);
  }
  return ok;
}
