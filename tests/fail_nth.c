/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Loaded in front of a program: the allocation whose number FAIL_NTH says fails, and no other. */
#include <errno.h>
#include <stdbool.h>
#include <stdatomic.h>
#include <stdlib.h>

/* glibc's own, under names that nobody else stands for. */
extern void *__libc_malloc (size_t size);
extern void *__libc_calloc (size_t count, size_t size);
extern void *__libc_realloc (void *old, size_t size);

void *malloc (size_t size);
void *calloc (size_t count, size_t size);
void *realloc (void *old, size_t size);

static bool fails (void) {
  static atomic_long left;
  static atomic_bool counting;
  if (!atomic_load (&counting)) {
    const char *text = getenv ("FAIL_NTH");
    atomic_store (&left, text ? strtol (text, NULL, 10) : 0);
    atomic_store (&counting, true);
  }
  if (atomic_fetch_sub (&left, 1) != 1)
    return false;
  errno = ENOMEM;
  return true;
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
