/* `ferry whatif`: other cards, links, budgets and batches, as a table. */
#include <string.h>

#include "base/units.h"
#include "cli/devices.h"
#include "cli/offline.h"
#include "cli/policies.h"
#include "trace/roofline.h"
#include "trace/zoo/zoo.h"

enum { MOST_EACH = 32 };

typedef struct grid {
  device devices[MOST_EACH];
  int64_t links[MOST_EACH]; /* 0: the device's own */
  const char *budgets[MOST_EACH];
  int n_devices, n_links, n_budgets;
  int64_t batch_times;
  bool has_from;
  device from; /* the card that the trace was made for */
} grid;

/* What was done to a trace for another card. */
typedef struct carried {
  trace *trace;
  int32_t by_roofline, kept;
  bool rebuilt;
} carried;

static const char *no_value (const char *text) {
  return text ? text : "";
}

/* The word behind an option in the detail of a zoo trace. */
static const char *detail_word (call *c, const char *detail, const char *option) {
  const char *at = strstr (detail, option);
  if (!at)
    return NULL;
  at += strlen (option);
  return arena_string_n (c->arena, at, strcspn (at, " "), &c->err);
}

static bool detail_count (call *c, const char *detail, const char *option, int64_t *out) {
  const char *word = detail_word (c, detail, option);
  return !c->err.code && (!word || units_parse_count (word, 1, 1 << 24, out, &c->err));
}

static int word_place (const char *word, const char *const *words, int otherwise) {
  for (int i = 0; word && words[i]; i++)
    if (strcmp (words[i], word) == 0)
      return i;
  return otherwise;
}

/* The same network again, from the command that the trace remembers. */
static trace *rebuild (call *c, const trace *t, const device *d, int64_t times) {
  const char *detail = no_value (t->source.detail);
  zoo_request r = { .device = d };
  r.name = arena_string_n (c->arena, detail, strcspn (detail, " "), &c->err);
  if (!r.name || !detail_count (c, detail, "--batch ", &r.batch) ||
      !detail_count (c, detail, "--image ", &r.image) ||
      !detail_count (c, detail, "--seq ", &r.seq) ||
      !detail_count (c, detail, "--classes ", &r.classes) ||
      !detail_count (c, detail, "--width-divisor ", &r.width_divisor) ||
      !detail_count (c, detail, "--depth-divisor ", &r.depth_divisor))
    return NULL;
  r.batch *= times;
  r.dtype = (compute_dtype)word_place (detail_word (c, detail, "--dtype "), compute_dtype_names,
                                       DTYPE_FP32);
  r.optimizer = (zoo_optimizer)word_place (detail_word (c, detail, "--optimizer "),
                                           zoo_optimizer_names, ZOO_MOMENTUM);
  r.explicit_attention = strstr (detail, "--explicit-attention") != NULL;
  r.workspaces = strstr (detail, "--workspaces") != NULL;
  return zoo_trace (&r, c->arena, &c->err);
}

/* A measured op keeps its ratio to the roofline of its own card. */
static bool scale_op (op *o, const device *from, const device *to, error *err) {
  compute what;
  int64_t there, here;
  if (!o->compute || !compute_parse (o->compute, &what, err) ||
      !roofline_ns (to, &what, &there, err) || !roofline_ns (from, &what, &here, err) || here <= 0)
    return false;
  o->ns = units_scale (o->ns, there, here);
  return true;
}

