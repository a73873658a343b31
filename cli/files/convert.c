/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry convert`: a trace, plan or device in another form, the same in meaning. */
#include <string.h>

#include "base/json.h"
#include "cli/inputs/devices.h"
#include "cli/inputs/inputs.h"
#include "trace/cards.h"
#include "trace/scale.h"

static const char *const forms[] = { "plain", "packed", NULL };

typedef enum file_kind { KIND_TRACE, KIND_PLAN, KIND_DEVICE } file_kind;

typedef struct converted {
  file_kind kind;
  bool packed;
  char digest[TRACE_DIGEST]; /* of a trace */
} converted;

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

/* The doubts about the times, behind those that the trace had before. */
static const char *doubt_of (call *c, const trace *t, const char *how) {
  const char *before = t->source.doubt;
  return arena_format (c->arena, &c->err, "%s%s%s", before, *before ? ", " : "", how);
}

/* The times of one card as those of another: --scale with --device. */
static const trace *carry_over (call *c, const trace *t) {
  const char *text = call_text (c, "scale"), *card = card_of_trace (t);
  const char *own = call_text (c, "from");
  bool roofline = text && strcmp (text, "roofline") == 0;
  int64_t ppm = 0;
  device from, to;
  scaled made;
  if (!text)
    return t;
  own = own ? own : card_device_of_trace (t);
  if (!call_text (c, "device"))
    call_usage (c, "--scale: to which card? give --device NAME");
  else if (t->source.kind && strcmp (t->source.kind, "zoo") == 0)
    call_usage (c, "--scale: `ferry zoo` with --device %s makes this trace again",
                call_text (c, "device"));
  else if (roofline && !own)
    call_usage (
        c, "--scale roofline: the trace does not say of which card its times are, or ferry has "
           "no device file for that; give --from NAME or FILE");
  if (c->err.code || !device_named (c, call_text (c, "device"), &to) ||
      (roofline && !device_named (c, own, &from)) ||
      (!roofline && !call_quantity (c, "scale", &ppm)))
    return NULL;
  if (!(roofline ? scale_roofline (t, &from, &to, c->arena, &made, &c->err)
                 : scale_share (t, ppm, c->arena, &made, &c->err)))
    return NULL;
  trace *out = NEW (c->arena, 1, trace, &c->err);
  if (!out)
    return NULL;
  *out = *made.trace;
  out->source.device = "";
  out->source.detail = arena_format (c->arena, &c->err, "%s; scaled (%s) for --device %s",
                                     t->source.detail, text, to.name);
  out->source.made_for = to.name;
  if (t->source.confidence == CONFIDENCE_EXACT)
    out->source.confidence = CONFIDENCE_APPROXIMATE;
  out->source.doubt = doubt_of (
      c, t,
      arena_format (c->arena, &c->err, "times of %d ops scaled from %s, %d of them by a guess",
                    t->n_ops, card ? card : "another card", t->n_ops - made.ops));
  return out->source.detail && out->source.doubt ? out : NULL;
}

static bool write_trace (call *c, const trace *t, bool packed, bytes *out, char *digest) {
  const trace *carried = carry_over (c, t);
  return carried && trace_digest (carried, digest, &c->err) &&
         trace_text (carried, packed ? TRACE_PACKED : TRACE_PLAIN, out, &c->err);
}

static bool read_and_write (call *c, const bytes *in, converted *v, bytes *out) {
  read_options o = call_read_options (c);
  device d;
  json_writer w;
  bool cards = call_given (c, "device") || call_given (c, "from");
  if (v->kind != KIND_TRACE && (call_text (c, "scale") || cards))
    return call_usage (c, "--scale, --device and --from are for traces");
  if (cards && !call_text (c, "scale"))
    return call_usage (c, "--device and --from say between which cards --scale carries times over");
  if (v->kind == KIND_TRACE) {
    trace *t = trace_parse (in->data, in->size, &o, c->arena, &c->err);
    return t && write_trace (c, t, v->packed, out, v->digest);
  }
  if (v->kind == KIND_PLAN) {
    plan *p = plan_parse (in->data, in->size, &o, c->arena, &c->err);
    return p && plan_text (p, v->packed, out, &c->err);
  }
  if (!device_parse (in->data, in->size, &o, c->arena, &d, &c->err))
    return false;
  json_begin (&w, 2);
  device_write (&w, &d);
  return json_finish (&w, out, &c->err);
}

static bool print_json (call *c, const converted *v, int64_t size) {
  static const char *const kinds[] = { "trace", "plan", "device" };
  json_writer w;
  json_begin_object (&w, 1);
  json_add_int (&w, "bytes", size);
  json_add_text (&w, "digest", *v->digest ? v->digest : NULL);
  json_add_text (&w, "form", forms[v->packed]);
  json_add_text (&w, "kind", kinds[v->kind]);
  json_add_text (&w, "output", call_text (c, "output"));
  json_close_object (&w);
  return call_print_json (c, &w);
}

static int run (call *c) {
  int form = 0;
  converted v = { 0 };
  bytes in = { 0 }, out = { 0 };
  const char *path = c->operands[0];
  if (!call_json_beside (c, "output"))
    return call_failed (c);
  bool ok = call_word (c, "form", forms, &form) && file_read (path, 0, &in, &c->err) &&
            find_kind (c, &in, &v.kind);
  v.packed = form == 1;
  ok = ok && read_and_write (c, &in, &v, &out);
  if (!ok && c->err.code != ERR_usage)
    error_in_file (&c->err, path);
  ok = ok && call_write (c, call_text (c, "output"), out.data, out.size) &&
       (!c->json || print_json (c, &v, out.size));
  bytes_free (&in);
  bytes_free (&out);
  return ok ? EXIT_YES : call_failed (c);
}

static const cli_option options[] = {
  { 'f', "form", "plain|packed", "one object a row, or columns, which load faster" },
  OPTION_OUTPUT ("where to; compressed if it ends in .gz or .zst; default: standard output"),
  { 'd', "device", "NAME|FILE", "the card to scale the times to" },
  { 0, "from", "NAME|FILE", "the card that the times were measured on, if the trace does not say" },
  { 0, "scale", "SHARE|roofline",
    "multiply all times, such as by 50% for a card twice as fast, or scale each op that says "
    "what it calculates by the rooflines of the two cards",
    RANGE_SCALE },
  OPTION_STRICT,
  OPTIONS_END,
};

const cli_command command_convert = {
  .name = "convert",
  .says = "write a trace, plan or device in another form",
  .operands = "FILE",
  .least = 1,
  .most = 1,
  .about =
      "Reads a trace, a plan or a device, checks it, and writes it again: plain or packed, "
      "compressed or not. All forms of a trace have one digest.\n"
      "With --scale the times of a trace, taken on one card, become those of another; the trace "
      "says so, and is no longer exact. A plan is for the one or the other.\n",
  .options = options,
  .json = true,
  .run = run,
};
