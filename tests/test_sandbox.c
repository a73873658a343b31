/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a worker must not do, tried by a process in the sandbox: each attempt fails, and what a plan
   needs goes on. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sandbox.h"
#include "tests/suite.h"

static char folder[] = "/tmp/ferry-sandbox-XXXXXX", other[64];
static pid_t daemon_pid;

#define FAILS(call)                                 \
  do {                                              \
    errno = 0;                                      \
    if ((call) != -1) {                             \
      fprintf (stderr, "%s went through\n", #call); \
      failed++;                                     \
    }                                               \
  } while (0)

static int try_network (void) {
  int failed = 0, ends[2];
  FAILS (socket (AF_INET, SOCK_STREAM, 0));
  FAILS (socket (AF_UNIX, SOCK_DGRAM, 0));
  FAILS (socket (AF_NETLINK, SOCK_RAW, 0));
  FAILS (socketpair (AF_UNIX, SOCK_STREAM, 0, ends));
  FAILS (syscall (SYS_io_uring_setup, 8, NULL));
  return failed;
}

static int try_files (void) {
  int failed = 0;
  FAILS (open (other, O_RDONLY));
  FAILS (open (other, O_WRONLY));
  FAILS (open ("/etc/passwd", O_RDONLY));
  FAILS (truncate (other, 0));
  FAILS (chmod (other, 0));
  FAILS (fchmod (0, 0));
  FAILS (chown (other, 1, 1));
  FAILS (unlink (other));
  FAILS (rename (other, "mine"));
  FAILS (link (other, "mine"));
  FAILS (symlink (other, "link"));
  FAILS (mkfifo ("fifo", 0600));
  FAILS (mknod ("device", S_IFCHR, 0));
  FAILS (open ("../planted", O_CREAT | O_WRONLY, 0600));
  FAILS (ioctl (0, TIOCSTI, "x"));
  FAILS (ioctl (0, FIONBIO, &failed));
  return failed;
}

static int try_processes (void) {
  struct rlimit l = { 1, 1 };
  char byte;
  const struct iovec here = { &byte, 1 }, there = { &daemon_pid, 1 };
  cpu_set_t one;
  CPU_ZERO (&one);
  int failed = 0;
  FAILS (ptrace (PTRACE_ATTACH, daemon_pid, 0, 0));
  FAILS (process_vm_readv (daemon_pid, &here, 1, &there, 1, 0));
  FAILS (syscall (SYS_pidfd_open, daemon_pid, 0));
  FAILS (syscall (SYS_kcmp, daemon_pid, getpid (), 0, 0, 0));
  FAILS (prlimit (daemon_pid, RLIMIT_NOFILE, &l, NULL));
  FAILS (sched_setaffinity (daemon_pid, sizeof one, &one));
  FAILS (setpriority (PRIO_PROCESS, (id_t)daemon_pid, 19));
  FAILS (setsid ());
  if (sandbox_has (SANDBOX_signals)) {
    FAILS (kill (daemon_pid, SIGUSR1));
    FAILS (syscall (SYS_tgkill, daemon_pid, daemon_pid, SIGUSR1));
  }
  return failed;
}

static int try_system (void) {
  int failed = 0;
  FAILS (unshare (CLONE_NEWUSER));
  FAILS (syscall (SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, 0));
  FAILS (syscall (SYS_clone3, NULL, 0));
  FAILS (syscall (SYS_setns, 0, 0));
  FAILS (syscall (SYS_mount, "none", ".", "tmpfs", 0, NULL));
  FAILS (syscall (SYS_bpf, 0, NULL, 0));
  FAILS (syscall (SYS_keyctl, 0, 0, 0, 0, 0));
  FAILS (syscall (SYS_userfaultfd, 0));
  FAILS (syscall (SYS_perf_event_open, NULL, 0, -1, -1, 0));
  FAILS (syscall (SYS_shmget, 0, 4096, 01600));
  FAILS (setuid (0));
  return failed;
}

static int child_ends (void) {
  pid_t child = fork ();
  if (child == 0)
    for (;;)
      pause ();
  int status = 0;
  return child < 0 || kill (child, SIGKILL) != 0 || waitpid (child, &status, 0) != child ||
         !WIFSIGNALED (status);
}

/* Files of its own, memory and children. */
static int may_work (void) {
  char text[4] = "";
  int fd = open ("own", O_CREAT | O_RDWR, 0600), failed = fd < 0;
  failed += write (fd, "abc", 3) != 3 || pread (fd, text, 3, 0) != 3 || ftruncate (fd, 1) != 0;
  failed += close (fd) != 0 || rename ("own", "new") != 0 || unlink ("new") != 0;
  failed += mkdir ("below", 0700) != 0 || rmdir ("below") != 0;
  failed += memfd_create ("it", 0) < 0;
  failed += child_ends ();
  return failed;
}

/* What a process in the sandbox finds: how many went wrong. */
static int in_sandbox (int (*attempt) (void)) {
  static const char *const reads[] = { "/usr", "/proc/self", NULL };
  error err = { 0 };
  int status = 0;
  pid_t child = fork ();
  if (child == 0) {
    bool ok =
        chdir (folder) == 0 && sandbox_become (65534, 65534, &err) && sandbox_enter (reads, &err);
    _exit (ok ? attempt () : 200);
  }
  ck_assert_int_eq (waitpid (child, &status, 0), child);
  ck_assert_msg (WIFEXITED (status), "it died by signal %d", WTERMSIG (status));
  return WEXITSTATUS (status);
}

static void before (void) {
  int fd;
  daemon_pid = getpid ();
  signal (SIGUSR1, SIG_IGN);
  ck_assert_ptr_nonnull (mkdtemp (folder));
  snprintf (other, sizeof other, "%s-other", folder);
  ck_assert_int_ge (fd = open (other, O_CREAT | O_WRONLY, 0666), 0);
  ck_assert_int_eq (write (fd, "x", 1), 1);
  ck_assert_int_eq (fchmod (fd, 0666), 0);
  close (fd);
  if (geteuid () == 0)
    ck_assert_int_eq (chown (folder, 65534, 65534), 0);
}

static void after (void) {
  struct stat is;
  ck_assert_int_eq (stat (other, &is), 0);
  ck_assert_int_eq (is.st_size, 1);
  unlink (other);
  ck_assert_int_eq (rmdir (folder), 0);
}

CLAIM (attempts_fail) {
  if (!sandbox_has (SANDBOX_calls) || !sandbox_has (SANDBOX_files))
    return;
  before ();
  ck_assert_int_eq (in_sandbox (try_network), 0);
  ck_assert_int_eq (in_sandbox (try_files), 0);
  ck_assert_int_eq (in_sandbox (try_processes), 0);
  ck_assert_int_eq (in_sandbox (try_system), 0);
  ck_assert_int_eq (in_sandbox (may_work), 0);
  after ();
}

static int as_root (void) {
  return geteuid () == 0;
}

CLAIM (no_worker_is_root) {
  error err = { 0 };
  if (geteuid () != 0)
    return;
  ck_assert (!sandbox_become (0, 0, &err));
  memcpy (folder + sizeof folder - 7, "XXXXXX", 6);
  before ();
  ck_assert_int_eq (in_sandbox (as_root), 0);
  after ();
}

int main (void) {
  return suite_run ("sandbox", 60);
}
