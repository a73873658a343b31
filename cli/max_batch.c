/* `ferry max-batch`: the largest batch of a network that fits, by what is allowed. */
#include <string.h>

#include "base/units.h"
#include "cli/devices.h"
#include "cli/offline.h"
#include "cli/offline_figures.h"
#include "cli/picture_files.h"
#include "cli/policies.h"
#include "cli/zoo_options.h"

enum { LIMIT_TICKS = 50000, MOST_BATCH = 1 << 20 };

typedef struct allowed {
  const char *name, *says;
  sections_mode sections;
  recompute_mode recompute;
} allowed;

static const allowed ways[] = {
  { "unswapped", "everything on the device", SECTIONS_OFF, RECOMPUTE_OFF },
  { "swapped", "copies to the host", SECTIONS_OFF, RECOMPUTE_OFF },
  { "sections", "and ops in parts", SECTIONS_AUTO, RECOMPUTE_OFF },
  { "recompute", "or drops, made again", SECTIONS_OFF, RECOMPUTE_AUTO },
};
enum { WAYS = sizeof ways / sizeof *ways };

typedef struct largest {
  int64_t batch;   /* with a plan; 0: not even one item */
  int64_t none_at; /* a larger batch for which none was found; -1: no limit */
  bool proved;     /* that there is none */
  int64_t baseline_ns, step_ns, floor_bytes, peak_bytes, host_bytes;
} largest;

typedef struct asking {
  call *c;
  zoo_request request;
  device device;
  curve_options options;
  int64_t memory_bytes, slowdown_ppm, fine;
  int32_t tried;
} asking;

/* ---- one batch ---- */

/* Sets out's figures where it fits. */
static bool try_batch (asking *a, const allowed *how, int64_t batch, bool *fits, bool *proved,
                       largest *out, error *err) {
  arena *scratch = arena_new (0);
  curve_options o = a->options;
  curve v;
  int64_t floor_bytes, peak_bytes, lower_bound = 0;
  *fits = *proved = false;
  if (!scratch)
    return error_set (err, ERR_memory, "out of memory");
  a->request.batch = batch;
  a->tried++;
  trace *t = zoo_trace (&a->request, scratch, err);
  bool ok = t && curve_range (t, &a->device, scratch, &floor_bytes, &peak_bytes, err);
  int64_t base_ns = ok ? trace_total_ns (t) : 0;
  int64_t most_ns = base_ns + units_scale (base_ns, a->slowdown_ppm, 1000000);
  bool plain = how == &ways[0] || peak_bytes <= a->memory_bytes;
  if (ok && plain) {
    *fits = peak_bytes <= a->memory_bytes;
    *proved = !*fits;
    if (*fits) {
      out->step_ns = base_ns;
      out->host_bytes = 0;
    }
  } else if (ok) {
    o.sections = how->sections;
    o.recompute = how->recompute;
    ok = curve_bound (t, &o, a->memory_bytes, &lower_bound, err);
    *proved = ok && (lower_bound < 0 || lower_bound > most_ns);
    if (ok && !*proved && curve_of (t, &o, &a->memory_bytes, 1, scratch, &v, err)) {
      const plan *p = v.points[0].plan;
      *fits = p && p->predicted.step_ns <= most_ns;
      if (*fits) {
        out->step_ns = p->predicted.step_ns;
        out->host_bytes = p->predicted.host_peak_bytes;
      }
    }
    ok = ok && !err->code;
  }
  if (ok && *fits) {
    out->batch = batch;
    out->baseline_ns = base_ns;
    out->floor_bytes = floor_bytes;
    out->peak_bytes = peak_bytes;
  }
  arena_free (scratch);
  return ok;
}

/* ---- the largest ---- */

/* From what already fits, by doubling and then by halving. */
static bool find_largest (asking *a, int32_t way, const largest *from, largest *out) {
  call *c = a->c;
  int64_t step = from->batch > 8 ? from->batch / 4 : 1, high = -1;
  *out = *from;
  out->none_at = -1;
  while (out->batch < MOST_BATCH) {
    int64_t fine = a->fine ? a->fine : out->batch / 32 + 1;
    int64_t at = high < 0 ? out->batch + step : out->batch + (high - out->batch) / 2;
    bool fits, proved;
    if (high >= 0 && high - out->batch <= fine)
      break;
    if (!try_batch (a, &ways[way], at, &fits, &proved, out, &c->err))
      return false;
    offline_progress (c, a->tried, 0, fits ? out->step_ns : -1);
    if (!fits) {
      high = at;
      out->none_at = at;
      out->proved = proved;
    }
    step *= 2;
  }
  return true;
}

static bool find_all (asking *a, largest out[WAYS]) {
  largest nothing = { 0 };
  if (!find_largest (a, 0, &nothing, &out[0]) || !find_largest (a, 1, &out[0], &out[1]) ||
      !find_largest (a, 2, &out[1], &out[2]) || !find_largest (a, 3, &out[1], &out[3]))
    return false;
  offline_progress (a->c, a->tried, a->tried, -1);
  return true;
}

/* ---- answers ---- */

