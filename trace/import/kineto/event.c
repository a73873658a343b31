/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/import/kineto/event.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

/* A field whose value may be anything (a null, a text) and is only wanted when it is a number. */
static bool number_if_any (stream *s, int64_t *out) {
  stream_kind kind = stream_peek (s);
  if (kind == STREAM_OBJECT || kind == STREAM_ARRAY)
    return stream_skip (s);
  slice text;
  int64_t value;
  if (!stream_scalar (s, &text))
    return false;
  if (slice_decimal (text, 0, &value))
    *out = value;
  return true;
}

static bool text_if_any (stream *s, slice *out) {
  stream_kind kind = stream_peek (s);
  return kind == STREAM_OBJECT || kind == STREAM_ARRAY ? stream_skip (s) : stream_scalar (s, out);
}

/* The place of a collective's argument of that name; NULL: it is none. */
static slice *call_text (kineto_call *c, slice key) {
  return slice_is (key, "Collective name")       ? &c->name
         : slice_is (key, "dtype")               ? &c->type
         : slice_is (key, "Process Group Name")  ? &c->group
         : slice_is (key, "Process Group Ranks") ? &c->ranks
                                                 : NULL;
}

typedef struct event_field {
  const char *key;
  size_t field;
  int64_t size;
} event_field;

static const event_field *field_named (slice key) {
#define FIELD(key, member) \
  { key, offsetof (event, member), sizeof key - 1 }
  static const event_field fields[] = {
    FIELD ("External id", external_id),
    FIELD ("external id", external_id),
    FIELD ("Record function id", record_id),
    FIELD ("Sequence number", sequence),
    FIELD ("Fwd thread id", forward_thread),
    FIELD ("correlation", correlation),
    FIELD ("stream", stream),
    FIELD ("device", device),
    FIELD ("bytes", bytes),
    FIELD ("Bytes", bytes),
    FIELD ("Device Type", device_type),
    FIELD ("Device Id", device_id),
    FIELD ("Total Allocated", total),
    FIELD ("Total Reserved", reserved),
    FIELD ("In msg nelems", call.in),
    FIELD ("Out msg nelems", call.out),
    FIELD ("wait_on_stream", waited_stream),
    FIELD ("wait_on_cuda_event_record_corr_id", waited_record),
  };
#undef FIELD
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
    if (key.size == fields[i].size && memcmp (key.at, fields[i].key, (size_t)key.size) == 0)
      return &fields[i];
  return NULL;
}

static bool read_args (stream *s, event *e) {
  if (stream_peek (s) != STREAM_OBJECT)
    return stream_skip (s);
  if (!stream_object (s))
    return false;
  slice key;
  while (stream_member (s, &key)) {
    if (slice_is (key, "Addr")) {
      e->has_address = true;
      if (!number_if_any (s, &e->address))
        return false;
      continue;
    }
    if (slice_is (key, "Input Dims") || slice_is (key, "Input type")) {
      if (!(slice_is (key, "Input Dims") ? kineto_read_dims (s, e->shapes)
                                         : kineto_read_types (s, e->shapes)))
        return false;
      continue;
    }
    slice *text = call_text (&e->call, key);
    if (text) {
      if (!text_if_any (s, text))
        return false;
      continue;
    }
    const event_field *f = field_named (key);
    if (!(f ? number_if_any (s, (int64_t *)((char *)e + f->field)) : stream_skip (s)))
      return false;
  }
  return !s->failed;
}

static bool has_point (slice text) {
  return memchr (text.at, '.', (size_t)text.size) != NULL;
}

static bool read_time (stream *s, bool *fractions, int64_t *ns) {
  stream ahead = *s;
  error ignored = { 0 };
  ahead.err = &ignored;
  slice text;
  if (stream_scalar (&ahead, &text) && has_point (text))
    *fractions = true;
  return stream_us (s, ns);
}

bool event_read (stream *s, kineto_shapes *shapes, bool *fractions, event *e) {
  assert (s && shapes && fractions && e);
  static const slice none = { "", 0, false };
  shapes->n_elements = shapes->n_types = 0;
  shapes->given = shapes->more = false;
  *e = (event){ .shapes = shapes,
                .phase = none,
                .category = none,
                .name = none,
                .process = none,
                .thread = none,
                .call = { none, none, none, none, 0, 0 },
                .at = s->at,
                .external_id = -1,
                .record_id = -1,
                .sequence = -1,
                .correlation = -1,
                .stream = -1,
                .waited_stream = -1,
                .waited_record = -1,
                .device = -1,
                .device_type = -1,
                .device_id = -1,
                .total = -1,
                .reserved = -1 };
  if (!stream_object (s))
    return false;
  slice key;
  while (stream_member (s, &key)) {
    bool ok;
    if (slice_is (key, "ph"))
      ok = text_if_any (s, &e->phase);
    else if (slice_is (key, "cat"))
      ok = text_if_any (s, &e->category);
    else if (slice_is (key, "name"))
      ok = text_if_any (s, &e->name);
    else if (slice_is (key, "pid"))
      ok = text_if_any (s, &e->process);
    else if (slice_is (key, "tid"))
      ok = text_if_any (s, &e->thread);
    else if (slice_is (key, "ts")) {
      ok = read_time (s, fractions, &e->start_ns);
      e->has_start = true;
    } else if (slice_is (key, "dur")) {
      ok = read_time (s, fractions, &e->ns);
      e->has_ns = true;
    } else if (slice_is (key, "args"))
      ok = read_args (s, e);
    else
      ok = stream_skip (s);
    if (!ok)
      return false;
  }
  return !s->failed;
}
