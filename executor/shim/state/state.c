/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The one state of the process: found at the first call of the driver, from two variables that the
   launcher sets.  Without them the shim is nothing but the driver under another name. */
#include "executor/shim/state/shim.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Filled once, under the pthread_once of the first stub. */
static shim *the_shim;
static driver the_driver;
static void *the_library;
static _Thread_local bool inside AT_START; /* ferry's own calls pass through */
static _Thread_local bool lent AT_START;   /* the context: this thread has none of its own */
/* A driver forbids many calls while a stream is recorded; ferry's own are harmless. */
static _Thread_local CUstreamCaptureMode mode AT_START;
static _Thread_local bool allowed AT_START;

bool shim_is_inside (void) {
  return inside;
}

bool shim_set_inside (bool on) {
  bool was = inside;
  inside = on;
  return was;
}

void *shim_symbol (const char *name) {
  return the_library == NULL ? NULL : dlsym (the_library, name);
}

const driver *shim_real (void) {
  return &the_driver;
}

shim *shim_of_process (void) {
  return the_shim;
}

bool shim_is_gone (void) {
  CUcontext c;
  return the_driver.ctx_get_current != NULL &&
         the_driver.ctx_get_current (&c) == CUDA_ERROR_DEINITIALIZED;
}

void shim_say (shim *s, const char *format, ...) {
  if (shim_is_gone ()) /* a thread goes on, and nothing that fails now has another cause */
    return;
  char text[SHIM_TEXT];
  va_list list;
  va_start (list, format);
  vsnprintf (text, sizeof text, format, list);
  va_end (list);
  fprintf (stderr, "ferry: %s\n", text);
  int32_t n = __atomic_fetch_add (&s->block->messages, 1, __ATOMIC_RELAXED);
  if (n < SHIM_MESSAGES)
    memcpy (s->block->message[n], text, sizeof text);
}

shim_block *shim_open_block (const char *path) {
  int file = open (path, O_RDWR | O_CLOEXEC);
  if (file < 0)
    return NULL;
  shim_block *b = mmap (NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close (file);
  if (b == MAP_FAILED)
    return NULL;
  if (b->magic == SHIM_MAGIC && b->bytes == (int32_t)sizeof *b)
    return b;
  munmap (b, sizeof *b);
  return NULL;
}

static void make_lock (shim *s) {
  pthread_mutexattr_t a;
  pthread_mutexattr_init (&a);
  pthread_mutexattr_settype (&a, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init (&s->lock, &a);
  pthread_mutexattr_destroy (&a);
}

/* A child must not report, free or write anything of its parent's.  One whose parent has not begun
   with the driver may begin itself; another thread of the parent may have had the lock. */
static void in_child (void) {
  shim *s = the_shim;
  if (s == NULL || s->alone)
    return;
  s->alone = s->begun;
  make_lock (s);
}

/* Opened by dlmopen beside the one that was there at the start. */
static bool is_in_namespace (void) {
  Dl_info own;
  Lmid_t where = LM_ID_BASE;
  void *self = dladdr ((void *)shim_open, &own) == 0 ? NULL : dlopen (own.dli_fname, RTLD_NOW);
  bool good = self != NULL && dlinfo (self, RTLD_DI_LMID, &where) == 0;
  if (self != NULL)
    dlclose (self);
  return good && where != LM_ID_BASE;
}

bool shim_open (void) {
  const char *path = getenv (SHIM_REAL), *block = getenv (SHIM_BLOCK);
  if (path == NULL || path[0] == 0)
    return false;
  error err = { 0 };
  inside = true;
  bool good = driver_open (&the_driver, path, &err);
  inside = false;
  if (!good) {
    fprintf (stderr, "ferry: %s\n", err.text);
    return false;
  }
  the_library = the_driver.library;
  shim_block *b = block == NULL ? NULL : shim_open_block (block);
  shim *s = b == NULL ? NULL : calloc (1, sizeof *s);
  if (s == NULL)
    return false;
  s->block = b;
  s->real = the_driver;
  make_lock (s);
  if (is_in_namespace ()) {
    b->refused = 1;
    s->second = s->alone = true;
    shim_say (s, "a second copy of the shim is loaded (dlmopen): calls through it would not be "
                 "seen; open libcuda.so.1 in the program's own namespace");
  } else
    __atomic_store_n (&b->loader_pid, (int32_t)getpid (), __ATOMIC_RELAXED);
  the_shim = s;
  pthread_atfork (NULL, NULL, in_child);
  return true;
}

/* The first that is active: a process has one device, of all that it may see. */
CUcontext shim_primary (const driver *d) {
  unsigned int flags;
  CUcontext found = NULL;
  for (CUdevice i = 0; d->primary_state != NULL && i < EMU_CARDS; i++) {
    int active = 0;
    if (d->primary_state (i, &flags, &active) != CUDA_SUCCESS)
      return NULL;
    if (active && d->primary_retain (&found, i) == CUDA_SUCCESS) {
      d->primary_release (i);
      return found;
    }
  }
  return NULL;
}

/* The runtime does not set a context on each thread (PyTorch's backward pass has none at first);
   ferry's own calls need one. */
static void lend_context (shim *s) {
  CUcontext now = NULL;
  if (s->real.ctx_get_current (&now) != CUDA_SUCCESS || now != NULL)
    return;
  now = s->context != NULL ? s->context : shim_primary (&s->real);
  lent = now != NULL && s->real.ctx_set_current (now) == CUDA_SUCCESS;
}

static void take_back_context (shim *s) {
  if (lent)
    s->real.ctx_set_current (NULL);
  lent = false;
}

static void allow_capture (const shim *s) {
  if (s->captured == 0 || s->real.capture_mode == NULL || allowed)
    return;
  mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  allowed = s->real.capture_mode (&mode) == CUDA_SUCCESS;
}

static void forbid_capture (void) {
  if (allowed)
    (void)the_driver.capture_mode (&mode);
  allowed = false;
}

void shim_begin (shim *s) {
  pthread_mutex_lock (&s->lock);
  inside = true;
  lend_context (s);
  allow_capture (s);
}

CUresult shim_leave (shim *s, CUresult r) {
  forbid_capture ();
  take_back_context (s);
  inside = false;
  pthread_mutex_unlock (&s->lock);
  return r;
}

void shim_note (shim *s, CUresult r) {
  if (s->fault == CUDA_SUCCESS)
    s->fault = r;
}

CUresult shim_refuse (const char *name, const char *what, const char *next) {
  shim *s = the_shim;
  if (s == NULL || s->alone)
    return CUDA_ERROR_NOT_SUPPORTED;
  if (!s->block->refused)
    shim_say (s, "%s (%s) is not supported %s; %s", what, name,
              s->block->config.mode == SHIM_RUN ? "under a budget" : "in a profile", next);
  s->block->refused = 1;
  return CUDA_ERROR_NOT_SUPPORTED;
}
