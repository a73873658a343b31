/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The program's own order between its streams: its events, and the calls for which the host waits.
   The launcher's prediction of a step needs it, and a wait that the events imply is not made. */
#pragma once

#include "executor/shim/state/shim.h"

/* Beat `beat` waits for the end of `behind`; `host`: so does whatever is issued from there on;
   `device`: for the shim's copies as well. */
typedef struct order_edge {
  int64_t beat, behind;
  bool host, device;
} order_edge;

order *order_new (void); /* NULL: no memory */
/* The next op of the stream is beat `beat`: what it waits for becomes edges. */
void order_op (order *o, int64_t beat, int32_t stream_bit);
/* The host has waited for that beat before its call returned. */
void order_waited (order *o, int64_t beat);
/* An event is recorded behind all that the stream is; a stream waits for it. */
void order_mark (order *o, CUevent event, int32_t stream_bit);
void order_wait (order *o, int32_t stream_bit, CUevent event);
/* Somebody else records it, or has its handle. */
void order_forget (order *o, CUevent event);
/* The host has waited for the event, the stream or the device. */
void order_host_event (order *o, CUevent event);
void order_host_stream (order *o, int32_t stream_bit);
void order_device (order *o);
/* Another may have its bit. */
void order_stream_ended (order *o, int32_t bit);
/* The next work of stream `bit` is behind that beat of stream `of`, by the program's events. */
bool order_is_behind (const order *o, int32_t bit, int32_t of, int64_t beat);
/* The edges of beats in [first, end), oldest first; next from *at, which begins with 0. */
const order_edge *order_next (const order *o, int64_t first, int64_t end, int64_t *at);
