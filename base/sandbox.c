/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>

#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANDBOX_SANITIZED
#endif

const char *const sandbox_names[SANDBOX_PARTS] = {
  "no new privileges", "a filter of system calls", "its own files alone (Landlock)",
  "signals to its own processes alone (Landlock of Linux 6.12)"
};

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#endif

enum {
  NEW_SPACES = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
               CLONE_NEWPID | CLONE_NEWNET
};

/* ---- system calls ---- */

/* All that a plan needs, and no more: memory, files by open descriptors and names, its own
   processes and signals, time. `argument` & mask must be `value`. Calls that are often made come
   first. */
typedef struct allowed_call {
  int number, argument;
  unsigned mask, value;
} allowed_call;

#define CALL(name) \
  { SYS_##name, 0, 0, 0 }

static const allowed_call allowed[] = {
  CALL (read),
  CALL (write),
  CALL (futex),
  CALL (mmap),
  CALL (munmap),
  CALL (madvise),
  CALL (brk),
  CALL (mprotect),
  CALL (mremap),
  CALL (clock_gettime),
  CALL (wait4),
  CALL (clock_nanosleep),
  CALL (nanosleep),
  CALL (openat),
  CALL (close),
  CALL (fstat),
  CALL (newfstatat),
  CALL (statx),
  CALL (lseek),
  CALL (pread64),
  CALL (pwrite64),
  CALL (readv),
  CALL (writev),
  CALL (fcntl),
  CALL (dup),
  CALL (dup3),
  CALL (pipe2),
  CALL (ppoll),
  CALL (pselect6),
  CALL (eventfd2),
  CALL (getdents64),
  CALL (readlinkat),
  CALL (faccessat),
  CALL (faccessat2),
  CALL (mkdirat),
  CALL (unlinkat),
  CALL (renameat2),
  CALL (linkat),
  CALL (ftruncate),
  CALL (fallocate),
  CALL (fadvise64),
  CALL (fsync),
  CALL (fdatasync),
  CALL (flock),
  CALL (copy_file_range),
  CALL (sendfile),
  CALL (memfd_create),
  CALL (getcwd),
  CALL (chdir),
  CALL (fchdir),
  CALL (umask),
  CALL (statfs),
  CALL (fstatfs),
  CALL (rt_sigaction),
  CALL (rt_sigprocmask),
  CALL (rt_sigreturn),
  CALL (rt_sigsuspend),
  CALL (rt_sigpending),
  CALL (rt_sigtimedwait),
  CALL (sigaltstack),
  CALL (restart_syscall),
  CALL (kill), /* its own processes alone, where the kernel has such a scope */
  CALL (tgkill),
  CALL (setitimer),
  CALL (getitimer),
  CALL (waitid),
  CALL (execve),
  CALL (exit),
  CALL (exit_group),
  CALL (set_tid_address),
  CALL (set_robust_list),
  CALL (get_robust_list),
  CALL (rseq),
  CALL (prctl),
  CALL (getpid),
  CALL (gettid),
  CALL (getppid),
  CALL (getpgid),
  CALL (setpgid),
  CALL (getuid),
  CALL (geteuid),
  CALL (getgid),
  CALL (getegid),
  CALL (getgroups),
  CALL (getrusage),
  CALL (times),
  CALL (gettimeofday),
  CALL (clock_getres),
  CALL (uname),
  CALL (sysinfo),
  CALL (getrandom),
  CALL (getcpu),
  CALL (sched_yield),
  CALL (sched_getaffinity),
  CALL (getpriority),
  CALL (membarrier),
  { SYS_prlimit64, 0, UINT32_MAX, 0 }, /* its own alone */
  { SYS_ioctl, 1, UINT32_MAX, TCGETS },
  { SYS_ioctl, 1, UINT32_MAX, TIOCGWINSZ },
  { SYS_clone, 0, NEW_SPACES, 0 }, /* clone3 is not to be looked into: libc makes do with this */
#ifdef SYS_open /* the older words of the same, which newer machines do not have */
  CALL (open),
  CALL (stat),
  CALL (lstat),
  CALL (access),
  CALL (readlink),
  CALL (mkdir),
  CALL (rmdir),
  CALL (unlink),
  CALL (rename),
  CALL (link),
  CALL (creat),
  CALL (dup2),
  CALL (pipe),
  CALL (poll),
  CALL (select),
  CALL (fork),
  CALL (vfork),
  CALL (getpgrp),
  CALL (getrlimit),
  CALL (time),
  CALL (alarm),
  CALL (pause),
  CALL (arch_prctl),
#endif
#ifdef SYS_renameat
  CALL (renameat),
#endif
#ifdef SANDBOX_SANITIZED
  CALL (ptrace), /* the leak sanitizer inspects its own process with it */
  CALL (personality),
  CALL (sched_getparam),
  CALL (sched_getscheduler),
  CALL (process_vm_readv),
#ifdef SYS_getdents
  CALL (getdents),
#endif
#endif
};

#ifdef ARCH
enum { CALLS = sizeof allowed / sizeof *allowed, MOST_STEPS = 5 };

static struct sock_filter load (size_t offset) {
  return (struct sock_filter)BPF_STMT (BPF_LD | BPF_W | BPF_ABS, (unsigned)offset);
}

/* The steps that let one call through, and go on where it is another. */
static unsigned short add_call (struct sock_filter *f, const allowed_call *c) {
  struct sock_filter yes = BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  unsigned char rest = c->mask ? MOST_STEPS : 1;
  unsigned short n = 0;
  f[n++] = (struct sock_filter)BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, (unsigned)c->number, 0, rest);
  if (c->mask) {
    f[n++] = load (offsetof (struct seccomp_data, args) + 8 * (size_t)c->argument);
    f[n++] = (struct sock_filter)BPF_STMT (BPF_ALU | BPF_AND | BPF_K, c->mask);
    f[n++] = (struct sock_filter)BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, c->value, 0, 1);
  }
  f[n++] = yes;
  if (c->mask)
    f[n++] = load (offsetof (struct seccomp_data, nr));
  return n;
}

