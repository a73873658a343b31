/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
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

const char *const sandbox_names[SANDBOX_PARTS] = { "no new privileges", "a filter of system calls",
                                                   "its own files alone (Landlock)" };

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#endif

/* ---- system calls ---- */

/* None that a plan needs: sockets of all kinds, other processes' memory, mounts, keys, and doors of
   the kernel that are opened seldom. */
static const int refused[] = {
  SYS_socket,
  SYS_socketpair,
  SYS_connect,
  SYS_bind,
  SYS_listen,
  SYS_accept,
  SYS_accept4,
  SYS_sendto,
  SYS_sendmsg,
  SYS_sendmmsg,
  SYS_process_vm_readv,
  SYS_mount,
  SYS_umount2,
  SYS_process_vm_writev,
  SYS_pivot_root,
  SYS_chroot,
  SYS_unshare,
  SYS_setns,
  SYS_bpf,
  SYS_perf_event_open,
  SYS_userfaultfd,
  SYS_keyctl,
  SYS_add_key,
  SYS_request_key,
  SYS_init_module,
  SYS_finit_module,
  SYS_delete_module,
  SYS_kexec_load,
  SYS_open_by_handle_at,
  SYS_name_to_handle_at,
  SYS_io_uring_setup,
  SYS_reboot,
  SYS_swapon,
  SYS_swapoff,
  SYS_acct,
  SYS_personality,
  SYS_pidfd_getfd,
  SYS_quotactl,
  SYS_settimeofday,
#ifndef SANDBOX_SANITIZED
  SYS_ptrace, /* the leak sanitizer looks at its own process so */
#endif
};

#ifdef ARCH
enum { CALLS = sizeof refused / sizeof *refused, X32_BIT = 0x40000000 };

/* Calls of another architecture have other numbers: none is let through. */
static bool filter_calls (void) {
  struct sock_filter f[CALLS + 8];
  unsigned short n = 0;
  f[n++] =
      (struct sock_filter)BPF_STMT (BPF_LD | BPF_W | BPF_ABS, offsetof (struct seccomp_data, arch));
  f[n++] = (struct sock_filter)BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
  f[n++] = (struct sock_filter)BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  f[n++] =
      (struct sock_filter)BPF_STMT (BPF_LD | BPF_W | BPF_ABS, offsetof (struct seccomp_data, nr));
  f[n++] = (struct sock_filter)BPF_JUMP (BPF_JMP | BPF_JGE | BPF_K, X32_BIT, CALLS + 1, 0);
  for (int i = 0; i < CALLS; i++)
    f[n++] = (struct sock_filter)BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, (unsigned)refused[i],
                                           (unsigned char)(CALLS - i), 0);
  f[n++] = (struct sock_filter)BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  f[n++] = (struct sock_filter)BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES);
  struct sock_fprog program = { n, f };
  return prctl (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}
#else
static bool filter_calls (void) {
  return false;
}
#endif

/* ---- files ---- */

enum {
  READS = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_EXECUTE,
  FIRST_VERSION = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1, /* all rights of Landlock's first one */
  NO_FILES = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
             LANDLOCK_ACCESS_FS_READ_FILE /* those that one file may have */
};

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
  struct landlock_ruleset_attr all = { .handled_access_fs = FIRST_VERSION };
  int rules = (int)syscall (SYS_landlock_create_ruleset, &all, sizeof all.handled_access_fs, 0);
  bool ok =
      rules >= 0 && allow (rules, ".", FIRST_VERSION) &&
      allow (rules, "/dev/null", LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE);
  for (; ok && *reads; reads++)
    ok = allow (rules, *reads, READS);
  ok = ok && syscall (SYS_landlock_restrict_self, rules, 0) == 0;
  if (rules >= 0)
    close (rules);
  return ok;
}

/* ---- privileges ---- */

/* A daemon of root has workers of its name, without its privileges. */
static bool drop_privileges (void) {
  struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
  struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { { 0 } };
  if (prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return false;
  for (int i = 0; geteuid () == 0 && prctl (PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
    if (prctl (PR_CAPBSET_DROP, i, 0, 0, 0) != 0 && errno != EPERM)
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
    return syscall (SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) > 0;
  default:
    return prctl (PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) >= 0;
  }
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
