/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/host.h"

#include <string.h>

const char *const host_kinds[] = { "switch", "cpu", "host", NULL };

static const char *const host_keys[] = { "format", "name",       "source",       "device", "cards",
                                         "link",   "host_bytes", "pinned_bytes", "groups", NULL };
static const char *const group_keys[] = {
  "name", "kind", "cards", "d2h_bytes_per_s", "h2d_bytes_per_s", "both", "network", NULL
};
static const char *const rate_keys[] = { "d2h_bytes_per_s", "h2d_bytes_per_s", NULL };

/* Both rates, each at most that of `most`; NULL: whatever a file may hold. */
static bool read_rates (const json *j, const int64_t *most, int64_t out[COPY_WAYS], error *err) {
  for (int way = 0; way < COPY_WAYS; way++) {
    json at;
    if (!json_need (j, rate_keys[way], &at, err) ||
        !json_get_int (&at, DEVICE_LEAST_RATE, most ? most[way] : MOST_BYTES, &out[way], err))
      return false;
  }
  return true;
}

static bool read_cards (const json *j, int32_t n_cards, uint64_t *out, error *err) {
  *out = 0;
  if (!json_want_array (j, err))
    return false;
  for (size_t i = 0; i < json_count (j); i++) {
    json at = json_element (j, i);
    int32_t card = -1;
    if (!json_get_int32 (&at, 0, n_cards - 1, &card, err))
      return false;
    if (card < 0)
      return json_error (&at, err, "the number of a card is needed here");
    if (*out >> card & 1)
      return json_error (&at, err, "card %d is named twice", card);
    *out |= (uint64_t)1 << card;
  }
  return *out || json_error (j, err, "a group needs a card");
}

/* A network card takes its part of the rates; each has a rest. */
static bool read_network (const json *j, const read_options *o, host_group *out, error *err) {
  json share = json_member (j, "network");
  if (json_is_absent (&share))
    return true;
  if (!json_want_object (&share, err) || !json_known (&share, rate_keys, o->strict, o->log, err))
    return false;
  for (int way = 0; way < COPY_WAYS; way++) {
    json at = json_member (&share, rate_keys[way]);
    if (!json_get_int (&at, 0, out->both[way] - DEVICE_LEAST_RATE, &out->network[way], err))
      return false;
    out->one_way[way] -= out->network[way];
    out->both[way] -= out->network[way];
  }
  return true;
}

static bool read_group (const json *j, int32_t n_cards, const read_options *o, arena *a,
                        host_group *out, error *err) {
  json name = json_member (j, "name"), kind = json_member (j, "kind"), cards, both;
  const char *text = "";
  int word = HOST_cpu;
  *out = (host_group){ .name = "" };
  if (!json_want_object (j, err) || !json_known (j, group_keys, o->strict, o->log, err) ||
      !json_get_text (&name, &text, err) || !(out->name = arena_string (a, text, err)) ||
      !json_get_word (&kind, host_kinds, &word, err) || !json_need (j, "cards", &cards, err) ||
      !read_cards (&cards, n_cards, &out->cards, err) || !read_rates (j, NULL, out->one_way, err))
    return false;
  out->kind = (host_kind)word;
  both = json_member (j, "both");
  if (json_is_absent (&both)) {
    memcpy (out->both, out->one_way, sizeof out->both);
    return read_network (j, o, out, err);
  }
  return json_want_object (&both, err) && json_known (&both, rate_keys, o->strict, o->log, err) &&
         read_rates (&both, out->one_way, out->both, err) && read_network (j, o, out, err);
}

static bool read_groups (const json *j, const read_options *o, arena *a, gpu_host *out,
                         error *err) {
  if (!json_want_array (j, err))
    return false;
  size_t n = json_count (j);
  if (n > HOST_MOST_GROUPS)
    return json_error (j, err, "%zu groups are more than %d", n, HOST_MOST_GROUPS);
  out->n_groups = (int32_t)n;
  out->groups = NEW (a, (int64_t)n, host_group, err);
  bool ok = out->groups;
  for (size_t i = 0; ok && i < n; i++) {
    json at = json_element (j, i);
    ok = read_group (&at, out->n_cards, o, a, &out->groups[i], err);
  }
  return ok;
}

static bool read_texts (const json *j, arena *a, gpu_host *out, error *err) {
  json name = json_member (j, "name"), source = json_member (j, "source"), card;
  const char *called = "", *whence = "", *device = "";
  return json_need (j, "device", &card, err) && json_get_text (&name, &called, err) &&
         json_get_text (&source, &whence, err) && json_get_text (&card, &device, err) &&
         (out->name = arena_string (a, called, err)) &&
         (out->source = arena_string (a, whence, err)) &&
         (out->device = arena_string (a, device, err));
}

