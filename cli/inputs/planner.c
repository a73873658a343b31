#include "config.h"

#include "cli/inputs/planner.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/units.h"
#include "cli/inputs/devices.h"
#include "cli/inputs/policies.h"
#include "solver/fleet/floor.h"
#include "trace/simulate/noise.h"

enum { APPROXIMATE_PPM = 30000, TOUCHED_PPM = 50000 };

/* In the order of sections_orders and recompute_mode. */
static const char *const order_words[] = { "auto", "level", "depth", NULL };
static const char *const op_order_words[] = { "as-is", "updates", "any", NULL };
static const char *const drop_words[] = { "off", "cheap", "auto", "only", NULL };

int64_t planner_now_ns (void) {
  struct timespec t;
  clock_gettime (CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

double planner_gap (int64_t step_ns, int64_t bound_ns) {
  if (bound_ns <= 0 || step_ns <= bound_ns)
    return 0;
  __int128 parts = ((__int128)(step_ns - bound_ns) * 10000 + bound_ns - 1) / bound_ns;
  return (double)parts / 100;
}

/* ---- what is asked ---- */

int64_t planner_reserve_ppm (const trace *t) {
  const char *word = t->source.confidence ? t->source.confidence : "";
  if (strncmp (word, "approximate", strlen ("approximate")) == 0)
    return APPROXIMATE_PPM;
  return strncmp (word, "touched", strlen ("touched")) == 0 ? TOUCHED_PPM : 0;
}

static bool has_option (const call *c, const char *name) {
  for (const cli_option *o = c->command->options; o && o->name; o++)
    if (strcmp (o->name, name) == 0)
      return true;
  return false;
}

static bool read_reserve (call *c, const trace *t, planner *p) {
  const char *text = has_option (c, "reserve") ? call_text (c, "reserve") : NULL;
  int64_t ppm = planner_reserve_ppm (t);
  error wrong = { 0 };
  char reserve[UNITS_TEXT], budget[UNITS_TEXT];
  if (text && !strchr (text, '%')) {
    if (!call_bytes (c, "reserve", &p->reserve_bytes))
      return false;
  } else {
    if (text && !units_parse_share (text, &ppm, &wrong))
      return error_set (&c->err, ERR_usage, "--reserve: %s", wrong.text);
    p->reserve_bytes = units_scale (p->asked_bytes, ppm, 1000000);
  }
  if (p->reserve_bytes > p->asked_bytes)
    return error_set (&c->err, ERR_usage, "--reserve: %s is more than the budget of %s",
                      units_bytes (reserve, p->reserve_bytes),
                      units_bytes (budget, p->asked_bytes));
  p->options.budget_bytes = p->asked_bytes - p->reserve_bytes;
  return true;
}

static bool read_effort (call *c, planner *p) {
  const char *text = call_text (c, "gap");
  error wrong = { 0 };
  int64_t seed = 1, noise = 0;
  if (text && !units_parse_share (text, &p->options.gap_ppm, &wrong))
    return error_set (&c->err, ERR_usage, "--gap: %s", wrong.text);
  if (text && p->options.gap_ppm == 0)
    p->options.gap_ppm = 1; /* 0 stands for the default */
  if (!call_count (c, "limit", 1, INT64_MAX / 4, &p->options.limit_ticks) ||
      (has_option (c, "noise") && !call_count (c, "noise", 1, NOISE_MOST_PERCENT, &noise)) ||
      !call_count (c, "seconds", 1, INT32_MAX, &p->seconds) ||
      !call_count (c, "seed", 0, INT64_MAX, &seed))
    return false;
  if (p->seconds && !p->options.limit_ticks)
    p->options.limit_ticks = INT64_MAX / 4;
  p->options.seed = (uint64_t)seed;
  p->options.noise_percent = (int32_t)noise;
  p->options.keep_proof = call_flag (c, "proof");
  p->options.same_places = has_option (c, "same-places") && call_flag (c, "same-places");
  return true;
}

/* For developers: other numbers for the search, or without one of its strategies. */
static bool read_tuning (call *c, planner *p) {
  const char *text = has_option (c, "tune") ? call_text (c, "tune") : NULL;
  error wrong = { 0 };
  if (!text)
    return true;
  tuning *t = NEW (c->arena, 1, tuning, &c->err);
  if (!t)
    return false;
  *t = tuning_shipped;
  p->tuned = text;
  p->options.tuning = t;
  return tuning_read (t, text, &wrong) || error_set (&c->err, ERR_usage, "--tune: %s", wrong.text);
}

/* The most parts that any op may run in. */
static int64_t most_parts (const trace *t) {
  int64_t most = 1;
  for (int32_t k = 0; k < t->n_ops; k++)
    most = t->ops[k].parts > most ? t->ops[k].parts : most;
  return most < t->batch ? most : t->batch;
}

/* "auto", "off" or a number of parts. */
static bool read_sections (call *c, const trace *t, solve_options *o) {
  const char *text = has_option (c, "sections") ? call_text (c, "sections") : NULL;
  int64_t most = most_parts (t);
  if (!text || strcmp (text, "off") == 0)
    return true;
  o->sections = SECTIONS_AUTO;
  if (strcmp (text, "auto") == 0)
    return true;
  o->sections = SECTIONS_FIXED;
  if (text[strspn (text, "0123456789")] || !*text)
    return error_set (&c->err, ERR_usage, "--sections: `%s` is not auto, off or a number of parts",
                      text);
  if (!call_count (c, "sections", 2, MOST_PARTS, &o->section_parts))
    return false;
  if (o->section_parts > most)
    return error_set (&c->err, ERR_usage,
                      "--sections: no op can run in %lld parts, %lld are the most (the batch is "
                      "%lld)",
                      (long long)o->section_parts, (long long)most, (long long)t->batch);
  return true;
}

/* One of a list of words in the order of an enumeration, where the command has the option. */
static bool read_word (call *c, const char *option, const char *const *words, int *value) {
  return !has_option (c, option) || call_word (c, option, words, value);
}

static bool read_rewriting (call *c, const trace *t, planner *p) {
  int order = ORDERS_AUTO, op_order = ORDER_AS_IS, drop = RECOMPUTE_OFF;
  if (!read_sections (c, t, &p->options) || !read_word (c, "section-order", order_words, &order) ||
      !read_word (c, "recompute", drop_words, &drop) ||
      !read_word (c, "order", op_order_words, &op_order))
    return false;
  if (order != ORDERS_AUTO && p->options.sections == SECTIONS_OFF)
    return error_set (&c->err, ERR_usage,
                      "--section-order %s says how parts run, but no op is cut; give --sections "
                      "auto too",
                      order_words[order]);
  p->options.section_orders = (sections_orders)order;
  p->options.order = (order_mode)op_order;
  p->options.recompute = (recompute_mode)drop;
  return true;
}

bool planner_read (call *c, const trace *t, planner *p) {
  char want[UNITS_TEXT], have[UNITS_TEXT];
  *p = (planner){ 0 };
  if (!device_needed (c, t, &p->device))
    return false;
  p->options = (solve_options){
    .device = &p->device, .host_bytes = p->device.host_bytes, .seed = 1, .log = &c->log
  };
  if (!trace_is_plannable (t))
    return error_set (&c->err, ERR_input, "the trace is not plannable: %s", t->source.confidence);
  if (!policy_asked_budget (c, t, &p->device, &p->asked_bytes) || !read_reserve (c, t, p) ||
      !call_bytes (c, "host", &p->options.host_bytes))
    return false;
  if (p->options.host_bytes > p->device.host_bytes)
    return error_set (&c->err, ERR_usage, "--host: %s, but the host of %s has %s",
                      units_bytes (want, p->options.host_bytes), p->device.name,
                      units_bytes (have, p->device.host_bytes));
  return read_rewriting (c, t, p) && read_effort (c, p) && read_tuning (c, p);
}

void planner_plain (planner *p, const call *c, const device *d, int64_t budget_bytes,
                    int64_t limit_ticks) {
  *p = (planner){ .device = *d, .asked_bytes = budget_bytes };
  p->options = (solve_options){ .budget_bytes = budget_bytes,
                                .host_bytes = d->host_bytes,
                                .limit_ticks = limit_ticks,
                                .seed = 1,
                                .log = c->verbose ? &c->log : NULL };
}

/* ---- stopping ---- */

static void on_interrupt (int signal) {
  (void)signal;
}

/* The handler is set for one time: when the system has put the default back, it has come. So no
   variable is shared with it, and the second interrupt ends the program. */
static bool was_interrupted (void) {
  struct sigaction now;
  return sigaction (SIGINT, NULL, &now) == 0 && now.sa_handler != on_interrupt;
}

static bool stop (void *context) {
  planner *p = context;
  p->interrupted = was_interrupted ();
  return p->interrupted || (p->seconds && planner_now_ns () >= p->deadline_ns);
}

/* ---- solving ---- */

static const char *made_by (const planner *p, arena *a, error *err) {
  json_writer w;
  bytes text = { 0 };
  const char *out = NULL;
  json_begin (&w, 0);
  json_open_object (&w);
  json_add_text (&w, "ferry", PACKAGE_VERSION);
  json_put_key (&w, "options");
  json_open_object (&w);
  json_add_int (&w, "budget_bytes", p->asked_bytes);
  json_add_int (&w, "gap_ppm", p->options.gap_ppm);
  json_add_int (&w, "host_bytes", p->options.host_bytes);
  json_add_int (&w, "limit_ticks", p->options.limit_ticks);
  if (p->options.noise_percent)
    json_add_int (&w, "noise_percent", p->options.noise_percent);
  if (p->options.order)
    json_add_text (&w, "order", op_order_words[p->options.order]);
  if (p->options.recompute)
    json_add_text (&w, "recompute", drop_words[p->options.recompute]);
  json_add_int (&w, "reserve_bytes", p->reserve_bytes);
  if (p->options.same_places)
    json_add_bool (&w, "same_places", true);
  json_add_int (&w, "seconds", p->seconds);
  if (p->options.sections)
    json_add_text (&w, "section_order", order_words[p->options.section_orders]);
  if (p->options.sections == SECTIONS_AUTO)
    json_add_text (&w, "sections", "auto");
  else if (p->options.sections)
    json_add_int (&w, "sections", p->options.section_parts);
  if (p->tuned)
    json_add_text (&w, "tune", p->tuned);
  json_close_object (&w);
  json_add_int (&w, "seed", (int64_t)p->options.seed);
  json_close_object (&w);
  if (json_finish (&w, &text, err))
    out = arena_string_n (a, text.data, (size_t)text.size, err);
  bytes_free (&text);
  return out;
}

bool planner_solve (call *c, planner *p, const trace *t, arena *a, solution *out) {
  struct sigaction mine = { .sa_handler = on_interrupt,
                            .sa_flags = (int)SA_RESETHAND | SA_RESTART },
                   before;
  sigemptyset (&mine.sa_mask);
  p->options.device = &p->device;
  p->options.stats = &p->stats;
  p->options.stop = stop;
  p->options.stop_context = p;
  p->deadline_ns = planner_now_ns () + p->seconds * 1000000000;
  bool handled = sigaction (SIGINT, &mine, &before) == 0;
  bool ok = solve (t, &p->options, a, out, &c->err);
  if (handled) {
    p->interrupted |= was_interrupted ();
    sigaction (SIGINT, &before, NULL);
  }
  if (!ok && (c->err.code == ERR_infeasible || c->err.code == ERR_limit) && p->interrupted) {
    c->err = (error){ 0 };
    return error_set (&c->err, ERR_interrupted, "stopped before a plan was found");
  }
  if (!ok && c->err.code == ERR_infeasible) {
    floor_request r = { .budget_bytes = p->options.budget_bytes,
                        .host_bytes = p->options.host_bytes,
                        .in_parts = p->options.sections != SECTIONS_OFF,
                        .drops = p->options.recompute != RECOMPUTE_OFF,
                        .stays = p->options.recompute == RECOMPUTE_ONLY };
    return floor_refuse (t, &p->device, &r, &c->err);
  }
  if (!ok)
    return false;
  certificate *made = &out->plan->certificate;
  if (made->limit_met)
    made->limit_met = p->interrupted                             ? "interrupted"
                      : strcmp (made->limit_met, "stopped") == 0 ? "seconds"
                                                                 : made->limit_met;
  return (out->plan->made_by = made_by (p, a, &c->err));
}
