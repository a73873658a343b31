/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/run/run_report.h"

#include "base/order.h"
#include "base/units.h"

/* The mean of a sum over the planned steps that were timed. */
static int64_t step_ns (const shim_seen *s, int64_t sum_ns) {
  return s->planned_timed > 0 ? sum_ns / s->planned_timed : 0;
}

/* A planned step's time beyond that of its ops: it waits for copies. */
static int64_t stall_ns (const shim_block *b) {
  int64_t ns = step_ns (&b->seen, b->seen.planned_ns) - b->step_ops_ns;
  return ns > 0 ? ns : 0;
}

/* In the order of shim_unfit. */
static const char *const unfit_words[] = {
  "", "result", "input", "others", "small", "later", NULL
};
static const char *const unfit_texts[] = { "",
                                           "its results are others when it is launched again",
                                           "it changes a tensor that it was seen to read only",
                                           "it writes what its parameters do not name",
                                           "there is no room to put its small tensors aside",
                                           "its results were others later in the step" };

static int64_t n_unfit (const shim_block *b) {
  return b->seen.unfit_ops < SHIM_UNFIT_OPS ? b->seen.unfit_ops : SHIM_UNFIT_OPS;
}

/* The ops that were made again most often. */
static void name_most (const shim_block *b, char *out, size_t size) {
  enum { MOST = 3 };
  bool told[SHIM_AGAIN_OPS] = { false };
  size_t at = 0;
  for (int n = 0; n < MOST && n < b->again_ops; n++) {
    int32_t best = -1;
    for (int32_t i = 0; i < b->again_ops; i++)
      if (!told[i] && (best < 0 || b->again_op[i].launches > b->again_op[best].launches))
        best = i;
    told[best] = true;
    int wrote = snprintf (out + at, size - at, "%s`%s` %lld times", n ? ", " : ": ",
                          b->again_op[best].name, (long long)b->again_op[best].launches);
    at += wrote > 0 && at + (size_t)wrote < size ? (size_t)wrote : 0;
  }
  out[at] = 0;
}

static void say_remade (const call *c, const shim_block *b) {
  const shim_seen *s = &b->seen;
  char a[UNITS_TEXT], most[SHIM_TEXT];
  name_most (b, most, sizeof most);
  if (s->dropped_bytes > 0)
    call_note (c, "%s more left to be made again, by %lld launches%s",
               units_bytes (a, s->dropped_bytes), (long long)s->remakes, most);
  for (int64_t i = 0; i < n_unfit (b); i++)
    call_note (c, "kernel `%s` is not launched again: %s", b->unfit_op[i].name,
               unfit_texts[b->unfit_op[i].why]);
  if (s->unfit_ops > n_unfit (b))
    call_note (c, "nor are %lld others", (long long)(s->unfit_ops - n_unfit (b)));
}

static void add_unfit (json_writer *w, const shim_block *b) {
  json_add_array (w, "unfit");
  for (int64_t i = 0; i < n_unfit (b); i++) {
    json_open_object (w);
    json_add_text (w, "op", b->unfit_op[i].name);
    json_add_text (w, "why", unfit_words[b->unfit_op[i].why]);
    json_close_object (w);
  }
  json_close_array (w);
  json_add_int (w, "unfit_ops", b->seen.unfit_ops);
}

static void add_again (json_writer *w, const shim_block *b) {
  json_add_array (w, "made_again");
  for (int32_t i = 0; i < b->again_ops; i++) {
    json_open_object (w);
    json_add_int (w, "launches", b->again_op[i].launches);
    json_add_text (w, "op", b->again_op[i].name);
    json_close_object (w);
  }
  json_close_array (w);
}

