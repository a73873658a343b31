/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A slice of a grid as JSON, and the slices of a folder put together: every file names the whole
   grid, so that slices of different questions are not mixed, and a missing one is named. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/inputs/stopping.h"
#include "cli/whatif/whatif.h"

static const char *const answers[] = { "plan", "none fits", "none found", "not reached", NULL };

typedef struct field {
  const char *name;
  size_t at;
} field;

/* In the order of their names; those of the plan stand in a member of their own. */
static const field fields[] = {
  { "baseline_ns", offsetof (whatif_row, baseline_ns) },
  { "batch", offsetof (whatif_row, batch) },
  { "budget_bytes", offsetof (whatif_row, budget_bytes) },
  { "device", offsetof (whatif_row, device) },
  { "floor_bytes", offsetof (whatif_row, floor_bytes) },
  { "link_bytes_per_s", offsetof (whatif_row, link_bytes_per_s) },
  { "lower_bound_ns", offsetof (whatif_row, lower_bound_ns) },
  { "needs_bytes", offsetof (whatif_row, peak_bytes) },
};
static const field plan_fields[] = {
  { "d2h_bytes", offsetof (whatif_row, d2h_bytes) },
  { "h2d_bytes", offsetof (whatif_row, h2d_bytes) },
  { "host_peak_bytes", offsetof (whatif_row, host_bytes) },
  { "step_ns", offsetof (whatif_row, step_ns) },
};
enum {
  BEFORE_GAP = 5, /* of the first, by name */
  FIELDS = sizeof fields / sizeof *fields,
  PLAN_FIELDS = sizeof plan_fields / sizeof *plan_fields
};

/* ---- out ---- */

static void put_grid (json_writer *w, const whatif_grid *g) {
  json_open_object (w);
  json_add_array (w, "batches");
  for (int32_t i = 0; i < g->n_batches; i++)
    json_put_int (w, g->batches[i]);
  json_close_array (w);
  json_add_array (w, "budgets");
  for (int32_t i = 0; i < g->n_budgets; i++)
    json_put_text (w, g->budgets[i]);
  json_close_array (w);
  json_add_array (w, "devices");
  for (int32_t i = 0; i < g->n_devices; i++)
    json_put_text (w, g->devices[i].name);
  json_close_array (w);
  json_add_array (w, "links");
  for (int32_t i = 0; i < g->n_links; i++)
    json_put_int (w, g->links[i]);
  json_close_array (w);
  json_add_text (w, "trace", g->digest);
  json_close_object (w);
}

static void put_fields (json_writer *w, const whatif_row *r, const field *at, int n) {
  for (int i = 0; i < n; i++)
    json_add_int (w, at[i].name, *(const int64_t *)((const char *)r + at[i].at));
}

static void put_row (json_writer *w, const whatif_row *r) {
  json_open_object (w);
  json_add_text (w, "answer", answers[r->answer]);
  put_fields (w, r, fields, BEFORE_GAP);
  if (r->answer == WHATIF_PLAN && r->lower_bound_ns > 0)
    json_add_fixed (w, "gap", (double)r->step_ns / (double)r->lower_bound_ns - 1, 6);
  put_fields (w, r, fields + BEFORE_GAP, FIELDS - BEFORE_GAP);
  json_put_key (w, "predicted");
  if (r->answer == WHATIF_PLAN) {
    json_open_object (w);
    put_fields (w, r, plan_fields, PLAN_FIELDS);
    json_close_object (w);
  } else {
    json_put_null (w);
  }
  json_close_object (w);
}

