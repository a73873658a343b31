/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Contexts: the primary one, those that a program makes, and which of them a thread is in. */
#include "executor/emu/core.h"

/* No row of driver.def has it: ferry itself makes no context. */
EXPORT CUresult cuCtxCreate_v2 (CUcontext *out, unsigned int flags, CUdevice d);

enum { CONTEXT_DEPTH = 16 };
static _Thread_local CUcontext contexts[CONTEXT_DEPTH];
static _Thread_local int depth;

void contexts_forget (void) {
  depth = 0;
}

bool contexts_any (void) {
  return depth > 0;
}

CUresult cuDevicePrimaryCtxRetain (CUcontext *out, CUdevice d) {
  CUresult r = machine_device (d, out != NULL);
  if (r != CUDA_SUCCESS)
    return r;
  machine *m = machine_enter_stuck ();
  m->retained++;
  *out = (CUcontext)m;
  return machine_leave (m, CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxRelease_v2 (CUdevice d) {
  machine *m = machine_enter_stuck ();
  if (m == NULL)
    return CUDA_ERROR_NOT_INITIALIZED;
  CUresult r = d != 0             ? CUDA_ERROR_INVALID_DEVICE
               : m->retained == 0 ? CUDA_ERROR_INVALID_CONTEXT
                                  : CUDA_SUCCESS;
  if (r == CUDA_SUCCESS)
    m->retained--;
  return machine_leave (m, r);
}

CUresult cuDevicePrimaryCtxGetState (CUdevice d, unsigned int *flags, int *active) {
  CUresult r = machine_device (d, flags != NULL && active != NULL);
  if (r != CUDA_SUCCESS)
    return r;
  machine *m = machine_enter_stuck ();
  *flags = 0;
  *active = m->retained > 0;
  return machine_leave (m, r);
}

CUresult cuCtxGetCurrent (CUcontext *out) {
  CUresult r = machine_device (0, out != NULL);
  if (r == CUDA_SUCCESS)
    *out = depth == 0 ? NULL : contexts[depth - 1];
  return r;
}

/* All that is queued ends first. */
static CUresult finish_all (machine *m) {
  CUresult r = CUDA_SUCCESS;
  for (int32_t i = 0; i < m->n_streams && r == CUDA_SUCCESS; i++)
    r = stream_finish (m, m->streams[i]);
  return r;
}

/* Its things stay in the tables of the machine: nobody comes there without a context. */
CUresult cuDevicePrimaryCtxReset_v2 (CUdevice d) {
  CUresult refused;
  machine *m = machine_enter (false, &refused);
  if (m == NULL)
    return refused;
  if (d != 0)
    return machine_leave (m, CUDA_ERROR_INVALID_DEVICE);
  CUresult r = finish_all (m);
  m->retained = 0;
  return machine_leave (m, r);
}

/* A context that a program makes beside the primary one: another handle of the same memory. */
static char made_context;

static bool is_context (CUcontext c) {
  return machine_is ((const machine *)c) || c == (CUcontext)(void *)&made_context;
}

CUresult cuCtxCreate_v2 (CUcontext *out, unsigned int flags, CUdevice d) {
  (void)flags;
  CUresult r = machine_device (d, out != NULL);
  if (r != CUDA_SUCCESS)
    return r;
  machine *m = machine_enter_stuck ();
  m->made++;
  (void)machine_leave (m, CUDA_SUCCESS);
  *out = (CUcontext)(void *)&made_context;
  return cuCtxPushCurrent_v2 (*out);
}

CUresult cuCtxDestroy_v2 (CUcontext c) {
  CUresult refused;
  machine *m = machine_enter (false, &refused);
  if (m == NULL)
    return refused;
  if (c != (CUcontext)(void *)&made_context || m->made == 0)
    return machine_leave (m, CUDA_ERROR_INVALID_CONTEXT);
  CUresult r = finish_all (m);
  m->made--;
  if (depth > 0 && contexts[depth - 1] == c)
    depth--;
  return machine_leave (m, r);
}

/* Also where an error stays: a program must be able to put its context away. */
CUresult cuCtxSetCurrent (CUcontext c) {
  if (c == NULL) {
    depth = depth > 0 ? depth - 1 : 0;
    return CUDA_SUCCESS;
  }
  if (!is_context (c))
    return CUDA_ERROR_INVALID_CONTEXT;
  if (depth == 0)
    depth = 1;
  contexts[depth - 1] = c;
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2 (CUcontext c) {
  if (!is_context (c))
    return CUDA_ERROR_INVALID_CONTEXT;
  if (depth == CONTEXT_DEPTH)
    return CUDA_ERROR_OUT_OF_MEMORY;
  contexts[depth++] = c;
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2 (CUcontext *out) {
  if (depth == 0)
    return CUDA_ERROR_INVALID_CONTEXT;
  depth--;
  if (out != NULL)
    *out = contexts[depth];
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice (CUdevice *out) {
  CUresult refused;
  machine *m = machine_enter (true, &refused);
  if (m == NULL)
    return refused;
  if (out == NULL)
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  *out = 0;
  return machine_leave (m, CUDA_SUCCESS);
}

CUresult cuCtxSynchronize (void) {
  CUresult refused;
  machine *m = machine_enter (true, &refused);
  if (m == NULL)
    return refused;
  if (capture_any (m, true))
    return machine_leave (m, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  return machine_leave (m, finish_all (m));
}
