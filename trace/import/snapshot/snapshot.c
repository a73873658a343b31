/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/import/snapshot/snapshot.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "trace/import/common/intern.h"
#include "trace/import/text/intervals_trace.h"

typedef struct reader {
  import_job *job;
  pickle p;
  snapshot *out;
  int64_t block_room;
  id_map open; /* by address: a block */
} reader;

/* ---- the code that asked for it ---- */

static slice base_name (slice path) {
  for (int64_t i = path.size; i > 0; i--)
    if (path.at[i - 1] == '/' || path.at[i - 1] == '\\') {
      path.at += i;
      path.size -= i;
      break;
    }
  return path;
}

static bool ends (slice text, const char *with) {
  int64_t length = (int64_t)strlen (with);
  return text.size >= length && memcmp (text.at + text.size - length, with, (size_t)length) == 0;
}

static bool is_library (slice path) {
  return memmem (path.at, (size_t)path.size, "site-packages", 13) != NULL ||
         memmem (path.at, (size_t)path.size, "dist-packages", 13) != NULL;
}

/* Autograd's threads have no Python: "MmBackward0" out of
 * "torch::autograd::generated::MmBackward0". */
static void backward_name (slice name, slice *found) {
  const char *at = memmem (name.at, (size_t)name.size, "Backward", 8);
  if (!at)
    return;
  const char *from = at, *end = at, *stop = name.at + name.size;
  while (from > name.at && from[-1] != ':' && from[-1] != ' ')
    from--;
  while (end < stop && *end != ':' && *end != '(' && *end != ' ')
    end++;
  *found = (slice){ from, end - from, false };
}

/* The innermost Python line of the user's own, else of a library; folders are cut off. */
static const char *source_line (reader *r, const pickle_value *frames) {
  slice found = { "", 0, false }, backward = { "", 0, false };
  int64_t line = 0;
  for (int64_t i = 0; i < pickle_count (frames) && i < 256; i++) {
    const pickle_value *frame = pickle_item (&r->p, frames, i);
    slice file = pickle_text (pickle_get (&r->p, frame, "filename"));
    if (!ends (file, ".py")) {
      if (backward.size == 0)
        backward_name (pickle_text (pickle_get (&r->p, frame, "name")), &backward);
      continue;
    }
    if (found.size == 0 || !is_library (file)) {
      found = base_name (file);
      line = pickle_int (pickle_get (&r->p, frame, "line"), 0);
    }
    if (!is_library (file))
      break;
  }
  if (found.size == 0 && backward.size)
    return slice_name (backward, r->job->scratch, r->job->err);
  if (found.size == 0)
    return "no Python line";
  if (found.size > 80)
    found.size = 80;
  const char *name = slice_name (found, r->job->scratch, r->job->err);
  return name && line > 0
             ? arena_format (r->job->scratch, r->job->err, "%s:%lld", name, (long long)line)
             : name;
}

/* ---- events ---- */

static bool add_block (reader *r, snapshot_block block) {
  snapshot *s = r->out;
  if (!GROW (r->job->scratch, s->blocks, &r->block_room, (int64_t)s->n_blocks + 1, r->job->err))
    return false;
  s->blocks[s->n_blocks++] = block;
  return true;
}

static bool see_alloc (reader *r, const pickle_value *event, int64_t address, int64_t bytes) {
  snapshot *s = r->out;
  const char *line = source_line (r, pickle_get (&r->p, event, "frames"));
  int32_t *slot = line ? id_map_at (&r->open, address, r->job->err) : NULL;
  if (!slot)
    return false;
  *slot = s->n_blocks;
  s->allocated_bytes += bytes;
  if (bytes > s->largest_bytes)
    s->largest_bytes = bytes;
  return add_block (r, (snapshot_block){ bytes, s->n_allocs++, -1, line });
}

/* The trace is a ring buffer: a free whose alloc fell out of it belongs to a block that was there.
 */
static bool see_free (reader *r, int64_t address, int64_t bytes) {
  snapshot *s = r->out;
  int32_t *slot = id_map_at (&r->open, address, r->job->err);
  if (!slot)
    return false;
  s->completed_frees++;
  if (*slot < 0) {
    s->unseen_frees++;
    return add_block (r, (snapshot_block){ bytes, -1, s->n_allocs, "before the trace" });
  }
  snapshot_block *b = &s->blocks[*slot];
  b->freed_behind = s->n_allocs;
  s->pairs++;
  s->size_mismatches += b->bytes != bytes;
  *slot = -1;
  return true;
}

