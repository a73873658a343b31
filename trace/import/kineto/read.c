/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "trace/import/common/accelerator.h"
#include "trace/import/common/calls.h"
#include "trace/import/kineto/event.h"

typedef struct reader {
  import_job *job;
  kineto *k;
  stream s;
  int64_t op_room, launch_room, gpu_room, memory_room, step_room, input_room, comm_room;
  int64_t sync_room;
  kineto_shapes shapes; /* of the event being read */
} reader;

/* ---- which class ---- */

typedef enum event_class {
  CLASS_OP,
  CLASS_ANNOTATION,
  CLASS_LAUNCH,
  CLASS_GPU,
  CLASS_SYNC,
  CLASSES
} event_class;

static event_class class_of (const event *e, gpu_kind *kind, bool *old) {
  static const struct {
    const char *category;
    event_class class;
    gpu_kind kind;
    bool old;
  } rows[] = {
    { "cpu_op", CLASS_OP, 0, false },
    { "Operator", CLASS_OP, 0, true },
    { "user_annotation", CLASS_ANNOTATION, 0, false },
    { "Runtime", CLASS_LAUNCH, 0, true },
    { "kernel", CLASS_GPU, GPU_KERNEL, false },
    { "Kernel", CLASS_GPU, GPU_KERNEL, true },
    { "cuda_sync", CLASS_SYNC, 0, false },
    { "gpu_memcpy", CLASS_GPU, GPU_MEMCPY, false },
    { "Memcpy", CLASS_GPU, GPU_MEMCPY, true },
    { "gpu_memset", CLASS_GPU, GPU_MEMSET, false },
    { "Memset", CLASS_GPU, GPU_MEMSET, true },
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (slice_is (e->category, rows[i].category)) {
      *kind = rows[i].kind;
      *old = rows[i].old;
      return rows[i].class;
    }
  if (!accelerator_is_runtime (e->category))
    return CLASSES;
  *kind = 0;
  *old = false;
  return CLASS_LAUNCH;
}

/* Threads are compared as text: one dialect writes "5555" here and 5555 there. */
static int32_t thread_of (reader *r, const event *e) {
  char text[128];
  int64_t n = 0;
  for (int64_t i = 0; i < e->process.size && n < 60; i++)
    text[n++] = e->process.at[i];
  text[n++] = '/';
  for (int64_t i = 0; i < e->thread.size && n < 127; i++)
    text[n++] = e->thread.at[i];
  return intern_add (&r->k->threads, (slice){ text, n, false }, true, r->job->err);
}

static bool full (reader *r, int32_t count) {
  return count == INT32_MAX - 1 && stream_fail (&r->s, "more events than 2^31");
}

static bool add_step (reader *r, const event *e, int32_t thread) {
  kineto *k = r->k;
  if (!GROW (r->job->scratch, k->steps, &r->step_room, (int64_t)k->n_steps + 1, r->job->err))
    return false;
  slice number = e->name;
  number.at += strlen ("ProfilerStep#");
  number.size -= (int64_t)strlen ("ProfilerStep#");
  kineto_step step = { e->start_ns, e->start_ns + e->ns, -1, thread };
  if (!slice_decimal (number, 0, &step.number))
    step.number = k->n_steps;
  k->steps[k->n_steps++] = step;
  return true;
}

static bool add_op (reader *r, const event *e, bool annotation) {
  kineto *k = r->k;
  int32_t thread = thread_of (r, e);
  if (thread < 0)
    return false;
  if (slice_starts (e->name, "ProfilerStep#"))
    return add_step (r, e, thread);
  k->ops = arena_grow (r->job->scratch, k->ops, &r->op_room, (int64_t)k->n_ops + 1, sizeof *k->ops,
                       r->job->err);
  int32_t name = intern_add (&k->names, e->name, false, r->job->err);
  if (!k->ops || name < 0 || full (r, k->n_ops))
    return false;
  bool backward = e->forward_thread != 0 || (!annotation && call_is_backward (e->name));
  k->ops[k->n_ops++] = (kineto_op){ .start_ns = e->start_ns,
                                    .end_ns = e->start_ns + e->ns,
                                    .external_id = e->external_id,
                                    .record_id = e->record_id,
                                    .sequence = e->sequence,
                                    .name = name,
                                    .thread = thread,
                                    .parent = NONE,
                                    .annotation = annotation,
                                    .has_forward_thread = e->forward_thread != 0,
                                    .mark = slice_starts (e->name, "Optimizer.step") ? MARK_UPDATE
                                            : backward                               ? MARK_BACKWARD
                                                                                     : MARK_NONE };
  k->n_annotations += annotation;
  return annotation ||
         kineto_keep_shapes (r->job, k, &r->input_room, e->shapes, e->name, &k->ops[k->n_ops - 1]);
}

/* Correlations count from 1; 0 stands where none is known. */
static bool add_launch (reader *r, const event *e) {
  kineto *k = r->k;
  if (e->correlation <= 0)
    return true;
  k->launches = arena_grow (r->job->scratch, k->launches, &r->launch_room,
                            (int64_t)k->n_launches + 1, sizeof *k->launches, r->job->err);
  int32_t thread = thread_of (r, e);
  if (!k->launches || thread < 0 || full (r, k->n_launches))
    return false;
  k->launches[k->n_launches++] =
      (kineto_launch){ e->start_ns, e->correlation, thread, (uint8_t)kineto_effect (e->name) };
  return true;
}

/* If args say nothing: the row is the device, and in the old dialect the thread "stream 7". */
static void device_and_stream (event *e) {
  int64_t value;
  if (e->device < 0 && slice_decimal (e->process, 0, &value))
    e->device = value;
  slice thread = e->thread;
  if (slice_starts (thread, "stream ")) {
    thread.at += 7;
    thread.size -= 7;
  }
  if (e->stream < 0 && slice_decimal (thread, 0, &value))
    e->stream = value;
}

static bool add_gpu (reader *r, event *e, gpu_kind kind) {
  kineto *k = r->k;
  device_and_stream (e);
  if (e->device < 0 || e->device > INT32_MAX || e->stream < 0)
    return stream_fail_at (&r->s, e->at, "a GPU event without a device and a stream");
  k->gpu = arena_grow (r->job->scratch, k->gpu, &r->gpu_room, (int64_t)k->n_gpu + 1, sizeof *k->gpu,
                       r->job->err);
  int32_t name = intern_add (&k->names, e->name, false, r->job->err);
  if (!k->gpu || name < 0 || full (r, k->n_gpu))
    return false;
  k->gpu[k->n_gpu++] = (kineto_gpu){ .start_ns = e->start_ns,
                                     .ns = e->ns,
                                     .correlation = e->correlation,
                                     .bytes = e->bytes,
                                     .device = (int32_t)e->device,
                                     .name = name,
                                     .stream = e->stream,
                                     .launch = NONE,
                                     .owner = NONE,
                                     .kind = (uint8_t)kind };
  return kineto_keep_call (r->job, k, &r->comm_room, &e->call);
}

/* The time only counts where the file lacks the call. */
static bool add_sync (reader *r, const event *e) {
  kineto_sync s = { .at_ns = e->has_start ? e->start_ns : -1,
                    .correlation = e->correlation,
                    .stream = e->stream,
                    .record = e->waited_record,
                    .on_stream = e->waited_stream };
  return kineto_keep_sync (r->job, r->k, &r->sync_room, e->name, s);
}

static bool add_memory (reader *r, const event *e) {
  kineto *k = r->k;
  if (!accelerator_is_type (e->device_type) || e->bytes == 0) { /* 0: the CPU */
    k->cpu_memory_events += e->device_type == 0;
    return true;
  }
  if (e->device_id < 0 || e->device_id > INT32_MAX)
    return stream_fail_at (&r->s, e->at, "a [memory] event of a device without Device Id");
  if (e->bytes > MOST_TENSOR_BYTES || e->bytes < -MOST_TENSOR_BYTES)
    return stream_fail_at (&r->s, e->at, "%lld bytes in one [memory] event", (long long)e->bytes);
  k->memory = arena_grow (r->job->scratch, k->memory, &r->memory_room, (int64_t)k->n_memory + 1,
                          sizeof *k->memory, r->job->err);
  int32_t thread = thread_of (r, e);
  if (!k->memory || thread < 0 || full (r, k->n_memory))
    return false;
  if (k->n_memory) {
    const kineto_memory *before = &k->memory[k->n_memory - 1];
    k->unsorted |= before->at_ns > e->start_ns;
    k->unsorted_breaks += before->total >= 0 && e->total - before->total != e->bytes;
  }
  k->memory[k->n_memory++] = (kineto_memory){ .at_ns = e->start_ns,
                                              .address = e->address,
                                              .bytes = e->bytes,
                                              .total = e->total,
                                              .reserved = e->reserved,
                                              .thread = thread,
                                              .device = (int32_t)e->device_id,
                                              .around = NONE,
                                              .has_address = e->has_address };
  return true;
}

/* 2^61 ns are 73 years after 1970 in nanoseconds; sums of two such times fit. */
#define MOST_TIME ((int64_t)1 << 61)

/* Calls that had not ended when the profiler stopped have no length, or one below 0.  What is in
   them is told by what is around them. */
static void end_unfinished (reader *r, event *e) {
  if (e->has_ns && e->ns >= 0)
    return;
  e->ns = 0;
  e->has_ns = true;
  r->k->unfinished++;
}

static bool file_event (reader *r, event *e) {
  r->k->n_events++;
  if (slice_is (e->name, "[memory]")) {
    if (!e->has_start || e->start_ns < 0 || e->start_ns > MOST_TIME)
      return stream_fail_at (&r->s, e->at, "a [memory] event without a time `ts`");
    return add_memory (r, e);
  }
  gpu_kind kind = GPU_KERNEL;
  bool old = false;
  event_class class = class_of (e, &kind, &old);
  if (class != CLASSES && (slice_is (e->phase, "B") || slice_is (e->phase, "E")))
    return stream_fail_at (
        &r->s, e->at,
        "half an event (`ph` B or E), such as PyTorch's profiler does not write: "
        "make one of both, with `dur` (`ph` X)");
  if (class == CLASSES || !slice_is (e->phase, "X"))
    return true;
  if (class == CLASS_SYNC)
    return add_sync (r, e);
  if (class == CLASS_OP || class == CLASS_ANNOTATION)
    end_unfinished (r, e);
  if (!e->has_start || e->start_ns < 0 || e->start_ns > MOST_TIME || e->ns < 0 || e->ns > MOST_NS ||
      (!e->has_ns && class != CLASS_LAUNCH))
    return stream_fail_at (
        &r->s, e->at,
        "an event (%.*s) without a sound `ts` and `dur`: record again, or take it "
        "out of the file",
        (int)(e->name.size < 80 ? e->name.size : 80), e->name.at);
  r->k->old_dialect |= old;
  switch (class) {
  case CLASS_OP:
    return add_op (r, e, false);
  case CLASS_ANNOTATION:
    return add_op (r, e, true);
  case CLASS_LAUNCH:
    return add_launch (r, e);
  default:
    return add_gpu (r, e, kind);
  }
}

static bool read_events (reader *r) {
  event e;
  if (!stream_array (&r->s))
    return false;
  while (stream_element (&r->s))
    if (!event_read (&r->s, &r->shapes, &r->k->fractions, &e) || !file_event (r, &e))
      return false;
  return !r->s.failed;
}

static bool read_document (reader *r) {
  if (stream_peek (&r->s) == STREAM_ARRAY)
    return read_events (r) && stream_end (&r->s);
  slice key;
  if (!stream_object (&r->s))
    return false;
  while (stream_member (&r->s, &key))
    if (!(slice_is (key, "traceEvents")        ? read_events (r)
          : slice_is (key, "deviceProperties") ? kineto_read_cards (&r->s, r->k)
          : slice_is (key, "distributedInfo")  ? kineto_read_rank (&r->s, r->k)
                                               : stream_skip (&r->s)))
      return false;
  return stream_end (&r->s);
}

/* ---- order ---- */

/* Stable, since threads are written in blocks and ties mean something. */
static bool sort_memory (import_job *job, kineto *k) {
  if (!k->unsorted)
    return true;
  kineto_memory *other = NEW (job->scratch, k->n_memory, kineto_memory, job->err);
  if (!other)
    return false;
  kineto_memory *from = k->memory, *to = other;
  for (int64_t width = 1; width < k->n_memory; width *= 2) {
    for (int64_t low = 0; low < k->n_memory; low += 2 * width) {
      int64_t middle = low + width < k->n_memory ? low + width : k->n_memory;
      int64_t high = low + 2 * width < k->n_memory ? low + 2 * width : k->n_memory;
      int64_t a = low, b = middle;
      for (int64_t i = low; i < high; i++)
        to[i] = a < middle && (b >= high || from[a].at_ns <= from[b].at_ns) ? from[a++] : from[b++];
    }
    kineto_memory *swap = from;
    from = to;
    to = swap;
  }
  k->memory = from;
  return true;
}

/* On AMD cards memory events count the devices that the program sees, and kernels those of the
   machine: where there is one of each they are the same card, called as its kernels call it. */
static void join_devices (kineto *k) {
  for (int32_t i = 1; i < k->n_gpu; i++)
    if (k->gpu[i].device != k->gpu[0].device)
      return;
  for (int32_t i = 1; i < k->n_memory; i++)
    if (k->memory[i].device != k->memory[0].device)
      return;
  for (int32_t i = 0; k->n_gpu && i < k->n_memory; i++)
    k->memory[i].device = k->gpu[0].device;
}

static int by_start (const void *a, const void *b) {
  const kineto_step *x = a, *y = b;
  return ORDER (x->start_ns, y->start_ns) ?: ORDER (x->number, y->number);
}

bool kineto_read (import_job *job, const import_text *file, kineto *out) {
  *out = (kineto){ .names = intern_new (job->scratch),
                   .threads = intern_new (job->scratch),
                   .rank = -1 };
  reader r = { .job = job, .k = out, .s = stream_open (file->text, file->size, job->err) };
  if (!read_document (&r)) {
    if (job->err->code == ERR_none)
      error_set (job->err, ERR_internal, "the events could not be read");
    return false;
  }
  join_devices (out);
  if (out->unfinished)
    report_warn (job, "calls without an end, taken to have no length", out->unfinished, NULL);
  if (out->n_steps)
    qsort (out->steps, (size_t)out->n_steps, sizeof *out->steps, by_start);
  report_version (job, file,
                  out->old_dialect ? "2021 dialect"
                  : out->fractions ? "2024 dialect"
                                   : "2022 dialect");
  return sort_memory (job, out);
}