bool whatif_json (call *c, const char *path, const whatif_grid *g, const char *const *assumed,
                  const whatif_row *rows, int32_t n_rows) {
  json_writer w;
  bytes text = { 0 };
  json_begin_object (&w, 2);
  allowed_write (&w, &g->allowed);
  json_add_array (&w, "assumed");
  for (int32_t i = 0; i < g->n_devices * g->n_batches; i++)
    json_put_text (&w, assumed[i]);
  json_close_array (&w);
  json_put_key (&w, "grid");
  put_grid (&w, g);
  json_add_bool (&w, "interrupted", stopping_asked (c));
  json_add_array (&w, "rows");
  for (int32_t i = 0; i < n_rows; i++)
    put_row (&w, &rows[i]);
  json_close_array (&w);
  json_add_int (&w, "slice", g->slice);
  json_add_int (&w, "slices", g->slices);
  json_close_object (&w);
  bool ok = json_finish (&w, &text, &c->err) && call_write (c, path, text.data, text.size);
  bytes_free (&text);
  return ok;
}

/* ---- in ---- */

static int by_name (const void *a, const void *b) {
  return strcmp (*(const char *const *)a, *(const char *const *)b);
}

static const char **files_of (call *c, const char *folder, int32_t *count) {
  int64_t room = 0;
  const char **names = NULL;
  DIR *dir = opendir (folder);
  struct dirent *entry;
  *count = 0;
  if (!dir) {
    error_set (&c->err, ERR_file, "%s: %s", folder, strerror (errno));
    return NULL;
  }
  while (!c->err.code && (entry = readdir (dir))) {
    size_t length = strlen (entry->d_name);
    if (length < 6 || strcmp (entry->d_name + length - 5, ".json") != 0)
      continue;
    names = arena_grow (c->arena, names, &room, *count + 1, sizeof *names, &c->err);
    if (names)
      names[(*count)++] = arena_format (c->arena, &c->err, "%s/%s", folder, entry->d_name);
  }
  closedir (dir);
  if (c->err.code)
    return NULL;
  if (!names) {
    error_set (&c->err, ERR_file, "%s holds no .json", folder);
    return NULL;
  }
  qsort (names, (size_t)*count, sizeof *names, by_name);
  return names;
}

static bool read_ints (const json *list, int64_t low, int64_t *out, int32_t *n, error *err) {
  if (!json_want_array (list, err))
    return false;
  if (json_count (list) < 1 || json_count (list) > WHATIF_MOST)
    return json_error (list, err, "%zu of them: 1 to %d", json_count (list), WHATIF_MOST);
  *n = (int32_t)json_count (list);
  return json_get_ints (list, low, INT64_MAX, 0, out, json_count (list), err);
}

static bool read_text (call *c, const json *list, size_t i, const char **out) {
  json at = json_element (list, i);
  const char *text = NULL;
  if (!json_get_text (&at, &text, &c->err))
    return false;
  *out = text ? arena_string (c->arena, text, &c->err) : NULL;
  return !text || *out;
}

static bool read_texts (call *c, const json *list, const char **out, int32_t *n) {
  if (!json_want_array (list, &c->err))
    return false;
  if (json_count (list) < 1 || json_count (list) > WHATIF_MOST)
    return json_error (list, &c->err, "%zu of them: 1 to %d", json_count (list), WHATIF_MOST);
  *n = (int32_t)json_count (list);
  for (int32_t i = 0; i < *n; i++)
    if (!read_text (c, list, (size_t)i, &out[i]))
      return false;
  return true;
}

static bool read_allowed (const json *root, allowed *out, error *err) {
  json from, at;
  int order, recompute;
  const char *text = NULL;
  *out = (allowed){ 0 };
  if (!json_need (root, "allowed", &from, err) || !json_want_object (&from, err) ||
      !json_need (&from, "order", &at, err) || !json_get_word (&at, order_words, &order, err) ||
      !json_need (&from, "recompute", &at, err) ||
      !json_get_word (&at, recompute_words, &recompute, err) ||
      !json_need (&from, "sections", &at, err))
    return false;
  out->order = (order_mode)order;
  out->recompute = (recompute_mode)recompute;
  if (!json_is_string (&at)) {
    out->sections = SECTIONS_FIXED;
    return json_get_int (&at, 2, MOST_PARTS, &out->section_parts, err);
  }
  if (!json_get_text (&at, &text, err))
    return false;
  out->sections = strcmp (text, "off") == 0 ? SECTIONS_OFF : SECTIONS_AUTO;
  return true;
}

