#include "cli/offline.h"

#include <unistd.h>

#include "base/units.h"
#include "cli/inputs.h"

static void show_progress (void *context, int32_t done, int32_t all) {
  const call *c = context;
  if (c->quiet || !isatty (STDERR_FILENO))
    return;
  fprintf (stderr, done < all ? "\r%s: %d of %d" : "\r%s: %d of %d\n", c->command->name, done, all);
  fflush (stderr);
}

bool offline_options (call *c, const device *d, curve_options *out) {
  *out = (curve_options){
    .device = d, .host_bytes = d->host_bytes, .log = NULL, .progress = show_progress, .context = c
  };
  return call_bytes (c, "host", &out->host_bytes) &&
         call_count (c, "ticks", 1, (int64_t)1 << 40, &out->limit_ticks);
}

trace *offline_trace (call *c, const char *path) {
  trace *t = call_trace (c, path);
  if (t && !trace_is_plannable (t)) {
    error_set (&c->err, ERR_input, "the trace is not plannable: %s", t->source.confidence);
    return NULL;
  }
  return t;
}

bool offline_share (call *c, const char *option, int64_t *ppm) {
  const char *text = call_text (c, option);
  error wrong = { 0 };
  if (text && !units_parse_share (text, ppm, &wrong))
    return error_set (&c->err, ERR_usage, "--%s: %s", option, wrong.text);
  return true;
}

double offline_slower (int64_t step_ns, int64_t baseline_ns) {
  return baseline_ns > 0 ? 100.0 * (double)(step_ns - baseline_ns) / (double)baseline_ns : 0;
}
