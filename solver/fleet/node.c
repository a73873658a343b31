/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/fleet/node.h"

#include <assert.h>
#include <stdio.h>

#include "base/order.h"
#include "base/units.h"

#define MIB ((int64_t)1 << 20)

/* ---- the choice ---- */

/* In order: what is asked first of a row. */
typedef enum node_miss {
  MISS_plan,
  MISS_card,
  MISS_pinned,
  MISS_host,
  MISS_time,
  MISS_none
} node_miss;

int64_t node_host_bytes (const node_question *q, const node_row *row) {
  return row->pinned_bytes + row->ranks * q->rank_host_bytes;
}

int64_t node_most_ns (const node_facts *f, const node_question *q) {
  return f->baseline_ns + units_scale (f->baseline_ns, q->slowdown_ppm, 1000000);
}

static node_miss miss_of (const node_facts *f, const node_question *q, const node_row *row) {
  if (row->step_ns < 0)
    return MISS_plan;
  if (row->budget_bytes + f->reserved_bytes > f->card_bytes)
    return MISS_card;
  if (row->pinned_bytes > f->pinnable_bytes)
    return MISS_pinned;
  if (node_host_bytes (q, row) > f->host_bytes)
    return MISS_host;
  return row->step_ns > node_most_ns (f, q) ? MISS_time : MISS_none;
}

bool node_fits (const node_facts *f, const node_question *q, const node_row *row) {
  assert (f && q && row);
  return miss_of (f, q, row) == MISS_none;
}

static double slower (int64_t ns, int64_t baseline_ns) {
  return baseline_ns > 0 ? (double)(ns - baseline_ns) / (double)baseline_ns : 0;
}

static void say_miss (const node_facts *f, const node_question *q, const node_row *row, char *out,
                      size_t size) {
  char a[UNITS_TEXT], b[UNITS_TEXT];
  int n = snprintf (out, size, "%d rank%s of %s in %s each: ", row->ranks,
                    row->ranks > 1 ? "s" : "", f->host, units_bytes (a, row->budget_bytes));
  size_t at = min_of (n, (int64_t)size - 1);
  switch (miss_of (f, q, row)) {
  case MISS_plan:
    snprintf (out + at, size - at, "%s", row->why ? row->why : "no plan fits");
    break;
  case MISS_card:
    snprintf (out + at, size - at, "a card has %s",
              units_bytes (a, f->card_bytes - f->reserved_bytes));
    break;
  case MISS_pinned:
    snprintf (out + at, size - at, "%s pinned of %s", units_bytes (a, row->pinned_bytes),
              units_bytes (b, f->pinnable_bytes));
    break;
  case MISS_host:
    snprintf (out + at, size - at, "%s of the host's memory of %s",
              units_bytes (a, node_host_bytes (q, row)), units_bytes (b, f->host_bytes));
    break;
  default:
    snprintf (out + at, size - at, "a step %.1f %% longer, and %.4g %% are allowed",
              100 * slower (row->step_ns, f->baseline_ns), (double)q->slowdown_ppm / 10000);
  }
}

/* The one that came nearest: as far as any in what is asked, then with the fewest ranks, then the
   fastest. */
static bool is_nearer (const node_facts *f, const node_question *q, const node_row *row,
                       const node_row *than) {
  node_miss a = miss_of (f, q, row), b = miss_of (f, q, than);
  if (a != b)
    return a > b;
  if (row->ranks != than->ranks)
    return row->ranks < than->ranks;
  return a == MISS_time ? row->step_ns < than->step_ns : row->budget_bytes > than->budget_bytes;
}

static bool is_better (const node_row *row, const node_row *than) {
  if (row->ranks != than->ranks)
    return row->ranks > than->ranks;
  return row->budget_bytes < than->budget_bytes;
}

void node_choose (const node_facts *f, const node_question *q, const node_row *rows, int32_t n,
                  node_answer *out) {
  assert (f && q && rows && out);
  const node_row *near = NULL;
  *out = (node_answer){ 0 };
  for (int32_t i = 0; i < n; i++) {
    const node_row *row = &rows[i];
    if (q->ranks && row->ranks != q->ranks)
      continue;
    if (!near || is_nearer (f, q, row, near))
      near = row;
    if (node_fits (f, q, row) && (!out->row || is_better (row, out->row)))
      out->row = row;
  }
  if (!out->row && near)
    say_miss (f, q, near, out->reason, sizeof out->reason);
  else if (!out->row)
    snprintf (out->reason, sizeof out->reason, "%d rank%s of %s: that many were not simulated",
              q->ranks, q->ranks == 1 ? "" : "s", f->host);
}

/* ---- from JSON, and to it ---- */

static bool get (const json *object, const char *key, int64_t least, int64_t *out, error *err) {
  return json_read_int (object, key, least, INT64_MAX, out, err);
}

