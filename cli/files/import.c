/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry import`: a profile that somebody already has, as a trace. */
#include <string.h>
#include <sys/stat.h>

#include "base/units.h"
#include "cli/call/call.h"
#include "trace/import/import.h"

static bool read_options_of (call *c, import_options *o) {
  static const char *const marks[] = { "steps", "repeat", "whole", NULL };
  int64_t device = -1, limit = 0;
  int which = IMPORT_MARKED;
  *o = IMPORT_DEFAULTS;
  if (!call_quantity (c, "step", &o->step) || !call_quantity (c, "gpu", &device) ||
      !call_quantity (c, "limit", &limit) || !call_word (c, "marks", marks, &which))
    return false;
  o->marks = (import_marks)which;
  const char *reads = call_text (c, "reads");
  if (reads && strcmp (reads, "all") != 0 && strcmp (reads, "likely") != 0)
    return call_usage (c, "--reads: `%s` is neither all nor likely", reads);
  o->likely = reads && strcmp (reads, "likely") == 0;
  static const char *const streams[] = { "compute", "all", NULL };
  int all = 0;
  if (!call_word (c, "streams", streams, &all))
    return false;
  o->streams = all;
  o->device = (int32_t)device;
  o->limit_bytes = limit;
  return true;
}

static bool print_report (call *c, FILE *to, const import_report *r) {
  if (c->json) {
    json_writer w;
    json_begin (&w, 1);
    import_report_json (r, &w);
    return call_print_json (c, &w);
  }
  bytes text = { 0 };
  bool ok = import_report_text (r, &text, &c->err);
  if (ok)
    fwrite (text.data, 1, (size_t)text.size, to);
  bytes_free (&text);
  return ok;
}

/* A large profile takes seconds to read: that is said before. */
static void tell_large (call *c) {
  enum { LARGE = 64 << 20 };
  char size[UNITS_TEXT];
  struct stat what;
  for (int i = 0; i < c->n_operands; i++)
    if (stat (c->operands[i], &what) == 0 && what.st_size >= LARGE)
      call_note (c, "reading %s, %s", c->operands[i], units_bytes (size, what.st_size));
}

static int run (call *c) {
  import_options o;
  import_report report;
  trace *t;
  const char *output = call_text (c, "output");
  tell_large (c);
  if (!read_options_of (c, &o) ||
      !import_files (c->operands, c->n_operands, &o, c->arena, &t, &report, &c->err))
    return call_failed (c);
  if (output && !trace_store (t, output, TRACE_PACKED, &c->err))
    return call_failed (c);
  if (!print_report (c, call_is_stdout (output) ? stderr : stdout, &report))
    return call_failed (c);
  return trace_is_plannable (t) ? EXIT_YES : EXIT_NO;
}

static const cli_option options[] = {
  OPTION_OUTPUT ("where the trace goes (.gz and .zst are compressed); default: only the report"),
  { 0,
    "step",
    "K",
    "the iteration K of ProfilerStep#K; default: the last complete one",
    { UNITS_COUNT, 0, INT32_MAX } },
  { 0, "marks", "steps|repeat|whole",
    "how to find a step in a Kineto file without ProfilerStep#: between optimizer marks, by "
    "the repetition of its kernels, or the whole file; default: steps" },
  { 0,
    "gpu",
    "K",
    "the GPU of the profile to import; default: the one with most events, or the fullest",
    { UNITS_COUNT, 0, INT32_MAX } },
  { 0, "reads", "all|likely",
    "which ops count as readers of a tensor in a Kineto file: all that may read it, or only "
    "the likely ones, which plans more and may be wrong; default: all" },
  { 0, "streams", "compute|all",
    "which streams of a Kineto file become ops: the one that most forward kernels run on, or all, "
    "side by side; default: compute" },
  { 0,
    "limit",
    "SIZE",
    "largest size of a decompressed file; default: 4GiB",
    { UNITS_BYTES, 1, MOST_BYTES } },
  OPTIONS_END,
};

const cli_command command_import = {
  .name = "import",
  .says = "turn a profile into a trace",
  .operands = "FILE [FILE]",
  .least = 1,
  .most = IMPORT_FILES,
  .about =
      "Reads Kineto (Chrome) JSON of the PyTorch profiler, execution traces, Chakra .et, CUDA "
      "memory snapshots, ferry's own text form, interval CSV and the kernel and tensor JSON of "
      "simulators; what a file is, is seen from its content. An execution trace, or a memory "
      "snapshot, goes together with the Kineto file of the same run.\n"
      "Every profile is checked against itself: what fails lowers the confidence.\n"
      "Prints what was found and how sure it is: exact, approximate with what was inferred, or "
      "not plannable with what to record instead; then the trace is still written, for `ferry "
      "info`, and the exit status is 1.\n",
  .options = options,
  .json = true,
  .run = run,
};
