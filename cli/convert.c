/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry convert`: a trace, plan or device in another form, the same in meaning. */
#include <string.h>

#include "base/json.h"
#include "cli/inputs/inputs.h"
#include "trace/device.h"

static const char *const forms[] = { "plain", "packed", NULL };

typedef enum file_kind { KIND_TRACE, KIND_PLAN, KIND_DEVICE } file_kind;

/* The format that the file names, since plans and devices are converted by the same command. */
static bool find_kind (call *c, const bytes *text, file_kind *kind) {
  static const char *const formats[] = { TRACE_FORMAT, PLAN_FORMAT, DEVICE_FORMAT, NULL };
  json_document *d = json_open (text->data, text->size, &c->err);
  if (!d)
    return false;
  json root = json_root (d), format;
  int which = -1;
  bool ok = json_need (&root, "format", &format, &c->err) &&
            json_get_word (&format, formats, &which, &c->err);
  *kind = (file_kind)which;
  json_close (d);
  return ok;
}

static bool read_and_write (call *c, const bytes *in, file_kind kind, bool packed, bytes *out) {
  read_options o = call_read_options (c);
  device d;
  json_writer w;
  if (kind == KIND_TRACE) {
    trace *t = trace_parse (in->data, in->size, &o, c->arena, &c->err);
    return t && trace_text (t, packed ? TRACE_PACKED : TRACE_PLAIN, out, &c->err);
  }
  if (kind == KIND_PLAN) {
    plan *p = plan_parse (in->data, in->size, &o, c->arena, &c->err);
    return p && plan_text (p, packed, out, &c->err);
  }
  if (!device_parse (in->data, in->size, &o, c->arena, &d, &c->err))
    return false;
  json_begin (&w, 2);
  device_write (&w, &d);
  return json_finish (&w, out, &c->err);
}

static int run (call *c) {
  int form = 0;
  file_kind kind;
  bytes in = { 0 }, out = { 0 };
  const char *path = c->operands[0];
  bool ok = call_word (c, "form", forms, &form) && file_read (path, 0, &in, &c->err) &&
            find_kind (c, &in, &kind) && read_and_write (c, &in, kind, form == 1, &out);
  if (!ok)
    error_in_file (&c->err, path);
  ok = ok && call_write (c, call_text (c, "output"), out.data, out.size);
  bytes_free (&in);
  bytes_free (&out);
  return ok ? EXIT_YES : call_failed (c);
}

static const cli_option options[] = {
  { 'f', "form", "plain|packed", "one object a row, or columns, which load faster" },
  OPTION_OUTPUT ("where to; compressed if it ends in .gz or .zst; without it, standard output"),
  OPTION_STRICT,
  OPTIONS_END,
};

const cli_command command_convert = {
  .name = "convert",
  .says = "write a trace, plan or device in another form",
  .operands = "FILE",
  .least = 1,
  .most = 1,
  .about = "Reads a trace, a plan or a device, checks it, and writes it again: plain or packed, "
           "compressed or not. All forms of a trace have one digest.\n",
  .options = options,
  .run = run,
};
