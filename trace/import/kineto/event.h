/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One event of a Kineto file, read member by member. */
#pragma once

#include "trace/import/kineto/kineto.h"

/* One event, as far as any class needs it; members come in any order. */
typedef struct event {
  slice phase, category, name, process, thread;
  int64_t start_ns, ns, at;
  bool has_start, has_ns;
  /* args */
  int64_t external_id, record_id, sequence, forward_thread, correlation, stream, device, bytes;
  int64_t waited_stream, waited_record;
  int64_t device_type, device_id, address, total, reserved;
  bool has_address;
  kineto_call call;
  kineto_shapes *shapes; /* of the caller: too large to clear for each event */
} event;

/* fractions: set if a time has decimals. The event's texts lie in the stream's. */
bool event_read (stream *s, kineto_shapes *shapes, bool *fractions, event *e) MUST_CHECK;
