/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The program's events, and its waits for them: of streams, and of the host. */
#include "executor/shim/again/again.h"
#include "executor/shim/calls/calls.h"
#include "executor/shim/calls/capture.h"
#include "executor/shim/record/order.h"
#include "executor/shim/record/record.h"
#include "executor/shim/state/wraps.h"

/* Before the first tensor there is no order to know. */
static bool enter (shim **s) {
  const shim *there = shim_of_process ();
  return there != NULL && there->started && shim_enter (s);
}

/* Recorded, unless `r` says otherwise: the event is behind all that its stream is. */
static CUresult note_record (shim *s, CUevent event, CUstream stream, CUresult r) {
  int32_t bit = stream_bit (s, stream);
  order_forget (s->order, event);
  if (!capture_has (s, stream) && r == CUDA_SUCCESS)
    order_mark (s->order, event, bit);
  return shim_leave (s, r);
}

CUresult wrap_event_record (CUevent event, CUstream stream) {
  shim *s;
  if (!enter (&s))
    return shim_real ()->event_record (event, stream);
  return note_record (s, event, stream, s->real.event_record (event, stream));
}

CUresult wrap_event_record_ptsz (CUevent event, CUstream stream) {
  return wrap_event_record (event, own_stream (stream));
}

CUresult wrap_event_record_flags (CUevent event, CUstream stream, unsigned int flags) {
  CUresult (*real) (CUevent, CUstream, unsigned int) = shim_symbol ("cuEventRecordWithFlags");
  if (real == NULL)
    return CUDA_ERROR_NOT_FOUND;
  shim *s;
  if (!enter (&s))
    return real (event, stream, flags);
  return note_record (s, event, stream, real (event, stream, flags));
}

CUresult wrap_event_record_flags_ptsz (CUevent event, CUstream stream, unsigned int flags) {
  return wrap_event_record_flags (event, own_stream (stream), flags);
}

/* Another may get its handle. */
CUresult wrap_event_destroy (CUevent event) {
  shim *s;
  if (!enter (&s))
    return shim_real ()->event_destroy (event);
  order_forget (s->order, event);
  return shim_leave (s, s->real.event_destroy (event));
}

CUresult wrap_stream_wait (CUstream stream, CUevent event, unsigned int flags) {
  shim *s;
  if (!enter (&s))
    return shim_real ()->stream_wait_event (stream, event, flags);
  if (s->captured > 0 && !capture_has (s, stream))
    stream_hand_over (s, stream); /* it may be captured from here on */
  CUresult r = s->real.stream_wait_event (stream, event, flags);
  if (capture_has (s, stream))
    return shim_leave (s, r);
  int32_t bit = stream_bit (s, stream);
  if (r == CUDA_SUCCESS)
    order_wait (s->order, bit, event);
  return shim_leave (s, r);
}

CUresult wrap_stream_wait_ptsz (CUstream stream, CUevent event, unsigned int flags) {
  return wrap_stream_wait (own_stream (stream), event, flags);
}

/* ---- the host's waits ---- */

/* In a profile, the times of what is done. */
static CUresult after_wait (CUresult r, CUstream stream, CUevent event, bool all) {
  shim *s;
  if (r != CUDA_SUCCESS || !enter (&s))
    return shim_look (r);
  if (event != NULL)
    order_host_event (s->order, event);
  else if (!all)
    order_host_stream (s->order, stream_bit (s, stream));
  else
    order_device (s->order);
  again_look (s, false);
  record_harvest (s);
  return shim_leave (s, r);
}

/* The driver waits, without the lock; a handler that ends the program meanwhile must not. */
#define WAITED(call)                 \
  bool was = shim_set_inside (true); \
  CUresult r = call;                 \
  (void)shim_set_inside (was)

CUresult wrap_stream_sync (CUstream stream) {
  WAITED (shim_real ()->stream_synchronize (stream));
  return after_wait (r, stream, NULL, false);
}

CUresult wrap_stream_sync_ptsz (CUstream stream) {
  return wrap_stream_sync (own_stream (stream));
}

CUresult wrap_event_sync (CUevent event) {
  WAITED (shim_real ()->event_synchronize (event));
  return after_wait (r, NULL, event, false);
}

CUresult wrap_ctx_sync (void) {
  WAITED (shim_real ()->ctx_synchronize ());
  return after_wait (r, NULL, NULL, true);
}

CUresult wrap_ctx_sync_of (CUcontext context) {
  CUresult (*real) (CUcontext) = shim_symbol ("cuCtxSynchronize_v2");
  if (real == NULL)
    return CUDA_ERROR_NOT_FOUND;
  WAITED (real (context));
  return after_wait (r, NULL, NULL, true);
}