/* A request that ran out of memory is not there, but the step needs it: it counts for a moment. */
static bool see_refusal (reader *r, const pickle_value *event, int64_t bytes) {
  snapshot *s = r->out;
  const char *line = source_line (r, pickle_get (&r->p, event, "frames"));
  char size[UNITS_TEXT];
  int32_t alloc = s->n_allocs++;
  s->refusals++;
  if (!line)
    return false;
  s->refused = arena_format (r->job->a, r->job->err, "%s by %s", units_bytes (size, bytes), line);
  line = arena_format (r->job->a, r->job->err, "%s (refused)", line);
  return s->refused && line && add_block (r, (snapshot_block){ bytes, alloc, alloc + 1, line });
}

static void see_sum (snapshot *s, int64_t net_bytes, int64_t index) {
  if (net_bytes <= s->peak_bytes)
    return;
  s->peak_bytes = net_bytes;
  s->peak_event = index;
}

static bool see_event (reader *r, const pickle_value *event, int64_t index) {
  snapshot *s = r->out;
  slice action = pickle_text (pickle_get (&r->p, event, "action"));
  if (action.size == 0)
    return error_set (r->job->err, ERR_input, "event %lld of the snapshot has no action",
                      (long long)index);
  int64_t at = pickle_int (pickle_get (&r->p, event, "time_us"), -1);
  if (at >= 0) {
    s->times_decrease |= at < s->last_us;
    s->last_us = at;
    if (s->first_us < 0)
      s->first_us = at;
  }
  if (slice_is (action, "free_requested")) { /* only the wish */
    s->requested_frees++;
    return true;
  }
  bool alloc = slice_is (action, "alloc"), done = slice_is (action, "free_completed");
  bool refused = slice_is (action, "oom");
  if (!alloc && !done && !refused)
    return true;
  int64_t address = refused ? 0 : pickle_int (pickle_get (&r->p, event, "addr"), -1);
  int64_t bytes = pickle_int (pickle_get (&r->p, event, "size"), -1);
  if (address < 0 || bytes < 0 || bytes > MOST_TENSOR_BYTES || s->n_blocks == INT32_MAX - 1)
    return error_set (r->job->err, ERR_input,
                      "event %lld of the snapshot has no sound addr and size", (long long)index);
  if (refused) {
    see_sum (s, s->net_bytes + bytes, index);
    return see_refusal (r, event, bytes);
  }
  s->net_bytes += alloc ? bytes : -bytes;
  see_sum (s, s->net_bytes, index);
  return alloc ? see_alloc (r, event, address, bytes) : see_free (r, address, bytes);
}

/* Bytes that were asked for.  Until PyTorch 2.1 they stood in the history of the block, of which
   the first entry is the last alloc. */
static int64_t requested_of (const pickle *p, const pickle_value *block, int64_t padded) {
  const pickle_value *last = pickle_item (p, pickle_get (p, block, "history"), 0);
  int64_t real = pickle_int (pickle_get (p, last, "real_size"), padded);
  return pickle_int (pickle_get (p, block, "requested_size"), real);
}

static bool see_segments (reader *r, const pickle_value *segments) {
  snapshot *s = r->out;
  for (int64_t i = 0; i < pickle_count (segments); i++) {
    const pickle_value *segment = pickle_item (&r->p, segments, i);
    if (pickle_int (pickle_get (&r->p, segment, "device"), 0) != s->device)
      continue;
    int64_t size = pickle_int (pickle_get (&r->p, segment, "total_size"), 0);
    const pickle_value *blocks = pickle_get (&r->p, segment, "blocks");
    s->segments++;
    if (size < 0 || size > MOST_BYTES || s->reserved_bytes > MOST_BYTES ||
        s->n_segment_blocks > r->p.n_values)
      return error_set (r->job->err, ERR_input, "segment %lld of the snapshot is absurd",
                        (long long)i);
    s->reserved_bytes += size;
    for (int64_t j = 0; j < pickle_count (blocks); j++) {
      const pickle_value *block = pickle_item (&r->p, blocks, j);
      s->n_segment_blocks++;
      if (!slice_starts (pickle_text (pickle_get (&r->p, block, "state")), "active"))
        continue;
      int64_t padded = pickle_int (pickle_get (&r->p, block, "size"), 0);
      int64_t requested = requested_of (&r->p, block, padded);
      if (padded < 0 || requested < 0 || padded > MOST_BYTES || requested > MOST_BYTES ||
          s->padded_bytes > MOST_BYTES)
        return error_set (r->job->err, ERR_input, "a block of segment %lld is absurd",
                          (long long)i);
      s->active_blocks++;
      s->padded_bytes += padded;
      s->active_bytes += requested;
    }
  }
  return true;
}

/* The most that one device has, and the bytes at the end. */
typedef struct card_use {
  int64_t events, active, net, peak; /* peak: above what was there at the start */
} card_use;

enum { MOST_CARDS = 64 };

static int64_t sound (int64_t bytes) {
  return bytes > 0 && bytes < MOST_TENSOR_BYTES ? bytes : 0;
}