static bool read_grid (call *c, const json *root, whatif_grid *g) {
  json grid, list;
  const char *names[WHATIF_MOST], *digest = NULL;
  *g = (whatif_grid){ 0 };
  if (!read_allowed (root, &g->allowed, &c->err) || !json_need (root, "grid", &grid, &c->err) ||
      !json_want_object (&grid, &c->err) || !json_need (&grid, "batches", &list, &c->err) ||
      !read_ints (&list, 1, g->batches, &g->n_batches, &c->err) ||
      !json_need (&grid, "links", &list, &c->err) ||
      !read_ints (&list, 0, g->links, &g->n_links, &c->err) ||
      !json_need (&grid, "budgets", &list, &c->err) ||
      !read_texts (c, &list, g->budgets, &g->n_budgets) ||
      !json_need (&grid, "devices", &list, &c->err) ||
      !read_texts (c, &list, names, &g->n_devices) || !json_need (&grid, "trace", &list, &c->err) ||
      !json_get_text (&list, &digest, &c->err))
    return false;
  for (int32_t i = 0; i < g->n_devices; i++)
    g->devices[i].name = names[i] ? names[i] : "";
  snprintf (g->digest, sizeof g->digest, "%s", digest ? digest : "");
  json at = json_member (root, "slice"), all = json_member (root, "slices");
  g->slice = g->slices = 1;
  return json_get_int32 (&all, 1, 1 << 20, &g->slices, &c->err) &&
         json_get_int32 (&at, 1, g->slices, &g->slice, &c->err);
}

static bool read_fields (const json *j, whatif_row *r, const field *fields_of, int n, error *err) {
  json at;
  for (int i = 0; i < n; i++)
    if (!json_need (j, fields_of[i].name, &at, err) ||
        !json_get_int (&at, -1, INT64_MAX, (int64_t *)((char *)r + fields_of[i].at), err))
      return false;
  return true;
}

static bool read_row (const json *j, const whatif_grid *g, whatif_row *r, error *err) {
  int answer = 0;
  json at = json_member (j, "answer");
  if (!json_want_object (j, err) || !json_get_word (&at, answers, &answer, err))
    return false;
  r->answer = answer;
  r->step_ns = r->d2h_bytes = r->h2d_bytes = r->host_bytes = -1;
  if (!read_fields (j, r, fields, FIELDS, err))
    return false;
  if (answer == WHATIF_PLAN) {
    if (!json_need (j, "predicted", &at, err) || !json_want_object (&at, err) ||
        !read_fields (&at, r, plan_fields, PLAN_FIELDS, err))
      return false;
  }
  return (r->device >= 0 && r->device < g->n_devices) ||
         json_error (j, err, "there is no device %lld", (long long)r->device);
}

static bool same_question (const whatif_grid *x, const whatif_grid *y) {
  bool same = x->slices == y->slices && x->n_batches == y->n_batches &&
              x->n_budgets == y->n_budgets && x->n_devices == y->n_devices &&
              x->n_links == y->n_links && strcmp (x->digest, y->digest) == 0 &&
              allowed_is_same (&x->allowed, &y->allowed);
  for (int32_t i = 0; same && i < x->n_batches; i++)
    same = x->batches[i] == y->batches[i];
  for (int32_t i = 0; same && i < x->n_links; i++)
    same = x->links[i] == y->links[i];
  for (int32_t i = 0; same && i < x->n_devices; i++)
    same = strcmp (x->devices[i].name, y->devices[i].name) == 0;
  for (int32_t i = 0; same && i < x->n_budgets; i++)
    same = x->budgets[i] && y->budgets[i] ? strcmp (x->budgets[i], y->budgets[i]) == 0
                                          : x->budgets[i] == y->budgets[i];
  return same;
}

