/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Kernels by their handles: their names, and where their parameters lie. */
#include <stdlib.h>
#include <string.h>

#include "executor/shim/calls/calls.h"
#include "executor/shim/follow/follow.h"
#include "executor/shim/state/wraps.h"

/* A parameter as large as this is a list by value, as PyTorch passes many tensors at once; behind
   its end lies what the stack had there, addresses of the past among it. */
enum { LIST_BYTES = 128 };

int32_t shim_name (shim *s, const char *text) {
  for (int32_t i = 0; i < s->n_names; i++)
    if (strcmp (s->names[i], text) == 0)
      return i;
  if (s->n_names == s->names_capacity) {
    int32_t capacity = s->names_capacity == 0 ? 64 : 2 * s->names_capacity;
    char **moved = realloc (s->names, (size_t)capacity * sizeof *moved);
    if (moved == NULL)
      return 0;
    s->names = moved;
    s->names_capacity = capacity;
  }
  s->names[s->n_names] = strdup (text);
  return s->n_names++;
}

static CUresult read_params (shim *s, function *f, CUfunction handle) {
  const driver *d = &s->real;
  size_t offset, bytes;
  int32_t capacity = 0;
  bool as_kernel = d->func_get_param == NULL;
  for (size_t i = 0;; i++) {
    CUresult r =
        as_kernel ? CUDA_ERROR_INVALID_HANDLE : d->func_get_param (handle, i, &offset, &bytes);
    if (r == CUDA_ERROR_INVALID_HANDLE && d->kernel_get_param != NULL) {
      as_kernel = true;
      r = d->kernel_get_param ((CUkernel)(void *)handle, i, &offset, &bytes);
    }
    if (r == CUDA_ERROR_INVALID_VALUE)
      return CUDA_SUCCESS;
    if (r != CUDA_SUCCESS)
      return as_kernel && d->kernel_get_param == NULL ? CUDA_ERROR_NOT_SUPPORTED : r;
    if (f->n_params == capacity) {
      capacity = capacity == 0 ? 8 : 2 * capacity;
      uint32_t *offsets = realloc (f->offsets, (size_t)capacity * sizeof *offsets);
      f->offsets = offsets != NULL ? offsets : f->offsets;
      uint32_t *sizes = realloc (f->sizes, (size_t)capacity * sizeof *sizes);
      f->sizes = sizes != NULL ? sizes : f->sizes;
      if (offsets == NULL || sizes == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    f->offsets[f->n_params] = (uint32_t)offset;
    f->sizes[f->n_params++] = (uint32_t)bytes;
    f->has_lists = f->has_lists || bytes >= LIST_BYTES;
  }
}

static function *row_of (shim *s, const void *handle) {
  uint64_t at = shim_mix (0, (uintptr_t)handle);
  for (;; at++) {
    function *f = &s->functions[at % (uint64_t)s->functions_capacity];
    if (f->handle == handle || f->handle == NULL)
      return f;
  }
}

static void empty (function *f) {
  free (f->offsets);
  free (f->sizes);
  *f = (function){ 0 };
}

static void empty_all (shim *s) {
  for (int32_t i = 0; i < s->functions_capacity; i++)
    empty (&s->functions[i]);
  free (s->functions);
  s->functions = NULL;
  s->functions_capacity = s->n_functions = 0;
}

static bool has_room (shim *s) {
  if (2 * s->n_functions < s->functions_capacity)
    return true;
  int32_t old = s->functions_capacity;
  function *before = s->functions;
  function *rows = calloc (old == 0 ? 256 : 2 * (size_t)old, sizeof *rows);
  if (rows == NULL)
    return false;
  s->functions = rows;
  s->functions_capacity = old == 0 ? 256 : 2 * old;
  for (int32_t i = 0; i < old; i++)
    if (before[i].handle != NULL)
      *row_of (s, before[i].handle) = before[i];
  free (before);
  return true;
}

/* The runtime launches by the handle of a kernel, which is of another kind. */
static const char *name_of (const driver *d, CUfunction handle) {
  const char *name = NULL;
  if (d->func_get_name != NULL && d->func_get_name (&name, handle) == CUDA_SUCCESS && name != NULL)
    return name;
  if (d->kernel_get_name != NULL &&
      d->kernel_get_name (&name, (CUkernel)(void *)handle) == CUDA_SUCCESS && name != NULL)
    return name;
  return "a kernel without a name";
}

/* The driver refuses a handle that is no kernel's. */
function *function_of (shim *s, CUfunction handle, CUresult *why) {
  *why = handle == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_OUT_OF_MEMORY;
  if (handle == NULL || !has_room (s))
    return NULL;
  function *f = row_of (s, handle);
  if (f->handle != NULL)
    return f;
  const char *name = name_of (&s->real, handle);
  *why = read_params (s, f, handle);
  if (*why != CUDA_SUCCESS)
    empty (f);
  if (*why == CUDA_ERROR_INVALID_HANDLE)
    return NULL;
  if (*why != CUDA_SUCCESS) {
    shim_say (s,
              "the parameters of kernel `%s` are not told (cuFuncGetParamInfo), so its tensors "
              "cannot be found; a driver of CUDA 12.4 or later is needed",
              name);
    s->block->refused = 1;
    *why = CUDA_ERROR_NOT_SUPPORTED;
    return NULL;
  }
  f->handle = handle;
  f->name = shim_name (s, name);
  f->name_hash = 14695981039346656037u;
  for (const char *c = name; *c != 0; c++)
    f->name_hash = (f->name_hash ^ (unsigned char)*c) * 1099511628211u;
  s->n_functions++;
  return f;
}

void function_params (const function *f, void **params, void **extra,
                      void (*see) (void *context, const void *from, size_t bytes), void *context) {
  for (int32_t i = 0; params != NULL && i < f->n_params; i++)
    if (f->sizes[i] >= 8)
      see (context, params[i], f->sizes[i]);
  const void *buffer = NULL;
  size_t bytes = 0;
  for (; extra != NULL && *extra != CU_LAUNCH_PARAM_END; extra += 2)
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
      buffer = extra[1];
    else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
      memcpy (&bytes, extra[1], sizeof bytes);
  if (buffer != NULL)
    see (context, buffer, bytes);
}

/* ---- a module goes ---- */

/* Handle values are used again once a module is gone. */
static void forget (void) {
  shim *s;
  if (!shim_enter (&s))
    return;
  follow_disturbed (s);
  empty_all (s);
  (void)shim_leave (s, CUDA_SUCCESS);
}

CUresult wrap_module_unload (CUmodule m) {
  CUresult (*real) (CUmodule) = shim_symbol ("cuModuleUnload");
  forget ();
  return real == NULL ? CUDA_ERROR_NOT_FOUND : real (m);
}

CUresult wrap_library_unload (CUlibrary l) {
  CUresult (*real) (CUlibrary) = shim_symbol ("cuLibraryUnload");
  forget ();
  return real == NULL ? CUDA_ERROR_NOT_FOUND : real (l);
}
