/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/inputs/hosts.h"

#include <ctype.h>

#include "cli/inputs/beside.h"
#include "cli/inputs/devices.h"
#include "cli/inputs/inputs.h"
#include "solver/ask/ranks.h"

/* Its cards have the link of their device file where the host gives none. */
static bool complete (call *c, gpu_host *h, device *card) {
  const char *given = call_own_text (c, "device");
  if (!device_named (c, given ? given : h->device, card))
    return false;
  if (h->has_link)
    card->link = h->link;
  h->link = card->link;
  return true;
}

static bool load (call *c, const char *name, gpu_host *out) {
  read_options o = call_read_options (c);
  const char *path = data_path (c, "hosts", "host", name);
  if (!path) {
    error why = c->err;
    c->err = (error){ 0 };
    return error_set (&c->err, why.code, "--host: %s", why.text);
  }
  return host_load (path, &o, c->arena, out, &c->err) &&
         (*out->name || (out->name = call_stem (c, path)));
}

bool host_and_card (call *c, const char *name, gpu_host *out, device *card) {
  return load (c, name, out) && complete (c, out, card);
}

bool host_named (call *c, const char *name, gpu_host *out) {
  device card;
  return host_and_card (c, name, out, &card);
}

const char *host_text (const call *c) {
  const char *text = call_text (c, "host");
  bool size = text && isdigit ((unsigned char)*text) && !data_is_file (text);
  return size ? NULL : text;
}

const char *host_asked (const call *c) {
  return call_has_option (c, "ranks") ? host_text (c) : NULL;
}

bool host_is_asked (const call *c) {
  return host_asked (c) || call_own_text (c, "ranks");
}

bool host_open (call *c, gpu_host *out, device *card) {
  const char *name = host_asked (c);
  if (!name)
    return call_usage (c,
                       "--ranks needs the host whose cards they run on: give --host NAME; `ferry "
                       "hosts` lists the names");
  return host_and_card (c, name, out, card);
}

bool host_has (call *c, const gpu_host *h, int64_t ranks) {
  return ranks <= h->n_cards || call_usage (c, "--ranks: %s has %d cards", h->name, h->n_cards);
}

bool host_ranks (call *c, gpu_host *out, device *card, int32_t *ranks) {
  int64_t asked = 0;
  if (!host_open (c, out, card) || !call_quantity (c, "ranks", &asked))
    return false;
  *ranks = asked ? (int32_t)asked : out->n_cards;
  return host_has (c, out, *ranks);
}

bool host_ranks_of (call *c, int32_t n_traces, gpu_host *out, device *card, int32_t *ranks) {
  if (!host_ranks (c, out, card, ranks))
    return false;
  if (!call_text (c, "ranks") && n_traces > 1)
    *ranks = n_traces;
  if (n_traces > *ranks)
    return call_usage (c, "--ranks: %d traces need as many ranks, not %d", n_traces, *ranks);
  return host_has (c, out, *ranks);
}

bool host_card (call *c, device *out) {
  gpu_host h;
  device card;
  ranks_question r = { .host = &h };
  char to[UNITS_TEXT], from[UNITS_TEXT];
  if (!host_ranks (c, &h, &card, &r.ranks))
    return false;
  *out = ranks_card (&r, &card);
  call_note (
      c, "planned for one of %d ranks on %s: %s out and %s in are left while all copy both ways",
      r.ranks, h.name, units_rate (to, out->link.d2h_bytes_per_s),
      units_rate (from, out->link.h2d_bytes_per_s));
  return true;
}
