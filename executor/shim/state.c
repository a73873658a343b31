/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The one state of the process: found at the first call of the driver, from two variables that the
   launcher sets.  Without them the shim is nothing but the driver under another name. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "executor/shim/capture.h"
#include "executor/shim/follow.h"
#include "executor/shim/last.h"
#include "executor/shim/order.h"
#include "executor/shim/record.h"
#include "executor/shim/shim.h"
#include "executor/shim/wraps.h"

/* Filled once, under the pthread_once of the first stub. */
static shim *the_shim;
static driver the_driver;
static void *the_library;
static _Thread_local bool inside AT_START; /* ferry's own calls pass through */
static _Thread_local bool lent AT_START;   /* the context: this thread has none of its own */

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

/* A thread that waits for memory of a shared card may have the lock, and the program ends all the
   same. */
static bool lock_to_end (shim *s) {
  enum { PATIENCE_S = 10 };
  struct timespec until;
  clock_gettime (CLOCK_REALTIME, &until);
  until.tv_sec += PATIENCE_S;
  return pthread_mutex_timedlock (&s->lock, &until) == 0;
}

/* The emulated device saw this process only; others may have been before it. */
static void ask_device (shim_block *b) {
  emu_races races = shim_symbol (EMU_RACES);
  CUresult (*usage) (int64_t *) = shim_symbol ("emuHighBytes");
  emu_race first;
  int32_t n = 0;
  int64_t high = 0;
  if (races != NULL && races (&first, 1, &n) == CUDA_SUCCESS && n > 0) {
    b->race = b->races > 0 ? b->race : first;
    b->races += n;
  }
  if (usage != NULL && usage (&high) == CUDA_SUCCESS && high > b->seen.driver_high_bytes)
    b->seen.driver_high_bytes = high;
}

/* A signal's handler may end the program amid a call of this thread: then our tables are half
   changed, and the driver may wait for ever.  Other threads may go on, and what runs behind this is
   served. */
void shim_finish (void) {
  shim *s = the_shim;
  if (s == NULL || s->alone || s->block->ended || abs (s->block->owner) != (int32_t)getpid () ||
      inside)
    return;
  (void)shim_look (the_driver.ctx_synchronize ()); /* a fault that no call of ours has met */
  if (!lock_to_end (s))
    return;
  inside = true;
  last_write (s);
  record_finish (s);
  follow_finish (s);
  ask_device (s->block);
  s->block->ended = 1;
  inside = false;
  pthread_mutex_unlock (&s->lock);
}

/* Opened by dlmopen beside the one that was there at the start. */
static bool is_in_namespace (void) {
  Dl_info own;
  Lmid_t where = LM_ID_BASE;
  void *self = dladdr ((void *)shim_load, &own) == 0 ? NULL : dlopen (own.dli_fname, RTLD_NOW);
  bool good = self != NULL && dlinfo (self, RTLD_DI_LMID, &where) == 0;
  if (self != NULL)
    dlclose (self);
  return good && where != LM_ID_BASE;
}

void shim_load (void) {
  const char *path = getenv (SHIM_REAL), *block = getenv (SHIM_BLOCK);
  if (path == NULL || path[0] == 0)
    return;
  error err = { 0 };
  inside = true;
  bool good = driver_open (&the_driver, path, &err);
  inside = false;
  if (!good) {
    fprintf (stderr, "ferry: %s\n", err.text);
    return;
  }
  the_library = the_driver.library;
  shim_block *b = block == NULL ? NULL : shim_open_block (block);
  shim *s = b == NULL ? NULL : calloc (1, sizeof *s);
  if (s == NULL)
    return;
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
  atexit (shim_finish);
}

/* ---- whose device it is ---- */

typedef struct walk {
  const char *ours, *real;
  char found[SHIM_PATH];
} walk;

/* Another object that calls itself the driver: calls through it would not be seen. */
static int look_at (struct dl_phdr_info *info, size_t size, void *context) {
  (void)size;
  walk *w = context;
  const char *name = strrchr (info->dlpi_name, '/');
  if (name == NULL || strncmp (name, "/libcuda.so", 11) != 0)
    return 0;
  char path[4096];
  if (realpath (info->dlpi_name, path) == NULL || strcmp (path, w->ours) == 0 ||
      strcmp (path, w->real) == 0)
    return 0;
  snprintf (w->found, sizeof w->found, "%s", info->dlpi_name);
  return 1;
}

