/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A plan from JSON.  What can be seen without the trace is checked here: types, ranges, indices
   among the plan's own lists. */
#include "trace/files/plan_read_inner.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static const char *const top_keys[] = { "format",     "trace",     "device",    "budget_bytes",
                                        "host_bytes", "order",     "sections",  "recompute",
                                        "groups",     "moves",     "out_order", "in_order",
                                        "op_waits",   "placement", "predicted", "certificate",
                                        "made_by",    "resting",   NULL };
static const char *const section_keys[] = { "ops", "parts", "order", NULL };
static const char *const recompute_keys[] = { "before", "ops", "replaces", NULL };
static const char *const move_keys[] = { "unit",   "part",    "of",    "out_after",   "in_before",
                                         "in_ops", "in_outs", "clean", "host_offset", NULL };
static const char *const wait_keys[] = { "op", "outs", NULL };
static const char *const order_words[] = { "level", "depth", NULL };
static const char *const predicted_keys[] = {
  "step_ns",    "compute_ns",      "baseline_ns", "stall_ns",  "settled",
  "peak_bytes", "host_peak_bytes", "d2h_bytes",   "h2d_bytes", NULL
};
/* `covers` is the sentence that older versions wrote instead of `cover`; it is ignored. */
static const char *const certificate_keys[] = { "lower_bound_ns", "gap",    "bound_by",
                                                "cover",          "covers", "found_by",
                                                "limit_met",      "proof",  NULL };

bool plan_read_known (reading *r, const json *j, const char *const *keys) {
  return json_want_object (j, r->err) &&
         json_known (j, keys, r->options->strict, r->options->log, r->err);
}

static bool copy_text (reading *r, const json *j, const char **out) {
  const char *text = NULL;
  if (!json_get_text (j, &text, r->err))
    return false;
  if (text)
    *out = arena_string (r->arena, text, r->err);
  return !text || *out;
}

bool plan_read_int (reading *r, const json *j, const char *key, int64_t low, int64_t high,
                    int64_t *out) {
  json at;
  return json_need (j, key, &at, r->err) && json_get_int (&at, low, high, out, r->err);
}

static bool need_index (reading *r, const json *j, const char *key, int32_t *out) {
  json at;
  return json_need (j, key, &at, r->err) && json_get_int32 (&at, 0, MOST_INDEX, out, r->err);
}

/* The cell of a column that must be given. */
static bool need_cell (reading *r, const table *t, const char *key, size_t row, int32_t *out) {
  table_place place;
  json at = table_cell (t, key, row, &place);
  if (json_is_absent (&at))
    return json_error (&at, r->err, "`%s` is missing", key);
  return json_get_int32 (&at, 0, MOST_INDEX, out, r->err);
}

bool plan_read_cell (reading *r, const table *t, const char *key, size_t row, int32_t low,
                     int32_t *out) {
  table_place place;
  json at = table_cell (t, key, row, &place);
  return json_get_int32 (&at, low, MOST_INDEX, out, r->err);
}

static bool read_indices (reading *r, const json *j, int32_t **at, int32_t *count) {
  *at = NULL;
  *count = 0;
  if (json_is_absent (j))
    return true;
  if (!json_want_array (j, r->err))
    return false;
  size_t n = json_count (j);
  if (n > MOST_INDEX)
    return json_error (j, r->err, "too many entries");
  if (!ALLOC (r->arena, *at, (int64_t)n, r->err))
    return false;
  *count = (int32_t)n;
  for (size_t i = 0; i < n; i++) {
    json x = json_element (j, i);
    if (!json_is_int (&x))
      return json_error (&x, r->err, "an index is needed here");
    if (!json_get_int32 (&x, 0, MOST_INDEX, &(*at)[i], r->err))
      return false;
  }
  return true;
}

static bool read_list (reading *r, const json *row, const char *key, index_list *out) {
  json at = json_member (row, key);
  return read_indices (r, &at, &out->at, &out->count);
}

