/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the libraries share that stand in for cuBLAS and cuDNN on the emulated device, and what a
   test may ask of them. */
#pragma once

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef struct fake_state {
  int open, calls, with_workspace;
  int tf32;            /* calls that were allowed to round to it */
  size_t needs_bytes;  /* to work in; a test sets it */
  const char *refused; /* the last thing that was not as it should be; NULL: nothing */
} fake_state;

typedef fake_state *fake_state_of (void);
fake_state_of fake_cublas_state, fake_cudnn_state;

static inline unsigned int fake_refuse (fake_state *s, const char *what, unsigned int status) {
  s->refused = what;
  return status;
}

/* A copy of the context goes to `work`, which frees it: in the stream's turn, or at once where
   there is no stream. */
static inline int fake_do (fake_state *s, void *stream, void (*work) (void *), const void *context,
                           size_t size) {
  void *kept = malloc (size), *entry = NULL;
  if (kept == NULL)
    return 0;
  memcpy (kept, context, size);
  s->calls++;
  if (stream == NULL) {
    work (kept);
    return 1;
  }
  const char *path = getenv ("FERRY_EMU");
  void *driver = path != NULL ? dlopen (path, RTLD_NOW | RTLD_NOLOAD) : NULL;
  unsigned int (*launch) (void *, void (*) (void *), void *);
  if (driver != NULL)
    entry = dlsym (driver, "cuLaunchHostFunc");
  memcpy (&launch, &entry, sizeof launch);
  int good = entry != NULL && launch (stream, work, kept) == 0;
  if (driver != NULL)
    dlclose (driver);
  return good;
}