/* The same sums as of the chosen device, by a short way: which one that is depends on them. */
static card_use measure (const pickle *p, const pickle_value *root, int64_t device) {
  card_use u = { 0 };
  const pickle_value *events = pickle_item (p, pickle_get (p, root, "device_traces"), device);
  const pickle_value *segments = pickle_get (p, root, "segments");
  u.events = pickle_count (events);
  for (int64_t i = 0; i < u.events; i++) {
    const pickle_value *event = pickle_item (p, events, i);
    slice action = pickle_text (pickle_get (p, event, "action"));
    int64_t bytes = sound (pickle_int (pickle_get (p, event, "size"), 0));
    int64_t asked = slice_is (action, "oom") ? u.net + bytes : 0; /* and refused */
    u.net += slice_is (action, "alloc") ? bytes : slice_is (action, "free_completed") ? -bytes : 0;
    u.peak = u.net > u.peak ? u.net : u.peak;
    u.peak = asked > u.peak ? asked : u.peak;
  }
  for (int64_t i = 0; i < pickle_count (segments); i++) {
    const pickle_value *segment = pickle_item (p, segments, i);
    const pickle_value *blocks = pickle_get (p, segment, "blocks");
    if (pickle_int (pickle_get (p, segment, "device"), 0) != device)
      continue;
    for (int64_t j = 0; j < pickle_count (blocks) && u.active < MOST_BYTES; j++) {
      const pickle_value *block = pickle_item (p, blocks, j);
      int64_t padded = sound (pickle_int (pickle_get (p, block, "size"), 0));
      if (slice_starts (pickle_text (pickle_get (p, block, "state")), "active"))
        u.active += sound (requested_of (p, block, padded));
    }
  }
  return u;
}

static int64_t peak_of (const card_use *u) {
  int64_t start = u->active - u->net;
  return (start > 0 ? start : 0) + u->peak;
}

/* "GPU 0 (7.87 GiB), GPU 1 (78.3 GiB)": all that have events, or memory at the end. */
static const char *list_cards (reader *r, const card_use *cards, int n) {
  char text[400] = "";
  for (int i = 0, length = 0; i < n && length < 340; i++)
    if (cards[i].events || cards[i].active) {
      char peak[UNITS_TEXT];
      length += snprintf (text + length, sizeof text - (size_t)length, "%sGPU %d (%s%s)",
                          length ? ", " : "", i, units_bytes (peak, peak_of (&cards[i])),
                          cards[i].events ? "" : ", no events");
    }
  return arena_string (r->job->a, *text ? text : "none", r->job->err);
}

/* The fullest device that has events, or the one asked for. */
static const pickle_value *choose_device (reader *r, const pickle_value *root) {
  card_use cards[MOST_CARDS];
  const pickle_value *traces = pickle_get (&r->p, root, "device_traces");
  int n = pickle_count (traces) < MOST_CARDS ? (int)pickle_count (traces) : MOST_CARDS, best = -1;
  for (int i = 0; i < n; i++) {
    cards[i] = measure (&r->p, root, i);
    if (cards[i].events && (best < 0 || peak_of (&cards[i]) > peak_of (&cards[best])))
      best = i;
  }
  const char *list = list_cards (r, cards, n);
  int32_t wanted = r->job->options.device;
  if (!list)
    return NULL;
  if (wanted >= 0 && (wanted >= n || cards[wanted].events == 0)) {
    error_set (r->job->err, ERR_infeasible, "the snapshot has no events of GPU %d; it has %s",
               wanted, list);
    return NULL;
  }
  if (best < 0) {
    error_set (r->job->err, ERR_infeasible,
               "the snapshot has no events: call torch.cuda.memory._record_memory_history() before "
               "the step");
    return NULL;
  }
  if (wanted >= 0)
    best = wanted;
  int others = 0;
  for (int i = 0; i < n; i++)
    others += i != best && (cards[i].events || cards[i].active);
  r->out->device = best;
  r->out->cards = list;
  r->out->others = others;
  return pickle_item (&r->p, traces, best);
}