static bool has_escape (shim *s) {
  Dl_info own;
  char ours[4096] = "", real[4096] = "";
  if (dladdr ((void *)shim_load, &own) == 0 || realpath (own.dli_fname, ours) == NULL ||
      realpath (s->real.path, real) == NULL)
    return false;
  walk w = { .ours = ours, .real = real };
  dl_iterate_phdr (look_at, &w);
  if (w.found[0] == 0)
    return false;
  shim_say (s,
            "a second driver library is loaded (%s): calls through it would not be seen; open "
            "libcuda.so.1 by name, without a folder",
            w.found);
  return true;
}

/* The owner has no memory yet, or none any more. A profile is of the first that did something. */
static bool has_none (const shim_block *b, int32_t owner) {
  if (owner >= 0)
    return true;
  if (b->config.mode == SHIM_PROFILE && b->seen.ops > 0)
    return false;
  return b->ended || (kill (-owner, 0) != 0 && errno == ESRCH);
}

static bool swap_owner (shim_block *b, int32_t *seen, int32_t wanted) {
  return __atomic_compare_exchange_n (&b->owner, seen, wanted, false, __ATOMIC_SEQ_CST,
                                      __ATOMIC_SEQ_CST);
}

static CUresult own (shim *s, bool works) {
  shim_block *b = s->block;
  int32_t me = (int32_t)getpid (), owner = __atomic_load_n (&b->owner, __ATOMIC_SEQ_CST);
  while (owner != me && owner != -me && has_none (b, owner))
    if (swap_owner (b, &owner, me)) {
      b->ended = 0;
      owner = me;
    }
  if (owner == -me || (owner == me && (!works || swap_owner (b, &owner, -me))))
    return CUDA_SUCCESS;
  if (b->config.mode == SHIM_PROFILE) {
    s->alone = true;
    return CUDA_SUCCESS;
  }
  s->shut = true;
  shim_say (s,
            "process %d wants the gpu too; the budget belongs to %d; with a gpu for each, give "
            "--ranks N, else each its own ferry run",
            me, owner < 0 ? -owner : owner);
  return CUDA_ERROR_NO_DEVICE;
}

CUresult wrap_init (unsigned int flags) {
  shim *s = the_shim;
  if (s != NULL && s->second)
    return CUDA_ERROR_NOT_SUPPORTED;
  if (s == NULL || s->alone || inside)
    return the_driver.init (flags);
  shim_config *c = &s->block->config;
  pthread_mutex_lock (&s->lock);
  inside = true;
  CUresult (*configure) (const emu_config *) = shim_symbol (EMU_CONFIGURE);
  CUresult r = s->begun || ranks_begin (s) ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
  c = &s->block->config;
  if (r == CUDA_SUCCESS && !s->begun && c->emulated && configure != NULL)
    r = configure (&c->emu);
  if (r == CUDA_SUCCESS)
    r = s->real.init (flags);
  s->begun = s->begun || r == CUDA_SUCCESS;
  if (r == CUDA_SUCCESS && s->ranked)
    r = own (s, false);
  inside = false;
  pthread_mutex_unlock (&s->lock);
  return r;
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

/* The first call that needs memory starts the arena: only then is there surely a context. */
static bool start (shim *s) {
  if (s->started || s->shut)
    return s->started;
  if (!ranks_settle (s) || own (s, true) != CUDA_SUCCESS || s->alone)
    return false;
  if (has_escape (s)) {
    s->block->refused = 1;
    s->alone = s->block->config.mode == SHIM_PROFILE;
    s->shut = !s->alone;
    return false;
  }
  s->order = order_new ();
  /* our end comes before the driver's own, behind which no time is told */
  s->started = s->order != NULL && area_start (s) && record_start (s) && follow_start (s) &&
               atexit (shim_finish) == 0;
  return s->started;
}

void shim_begin (shim *s) {
  pthread_mutex_lock (&s->lock);
  inside = true;
  lend_context (s);
  capture_allow (s);
}

static void end (shim *s) {
  capture_forbid ();
  take_back_context (s);
  inside = false;
  pthread_mutex_unlock (&s->lock);
}

bool shim_enter (shim **out) {
  shim *s = the_shim;
  if (s == NULL || s->alone || inside)
    return false;
  shim_begin (s);
  s->block->seen.calls++;
  *out = s;
  if (s->begun && start (s))
    return true;
  end (s);
  return false;
}

CUresult shim_leave (shim *s, CUresult r) {
  end (s);
  return r;
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
