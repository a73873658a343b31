/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/device.h"

#include <assert.h>
#include <string.h>

static const char *const device_keys[] = {
  "format", "name",       "memory_bytes", "reserved_bytes", "granule_bytes",
  "link",   "host_bytes", "section_ns",   "share_ppm",      "roofline",
  NULL
};

typedef struct number {
  const char *key;
  size_t offset;
  int64_t low, high;
  bool needed;
  int64_t absent;
} number;

static const number device_numbers[] = {
  { "memory_bytes", offsetof (device, memory_bytes), 0, MOST_BYTES, true, 0 },
  { "reserved_bytes", offsetof (device, reserved_bytes), 0, MOST_BYTES, false, 0 },
  { "granule_bytes", offsetof (device, granule_bytes), 512, MOST_GRANULE_BYTES, true, 0 },
  { "host_bytes", offsetof (device, host_bytes), 0, MOST_BYTES, true, 0 },
  { "section_ns", offsetof (device, section_ns), 0, MOST_NS, false, 0 },
  { "share_ppm", offsetof (device, share_ppm), 1, 1000000, false, 1000000 },
  { NULL, 0, 0, 0, false, 0 },
};

static const number link_numbers[] = {
  { "d2h_bytes_per_s", offsetof (device_link, d2h_bytes_per_s), DEVICE_LEAST_RATE, MOST_BYTES, true,
    0 },
  { "h2d_bytes_per_s", offsetof (device_link, h2d_bytes_per_s), DEVICE_LEAST_RATE, MOST_BYTES, true,
    0 },
  { "both_bytes_per_s", offsetof (device_link, both_bytes_per_s), DEVICE_LEAST_RATE, 2 * MOST_BYTES,
    false, 0 },
  { "copy_ns", offsetof (device_link, copy_ns), 0, MOST_NS, false, 0 },
  { NULL, 0, 0, 0, false, 0 },
};

static const number roofline_numbers[] = {
  { "bf16_flops", offsetof (device_roofline, bf16_flops), 0, MOST_BYTES, false, 0 },
  { "efficiency_ppm", offsetof (device_roofline, efficiency_ppm), 1, 1000000, false, 1000000 },
  { "fp16_flops", offsetof (device_roofline, fp16_flops), 0, MOST_BYTES, false, 0 },
  { "fp32_flops", offsetof (device_roofline, fp32_flops), 0, MOST_BYTES, false, 0 },
  { "memory_bytes_per_s", offsetof (device_roofline, memory_bytes_per_s), 0, MOST_BYTES, false, 0 },
  { "op_ns", offsetof (device_roofline, op_ns), 0, MOST_NS, false, 0 },
  { "tf32_flops", offsetof (device_roofline, tf32_flops), 0, MOST_BYTES, false, 0 },
  { NULL, 0, 0, 0, false, 0 },
};

static bool read_numbers (const json *j, const number *n, void *out, error *err) {
  for (; n->key; n++) {
    int64_t *to = (int64_t *)((char *)out + n->offset);
    json at = json_member (j, n->key);
    *to = n->absent;
    if (n->needed && !json_need (j, n->key, &at, err))
      return false;
    if (!json_get_int (&at, n->low, n->high, to, err))
      return false;
  }
  return true;
}

static bool known_numbers (const json *j, const number *n, const read_options *o, error *err) {
  const char *keys[16] = { NULL };
  for (int i = 0; n[i].key; i++)
    keys[i] = n[i].key;
  return json_known (j, keys, o->strict, o->log, err);
}

bool device_read_link (const json *j, const read_options *o, device_link *out, error *err) {
  if (!json_want_object (j, err) || !known_numbers (j, link_numbers, o, err) ||
      !read_numbers (j, link_numbers, out, err))
    return false;
  if (!out->both_bytes_per_s)
    out->both_bytes_per_s = out->d2h_bytes_per_s + out->h2d_bytes_per_s;
  return true;
}

bool device_validate (const device *d, error *err) {
  if (d->granule_bytes % 512)
    return error_at (err, ERR_input, "/granule_bytes", "%lld is not a multiple of 512",
                     (long long)d->granule_bytes);
  if (d->reserved_bytes > d->memory_bytes)
    return error_at (err, ERR_input, "/reserved_bytes",
                     "%lld is more than the device's memory, %lld", (long long)d->reserved_bytes,
                     (long long)d->memory_bytes);
  return true;
}