/* An array that may be absent, and room for its rows. */
static bool open_rows (reading *r, const json *root, const char *key, json *at, int32_t *count,
                       size_t size, void *rows) {
  void **to = rows;
  *at = json_member (root, key);
  *count = 0;
  if (json_is_absent (at))
    return true;
  if (!json_want_array (at, r->err))
    return false;
  if (json_count (at) > MOST_INDEX)
    return json_error (at, r->err, "too many entries");
  *count = (int32_t)json_count (at);
  *to = arena_alloc (r->arena, *count, size, r->err);
  return *to;
}

static bool read_order (reading *r, const json *root) {
  plan *p = r->plan;
  json list = json_member (root, "order");
  int32_t *at = NULL, count = 0;
  if (!read_indices (r, &list, &at, &count))
    return false;
  if (count % 2)
    return json_error (&list, r->err, "an order is pairs of a first op and a count");
  p->n_order = count / 2;
  p->order = NEW (r->arena, p->n_order, op_run, r->err);
  for (int32_t i = 0; p->order && i < p->n_order; i++)
    p->order[i] = (op_run){ at[2 * i], at[2 * i + 1] };
  return p->order;
}

static bool read_sections (reading *r, const json *root) {
  plan *p = r->plan;
  json list;
  if (!open_rows (r, root, "sections", &list, &p->n_sections, sizeof *p->sections, &p->sections))
    return false;
  for (int32_t i = 0; i < p->n_sections; i++) {
    json row = json_element (&list, (size_t)i), ops, order = json_member (&row, "order");
    int word = SECTION_LEVEL;
    section *s = &p->sections[i];
    if (!plan_read_known (r, &row, section_keys) || !json_need (&row, "ops", &ops, r->err) ||
        !json_want_array (&ops, r->err))
      return false;
    if (json_count (&ops) != 2)
      return json_error (&ops, r->err, "two numbers are needed: the first op and the one behind");
    json first = json_element (&ops, 0), end = json_element (&ops, 1);
    if (!json_is_int (&first) || !json_is_int (&end))
      return json_error (&ops, r->err, "two numbers are needed: the first op and the one behind");
    if (!json_get_int32 (&first, 0, MOST_INDEX, &s->first, r->err) ||
        !json_get_int32 (&end, 0, MOST_INDEX, &s->end, r->err) ||
        !plan_read_int (r, &row, "parts", 2, MOST_PARTS, &s->parts) ||
        !json_get_word (&order, order_words, &word, r->err))
      return false;
    s->order = (section_order)word;
  }
  return true;
}

static bool read_recomputes (reading *r, const json *root) {
  plan *p = r->plan;
  json list;
  if (!open_rows (r, root, "recompute", &list, &p->n_recomputes, sizeof *p->recomputes,
                  &p->recomputes))
    return false;
  for (int32_t i = 0; i < p->n_recomputes; i++) {
    json row = json_element (&list, (size_t)i);
    recompute *e = &p->recomputes[i];
    if (!plan_read_known (r, &row, recompute_keys) || !need_index (r, &row, "before", &e->before) ||
        !read_list (r, &row, "ops", &e->ops) || !read_list (r, &row, "replaces", &e->replaces))
      return false;
  }
  return true;
}

static bool read_groups (reading *r, const json *root) {
  plan *p = r->plan;
  json list;
  if (!open_rows (r, root, "groups", &list, &p->n_groups, sizeof *p->groups, &p->groups))
    return false;
  for (int32_t i = 0; i < p->n_groups; i++) {
    json row = json_element (&list, (size_t)i);
    if (!json_want_array (&row, r->err) ||
        !read_indices (r, &row, &p->groups[i].at, &p->groups[i].count))
      return false;
  }
  return true;
}

bool plan_read_table (reading *r, const json *at, const char *const *keys, const char *const *lists,
                      table *out) {
  if (json_is_absent (at)) {
    *out = (table){ 0 };
    return true;
  }
  if (!table_open (at, keys, lists, r->options->strict, r->options->log, out, r->err))
    return false;
  return out->rows <= MOST_INDEX || json_error (at, r->err, "too many entries");
}

