/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/zoo/request.h"

#include <string.h>

const char *zoo_request_text (const zoo_request *r, arena *a, error *err) {
  json_writer w;
  bytes text = { 0 };
  json_begin_object (&w, 0);
  json_add_int (&w, "batch", r->batch);
  json_add_int (&w, "classes", r->classes);
  json_add_int (&w, "depth_divisor", r->depth_divisor);
  json_add_text (&w, "dtype", compute_dtype_names[r->dtype]);
  json_add_bool (&w, "explicit_attention", r->explicit_attention);
  if (r->ranks > 1)
    json_add_int (&w, "fabric_bytes_per_s", r->fabric_bytes_per_s);
  json_add_int (&w, "image", r->image);
  json_add_text (&w, "network", r->name);
  json_add_text (&w, "optimizer", zoo_optimizer_names[r->optimizer]);
  if (r->ranks > 1)
    json_add_int (&w, "ranks", r->ranks);
  json_add_int (&w, "seq", r->seq);
  if (r->ranks > 1)
    json_add_text (&w, "shard", zoo_shard_names[r->shard]);
  json_add_int (&w, "width_divisor", r->width_divisor);
  json_add_bool (&w, "workspaces", r->workspaces);
  json_close_object (&w);
  const char *out = json_finish (&w, &text, err)
                        ? arena_string_n (a, (const char *)text.data, (size_t)text.size, err)
                        : NULL;
  bytes_free (&text);
  return out;
}

static bool get_int (const json *object, const char *key, int64_t most, int64_t *out, error *err) {
  return json_read_int (object, key, 0, most, out, err);
}

static bool read_request (const json *at, arena *a, zoo_request *out, error *err) {
  json network, workspaces = json_member (at, "workspaces");
  const char *name = NULL;
  int dtype = DTYPE_FP32, optimizer = ZOO_MOMENTUM, shard = ZOO_SHARD_none;
  if (!json_want_object (at, err) || !json_need (at, "network", &network, err) ||
      !json_get_text (&network, &name, err) || !get_int (at, "batch", ZOO_MOST, &out->batch, err) ||
      !get_int (at, "classes", ZOO_MOST, &out->classes, err) ||
      !get_int (at, "depth_divisor", ZOO_MOST, &out->depth_divisor, err) ||
      !get_int (at, "image", ZOO_MOST, &out->image, err) ||
      !get_int (at, "seq", ZOO_MOST, &out->seq, err) ||
      !get_int (at, "width_divisor", ZOO_MOST, &out->width_divisor, err) ||
      !json_read_word (at, "dtype", compute_dtype_names, &dtype, err) ||
      !json_read_word (at, "optimizer", zoo_optimizer_names, &optimizer, err) ||
      !get_int (at, "ranks", ZOO_MOST, &out->ranks, err) ||
      !get_int (at, "fabric_bytes_per_s", MOST_BYTES, &out->fabric_bytes_per_s, err) ||
      !json_read_word (at, "shard", zoo_shard_names, &shard, err) ||
      !json_read_bool (at, "explicit_attention", &out->explicit_attention, err) ||
      !json_get_bool (&workspaces, &out->workspaces, err))
    return false;
  out->name = arena_string (a, name, err);
  out->dtype = (compute_dtype)dtype;
  out->optimizer = (zoo_optimizer)optimizer;
  out->shard = (zoo_shard)shard;
  return out->name;
}

bool zoo_request_of (const trace *t, arena *a, zoo_request *out, error *err) {
  *out = (zoo_request){ 0 };
  if (!t->source.zoo)
    return error_at (err, ERR_input, "/source/zoo",
                     "the trace does not say how `ferry zoo` made it: make it again");
  json_document *d = json_open (t->source.zoo, (int64_t)strlen (t->source.zoo), err);
  if (!d)
    return false;
  json root = json_root (d);
  bool ok = read_request (&root, a, out, err);
  json_close (d);
  return ok;
}