bool device_read (const json *j, const read_options *o, arena *a, device *out, error *err) {
  static const read_options plain = { 0 };
  o = o ? o : &plain;
  *out = (device){ .name = "" };
  json format = json_member (j, "format"), name = json_member (j, "name"), link;
  const char *text = DEVICE_FORMAT;
  if (!json_want_object (j, err) || !json_get_text (&format, &text, err))
    return false;
  if (strcmp (text, DEVICE_FORMAT) != 0)
    return json_error (&format, err, "`%.40s` is not a device that this version reads (%s)", text,
                       DEVICE_FORMAT);
  text = "";
  if (!json_known (j, device_keys, o->strict, o->log, err) || !json_get_text (&name, &text, err) ||
      !(out->name = arena_string (a, text, err)) || !read_numbers (j, device_numbers, out, err) ||
      !json_need (j, "link", &link, err) || !device_read_link (&link, o, &out->link, err))
    return false;
  json roofline = json_member (j, "roofline");
  out->has_roofline = !json_is_absent (&roofline);
  out->roofline.efficiency_ppm = 1000000;
  if (out->has_roofline &&
      (!json_want_object (&roofline, err) || !known_numbers (&roofline, roofline_numbers, o, err) ||
       !read_numbers (&roofline, roofline_numbers, &out->roofline, err)))
    return false;
  return device_validate (out, err);
}

bool device_parse (const char *text, int64_t size, const read_options *o, arena *a, device *out,
                   error *err) {
  assert (size >= 0 && (text || size == 0));
  json_document *d = json_open (text, size, err);
  if (!d)
    return false;
  json root = json_root (d), format;
  bool ok = json_need (&root, "format", &format, err) && device_read (&root, o, a, out, err);
  json_close (d);
  return ok;
}

bool device_load (const char *path, const read_options *o, arena *a, device *out, error *err) {
  bytes text;
  log_file named;
  read_options of_file = reading_of_file (o, path, &named);
  if (!file_read (path, of_file.limit_bytes, &text, err))
    return false;
  bool ok = device_parse (text.data, text.size, &of_file, a, out, err);
  bytes_free (&text);
  if (!ok)
    error_in_file (err, path);
  return ok;
}

void device_write_link (json_writer *w, const device_link *l) {
  json_add_object (w, "link");
  json_add_int (w, "both_bytes_per_s", l->both_bytes_per_s);
  json_add_int (w, "copy_ns", l->copy_ns);
  json_add_int (w, "d2h_bytes_per_s", l->d2h_bytes_per_s);
  json_add_int (w, "h2d_bytes_per_s", l->h2d_bytes_per_s);
  json_close_object (w);
}

void device_write (json_writer *w, const device *d) {
  json_open_object (w);
  json_add_text (w, "format", DEVICE_FORMAT);
  json_add_int (w, "granule_bytes", d->granule_bytes);
  json_add_int (w, "host_bytes", d->host_bytes);
  device_write_link (w, &d->link);
  json_add_int (w, "memory_bytes", d->memory_bytes);
  json_add_text (w, "name", d->name);
  json_add_int (w, "reserved_bytes", d->reserved_bytes);
  if (d->has_roofline) {
    json_add_object (w, "roofline");
    for (const number *n = roofline_numbers; n->key; n++) {
      int64_t value = *(const int64_t *)((const char *)&d->roofline + n->offset);
      if (value != n->absent)
        json_add_int (w, n->key, value);
    }
    json_close_object (w);
  }
  json_add_int (w, "section_ns", d->section_ns);
  json_add_int (w, "share_ppm", d->share_ppm);
  json_close_object (w);
}

bool device_store (const device *d, const char *path, error *err) {
  json_writer w;
  bytes text;
  json_begin (&w, 2);
  device_write (&w, d);
  return json_finish (&w, &text, err) && file_store (path, &text, err);
}

/* min (own, max (both / 2, both - other)), scaled by the share and rounded down once: the exact
   minimum may be half a byte, so everything is counted in halves. */
static int64_t rate_both (int64_t own, int64_t other, int64_t both, int64_t share_ppm) {
  __int128 half = (__int128)both, rest = 2 * ((__int128)both - other);
  __int128 most = half > rest ? half : rest;
  __int128 twice = most < 2 * (__int128)own ? most : 2 * (__int128)own;
  __int128 rate = twice * share_ppm / 2000000;
  return rate < 1 ? 1 : (int64_t)rate;
}

link_rates device_rates (const device_link *link, int64_t share_ppm) {
  assert (share_ppm > 0 && share_ppm <= 1000000);
  int64_t out = link->d2h_bytes_per_s, in = link->h2d_bytes_per_s, both = link->both_bytes_per_s;
  link_rates r = { .out_alone = (int64_t)((__int128)out * share_ppm / 1000000),
                   .in_alone = (int64_t)((__int128)in * share_ppm / 1000000),
                   .out_both = rate_both (out, in, both, share_ppm),
                   .in_both = rate_both (in, out, both, share_ppm) };
  r.out_alone = r.out_alone < 1 ? 1 : r.out_alone;
  r.in_alone = r.in_alone < 1 ? 1 : r.in_alone;
  return r;
}