static bool carry (call *c, const grid *g, const trace *t, const device *to, carried *out) {
  *out = (carried){ 0 };
  bool zoo = strcmp (no_value (t->source.kind), "zoo") == 0;
  bool same = g->has_from && strcmp (no_value (g->from.name), no_value (to->name)) == 0;
  if (g->batch_times > 1 && !zoo)
    return error_set (&c->err, ERR_usage,
                      "--batch needs a trace of `ferry zoo`: others do not "
                      "tell how their ops grow");
  if (zoo && (g->batch_times > 1 || !same)) {
    out->rebuilt = true;
    out->trace = rebuild (c, t, to, g->batch_times);
    return out->trace;
  }
  trace *copy = NEW (c->arena, 1, trace, &c->err);
  if (!copy)
    return false;
  *copy = *t;
  copy->ops = NEW (c->arena, t->n_ops, op, &c->err);
  if (!copy->ops)
    return false;
  memcpy (copy->ops, t->ops, (size_t)t->n_ops * sizeof *t->ops);
  for (int32_t i = 0; i < t->n_ops; i++) {
    error why = { 0 };
    bool scaled = !same && g->has_from && scale_op (&copy->ops[i], &g->from, to, &why);
    out->by_roofline += scaled;
    out->kept += !scaled;
  }
  out->trace = copy;
  return true;
}

static bool read_grid (call *c, const trace *t, grid *g) {
  const char *rest = call_text (c, "device"), *part;
  *g = (grid){ .batch_times = 1 };
  const char *made_for = detail_word (c, no_value (t->source.detail), "--device ");
  const char *from = call_text (c, "from") ? call_text (c, "from") : made_for;
  g->has_from = from != NULL;
  if (c->err.code || (from && !device_named (c, from, &g->from)))
    return false;
  if (!rest)
    rest = from;
  while ((part = next_part (c, &rest)))
    if (g->n_devices == MOST_EACH || !device_named (c, part, &g->devices[g->n_devices++]))
      return error_set (&c->err, ERR_usage, "more than %d devices", MOST_EACH);
  rest = call_text (c, "link");
  while ((part = next_part (c, &rest)))
    if (g->n_links == MOST_EACH || !units_parse_rate (part, &g->links[g->n_links++], &c->err))
      return error_set (&c->err, ERR_usage, "more than %d links", MOST_EACH);
  rest = call_text (c, "memory");
  while ((part = next_part (c, &rest))) {
    if (g->n_budgets == MOST_EACH)
      return error_set (&c->err, ERR_usage, "more than %d budgets", MOST_EACH);
    g->budgets[g->n_budgets++] = part;
  }
  g->n_links += g->n_links == 0;
  const char *batch = call_text (c, "batch");
  if (batch && !units_parse_count (batch + (*batch == 'x'), 1, 1 << 16, &g->batch_times, &c->err))
    return false;
  return !c->err.code && (g->n_devices > 0 ||
                          error_set (&c->err, ERR_usage, "for which device? give --device NAME"));
}

/* The sum of both ways keeps its ratio to the link's. */
static void set_link (device *d, int64_t rate) {
  if (rate == 0)
    return;
  device_link *l = &d->link;
  int64_t sum = l->d2h_bytes_per_s + l->h2d_bytes_per_s;
  l->both_bytes_per_s = units_scale (l->both_bytes_per_s, 2 * rate, sum);
  l->d2h_bytes_per_s = l->h2d_bytes_per_s = rate;
}

