/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/whatif/offline.h"

#include <string.h>

#include "base/units.h"
#include "cli/inputs/devices.h"
#include "cli/inputs/executors.h"
#include "cli/inputs/inputs.h"
#include "cli/inputs/progress.h"
#include "cli/inputs/stopping.h"
#include "solver/fleet/needs.h"
#include "trace/zoo/request.h"

void offline_progress (void *context, int32_t done, int32_t all, int64_t step_ns) {
  progress_done (context, done, all, step_ns);
}

bool offline_stop (void *context) {
  progress_look (context);
  return stopping_due (context);
}

bool offline_threads (call *c, curve_options *out) {
  int64_t threads;
  if (!call_jobs (c, &threads))
    return false;
  out->threads = (int32_t)threads;
  return true;
}

bool offline_options (call *c, const trace *t, const device *d, curve_options *out) {
  *out = (curve_options){ .device = d,
                          .host_bytes = -1,
                          .reserve_ppm = reserve_ppm (t),
                          .seed = 1,
                          .stop = offline_stop,
                          .stop_context = c,
                          .progress = offline_progress,
                          .context = c };
  stopping_begin (c);
  return (d ? device_host (c, d, &out->host_bytes)
            : host_asked (c) || call_quantity (c, "host", &out->host_bytes)) &&
         effort_read (c, LEVEL_QUICK, &out->limit_ticks, &out->level) &&
         rewriting_read (c, t, &out->allowed) && placement_read (c, &out->placement) &&
         executor_places (c, t, &out->same_places, &out->placement) && offline_threads (c, out);
}

void offline_tell_beyond (FILE *to, const device *d, int64_t most_bytes) {
  char give[UNITS_TEXT];
  int64_t has = d->memory_bytes - d->reserved_bytes;
  if (d->memory_bytes && most_bytes > has)
    fprintf (to, "%s has %s to give: larger budgets are of such a card with more memory\n", d->name,
             units_bytes (give, has));
}

bool offline_is_wide (int64_t step_ns, int64_t lower_bound_ns) {
  return lower_bound_ns > 0 &&
         step_ns > lower_bound_ns + units_scale (lower_bound_ns, CURVE_WIDE_PPM, 1000000);
}

/* One rank of many is planned as if it were alone. */
static void note_collectives (const call *c, const trace *t) {
  static const char *const kinds[] = { "nccl",       "rccl",           "allreduce",
                                       "all_reduce", "reduce_scatter", "all_gather" };
  int32_t count = 0;
  for (int32_t i = 0; i < t->n_ops; i++)
    for (size_t k = 0; t->ops[i].name && k < sizeof kinds / sizeof *kinds; k++)
      if (strcasestr (t->ops[i].name, kinds[k])) {
        count++;
        break;
      }
  if (count)
    call_note (c,
               "%d ops are collectives: they stay where they are, with their measured times, and "
               "what other ranks do meanwhile is not modelled",
               count);
}

const trace *offline_trace (call *c, const char *path, const trace **given) {
  const trace *t = call_trace (c, path);
  if (given)
    *given = t;
  if (!t || !trace_must_plan (t, &c->err))
    return NULL;
  note_collectives (c, t);
  return executor_trace (c, t);
}

double offline_slower (int64_t step_ns, int64_t baseline_ns) {
  return baseline_ns > 0 ? 100.0 * (double)(step_ns - baseline_ns) / (double)baseline_ns : 0;
}

trace *offline_rebuild (call *c, const trace *t, const device *d, int64_t times) {
  zoo_request r;
  if (!zoo_request_of (t, c->arena, &r, &c->err))
    return NULL;
  r.device = d;
  r.batch *= times;
  return zoo_trace (&r, c->arena, &c->err);
}