static bool read_move (reading *r, const table *t, size_t row) {
  move *m = &r->plan->moves[row];
  *m = (move){ .of = 1, .in_ops = NO_WAIT, .in_outs = NO_WAIT };
  table_place place;
  json offset = table_cell (t, "host_offset", row, &place);
  if (json_is_absent (&offset))
    return json_error (&offset, r->err, "`host_offset` is missing");
  if (!json_get_int (&offset, 0, MOST_BYTES, &m->host_offset, r->err))
    return false;
  json clean = table_cell (t, "clean", row, &place);
  return json_get_bool (&clean, &m->clean, r->err) && need_cell (r, t, "unit", row, &m->unit) &&
         plan_read_cell (r, t, "part", row, 0, &m->part) &&
         plan_read_cell (r, t, "of", row, 1, &m->of) &&
         need_cell (r, t, "out_after", row, &m->out_after) &&
         need_cell (r, t, "in_before", row, &m->in_before) &&
         plan_read_cell (r, t, "in_ops", row, -MOST_INDEX, &m->in_ops) &&
         plan_read_cell (r, t, "in_outs", row, -MOST_INDEX, &m->in_outs);
}

static bool read_moves (reading *r, const json *root) {
  plan *p = r->plan;
  table t;
  json at = json_member (root, "moves");
  if (!plan_read_table (r, &at, move_keys, NULL, &t))
    return false;
  p->n_moves = (int32_t)t.rows;
  if (!ALLOC (r->arena, p->moves, p->n_moves, r->err))
    return false;
  for (size_t i = 0; i < t.rows; i++)
    if (!read_move (r, &t, i))
      return false;
  json waits = json_member (root, "op_waits");
  if (!plan_read_table (r, &waits, wait_keys, NULL, &t))
    return false;
  p->n_op_waits = (int32_t)t.rows;
  if (!ALLOC (r->arena, p->op_waits, p->n_op_waits, r->err))
    return false;
  for (size_t i = 0; i < t.rows; i++) {
    table_place place;
    json outs = table_cell (&t, "outs", i, &place);
    if (json_is_absent (&outs))
      return json_error (&outs, r->err, "`outs` is missing");
    if (!need_cell (r, &t, "op", i, &p->op_waits[i].op) ||
        !json_get_int32 (&outs, -MOST_INDEX, MOST_INDEX, &p->op_waits[i].outs, r->err))
      return false;
  }
  json outs = json_member (root, "out_order"), ins = json_member (root, "in_order");
  return read_indices (r, &outs, &p->out_order, &p->n_outs) &&
         read_indices (r, &ins, &p->in_order, &p->n_ins);
}

static bool read_predicted (reading *r, const json *root) {
  static const struct {
    const char *key;
    size_t offset;
  } numbers[] = {
    { "step_ns", offsetof (predicted, step_ns) },
    { "compute_ns", offsetof (predicted, compute_ns) },
    { "baseline_ns", offsetof (predicted, baseline_ns) },
    { "stall_ns", offsetof (predicted, stall_ns) },
    { "peak_bytes", offsetof (predicted, peak_bytes) },
    { "host_peak_bytes", offsetof (predicted, host_peak_bytes) },
    { "d2h_bytes", offsetof (predicted, d2h_bytes) },
    { "h2d_bytes", offsetof (predicted, h2d_bytes) },
  };
  plan *p = r->plan;
  json at = json_member (root, "predicted");
  if (json_is_absent (&at))
    return true;
  if (!plan_read_known (r, &at, predicted_keys))
    return false;
  p->has_predicted = true;
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (!plan_read_int (r, &at, numbers[i].key, 0, INT64_MAX,
                        (int64_t *)((char *)&p->predicted + numbers[i].offset)))
      return false;
  json settled;
  return json_need (&at, "settled", &settled, r->err) &&
         json_get_bool (&settled, &p->predicted.settled, r->err);
}