static bool one_row (call *c, const trace *t, device *d, const char *memory, const char *link) {
  int64_t floor_bytes, peak_bytes, budget = d->memory_bytes - d->reserved_bytes;
  char a[7][UNITS_TEXT];
  curve_options o;
  curve v;
  if (!offline_options (c, d, &o) ||
      !curve_range (t, d, c->arena, &floor_bytes, &peak_bytes, &c->err) ||
      (memory && !policy_budget_of (c, memory, peak_bytes, &budget)))
    return false;
  o.progress = NULL;
  arena *scratch = arena_new (0);
  bool ok = scratch && curve_of (t, &o, &budget, 1, scratch, &v, &c->err);
  if (ok) {
    const curve_point *p = &v.points[0];
    const predicted *q = p->plan ? &p->plan->predicted : NULL;
    int64_t step = q ? q->step_ns : -1;
    if (call_flag (c, "tsv"))
      printf ("%s\t%s\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\n", d->name, link,
              (long long)budget, (long long)peak_bytes, (long long)v.baseline_ns, (long long)step,
              (long long)p->lower_bound_ns, (long long)(q ? q->d2h_bytes : -1),
              (long long)(q ? q->h2d_bytes : -1));
    else if (!q)
      printf ("%-16s %10s %10s %10s %10s  %s (the smallest is %s)\n", d->name, link,
              units_bytes (a[0], budget), units_bytes (a[1], peak_bytes),
              units_time (a[2], v.baseline_ns),
              p->lower_bound_ns < 0 ? "no plan fits" : "no plan found",
              units_bytes (a[3], floor_bytes));
    else
      printf ("%-16s %10s %10s %10s %10s %10s %+7.1f %% %10s\n", d->name, link,
              units_bytes (a[0], budget), units_bytes (a[1], peak_bytes),
              units_time (a[2], v.baseline_ns), units_time (a[3], step),
              offline_slower (step, v.baseline_ns), units_time (a[4], p->lower_bound_ns));
  }
  arena_free (scratch);
  return ok;
}

static bool print_device (call *c, const grid *g, const trace *t, const device *to) {
  carried k;
  if (!carry (c, g, t, to, &k))
    return false;
  if (k.rebuilt)
    call_note (c, "%s: rebuilt as %s", to->name, k.trace->source.detail);
  else
    call_note (c, "%s: %d ops scaled by roofline, %d keep their time", to->name, k.by_roofline,
               k.kept);
  for (int l = 0; l < g->n_links; l++)
    for (int b = 0; b < (g->n_budgets ? g->n_budgets : 1); b++) {
      char link[UNITS_TEXT];
      device d = *to;
      set_link (&d, g->links[l]);
      units_rate (link, d.link.h2d_bytes_per_s);
      if (!one_row (c, k.trace, &d, g->n_budgets ? g->budgets[b] : NULL, link))
        return false;
    }
  return true;
}

static int run (call *c) {
  grid g;
  trace *t = offline_trace (c, c->operands[0]);
  if (!t || !read_grid (c, t, &g))
    return call_failed (c);
  if (call_flag (c, "tsv"))
    puts (
        "device\tlink\tbudget_bytes\tpeak_bytes\tbaseline_ns\tstep_ns\tlower_bound_ns\td2h_bytes\t"
        "h2d_bytes");
  else
    printf ("%-16s %10s %10s %10s %10s %10s %9s %10s\n", "device", "link", "budget", "peak",
            "unswapped", "step", "slower", "bound");
  for (int i = 0; i < g.n_devices; i++)
    if (!print_device (c, &g, t, &g.devices[i]))
      return call_failed (c);
  return EXIT_YES;
}

/* clang-format off */
static const cli_option options[] = {
  { 'd', "device", "NAME,...", "other cards; without it, the one that the trace was made for" },
  { 0, "from", "NAME|FILE", "the card that the trace was measured on, where it does not say" },
  { 0, "link", "RATE,...", "other links, such as 50GB/s, alike in both directions" },
  { 0, "memory", "SIZE|%,...", "budgets; without it, all that each card has to give" },
  { 0, "batch", "xN", "so many times the batch; the trace is one of `ferry zoo`" },
  OPTION_HOST,
  OPTION_TICKS,
  OPTION_TSV,
  OPTION_STRICT,
  OPTIONS_END,
};
/* clang-format on */

const cli_command command_whatif = {
  .name = "whatif",
  .says = "other cards, links, budgets and batches",
  .operands = "TRACE",
  .least = 1,
  .most = 1,
  .about = "Plans the trace for every combination of what is given. For another card, a trace of "
           "`ferry zoo` is built again; in others, ops that say what they calculate are scaled by "
           "the ratio of the two cards' rooflines and the rest keep their time. What was assumed "
           "is said on standard error.\n",
  .options = options,
  .run = run,
};