/* One file's rows to their places in the whole. */
static bool take_rows (call *c, const json *root, const whatif_grid *g, whatif_row *rows) {
  json list;
  if (!json_need (root, "rows", &list, &c->err) || !json_want_array (&list, &c->err))
    return false;
  int32_t cells = whatif_cells (g), at = 0, n = (int32_t)json_count (&list);
  for (int32_t cell = g->slice - 1; cell < cells; cell += g->slices)
    for (int32_t b = 0; b < g->n_budgets; b++, at++) {
      json one = json_element (&list, (size_t)at);
      if (at >= n)
        return json_error (&list, &c->err, "%d rows are too few for this slice", n);
      if (!read_row (&one, g, &rows[(int64_t)cell * g->n_budgets + b], &c->err))
        return false;
    }
  return at == n || json_error (&list, &c->err, "%d rows are too many for this slice", n);
}

static bool take_assumed (call *c, const json *root, const whatif_grid *g, const char ***out) {
  json list;
  int32_t n = g->n_devices * g->n_batches;
  *out = NEW (c->arena, n, const char *, &c->err);
  if (!*out || !json_need (root, "assumed", &list, &c->err) || !json_want_array (&list, &c->err))
    return false;
  for (int32_t i = 0; i < n; i++)
    if (!read_text (c, &list, (size_t)i, &(*out)[i]))
      return false;
  return true;
}

typedef struct merging {
  whatif_grid *grid;
  const char ***assumed;
  whatif_row **rows;
  bool *seen; /* per slice */
  bool begun;
} merging;

static bool take_file (call *c, const json *root, merging *m) {
  whatif_grid g;
  if (!read_grid (c, root, &g))
    return false;
  if (!m->begun) {
    *m->grid = g;
    m->begun = true;
    m->seen = NEW (c->arena, g.slices, bool, &c->err);
    *m->rows = NEW (c->arena, (int64_t)whatif_cells (&g) * g.n_budgets, whatif_row, &c->err);
    if (!m->seen || !*m->rows || !take_assumed (c, root, &g, m->assumed))
      return false;
  }
  if (!same_question (m->grid, &g))
    return error_set (&c->err, ERR_input, "a slice of another grid than the first file's");
  if (m->seen[g.slice - 1])
    return error_set (&c->err, ERR_input, "slice %d is there twice", g.slice);
  m->seen[g.slice - 1] = true;
  bool cut = false;
  if (!json_read_bool (root, "interrupted", &cut, &c->err))
    return false;
  if (cut)
    return error_set (&c->err, ERR_input, "interrupted: ask for it again, with --array %d/%d",
                      g.slice, g.slices);
  return take_rows (c, root, &g, *m->rows);
}

bool whatif_merge (call *c, const char *folder, whatif_grid *g, const char ***assumed,
                   whatif_row **rows, int32_t *n_rows) {
  int32_t n;
  const char **files = files_of (c, folder, &n);
  merging m = { .grid = g, .assumed = assumed, .rows = rows };
  for (int32_t i = 0; files && i < n; i++) {
    bytes text = { 0 };
    bool ok = file_read (files[i], 0, &text, &c->err);
    json_document *d = ok ? json_open (text.data, text.size, &c->err) : NULL;
    if (d) {
      json root = json_root (d);
      ok = json_want_object (&root, &c->err) && take_file (c, &root, &m);
      json_close (d);
    }
    bytes_free (&text);
    if (!d || !ok) {
      error_in_file (&c->err, files[i]);
      return false;
    }
  }
  if (!files)
    return false;
  for (int32_t i = 0; i < g->slices; i++)
    if (!m.seen[i])
      return error_set (&c->err, ERR_input, "%s: slice %d of %d is missing", folder, i + 1,
                        g->slices);
  g->slice = g->slices = 1;
  *n_rows = whatif_cells (g) * g->n_budgets;
  return true;
}
