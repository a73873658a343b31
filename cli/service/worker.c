/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry worker`: what `ferry serve` runs for a job, in a process with limits; the only processes
   that read what clients send. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/parts.h"
#include "base/sha256.h"
#include "base/units.h"
#include "cli/inputs/devices.h"
#include "cli/inputs/inputs.h"
#include "cli/service/network.h"
#include "cli/service/ranks.h"
#include "cli/service/waiting.h"
#include "trace/cards.h"
#include "trace/check/check.h"
#include "trace/import/import.h"
#include "trace/simulate/simulate.h"
#include "trace/summary.h"

enum { MOST_NETWORK = 4096 };

/* ---- import ---- */

/* The files of an upload: itself, or the parts that it has; a single part takes its place. */
static bool find_files (call *c, const char *name, bytes *text, int64_t most_bytes,
                        import_source *files, int *n) {
  part parts[IMPORT_FILES];
  bytes only = { 0 };
  *n = 1;
  if (parts_are (text->data, text->size)) {
    if (!parts_read (text->data, text->size, c->arena, parts, IMPORT_FILES, n, &c->err))
      return false;
    for (int i = 0; i < *n; i++)
      files[i] = (import_source){ parts[i].name, parts[i].data, parts[i].size };
    if (*n > 1)
      return true;
    if (!file_decode (parts[0].data, parts[0].size, most_bytes, &only, &c->err))
      return false;
    bytes_free (text);
    *text = only;
  }
  files[0] = (import_source){ name, text->data, text->size };
  return true;
}

static trace *read_files (call *c, const import_source *files, int n, int64_t most_bytes) {
  static const char mark[] = "\"" TRACE_FORMAT "\"", network[] = "\"" NETWORK_FORMAT "\"";
  read_options r = { .limit_bytes = most_bytes };
  import_options o = IMPORT_DEFAULTS;
  import_report report;
  trace *t = NULL;
  o.limit_bytes = most_bytes;
  if (n == 1 && memmem (files[0].data, (size_t)files[0].size, mark, strlen (mark)))
    return trace_parse (files[0].data, files[0].size, &r, c->arena, &c->err);
  if (n == 1 && files[0].size < MOST_NETWORK &&
      memmem (files[0].data, (size_t)files[0].size, network, strlen (network)))
    return network_read (c, files[0].data, files[0].size);
  return import_memory (files, n, &o, c->arena, &t, &report, &c->err) ? t : NULL;
}

/* Any profile that import reads, the two files of one run, or a trace as it is. */
static trace *read_any (call *c, const char *path, const char *name, int64_t most_bytes) {
  import_source files[IMPORT_FILES];
  bytes text = { 0 };
  int n;
  trace *t = NULL;
  if (!file_read (path, most_bytes, &text, &c->err)) {
    const char *slash = strrchr (name, '/');
    c->err.path[0] = '\0'; /* the sender's name helps, that of the sandbox does not */
    error_in_file (&c->err, slash ? slash + 1 : name);
    return NULL;
  }
  if (find_files (c, name, &text, most_bytes, files, &n))
    t = read_files (c, files, n, most_bytes);
  bytes_free (&text);
  return t;
}

static bool print_import (call *c, const trace *t, const bytes *text) {
  summary s;
  json_writer w;
  sha256 hash;
  char id[SHA256_TEXT], digest[TRACE_DIGEST];
  const char *device = card_device_of_trace (t);
  if (c->err.code || !summary_of (t, c->arena, &s, &c->err) || !trace_digest (t, digest, &c->err))
    return false;
  sha256_start (&hash);
  sha256_add (&hash, text->data, (size_t)text->size);
  sha256_text (&hash, id);
  json_begin_object (&w, 0);
  json_add_int (&w, "batch", t->batch);
  json_add_int (&w, "compute_ns", s.compute_ns);
  json_add_text (&w, "confidence", confidence_words[t->source.confidence]);
  json_add_text (&w, "device", device);
  json_add_text (&w, "digest", digest);
  if (*t->source.doubt)
    json_add_text (&w, "doubt", t->source.doubt);
  json_add_int (&w, "floor_bytes", s.floor_bytes);
  json_add_int (&w, "idle_ns", s.idle_ns);
  json_add_text (&w, "name", t->name);
  json_add_int (&w, "ops", t->n_ops);
  json_add_int (&w, "peak_bytes", s.peak_bytes);
  json_add_bool (&w, "plannable", trace_is_plannable (t));
  json_add_int (&w, "tensors", t->n_tensors);
  json_add_text (&w, "trace", id);
  json_close_object (&w);
  return call_print_json (c, &w);
}

/* import BODY TRACE LIMIT [NAME] */
static int run_import (call *c) {
  int64_t most = 0;
  bytes text = { 0 };
  if (c->n_operands < 4 || c->n_operands > 5 ||
      !units_parse_bytes (c->operands[3], &most, &c->err)) {
    call_usage (c, "worker import needs BODY TRACE LIMIT [NAME]");
    return call_failed (c);
  }
  trace *t = read_any (c, c->operands[1], c->n_operands == 5 ? c->operands[4] : "body", most);
  bool ok = t && trace_text (t, TRACE_PACKED, &text, &c->err) &&
            file_write (c->operands[2], text.data, text.size, FILE_PLAIN, &c->err) &&
            print_import (c, t, &text);
  bytes_free (&text);
  return ok ? EXIT_YES : call_failed (c);
}

/* ---- verify ---- */

static bool same (const predicted *a, const predicted *b) {
  return a->step_ns == b->step_ns && a->compute_ns == b->compute_ns &&
         a->baseline_ns == b->baseline_ns && a->stall_ns == b->stall_ns &&
         a->peak_bytes == b->peak_bytes && a->host_peak_bytes == b->host_peak_bytes &&
         a->d2h_bytes == b->d2h_bytes && a->h2d_bytes == b->h2d_bytes && a->settled == b->settled;
}

static plan *read_legal (call *c, const trace *t, const char *path) {
  plan *p = t ? call_plan (c, path) : NULL;
  if (!p || check_plan (t, p, c->arena, NULL, &c->err))
    return p;
  error_in_file (&c->err, path);
  return NULL;
}

/* Processes of their own write what a plan can do without: one that is too long for a trace viewer
   or has no picture is none the worse. */
static pid_t write_beside (call *c, const char *command, const char *option, const char *path) {
  char *written = arena_format (c->arena, &c->err, "--%s=%s", option, path);
  char *arguments[] = {
    "ferry", (char *)command, (char *)c->operands[1], (char *)c->operands[2], "-q", written, NULL
  };
  pid_t parent = getpid (), child = written ? fork () : -1;
  if (child != 0)
    return child;
  if (!child_ends_with (parent)) /* as the worker with the daemon */
    _exit (EXIT_USAGE);
  waiting_name (command);
  _exit (c->program (6, arguments));
}

static void write_all_beside (call *c) {
  const pid_t children[] = { write_beside (c, "plot", "timeline", c->operands[5]),
                             write_beside (c, "plot", "svg", c->operands[3]),
                             write_beside (c, "export", "chrome", c->operands[4]) };
  for (size_t i = 0; i < sizeof children / sizeof *children; i++)
    if (children[i] > 0 && waitpid (children[i], NULL, 0) != children[i])
      call_note (c, "a process that draws the plan is lost");
}

/* verify TRACE PLAN PICTURE CHROME TIMELINE: legal, and what it says of itself is what comes out
   here */
static int run_verify (call *c) {
  predicted now;
  json_writer w;
  if (c->n_operands != 6) {
    call_usage (c, "worker verify needs TRACE PLAN PICTURE CHROME TIMELINE");
    return call_failed (c);
  }
  trace *t = call_trace (c, c->operands[1]);
  plan *p = read_legal (c, t, c->operands[2]);
  if (!p || !simulate_plan (t, p, c->arena, &now, &c->err))
    return call_failed (c);
  if (!same (&now, &p->predicted)) {
    error_set (&c->err, ERR_infeasible, "the plan says that a step takes %lld ns, it takes %lld",
               (long long)p->predicted.step_ns, (long long)now.step_ns);
    return call_failed (c);
  }
  json_begin_object (&w, 0);
  json_add_text (&w, "by", "ferry worker verify");
  predicted_write (&w, "predicted", &now);
  json_close_object (&w);
  if (!call_print_json (c, &w) || fflush (stdout) != 0)
    return call_failed (c);
  write_all_beside (c);
  return EXIT_YES;
}

/* legal TRACE PLAN [TRACE PLAN]...: plans that share a card, whose times are those of all of them
 */
static int run_legal (call *c) {
  json_writer w;
  for (int i = 1; i + 1 < c->n_operands; i += 2)
    if (!read_legal (c, call_trace (c, c->operands[i]), c->operands[i + 1]))
      return call_failed (c);
  json_begin_object (&w, 0);
  json_add_text (&w, "by", "ferry worker legal");
  json_add_int (&w, "plans", (c->n_operands - 1) / 2);
  json_close_object (&w);
  return call_print_json (c, &w) ? EXIT_YES : call_failed (c);
}

static int run (call *c) {
  static const struct {
    const char *name;
    int (*run) (call *c);
  } jobs[] = { { "wait", waiting_run },
               { "import", run_import },
               { "verify", run_verify },
               { "ranks", ranks_verify },
               { "legal", run_legal } };
  for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++)
    if (strcmp (c->operands[0], jobs[i].name) == 0)
      return jobs[i].run (c);
  call_usage (c, "there is no worker `%s`; `ferry serve` knows them", c->operands[0]);
  return call_failed (c);
}

const cli_command command_worker = {
  .name = "worker",
  .says = "run one job of `ferry serve`; not for users",
  .operands = "wait|import|verify|ranks|legal ...",
  .least = 1,
  .most = -1,
  .about =
      "Processes of the service: `wait` runs one command in a sandbox, as the daemon says, "
      "`import` makes a trace of an upload, `verify` checks a plan, simulates it again and draws "
      "it, `ranks` does so for those of a host, `legal` checks the plans of several jobs. How they "
      "are called may change with each "
      "version.\n",
  .run = run,
};