static bool read_sizes (const json *j, gpu_host *out, error *err) {
  json cards, all, pinned;
  return json_need (j, "cards", &cards, err) && json_need (j, "host_bytes", &all, err) &&
         json_need (j, "pinned_bytes", &pinned, err) &&
         json_get_int32 (&cards, 1, HOST_MOST_CARDS, &out->n_cards, err) &&
         json_get_int (&all, 0, MOST_BYTES, &out->host_bytes, err) &&
         json_get_int (&pinned, 0, out->host_bytes, &out->pinned_bytes, err);
}

bool host_read (const json *j, const read_options *o, arena *a, gpu_host *out, error *err) {
  static const read_options plain = { 0 };
  o = o ? o : &plain;
  *out = (gpu_host){ .name = "" };
  json format, link, groups;
  const char *text = HOST_FORMAT;
  if (!json_want_object (j, err) || !json_need (j, "format", &format, err) ||
      !json_get_text (&format, &text, err))
    return false;
  if (strcmp (text, HOST_FORMAT) != 0)
    return json_error (&format, err, "`%.40s` is not a host that this version reads (%s)", text,
                       HOST_FORMAT);
  if (!json_known (j, host_keys, o->strict, o->log, err) || !read_texts (j, a, out, err) ||
      !read_sizes (j, out, err))
    return false;
  link = json_member (j, "link");
  groups = json_member (j, "groups");
  out->has_link = !json_is_absent (&link);
  return (!out->has_link || device_read_link (&link, o, &out->link, err)) &&
         (json_is_absent (&groups) || read_groups (&groups, o, a, out, err));
}

bool host_load (const char *path, const read_options *o, arena *a, gpu_host *out, error *err) {
  bytes text;
  log_file named;
  read_options of_file = reading_of_file (o, path, &named);
  if (!file_read (path, of_file.limit_bytes, &text, err))
    return false;
  json_document *d = json_open (text.data, text.size, err);
  bytes_free (&text);
  json root = d ? json_root (d) : (json){ 0 };
  bool ok = d && host_read (&root, &of_file, a, out, err);
  if (d)
    json_close (d);
  if (!ok)
    error_in_file (err, path);
  return ok;
}

/* The file has them with the part of a network card. */
static void write_rates (json_writer *w, const host_group *g, const int64_t rates[COPY_WAYS]) {
  for (int way = 0; way < COPY_WAYS; way++)
    json_add_int (w, rate_keys[way], rates[way] + g->network[way]);
}

static void write_group (json_writer *w, const gpu_host *h, const host_group *g) {
  json_open_object (w);
  json_add_object (w, "both");
  write_rates (w, g, g->both);
  json_close_object (w);
  json_add_array (w, "cards");
  for (int32_t i = 0; i < h->n_cards; i++)
    if (g->cards >> i & 1)
      json_put_int (w, i);
  json_close_array (w);
  write_rates (w, g, g->one_way);
  json_add_text (w, "kind", host_kinds[g->kind]);
  json_add_text (w, "name", g->name);
  if (g->network[WAY_out] || g->network[WAY_in]) {
    json_add_object (w, "network");
    for (int way = 0; way < COPY_WAYS; way++)
      json_add_int (w, rate_keys[way], g->network[way]);
    json_close_object (w);
  }
  json_close_object (w);
}

void host_write (json_writer *w, const gpu_host *h) {
  json_open_object (w);
  json_add_int (w, "cards", h->n_cards);
  json_add_text (w, "device", h->device);
  json_add_text (w, "format", HOST_FORMAT);
  json_add_array (w, "groups");
  for (int32_t i = 0; i < h->n_groups; i++)
    write_group (w, h, &h->groups[i]);
  json_close_array (w);
  json_add_int (w, "host_bytes", h->host_bytes);
  if (h->has_link)
    device_write_link (w, &h->link);
  json_add_text (w, "name", h->name);
  json_add_int (w, "pinned_bytes", h->pinned_bytes);
  json_add_text (w, "source", h->source);
  json_close_object (w);
}

bool host_store (const gpu_host *h, const char *path, error *err) {
  json_writer w;
  bytes text;
  json_begin (&w, 2);
  host_write (&w, h);
  return json_finish (&w, &text, err) && file_store (path, &text, err);
}