static void tell_figures (const call *c, const shim_block *b, int status) {
  const shim_seen *s = &b->seen;
  char a[UNITS_TEXT], d[UNITS_TEXT], e[UNITS_TEXT], f[UNITS_TEXT];
  call_note (c, "%lld ops; %s of %s on the device (the program held %s), %s of the host",
             (long long)s->ops, units_bytes (a, s->device_high_bytes),
             units_bytes (d, b->config.budget_bytes), units_bytes (e, s->live_high_bytes),
             units_bytes (f, s->host_high_bytes));
  if (s->evictions == 0) {
    if (!status)
      call_note (c, "nothing had to leave the device");
    return;
  }
  call_note (c, "%lld evictions; %s out, %s in, of these %lld copies in on demand",
             (long long)s->evictions, units_bytes (a, s->out_bytes), units_bytes (d, s->in_bytes),
             (long long)s->unplanned);
  if (s->clean_bytes > 0)
    call_note (c, "%s more left without a copy, because the host had the same bytes",
               units_bytes (a, s->clean_bytes));
  say_remade (c, b);
  if (s->better_plans > 0)
    call_note (c, "%lld better plans came while it ran; the last saves %s a step",
               (long long)s->better_plans, units_time (a, s->better_ns));
  if (s->changed > 0)
    call_note (c,
               "%lld of %lld tensors that ops had only read before had changed when they left, and "
               "were copied: %s wrote one",
               (long long)s->changed, (long long)s->checks, b->changed_op);
  if (s->crossing_bytes > 0)
    call_note (c, "%s of a step's results are kept until the next are made",
               units_bytes (a, s->crossing_bytes));
  if (s->entries == 0)
    call_note (c, "no plan was followed: all steps ran on demand");
  else if (s->planned_timed > 0)
    call_note (c,
               "%lld planned steps (%lld strict), entered %lld times, left %lld times; a step took "
               "%s, predicted %s, and waited %s for copies",
               (long long)s->planned_steps, (long long)s->strict_steps, (long long)s->entries,
               (long long)s->leaves, units_time (a, step_ns (s, s->planned_ns)),
               units_time (d, step_ns (s, s->predicted_ns)), units_time (e, stall_ns (b)));
  else
    call_note (c, "%lld planned steps (%lld strict), entered %lld times, left %lld times",
               (long long)s->planned_steps, (long long)s->strict_steps, (long long)s->entries,
               (long long)s->leaves);
  if (s->leaves > 1)
    call_note (c, "a plan was left last at %s", b->left_at);
}

void run_summary (const call *c, const shim_block *b, int status) {
  tell_figures (c, b, status);
  if (status)
    call_note (c, "%s failed with status %d", c->operands[0], status);
}

