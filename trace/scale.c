/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/scale.h"

#include <string.h>

#include "base/units.h"
#include "trace/roofline.h"

/* A collective takes its time of what is between the ranks, whatever the card computes. */
static bool keeps_time (const op *o) {
  return o->collective != COLLECTIVE_none;
}

/* A time that no trace may hold stands for all that are too long: the result is validated. */
static int64_t times (int64_t ns, int64_t by, int64_t of) {
  __int128 long_ns = (__int128)ns * by / of;
  return long_ns > MOST_NS ? MOST_NS + 1 : (int64_t)long_ns;
}

static op *copy_of (const trace *t, arena *a, scaled *out, error *err) {
  trace *copy = NEW (a, 1, trace, err);
  op *ops = copy ? NEW (a, t->n_ops, op, err) : NULL;
  if (!ops)
    return NULL;
  *copy = *t;
  if (t->n_ops)
    memcpy (ops, t->ops, (size_t)t->n_ops * sizeof *ops);
  copy->ops = ops;
  copy->n_samples = 0;
  copy->ns_samples = NULL;
  *out = (scaled){ .trace = copy, .all_ns = trace_total_ns (t) };
  return ops;
}

bool scale_share (const trace *t, int64_t ppm, arena *a, scaled *out, error *err) {
  enum { WHOLE = 1000000 };
  op *ops = copy_of (t, a, out, err);
  for (int32_t i = 0; ops && i < t->n_ops; i++) {
    if (!keeps_time (&ops[i]))
      ops[i].ns = times (ops[i].ns, ppm, WHOLE);
    ops[i].gap_ns = times (ops[i].gap_ns, ppm, WHOLE);
  }
  out->ops = t->n_ops;
  return ops && trace_validate (out->trace, err);
}

/* A measured op keeps its ratio to the roofline of its own card. */
static bool scale_op (op *o, const device *from, const device *to) {
  compute what;
  int64_t there, here;
  error why = { 0 };
  if (!o->compute || !compute_parse (o->compute, &what, &why) ||
      !roofline_ns (to, &what, &there, &why) || !roofline_ns (from, &what, &here, &why) ||
      here <= 0)
    return false;
  o->ns = times (o->ns, there, here);
  return true;
}

static int64_t bytes_of (const trace *t, const op *o) {
  int64_t bytes = 0;
  for (int32_t i = 0; i < o->reads.count; i++)
    bytes += t->tensors[o->reads.at[i]].bytes;
  for (int32_t i = 0; i < o->writes.count; i++)
    if (!list_has (&o->reads, o->writes.at[i]))
      bytes += t->tensors[o->writes.at[i]].bytes;
  return bytes;
}

/* A rate of arithmetic that both cards tell. */
static bool rates_of (const device_roofline *from, const device_roofline *to, int64_t *here,
                      int64_t *there) {
  const int64_t pairs[][2] = { { from->bf16_flops, to->bf16_flops },
                               { from->fp16_flops, to->fp16_flops },
                               { from->fp32_flops, to->fp32_flops } };
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    *here = pairs[i][0];
    *there = pairs[i][1];
    if (*here > 0 && *there > 0)
      return true;
  }
  return false;
}

static void guess_op (const trace *t, op *o, const device_roofline *from,
                      const device_roofline *to) {
  enum { SECOND = 1000000000 };
  int64_t here = from->memory_bytes_per_s, there = to->memory_bytes_per_s;
  if (here <= 0 || there <= 0)
    return;
  bool moves = units_scale (bytes_of (t, o), SECOND, here) >= o->ns / 2;
  if (moves || rates_of (from, to, &here, &there))
    o->ns = times (o->ns, here, there);
}

bool scale_roofline (const trace *t, const device *from, const device *to, arena *a, scaled *out,
                     error *err) {
  op *ops = copy_of (t, a, out, err);
  for (int32_t i = 0; ops && i < t->n_ops; i++) {
    if (keeps_time (&ops[i]))
      continue;
    bool done = scale_op (&ops[i], from, to);
    out->ops += done;
    out->guessed_ns += done ? 0 : t->ops[i].ns;
    if (!done)
      guess_op (t, &ops[i], &from->roofline, &to->roofline);
  }
  return ops && trace_validate (out->trace, err);
}
