/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The end of the program's context is the end of ferry's work: tensors, events and streams go with
   it.  What is to be kept is written before, as at the end of the program. */
#include "executor/shim/calls/calls.h"
#include "executor/shim/state/wraps.h"

static void ends (shim *s) {
  shim_finish ();
  shim_begin (s);
  s->over = true;
  s->started = false;
  s->context = NULL;
  if (s->block->config.mode == SHIM_RUN)
    s->shut = true;
  else
    s->alone = true;
  (void)shim_leave (s, CUDA_SUCCESS);
}

/* The context that ferry works in; NULL: in none yet, so that any may end. */
static CUcontext ours (void) {
  shim *s = shim_of_process ();
  if (s == NULL || s->alone || shim_is_inside ())
    return NULL;
  shim_begin (s);
  CUcontext it = s->started ? s->context : NULL;
  (void)shim_leave (s, CUDA_SUCCESS);
  return it;
}

/* The program's own holds are counted: with the last of them the context goes. */
CUresult wrap_primary_retain (CUcontext *out, CUdevice device) {
  shim *s = shim_of_process ();
  CUresult r = shim_real ()->primary_retain (out, device);
  if (s != NULL && !shim_is_inside () && r == CUDA_SUCCESS)
    __atomic_add_fetch (&s->holds, 1, __ATOMIC_RELAXED);
  return r;
}

static bool is_primary (CUcontext context) {
  return context != NULL && context == shim_primary (shim_real ());
}

CUresult wrap_primary_release (CUdevice device) {
  shim *s = shim_of_process ();
  bool counts = s != NULL && !shim_is_inside ();
  if (counts && __atomic_load_n (&s->holds, __ATOMIC_RELAXED) == 1 && is_primary (ours ()))
    ends (s);
  CUresult r = shim_real ()->primary_release (device);
  if (counts && r == CUDA_SUCCESS)
    __atomic_sub_fetch (&s->holds, 1, __ATOMIC_RELAXED);
  return r;
}

CUresult wrap_primary_reset (CUdevice device) {
  if (shim_real ()->primary_reset == NULL)
    return CUDA_ERROR_NOT_FOUND;
  if (is_primary (ours ()))
    ends (shim_of_process ());
  return shim_real ()->primary_reset (device);
}

CUresult wrap_ctx_destroy (CUcontext context) {
  if (shim_real ()->ctx_destroy == NULL)
    return CUDA_ERROR_NOT_FOUND;
  if (context != NULL && context == ours ())
    ends (shim_of_process ());
  return shim_real ()->ctx_destroy (context);
}