static bool copy (const json *object, const char *key, arena *a, const char **out, error *err) {
  const char *text = NULL;
  if (!json_read_text (object, key, &text, err))
    return false;
  *out = text ? arena_string (a, text, err) : NULL;
  return !text || *out;
}

static bool read_row (const json *j, arena *a, node_row *row, error *err) {
  int64_t ranks = 0;
  bool ok =
      get (j, "ranks", 1, &ranks, err) && get (j, "budget_bytes", 0, &row->budget_bytes, err) &&
      get (j, "step_ns", -1, &row->step_ns, err) &&
      get (j, "lower_bound_ns", -1, &row->bound_ns, err) &&
      get (j, "pinned_bytes", -1, &row->pinned_bytes, err) && copy (j, "why", a, &row->why, err);
  row->ranks = (int32_t)ranks;
  return ok;
}

bool node_read (const json *root, arena *a, node_facts *f, node_row **rows, int32_t *n,
                error *err) {
  assert (root && f && rows && n);
  json list = json_member (root, "rows");
  int64_t cards = 0;
  *f = (node_facts){ 0 };
  *n = (int32_t)json_count (&list);
  if (!copy (root, "host", a, &f->host, err) || !copy (root, "device", a, &f->device, err) ||
      !get (root, "cards", 1, &cards, err) || !get (root, "card_bytes", 0, &f->card_bytes, err) ||
      !get (root, "reserved_bytes", 0, &f->reserved_bytes, err) ||
      !get (root, "host_bytes", 0, &f->host_bytes, err) ||
      !get (root, "pinnable_bytes", 0, &f->pinnable_bytes, err) ||
      !get (root, "needs_bytes", 0, &f->needs_bytes, err) ||
      !get (root, "baseline_ns", 0, &f->baseline_ns, err) ||
      !(*rows = NEW (a, *n + 1, node_row, err)))
    return false;
  f->cards = (int32_t)cards;
  for (int32_t i = 0; i < *n; i++) {
    json e = json_element (&list, (size_t)i);
    if (!read_row (&e, a, &(*rows)[i], err))
      return false;
  }
  return true;
}

static void put_rows (json_writer *w, const node_facts *f, const node_question *q,
                      const node_source *from) {
  json_add_array (w, "rows");
  for (int32_t i = 0; i < from->n_rows; i++) {
    const node_row *row = &from->rows[i];
    json_open_object (w);
    json_add_int (w, "budget_bytes", row->budget_bytes);
    json_add_bool (w, "fits", node_fits (f, q, row));
    json_add_int (w, "lower_bound_ns", row->bound_ns);
    json_add_int (w, "pinned_bytes", row->pinned_bytes);
    json_add_int (w, "ranks", row->ranks);
    json_add_int (w, "step_ns", row->step_ns);
    json_add_text (w, "why", row->why);
    json_close_object (w);
  }
  json_close_array (w);
}

void node_answer_write (json_writer *w, const node_facts *f, const node_question *q,
                        const node_answer *a, const node_source *from) {
  assert (w && f && q && a && from);
  const node_row *row = a->row;
  int64_t card_bytes = row ? row->budget_bytes + f->reserved_bytes : 0;
  json_open_object (w);
  json_add_raw (w, "assumptions", "[\"ranks share links as the host file says\"]");
  json_add_int (w, "baseline_ns", f->baseline_ns);
  if (row)
    json_add_int (w, "card_bytes", card_bytes);
  json_add_int (w, "cards", f->cards);
  if (from->curve)
    json_add_text (w, "curve", from->curve);
  json_add_text (w, "device", f->device);
  if (from->fingerprint)
    json_add_text (w, "fingerprint", from->fingerprint);
  json_add_bool (w, "fits", row != NULL);
  json_add_text (w, "host", f->host);
  json_add_int (w, "host_bytes", f->host_bytes);
  if (row) {
    json_add_int (w, "memory_bytes", row->budget_bytes);
    json_add_int (w, "memory_mib", units_div_up (card_bytes, MIB));
  }
  json_add_int (w, "needs_bytes", f->needs_bytes);
  json_add_int (w, "pinnable_bytes", f->pinnable_bytes);
  if (row)
    json_add_int (w, "pinned_host_bytes", row->pinned_bytes);
  json_add_int (w, "rank_host_bytes", q->rank_host_bytes);
  json_add_int (w, "ranks", row ? row->ranks : 0);
  json_add_text (w, "reason", row ? NULL : a->reason);
  json_add_int (w, "reserved_bytes", f->reserved_bytes);
  if (from->n_rows)
    put_rows (w, f, q, from);
  if (row) {
    json_add_fixed (w, "slowdown", slower (row->step_ns, f->baseline_ns), 6);
    json_add_fixed (w, "slowdown_bound", slower (row->bound_ns, f->baseline_ns), 6);
    json_add_int (w, "step_ns", row->step_ns);
  }
  if (from->trace)
    json_add_text (w, "trace", from->trace);
  json_close_object (w);
}