static bool print_json (call *c, const asking *a, const largest *all) {
  json_writer w;
  json_begin (&w, 2);
  json_open_object (&w);
  json_add_text (&w, "device", a->device.name);
  json_add_int (&w, "memory_bytes", a->memory_bytes);
  json_add_text (&w, "network", a->request.name);
  json_add_int (&w, "slowdown_ppm", a->slowdown_ppm);
  json_put_key (&w, "ways");
  json_open_array (&w);
  for (int i = 0; i < WAYS; i++) {
    const largest *l = &all[i];
    json_open_object (&w);
    json_add_int (&w, "baseline_ns", l->baseline_ns);
    json_add_int (&w, "batch", l->batch);
    json_add_int (&w, "floor_bytes", l->floor_bytes);
    json_add_int (&w, "host_bytes", l->host_bytes);
    json_add_int (&w, "none_at", l->none_at);
    json_add_bool (&w, "none_proved", l->proved);
    json_add_int (&w, "peak_bytes", l->peak_bytes);
    json_add_int (&w, "step_ns", l->step_ns);
    json_add_text (&w, "way", ways[i].name);
    json_close_object (&w);
  }
  json_close_array (&w);
  json_close_object (&w);
  return call_print_json (c, &w);
}

static void print_text (const asking *a, const largest *all) {
  char b[5][UNITS_TEXT];
  printf ("%s on %s, in %s, at most %.4g %% slower\n\n", a->request.name, a->device.name,
          units_bytes (b[0], a->memory_bytes), (double)a->slowdown_ppm / 10000);
  printf ("%-10s %-26s %7s %10s %9s %12s %10s %10s  %s\n", "way", "", "batch", "step", "slower",
          "a second", "needs", "host", "above");
  for (int i = 0; i < WAYS; i++) {
    const largest *l = &all[i];
    printf ("%-10s %-26s ", ways[i].name, ways[i].says);
    if (!l->batch) {
      puts ("   none");
      continue;
    }
    printf ("%7lld %10s %+7.1f %% %12.1f %10s %10s", (long long)l->batch,
            units_time (b[0], l->step_ns), offline_slower (l->step_ns, l->baseline_ns),
            l->step_ns > 0 ? 1e9 * (double)l->batch / (double)l->step_ns : 0,
            units_bytes (b[1], l->peak_bytes), units_bytes (b[2], l->host_bytes));
    if (l->none_at > 0)
      printf ("  %lld: %s", (long long)l->none_at, l->proved ? "no plan, proved" : "none found");
    puts ("");
  }
}

static bool read_asking (call *c, asking *a) {
  *a = (asking){ .c = c, .slowdown_ppm = 100000 };
  if (!zoo_options_read (c, &a->request))
    return false;
  if (!call_text (c, "device"))
    return error_set (&c->err, ERR_usage,
                      "for which device? give --device NAME; `ferry devices` lists them");
  if (!device_named (c, call_text (c, "device"), &a->device))
    return false;
  a->request.device = &a->device;
  a->memory_bytes = a->device.memory_bytes - a->device.reserved_bytes;
  a->options = (curve_options){ .device = &a->device,
                                .host_bytes = a->device.host_bytes,
                                .limit_ticks = LIMIT_TICKS };
  return call_bytes (c, "memory", &a->memory_bytes) &&
         call_bytes (c, "host", &a->options.host_bytes) &&
         call_count (c, "ticks", 1, (int64_t)1 << 40, &a->options.limit_ticks) &&
         call_count (c, "fine", 1, MOST_BATCH, &a->fine) &&
         offline_share (c, "slowdown", &a->slowdown_ppm);
}

static int run (call *c) {
  asking a;
  largest all[WAYS];
  figure_page page;
  bool any;
  const char *names[WAYS];
  int64_t batches[WAYS];
  if (!read_asking (c, &a) || !find_all (&a, all))
    return call_failed (c);
  for (int i = 0; i < WAYS; i++) {
    names[i] = ways[i].name;
    batches[i] = all[i].batch;
  }
  const char *about = arena_format (c->arena, &c->err, "on %s, at most %.4g %% slower",
                                    a.device.name, (double)a.slowdown_ppm / 10000);
  if (!about ||
      !batch_figure (a.request.name, about, names, batches, WAYS, c->arena, &page, &c->err) ||
      !picture_files (c, &page, &any) || (c->json && !print_json (c, &a, all)))
    return call_failed (c);
  if (!c->json)
    print_text (&a, all);
  return all[1].batch ? EXIT_YES : EXIT_NO;
}

/* clang-format off */
static const cli_option options[] = {
  { 0, "memory", "SIZE", "of the device; without it, all that it has to give" },
  { 's', "slowdown", "SHARE", "how much longer a step may take than without limits; without it, 10%" },
  { 0, "fine", "N", "stop when the batch is known to so many items; without it, a 32nd of it" },
  OPTIONS_OF_ZOO,
  OPTION_DEVICE,
  OPTION_HOST,
  { 0, "ticks", "N", "effort of the search behind each plan; without it, 50000" },
  OPTIONS_OF_PICTURES,
  OPTIONS_END,
};
/* clang-format on */

const cli_command command_max_batch = {
  .name = "max-batch",
  .says = "the largest batch of a network that fits",
  .operands = "NETWORK",
  .least = 1,
  .most = 1,
  .about =
      "Builds the network with larger and larger batches and looks for the largest whose step is "
      "no more than a slowdown above the same step with memory without limit: with everything on "
      "the device, with copies to the host, with ops in parts as well, and with tensors dropped "
      "and "
      "made again instead. `above` is a larger batch for which there is no such plan, or none was "
      "found.\n",
  .options = options,
  .json = true,
  .run = run,
};