/* Calls of another architecture have other numbers: none is let through. */
static bool filter_calls (void) {
  struct sock_filter f[(MOST_STEPS + 1) * CALLS + 5];
  unsigned short n = 0;
  f[n++] = load (offsetof (struct seccomp_data, arch));
  f[n++] = (struct sock_filter)BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
  f[n++] = (struct sock_filter)BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  f[n++] = load (offsetof (struct seccomp_data, nr));
  for (int i = 0; i < CALLS; i++)
    n = (unsigned short)(n + add_call (f + n, &allowed[i]));
  f[n++] = (struct sock_filter)BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
  struct sock_fprog program = { n, f };
  return prctl (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}
#else
static bool filter_calls (void) {
  return false;
}
#endif

/* ---- files ---- */

/* The same as in linux/landlock.h, of which a system may have an older one. */
typedef struct rules_of {
  uint64_t files, network, scopes;
} rules_of;

enum {
  READS = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_EXECUTE,
  FIRST_VERSION = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1, /* all rights of Landlock's first one */
  TRUNCATE = 1 << 14,
  DEVICES = 1 << 15, /* their ioctl */
  /* in its own folder: files and folders, but no links, sockets, devices or programs */
  WRITES = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE |
           LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_REMOVE_DIR |
           LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |
           LANDLOCK_ACCESS_FS_MAKE_REG | TRUNCATE,
  NO_FILES = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
             LANDLOCK_ACCESS_FS_READ_FILE | TRUNCATE, /* those that one file may have */
  NETWORK = 3,
  SCOPES = 3,
  HAS_TRUNCATE = 3,
  HAS_NETWORK = 4,
  HAS_DEVICES = 5,
  HAS_SCOPES = 6
};

static int landlock_version (void) {
  return (int)syscall (SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

static int make_rules (uint64_t *files) {
  int version = landlock_version ();
  rules_of all = { .files = FIRST_VERSION };
  size_t size = sizeof all.files;
  if (version >= HAS_TRUNCATE)
    all.files |= TRUNCATE;
  if (version >= HAS_DEVICES)
    all.files |= DEVICES;
  if (version >= HAS_NETWORK) {
    all.network = NETWORK;
    size = sizeof all.files + sizeof all.network;
  }
  if (version >= HAS_SCOPES) {
    all.scopes = SCOPES;
    size = sizeof all;
  }
  *files = all.files;
  return (int)syscall (SYS_landlock_create_ruleset, &all, size, 0);
}

/* A path that is not there needs no right. */
static bool allow (int rules, const char *path, uint64_t rights) {
  struct landlock_path_beneath_attr below = { .allowed_access = rights };
  below.parent_fd = open (path, O_PATH | O_CLOEXEC);
  if (below.parent_fd < 0)
    return errno == ENOENT || errno == ENOTDIR || errno == EACCES;
  bool ok = syscall (SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &below, 0) == 0;
  if (!ok && errno == EINVAL) { /* it is a file */
    below.allowed_access = rights & NO_FILES;
    ok = syscall (SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &below, 0) == 0;
  }
  close (below.parent_fd);
  return ok;
}

static bool keep_to_files (const char *const *reads) {
  uint64_t files;
  int rules = make_rules (&files);
  uint64_t null = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | TRUNCATE;
  bool ok =
      rules >= 0 && allow (rules, ".", WRITES & files) && allow (rules, "/dev/null", null & files);
  for (; ok && *reads; reads++)
    ok = allow (rules, *reads, READS);
  ok = ok && syscall (SYS_landlock_restrict_self, rules, 0) == 0;
  if (rules >= 0)
    close (rules);
  return ok;
}

/* ---- privileges ---- */

static bool drop_privileges (void) {
  struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
  struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { { 0 } };
  if (prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return false;
  return syscall (SYS_capset, &head, none) == 0;
}

/* ---- all of it ---- */

bool sandbox_has (sandbox_part part) {
  switch (part) {
  case SANDBOX_calls:
#ifdef ARCH
    return prctl (PR_GET_SECCOMP, 0, 0, 0, 0) >= 0;
#else
    return false;
#endif
  case SANDBOX_files:
    return landlock_version () > 0;
  case SANDBOX_signals:
    return landlock_version () >= HAS_SCOPES;
  default:
    return prctl (PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) >= 0;
  }
}

bool sandbox_become (unsigned user, unsigned group, error *err) {
  if (geteuid () != 0)
    return true;
  if (!user)
    return error_set (err, ERR_usage, "a worker is not run as root: name another user");
  return (setgroups (0, NULL) == 0 && setresgid (group, group, group) == 0 &&
          setresuid (user, user, user) == 0) ||
         error_set (err, ERR_internal, "the worker cannot become user %u: %s", user,
                    strerror (errno));
}

bool sandbox_enter (const char *const *reads, error *err) {
  sandbox_part part = SANDBOX_privileges;
  bool ok = drop_privileges ();
  if (ok && sandbox_has (part = SANDBOX_files))
    ok = keep_to_files (reads);
  if (ok && sandbox_has (part = SANDBOX_calls))
    ok = filter_calls ();
  return ok || error_set (err, ERR_internal, "the worker cannot have %s: %s", sandbox_names[part],
                          strerror (errno));
}