bool snapshot_read (import_job *job, const import_text *file, snapshot *out) {
  *out = (snapshot){ .first_us = -1, .last_us = -1, .peak_event = -1 };
  reader r = { .job = job, .out = out, .open = id_map_new (job->scratch) };
  if (!pickle_read (file->text, file->size, job->scratch, &r.p, job->err))
    return false;
  const pickle_value *root = &r.p.values[r.p.root];
  const pickle_value *traces = pickle_get (&r.p, root, "device_traces");
  if (!traces || !pickle_get (&r.p, root, "segments"))
    return error_set (job->err, ERR_input,
                      "a pickle, but no memory snapshot: `segments` and `device_traces` were "
                      "expected, as torch.cuda.memory._dump_snapshot () writes them");
  const pickle_value *events = choose_device (&r, root);
  if (!events)
    return false;
  out->n_events = pickle_count (events);
  for (int64_t i = 0; i < out->n_events; i++)
    if (!see_event (&r, pickle_item (&r.p, events, i), i))
      return false;
  if (!see_segments (&r, pickle_get (&r.p, root, "segments")))
    return false;
  out->start_bytes = out->active_bytes - out->net_bytes;
  out->peak_bytes += out->start_bytes;
  for (int32_t i = 0; i < out->n_blocks; i++)
    if (out->blocks[i].alloc >= 0 && out->blocks[i].freed_behind < 0) {
      out->live_count++;
      out->live_bytes += out->blocks[i].bytes;
    }
  report_version (job, file, "pickle");
  return true;
}

/* ---- the trace: an op per alloc, and one before all of them ---- */

static bool make_lives (import_job *job, const snapshot *s, lived **out, int32_t *n,
                        const char ***names, int64_t *known) {
  lived *lives = NEW (job->scratch, (int64_t)s->n_blocks + 1, lived, job->err);
  const char **ops = NEW (job->scratch, (int64_t)s->n_allocs + 1, const char *, job->err);
  if (!lives || !ops)
    return false;
  *n = 0;
  *known = 0;
  ops[0] = "start";
  for (int32_t i = 0; i < s->n_blocks; i++) {
    const snapshot_block *b = &s->blocks[i];
    if (b->alloc >= 0)
      ops[b->alloc + 1] = b->line;
    else
      *known += b->bytes;
    if (b->bytes == 0) {
      job->report->zero_tensors++;
      continue;
    }
    lives[(*n)++] = (lived){ .name = b->line,
                             .bytes = b->bytes,
                             .kind = TENSOR_TEMPORARY,
                             .birth = b->alloc + 1,
                             .death = b->freed_behind < 0 ? s->n_allocs : b->freed_behind };
  }
  *out = lives;
  *names = ops;
  return true;
}

static bool say_sizes (import_job *job, const snapshot *s) {
  const char *text = arena_format (
      job->a, job->err, "at the end: active %lld bytes as requested, %lld padded, %lld reserved",
      (long long)s->active_bytes, (long long)s->padded_bytes, (long long)s->reserved_bytes);
  report_check (job, text);
  if (s->others) {
    job->report->streams = arena_format (
        job->a, job->err, "GPU %d, the fullest or the chosen of %s", s->device, s->cards);
    report_warn (job, "other GPUs left out; --gpu K takes one", s->others, s->cards);
  }
  if (s->refusals)
    report_warn (job,
                 "requests for which memory ran out; the peak counts them, and the step may need "
                 "more",
                 s->refusals, s->refused);
  if (s->unseen_frees)
    report_warn (job, "frees of blocks allocated before the trace began", s->unseen_frees, NULL);
  if (s->size_mismatches)
    report_warn (job, "frees whose size is not that of the alloc", s->size_mismatches, NULL);
  if (s->times_decrease)
    report_warn (job, "times that go backward", 1, NULL);
  return text;
}

bool snapshot_import (import_job *job, const import_text *file, trace **out) {
  snapshot s;
  lived *lives;
  const char **ops;
  int32_t n;
  int64_t known;
  if (!snapshot_read (job, file, &s) || !make_lives (job, &s, &lives, &n, &ops, &known) ||
      !say_sizes (job, &s))
    return false;
  int64_t resident = s.start_bytes - known;
  if (resident > 0 && resident <= MOST_TENSOR_BYTES)
    lives[n++] = (lived){ "resident", resident, TENSOR_PARAMETER, 0, s.n_allocs };
  else if (resident)
    report_warn (job, "bytes live at the start that do not add up", 1, NULL);
  const char *name = job_trace_name (job, file);
  trace_builder *b = name ? build_new (job->a, name, 1, job->err) : NULL;
  if (!b)
    return false;
  build_source (b, "import", "CUDA memory snapshot");
  build_confidence (b, CONFIDENCE_NOT_PLANNABLE,
                    s.refusals ? "lifetimes only, up to where memory ran out" : "lifetimes only");
  if (!intervals_trace_build (job, b, ops, s.n_allocs + 1, lives, n))
    return false;
  if (resident > 0 && resident <= MOST_TENSOR_BYTES)
    build_tensor_at (b, n - 1)->pinned = true;
  job->report->peak_by = "events of the allocator";
  job->report->reference_peak_bytes = s.peak_bytes;
  job->report->advice =
      "a memory snapshot has lifetimes and sizes but no ops: it answers whether a "
      "model fits, not when to swap. Record the execution trace and the Kineto "
      "file of one run (docs/record.md)";
  *out = build_finish (b, job->err);
  return *out;
}
