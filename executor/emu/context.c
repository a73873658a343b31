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

/* Contexts that a program makes beside the primary ones: other handles of the same memory, one a
   device. */
static char made_contexts[EMU_CARDS];

/* -1: it is none of these. */
static int32_t made_card (CUcontext c) {
  const char *at = (const char *)(void *)c;
  return at >= made_contexts && at < made_contexts + EMU_CARDS ? (int32_t)(at - made_contexts) : -1;
}

int32_t contexts_card (const machine *m) {
  const void *c = depth == 0 ? NULL : (void *)contexts[depth - 1];
  for (int32_t i = 1; i < m->n_cards; i++)
    if (c == &m->cards[i] || c == &made_contexts[i])
      return i;
  return 0;
}

CUresult cuDevicePrimaryCtxRetain (CUcontext *out, CUdevice d) {
  CUresult r = machine_device (d, out != NULL);
  if (r != CUDA_SUCCESS)
    return r;
  machine *m = machine_enter_stuck ();
  m->cards[d].retained++;
  *out = (CUcontext)&m->cards[d];
  return machine_leave (m, CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxRelease_v2 (CUdevice d) {
  machine *m = machine_enter_stuck ();
  if (m == NULL)
    return CUDA_ERROR_NOT_INITIALIZED;
  CUresult r = d < 0 || d >= m->n_cards    ? CUDA_ERROR_INVALID_DEVICE
               : m->cards[d].retained == 0 ? CUDA_ERROR_INVALID_CONTEXT
                                           : CUDA_SUCCESS;
  if (r == CUDA_SUCCESS)
    m->cards[d].retained--;
  return machine_leave (m, r);
}

CUresult cuDevicePrimaryCtxGetState (CUdevice d, unsigned int *flags, int *active) {
  CUresult r = machine_device (d, flags != NULL && active != NULL);
  if (r != CUDA_SUCCESS)
    return r;
  machine *m = machine_enter_stuck ();
  *flags = 0;
  *active = m->cards[d].retained > 0;
  return machine_leave (m, r);
}

CUresult cuCtxGetCurrent (CUcontext *out) {
  CUresult r = machine_device (0, out != NULL);
  if (r == CUDA_SUCCESS)
    *out = depth == 0 ? NULL : contexts[depth - 1];
  return r;
}

/* All that is queued on a device ends first. */
static CUresult finish_all (machine *m, int32_t on) {
  CUresult r = CUDA_SUCCESS;
  for (int32_t i = 0; i < m->n_streams && r == CUDA_SUCCESS; i++)
    if (m->streams[i]->card == on)
      r = stream_finish (m, m->streams[i]);
  return r;
}

/* Its things stay in the tables of the machine: nobody comes there without a context. */
CUresult cuDevicePrimaryCtxReset_v2 (CUdevice d) {
  ENTER (m, machine_enter (false, &refused));
  if (d < 0 || d >= m->n_cards)
    return machine_leave (m, CUDA_ERROR_INVALID_DEVICE);
  CUresult r = finish_all (m, d);
  m->cards[d].retained = 0;
  return machine_leave (m, r);
}

static bool is_context (CUcontext c) {
  return machine_card_of (c) >= 0 || made_card (c) >= 0;
}

CUresult cuCtxCreate_v2 (CUcontext *out, unsigned int flags, CUdevice d) {
  (void)flags;
  CUresult r = machine_device (d, out != NULL);
  if (r != CUDA_SUCCESS)
    return r;
  machine *m = machine_enter_stuck ();
  m->made++;
  (void)machine_leave (m, CUDA_SUCCESS);
  *out = (CUcontext)(void *)&made_contexts[d];
  return cuCtxPushCurrent_v2 (*out);
}

CUresult cuCtxDestroy_v2 (CUcontext c) {
  ENTER (m, machine_enter (false, &refused));
  if (made_card (c) < 0 || m->made == 0)
    return machine_leave (m, CUDA_ERROR_INVALID_CONTEXT);
  CUresult r = finish_all (m, made_card (c));
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
  ENTER (m, machine_enter (true, &refused));
  if (out == NULL)
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  *out = contexts_card (m);
  return machine_leave (m, CUDA_SUCCESS);
}

CUresult cuCtxSynchronize (void) {
  ENTER (m, machine_enter (true, &refused));
  if (capture_any (m, true))
    return machine_leave (m, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  return machine_leave (m, finish_all (m, contexts_card (m)));
}
