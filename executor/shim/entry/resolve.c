/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which entry answers: ours for a wrapped symbol, the driver's for all others.  Who asks by name
   and version through cuGetProcAddress gets the wrapper of exactly the version that the driver
   gave. */
#include <dlfcn.h>
#include <string.h>

#include "executor/shim/calls/calls.h"
#include "executor/shim/entry/slots.h"
#include "executor/shim/state/wraps.h"

typedef struct row {
  const char *name;
  int version, per_thread;
  const char *symbol;
  void *wrapper;
} row;

static const row rows[] = {
#define WRAP(name, version, per_thread, symbol, wrapper, parameters) \
  { #name, version, per_thread, #symbol, (void *)wrapper },
#include "executor/shim/state/wraps.def"
#undef WRAP
};

static const struct {
  const char *name;
  int version, per_thread;
} abis[] = {
#define ABI(name, version, per_thread) { #name, version, per_thread },
#include "executor/shim/entry/abis.def"
#undef ABI
};

#define REFUSE(name, what, next)            \
  static CUresult refuse_##name (void) {    \
    return shim_refuse (#name, what, next); \
  }
#include "executor/shim/entry/refused.def"
#undef REFUSE

static const struct {
  const char *name;
  void *entry;
} refused[] = {
#define REFUSE(name, what, next) { #name, (void *)refuse_##name },
#include "executor/shim/entry/refused.def"
#undef REFUSE
};

enum { ROWS = sizeof rows / sizeof *rows, REFUSALS = sizeof refused / sizeof *refused };

/* The answer to a direct call of something that this driver does not have. */
static CUresult absent (void) {
  return CUDA_ERROR_NOT_FOUND;
}

/* A symbol is a name with a version or a flavour behind it. */
static bool is_of (const char *symbol, const char *name) {
  size_t n = strlen (name);
  return strncmp (symbol, name, n) == 0 && (symbol[n] == 0 || strncmp (symbol + n, "_v", 2) == 0 ||
                                            strncmp (symbol + n, "_pt", 3) == 0);
}

static void *refusal_of (const char *symbol) {
  for (int i = 0; i < REFUSALS; i++)
    if (is_of (symbol, refused[i].name))
      return refused[i].entry;
  return NULL;
}

static void *entry_for (const char *symbol) {
  void *real = shim_symbol (symbol);
  bool ours = shim_of_process () != NULL;
  for (int i = 0; ours && i < ROWS; i++)
    if (strcmp (rows[i].symbol, symbol) == 0)
      return rows[i].wrapper;
  void *refusal = ours ? refusal_of (symbol) : NULL;
  return refusal != NULL ? refusal : real == NULL ? (void *)absent : real;
}

static void fill (void) {
  shim_load ();
  for (int i = 0; i < shim_exports; i++)
    __atomic_store_n (&shim_slots[i], entry_for (shim_names[i]), __ATOMIC_RELEASE);
}

void *shim_resolve (uint64_t slot) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once (&once, fill);
  return shim_slots[slot];
}

/* ---- look-ups by name ---- */

/* The version that the driver has given: the largest of this name and flavour not above. */
static int version_given (const char *name, int asked, int *per_thread) {
  int best = -1;
  for (int flavour = *per_thread; flavour >= 0 && best < 0; flavour--)
    for (size_t i = 0; i < sizeof abis / sizeof *abis; i++)
      if (abis[i].per_thread == flavour && abis[i].version <= asked && abis[i].version > best &&
          strcmp (abis[i].name, name) == 0) {
        best = abis[i].version;
        *per_thread = flavour;
      }
  return best;
}

static bool is_new_door (const char *name) {
  static const char *const starts[] = { "cuLaunchKernel", "cuMemAlloc", "cuMemcpy", "cuMemset" };
  for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
    if (strncmp (name, starts[i], strlen (starts[i])) == 0)
      return true;
  return false;
}

static void *ours_for (const char *name, int version, uint64_t flags, void *real) {
  int per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  int given = version_given (name, version, &per_thread);
  if (refusal_of (name) != NULL)
    return refusal_of (name);
  for (int i = 0; i < ROWS; i++)
    if (rows[i].version == given && rows[i].per_thread == per_thread &&
        strcmp (rows[i].name, name) == 0)
      return rows[i].wrapper;
  shim *s = shim_of_process ();
  if (s != NULL && given < 0 && is_new_door (name) && !s->alone)
    shim_say (s, "unknown driver entry %s (%d): what it does with memory is not seen", name,
              version);
  return real;
}

CUresult wrap_get_old (const char *name, void **out, int version, uint64_t flags) {
  CUresult (*real) (const char *, void **, int, uint64_t) = shim_symbol ("cuGetProcAddress");
  CUresult r = real == NULL ? CUDA_ERROR_NOT_FOUND : real (name, out, version, flags);
  if (r == CUDA_SUCCESS && *out != NULL)
    *out = ours_for (name, version, flags, *out);
  return r;
}

CUresult wrap_get_new (const char *name, void **out, int version, uint64_t flags,
                       CUdriverProcAddressQueryResult *status) {
  const driver *d = shim_real ();
  if (d->get_proc_address == NULL)
    return CUDA_ERROR_NOT_FOUND;
  CUresult r = d->get_proc_address (name, out, version, flags, status);
  if (r == CUDA_SUCCESS && *out != NULL)
    *out = ours_for (name, version, flags, *out);
  return r;
}
