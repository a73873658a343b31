/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An op's calculation as it stands in a trace: its words and those of its sizes that are not 0. */
#include <assert.h>
#include <string.h>

#include "trace/compute.h"
#include "trace/trace.h"

/* The object's content: the two words and the fields that are not 0, sorted by name. */
typedef struct member {
  const char *name, *word;
  const int64_t *values;
  int64_t count; /* of a list; 0: a word or one value */
} member;

enum { MOST_MEMBERS = 32 };

static int sorted_members (const compute *c, member out[MOST_MEMBERS]) {
  int n = 0;
  out[n++] = (member){ .name = "dtype", .word = compute_dtype_names[c->dtype] };
  out[n++] = (member){ .name = "kind", .word = compute_kind_names[c->kind] };
  const int64_t *value = c->at;
  for (const compute_field *f = compute_fields (c->kind); f->name != NULL; f++, value++) {
    assert (n < MOST_MEMBERS);
    if (f->list)
      out[n++] = (member){ .name = f->name, .values = value + 1, .count = *value };
    else if (*value != 0)
      out[n++] = (member){ .name = f->name, .values = value };
  }
  for (int i = 1; i < n; i++) {
    member m = out[i];
    int j = i;
    for (; j > 0 && strcmp (out[j - 1].name, m.name) > 0; j--)
      out[j] = out[j - 1];
    out[j] = m;
  }
  return n;
}

const char *compute_text (const compute *c, arena *a, error *err) {
  member m[MOST_MEMBERS];
  int count = sorted_members (c, m);
  json_writer w;
  json_begin_object (&w, 0);
  for (int i = 0; i < count; i++) {
    if (m[i].word != NULL) {
      json_add_text (&w, m[i].name, m[i].word);
    } else if (m[i].count == 0) {
      json_add_int (&w, m[i].name, *m[i].values);
    } else {
      json_add_array (&w, m[i].name);
      for (int64_t k = 0; k < m[i].count; k++)
        json_put_int (&w, m[i].values[k]);
      json_close_array (&w);
    }
  }
  json_close_object (&w);
  bytes text = { 0 };
  if (!json_finish (&w, &text, err))
    return NULL;
  size_t size = (size_t)text.size;
  while (size > 0 && text.data[size - 1] == '\n')
    size--;
  char *copy = arena_string_n (a, text.data, size, err);
  bytes_free (&text);
  return copy;
}

static bool read_list (const json *j, int64_t *count, int64_t *values, error *err) {
  if (!json_want_array (j, err))
    return false;
  size_t n = json_count (j);
  if (n < 1 || n > COMPUTE_MOST_LIST)
    return json_error (j, err, "a list of %zu sizes: 1 to %d are possible", n, COMPUTE_MOST_LIST);
  *count = (int64_t)n;
  for (size_t i = 0; i < n; i++) {
    json element = json_element (j, i);
    if (!json_get_int (&element, 1, MOST_BYTES, &values[i], err))
      return false;
  }
  return true;
}

bool compute_read (const json *j, compute *out, error *err) {
  *out = (compute){ 0 };
  int word = 0;
  json kind, dtype;
  if (!json_want_object (j, err) || !json_need (j, "kind", &kind, err) ||
      !json_get_word (&kind, compute_kind_names, &word, err))
    return false;
  out->kind = (compute_kind)word;
  if (!json_need (j, "dtype", &dtype, err) ||
      !json_get_word (&dtype, compute_dtype_names, &word, err))
    return false;
  out->dtype = (compute_dtype)word;
  const char *known[MOST_MEMBERS + 1] = { "dtype", "kind" };
  int n = 2;
  int64_t *value = out->at;
  for (const compute_field *f = compute_fields (out->kind); f->name != NULL; f++, value++) {
    known[n++] = f->name;
    json field = json_member (j, f->name);
    if (f->list) {
      if (!json_need (j, f->name, &field, err) || !read_list (&field, value, value + 1, err))
        return false;
    } else if (!json_get_int (&field, 0, MOST_BYTES, value, err)) {
      return false;
    }
  }
  if (!json_known (j, known, true, NULL, err))
    return false;
  if (!compute_is_sound (out))
    return json_error (j, err, "%s with sizes that do not fit together, or larger than any memory",
                       compute_kind_names[out->kind]);
  return true;
}

bool compute_parse (const char *text, compute *out, error *err) {
  json_document *d = json_open (text, (int64_t)strlen (text), err);
  if (d == NULL)
    return false;
  json root = json_root (d);
  bool read = compute_read (&root, out, err);
  json_close (d);
  return read;
}
