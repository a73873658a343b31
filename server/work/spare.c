/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "config.h"

#include "server/work/spare.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/passing.h"

/* One for a job, and one for the check of its plan. */
enum { SPARES = 2, ORDERS_FD = 0, PROGRESS_FD = 3, LOCK_FD = 4 };

typedef struct spare {
  worker worker; /* pid 0: none */
  int orders;
} spare;

struct spares {
  spare at[SPARES];
};

static void set_attributes (posix_spawnattr_t *how) {
  sigset_t none, plain;
  sigemptyset (&none);
  sigfillset (&plain);
  posix_spawnattr_init (how);
  posix_spawnattr_setsigmask (how, &none);
  posix_spawnattr_setsigdefault (how, &plain);
  posix_spawnattr_setpgroup (how, 0);
  posix_spawnattr_setflags (how,
                            POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
}

static int spawn (const service *s, int orders, int progress, char *const *arguments, pid_t *pid) {
  char data[400];
  /* a job is one process of one thread: others have the other processors */
  char *environment[] = { "LC_ALL=C.UTF-8", "FERRY_PROGRESS_FD=3", "FERRY_JOBS=1", NULL, NULL };
  posix_spawn_file_actions_t files;
  posix_spawnattr_t how;
  snprintf (data, sizeof data, "FERRY_DATADIR=%s", s->options.datadir ? s->options.datadir : "");
  if (s->options.datadir)
    environment[3] = data;
  posix_spawn_file_actions_init (&files);
  set_attributes (&how);
  posix_spawn_file_actions_adddup2 (&files, orders, ORDERS_FD);
  posix_spawn_file_actions_addopen (&files, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2 (&files, progress, PROGRESS_FD);
  posix_spawn_file_actions_adddup2 (&files, s->options.workers_lock, LOCK_FD);
  posix_spawn_file_actions_addclosefrom_np (&files, LOCK_FD + 1);
  int failed = posix_spawn (pid, s->options.program, &files, &how, arguments, environment);
  posix_spawn_file_actions_destroy (&files);
  posix_spawnattr_destroy (&how);
  return failed;
}

static bool start (service *s, spare *p, error *err) {
  char memory[24], parent[24], user[24], group[24];
  char *arguments[] = { "ferry", "worker", "wait", memory, parent, user, group, NULL };
  int orders[2] = { -1, -1 }, progress[2] = { -1, -1 }, failed = 0;
  snprintf (memory, sizeof memory, "%lld", (long long)s->options.worker_bytes);
  snprintf (parent, sizeof parent, "%ld", (long)getpid ());
  snprintf (user, sizeof user, "%u", s->options.worker_user);
  snprintf (group, sizeof group, "%u", s->options.worker_group);
  if (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, orders) != 0 ||
      pipe2 (progress, O_CLOEXEC) != 0 || fcntl (progress[0], F_SETFL, O_NONBLOCK) != 0)
    failed = errno;
  else
    failed = spawn (s, orders[1], progress[1], arguments, &p->worker.pid);
  for (int i = failed ? 0 : 1; i < 2; i++) {
    close (orders[i]);
    close (progress[i]);
  }
  if (failed) {
    p->worker.pid = 0;
    return error_set (err, ERR_internal, "no process for a worker: %s", strerror (failed));
  }
  p->orders = orders[0];
  p->worker.progress = progress[0];
  p->worker.pidfd = (int)syscall (SYS_pidfd_open, p->worker.pid, 0);
  service_count (s, METRIC_worker_starts_total, 1);
  return true;
}

/* The worker has ended, or must: it serves nobody. */
static void drop (spare *p) {
  kill (-p->worker.pid, SIGKILL);
  waitpid (p->worker.pid, NULL, 0);
  close (p->orders);
  close (p->worker.progress);
  if (p->worker.pidfd >= 0)
    close (p->worker.pidfd);
  p->worker.pid = 0;
}

static bool add_word (bytes *all, const char *word, error *err) {
  return bytes_append (all, word, (int64_t)strlen (word) + 1, err);
}

/* The words that a worker reads: how long, for whom, and its command. -1: *err. */
static int write_words (const errand *e, error *err) {
  char seconds[24], parent[80];
  bytes all = { 0 };
  int words = memfd_create ("errand", MFD_CLOEXEC);
  snprintf (seconds, sizeof seconds, "%lld", (long long)e->seconds);
  snprintf (parent, sizeof parent, "00-%s-%s-01", e->trace_id, e->span_id);
  bool ok = add_word (&all, seconds, err) && add_word (&all, parent, err);
  for (int i = 0; ok && i < e->n; i++)
    ok = add_word (&all, e->arguments[i], err);
  ok = ok && words >= 0 && file_put (words, all.data, all.size, err);
  bytes_free (&all);
  if (!ok && words >= 0)
    close (words);
  return ok ? words : -1;
}

/* An earlier worker of the job may have planted something in a file's place, which is not followed,
   nor waited for. */
static bool open_files (const errand *e, int files[ERRAND_FILES], error *err) {
  enum { HOW = O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC };
  files[ERRAND_FOLDER] = open (e->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  files[ERRAND_ANSWER] =
      files[ERRAND_FOLDER] < 0 ? -1 : openat (files[ERRAND_FOLDER], e->answer, HOW | O_TRUNC, 0600);
  files[ERRAND_LOG] =
      files[ERRAND_ANSWER] < 0 ? -1 : openat (files[ERRAND_FOLDER], "log", HOW | O_APPEND, 0600);
  files[ERRAND_WORDS] = files[ERRAND_LOG] < 0 ? -1 : write_words (e, err);
  return files[ERRAND_WORDS] >= 0 ||
         error_set (err, ERR_internal, "no files for a worker: %s", strerror (errno));
}

/* A spare one may have died meanwhile, unlike one that was just started. */
static bool hand_over (service *s, const int files[ERRAND_FILES], worker *out, error *err) {
  spare fresh = { .worker = { .pid = 0 } };
  for (int i = 0; i <= SPARES; i++) {
    spare *p = i < SPARES ? &s->spares->at[i] : &fresh;
    if (i == SPARES && !start (s, p, err))
      return false;
    if (!p->worker.pid)
      continue;
    if (passing_send (p->orders, files, ERRAND_FILES)) {
      *out = p->worker;
      close (p->orders);
      p->worker.pid = 0;
      return true;
    }
    drop (p);
  }
  return error_set (err, ERR_internal, "a worker ended before it had a job");
}

bool spares_send (service *s, const errand *e, worker *out, error *err) {
  int files[ERRAND_FILES] = { -1, -1, -1, -1 };
  bool ok = open_files (e, files, err) && hand_over (s, files, out, err);
  for (int i = 0; i < ERRAND_FILES; i++)
    if (files[i] >= 0)
      close (files[i]);
  return ok;
}

void spares_fill (service *s, bool idle) {
  error err = { 0 };
  int missing = idle ? SPARES : 1;
  for (int i = 0; i < SPARES; i++)
    missing -= s->spares->at[i].worker.pid != 0;
  for (int i = 0; i < SPARES && missing > 0; i++) {
    if (s->spares->at[i].worker.pid)
      continue;
    if (!start (s, &s->spares->at[i], &err)) {
      service_log (s, "error", err.text, NULL);
      return; /* a job tries again */
    }
    missing--;
  }
}

bool spares_lost (service *s, pid_t pid) {
  assert (pid > 0);
  for (int i = 0; i < SPARES; i++)
    if (s->spares->at[i].worker.pid == pid) {
      drop (&s->spares->at[i]);
      return true;
    }
  return false;
}

bool spares_open (service *s, error *err) {
  return (s->spares = calloc (1, sizeof *s->spares)) || error_memory (err);
}

void spares_close (service *s) {
  for (int i = 0; s->spares && i < SPARES; i++)
    if (s->spares->at[i].worker.pid)
      drop (&s->spares->at[i]);
  free (s->spares);
  s->spares = NULL;
}