static bool read_certificate (reading *r, const json *root) {
  plan *p = r->plan;
  certificate *c = &p->certificate;
  json at = json_member (root, "certificate");
  *c = (certificate){ .bound_by = "", .found_by = "", .gap = INFINITY };
  if (json_is_absent (&at))
    return true;
  if (!plan_read_known (r, &at, certificate_keys))
    return false;
  p->has_certificate = true;
  json gap = json_member (&at, "gap"), bound_by = json_member (&at, "bound_by"),
       cover = json_member (&at, "cover"), found_by = json_member (&at, "found_by"),
       limit = json_member (&at, "limit_met"), proof = json_member (&at, "proof");
  if (!plan_read_int (r, &at, "lower_bound_ns", 0, INT64_MAX, &c->lower_bound_ns) ||
      !json_get_double (&gap, &c->gap, r->err) || !copy_text (r, &bound_by, &c->bound_by) ||
      !copy_text (r, &found_by, &c->found_by) || !copy_text (r, &limit, &c->limit_met))
    return false;
  c->has_cover = !json_is_absent (&cover);
  if (c->has_cover && !cover_read (&cover, &c->cover, r->err))
    return false;
  if (!json_is_absent (&proof))
    c->proof = json_canonical (&proof, true, r->arena, r->err);
  return json_is_absent (&proof) || c->proof;
}

static bool read_plan (reading *r, const json *root) {
  plan *p = r->plan;
  json format, digest, dev, made_by = json_member (root, "made_by");
  const char *text = NULL;
  if (!json_need (root, "format", &format, r->err) || !json_get_text (&format, &text, r->err))
    return false;
  if (strncmp (text, "ferry-trace/", strlen ("ferry-trace/")) == 0)
    return json_error (&format, r->err, "this is a trace, where a plan is expected");
  if (strcmp (text, PLAN_FORMAT) != 0)
    return json_error (&format, r->err, "`%.40s` is not a plan that this version reads (%s)", text,
                       PLAN_FORMAT);
  if (!plan_read_known (r, root, top_keys) || !json_need (root, "trace", &digest, r->err) ||
      !copy_text (r, &digest, &p->trace_digest) || !json_need (root, "device", &dev, r->err) ||
      !device_read (&dev, r->options, r->arena, &p->device, r->err) ||
      !plan_read_int (r, root, "budget_bytes", 0, MOST_BYTES, &p->budget_bytes) ||
      !plan_read_int (r, root, "host_bytes", 0, MOST_BYTES, &p->host_bytes))
    return false;
  if (!json_is_absent (&made_by)) {
    p->made_by = json_canonical (&made_by, true, r->arena, r->err);
    if (!p->made_by)
      return false;
  }
  json resting = json_member (root, "resting");
  return read_order (r, root) && read_sections (r, root) && read_recomputes (r, root) &&
         read_indices (r, &resting, &p->resting, &p->n_resting) && read_groups (r, root) &&
         read_moves (r, root) && plan_read_placement (r, root) && read_predicted (r, root) &&
         read_certificate (r, root);
}

plan *plan_parse (const char *text, int64_t size, const read_options *o, arena *a, error *err) {
  assert ((text || size == 0) && size >= 0 && a);
  static const read_options plain = { 0 };
  error own = { 0 };
  reading r = { .options = o ? o : &plain, .arena = a, .err = err ? err : &own };
  r.plan = NEW (a, 1, plan, err);
  json_document *d = r.plan ? json_open (text, size, err) : NULL;
  if (!d)
    return NULL;
  json root = json_root (d);
  bool ok = read_plan (&r, &root);
  json_close (d);
  return ok ? r.plan : NULL;
}

plan *plan_load (const char *path, const read_options *o, arena *a, error *err) {
  bytes text;
  log_file named;
  read_options of_file = reading_of_file (o, path, &named);
  if (!file_read (path, of_file.limit_bytes, &text, err))
    return NULL;
  plan *p = plan_parse (text.data, text.size, &of_file, a, err);
  bytes_free (&text);
  if (!p)
    error_in_file (err, path);
  return p;
}

plan *plan_copy (const plan *p, arena *a, error *err) {
  bytes text = { 0 };
  plan *out =
      plan_text (p, true, &text, err) ? plan_parse (text.data, text.size, NULL, a, err) : NULL;
  bytes_free (&text);
  return out;
}
