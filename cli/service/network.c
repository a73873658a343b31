/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/service/network.h"

#include "base/json.h"
#include "cli/inputs/devices.h"
#include "trace/zoo/zoo.h"

static bool get_text (const json *root, const char *key, const char **out, error *err) {
  json one;
  return json_need (root, key, &one, err) && json_get_text (&one, out, err);
}

static bool get_size (const json *root, const char *key, int64_t most, int64_t *out, error *err) {
  return json_read_int (root, key, 1, most, out, err);
}

/* A device by its name alone: an upload names no file of the server. */
static bool get_device (call *c, const json *root, device *out) {
  const char *name = "";
  if (!get_text (root, "device", &name, &c->err))
    return false;
  if (device_is_file (name))
    return error_at (&c->err, ERR_input, "/device", "`%s` is no name of a device", name);
  return device_named (c, name, out);
}

static bool read_request (call *c, const json *root, zoo_request *r, device *d) {
  static const char *const keys[] = { "batch",     "classes", "depth_divisor", "device",
                                      "dtype",     "format",  "image",         "network",
                                      "optimizer", "seq",     "width_divisor", NULL };
  error *err = &c->err;
  int dtype = DTYPE_FP32, optimizer = ZOO_MOMENTUM;
  *r = (zoo_request){ .device = d };
  bool ok = json_known (root, keys, true, NULL, err) && get_text (root, "network", &r->name, err) &&
            get_size (root, "batch", ZOO_MOST_BATCH, &r->batch, err) &&
            get_size (root, "classes", ZOO_MOST, &r->classes, err) &&
            get_size (root, "depth_divisor", ZOO_MOST, &r->depth_divisor, err) &&
            get_size (root, "image", ZOO_MOST, &r->image, err) &&
            get_size (root, "seq", ZOO_MOST, &r->seq, err) &&
            get_size (root, "width_divisor", ZOO_MOST, &r->width_divisor, err) &&
            json_read_word (root, "dtype", compute_dtype_names, &dtype, err) &&
            json_read_word (root, "optimizer", zoo_optimizer_names, &optimizer, err) &&
            get_device (c, root, d);
  r->dtype = (compute_dtype)dtype;
  r->optimizer = (zoo_optimizer)optimizer;
  if (ok && !r->batch)
    ok = error_at (err, ERR_input, "/batch", "which batch?");
  return ok;
}

trace *network_read (call *c, const char *text, int64_t size) {
  zoo_request r;
  device d;
  json_document *document = json_open (text, size, &c->err);
  json root = document ? json_root (document) : (json){ 0 };
  trace *made = document && json_want_object (&root, &c->err) && read_request (c, &root, &r, &d)
                    ? zoo_trace (&r, c->arena, &c->err)
                    : NULL;
  json_close (document);
  return made;
}