static void write_report (json_writer *w, const shim_block *b, int status,
                          int64_t shared_high_bytes) {
  const shim_seen *s = &b->seen;
  json_open_object (w);
  json_add_int (w, "better_ns", s->better_ns);
  json_add_int (w, "better_plans", s->better_plans);
  json_add_int (w, "budget_bytes", b->config.budget_bytes);
  json_add_int (w, "changed", s->changed);
  json_add_text (w, "changed_op", b->changed_op);
  json_add_int (w, "checks", s->checks);
  json_add_int (w, "clean_bytes", s->clean_bytes);
  json_add_int (w, "crossing_bytes", s->crossing_bytes);
  json_add_int (w, "device_high_bytes", s->device_high_bytes);
  json_add_int (w, "driver_high_bytes", s->driver_high_bytes);
  json_add_int (w, "dropped_bytes", s->dropped_bytes);
  json_add_bool (w, "ended", b->ended);
  json_add_int (w, "entries", s->entries);
  json_add_int (w, "evictions", s->evictions);
  json_add_int (w, "exit_status", status);
  json_add_text (w, "fault_op", b->fault_op);
  json_add_int (w, "faults", b->faults);
  json_add_int (w, "floor_bytes", s->floor_bytes);
  json_add_text (w, "floor_op", b->floor_op);
  json_add_int (w, "host_high_bytes", s->host_high_bytes);
  json_add_int (w, "in_bytes", s->in_bytes);
  json_add_int (w, "launches", s->launches);
  json_add_int (w, "learned_ops", s->learned_ops);
  json_add_int (w, "leaves", s->leaves);
  json_add_text (w, "left_at", b->left_at);
  json_add_int (w, "live_high_bytes", s->live_high_bytes);
  add_again (w, b);
  json_add_int (w, "map_calls", s->map_calls);
  json_add_array (w, "messages");
  for (int i = 0; i < b->messages && i < SHIM_MESSAGES; i++)
    json_put_text (w, b->message[i]);
  json_close_array (w);
  json_add_int (w, "ops", s->ops);
  json_add_int (w, "out_bytes", s->out_bytes);
  json_add_int (w, "planned_map_calls", s->planned_map_calls);
  json_add_int (w, "planned_step_ns", step_ns (s, s->planned_ns));
  json_add_int (w, "planned_steps", s->planned_steps);
  json_add_int (w, "plans", s->plans);
  json_add_int (w, "predicted_step_ns", step_ns (s, s->predicted_ns));
  json_add_bool (w, "refused", b->refused);
  json_add_int (w, "remade_on_leaving", s->remade_on_leaving);
  json_add_text (w, "remade_op", b->remade_op);
  json_add_int (w, "remakes", s->remakes);
  json_add_int (w, "resizes", s->resizes);
  json_add_int (w, "room_waits", s->room_waits);
  json_add_int (w, "served_plans", s->served_plans);
  json_add_int (w, "shared_high_bytes", shared_high_bytes);
  json_add_int (w, "stall_ns", s->planned_timed > 0 ? stall_ns (b) : 0);
  json_add_int (w, "strict_steps", s->strict_steps);
  json_add_int (w, "tested_ops", s->tested_ops);
  add_unfit (w, b);
  json_add_int (w, "unplanned", s->unplanned);
  json_close_object (w);
}

/* Sums over the ranks, and the slowest of their steps. */
static void write_together (json_writer *w, const shim_block *const *ranks, int32_t n) {
  shim_seen all = { 0 };
  int64_t planned_ns = 0, predicted_ns = 0;
  for (int32_t i = 0; i < n; i++) {
    const shim_seen *s = &ranks[i]->seen;
    all.ops += s->ops;
    all.out_bytes += s->out_bytes;
    all.in_bytes += s->in_bytes;
    all.host_high_bytes += s->host_high_bytes;
    all.planned_steps += s->planned_steps;
    planned_ns = max_of (planned_ns, step_ns (s, s->planned_ns));
    predicted_ns = max_of (predicted_ns, step_ns (s, s->predicted_ns));
  }
  json_open_object (w);
  json_add_int (w, "host_high_bytes", all.host_high_bytes);
  json_add_int (w, "in_bytes", all.in_bytes);
  json_add_int (w, "ops", all.ops);
  json_add_int (w, "out_bytes", all.out_bytes);
  json_add_int (w, "planned_step_ns", planned_ns);
  json_add_int (w, "planned_steps", all.planned_steps);
  json_add_int (w, "predicted_step_ns", predicted_ns);
  json_close_object (w);
}

bool run_report (call *c, const shim_block *const *ranks, int32_t n, int status,
                 int64_t shared_high_bytes) {
  const char *path = call_text (c, "report");
  json_writer w;
  bytes text = { 0 };
  if (!path)
    return true;
  json_begin (&w, n > 1 ? 3 : 1);
  if (n > 1) {
    json_open_object (&w);
    json_add_int (&w, "exit_status", status);
    json_add_array (&w, "ranks");
  }
  for (int32_t i = 0; i < n; i++)
    write_report (&w, ranks[i], status, shared_high_bytes);
  if (n > 1) {
    json_close_array (&w);
    json_put_key (&w, "together");
    write_together (&w, ranks, n);
    json_close_object (&w);
  }
  bool good = json_finish (&w, &text, &c->err) && call_write (c, path, text.data, text.size);
  bytes_free (&text);
  return good;
}
