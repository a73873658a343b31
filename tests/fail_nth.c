/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Loaded in front of a program: of the allocations from main on, the one whose number FAIL_NTH says
   fails, and no other.  The file FAIL_NTH_MARK is then there: without it the program made fewer.
   Libraries that allocate before main are left alone, since they may live without it. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* glibc's own, under names that nobody else stands for. */
extern void *__libc_malloc (size_t size);
extern void *__libc_calloc (size_t count, size_t size);
extern void *__libc_realloc (void *old, size_t size);

void *malloc (size_t size);
void *calloc (size_t count, size_t size);
void *realloc (void *old, size_t size);

static atomic_long left; /* 0: nothing is to fail any more, or not yet */
static int (*real_main) (int, char **, char **);

static bool fails (void) {
  if (atomic_load (&left) <= 0 || atomic_fetch_sub (&left, 1) != 1)
    return false;
  const char *mark = getenv ("FAIL_NTH_MARK");
  int fd = mark ? open (mark, O_CREAT | O_WRONLY | O_CLOEXEC, 0600) : -1;
  if (fd >= 0)
    close (fd);
  errno = ENOMEM;
  return true;
}

static int counted_main (int argc, char **argv, char **env) {
  const char *text = getenv ("FAIL_NTH");
  atomic_store (&left, text ? strtol (text, NULL, 10) : 0);
  return real_main (argc, argv, env);
}

typedef int start_main (int (*main) (int, char **, char **), int argc, char **argv,
                        void (*init) (void), void (*fini) (void), void (*at_end) (void),
                        void *stack_end);
__attribute__ ((visibility ("default"))) start_main __libc_start_main;

int __libc_start_main (int (*main) (int, char **, char **), int argc, char **argv,
                       void (*init) (void), void (*fini) (void), void (*at_end) (void),
                       void *stack_end) {
  start_main *start;
  *(void **)&start = dlsym (RTLD_NEXT, "__libc_start_main");
  real_main = main;
  return start (counted_main, argc, argv, init, fini, at_end, stack_end);
}

__attribute__ ((visibility ("default"))) void *malloc (size_t size) {
  return fails () ? NULL : __libc_malloc (size);
}

__attribute__ ((visibility ("default"))) void *calloc (size_t count, size_t size) {
  return fails () ? NULL : __libc_calloc (count, size);
}

__attribute__ ((visibility ("default"))) void *realloc (void *old, size_t size) {
  return fails () ? NULL : __libc_realloc (old, size);
}
