/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Cards of a request: what its command would refuse at once, said before it is queued. */
#include <stdio.h>
#include <string.h>

#include "base/order.h"
#include "base/units.h"
#include "server/api/cards.h"
#include "solver/ask/ask.h"
#include "trace/device.h"

typedef struct looking {
  service *s;
  request *q;
  asked *a;
  const json *root;             /* of the canonical request */
  const char *own[MOST_FAULTS]; /* the cards of its traces; NULL: none is known */
  int64_t peak_bytes;           /* of the first trace */
  json_document *known, *hosts; /* all of them; or NULL */
} looking;

static void add (looking *l, const char *pointer, const char *detail) {
  if (l->a->n_faults == MOST_FAULTS)
    return;
  fault *f = &l->a->faults[l->a->n_faults++];
  snprintf (f->pointer, sizeof f->pointer, "/%s", pointer);
  snprintf (f->detail, sizeof f->detail, "%.159s", detail);
}

static bool read_card (looking *l, const json *j, device *out) {
  static const read_options strict = { .strict = true };
  error ignored = { 0 };
  return device_read (j, &strict, l->q->arena, out, &ignored);
}

/* The file of that name in an array of files. */
static bool find_file (looking *l, json_document **known, const char *all, const char *name,
                       json *out) {
  error ignored = { 0 };
  if (!*known && all)
    *known = json_open (all, (int64_t)strlen (all), &ignored);
  json list = *known ? json_root (*known) : (json){ 0 };
  for (size_t i = 0; i < json_count (&list); i++) {
    json e = json_element (&list, i), n = json_member (&e, "name");
    const char *its = request_text (l->q, &n);
    if (its && strcmp (its, name) == 0) {
      *out = (json){ .value = e.value };
      return true;
    }
  }
  return false;
}

/* A card by its name. */
static bool find_card (looking *l, const char *name, device *out) {
  json found;
  return find_file (l, &l->known, l->s->options.device_files, name, &found) &&
         read_card (l, &found, out);
}

/* The file of the host: that of the request, or one by its name. */
static bool find_host (looking *l, json *out) {
  json host = json_member (l->root, "host");
  const char *name = request_text (l->q, &host);
  *out = host;
  return json_is_object (&host) ||
         (name && find_file (l, &l->hosts, l->s->options.host_files, name, out));
}

/* The job's card: that of the request or its host, or the trace's own. */
static bool card_of (looking *l, device *out) {
  json named = json_member (l->root, "device"), host;
  if (json_is_object (&named))
    return read_card (l, &named, out);
  if (json_is_absent (&named) && find_host (l, &host))
    named = json_member (&host, "device");
  const char *name = request_text (l->q, &named);
  name = name ? name : l->own[0];
  return name && find_card (l, name, out);
}

static void check_budget (looking *l, const char *key, const device *d, int64_t bytes) {
  error err = { 0 };
  if (!ask_room (d, bytes, &err))
    add (l, key, err.text);
}

/* A share is one of at least the peak. */
static void check_share (looking *l, const device *d) {
  int64_t ppm = asked_int (l->root, "budget_ppm", 0);
  int64_t least = ppm ? units_scale (l->peak_bytes, ppm, 1000000) : 0;
  if (least)
    check_budget (l, "budget_ppm", d, least);
}

/* Budgets that the card does not have are left out of several: one must stay. */
static void check_budgets (looking *l, const device *d) {
  json list = json_member (l->root, "budgets");
  int64_t bytes = 0;
  error err = { 0 };
  size_t n = json_count (&list);
  for (size_t i = 0; i < n; i++) {
    json e = json_element (&list, i);
    err = (error){ 0 };
    if (!json_is_int (&e) || !json_get_int (&e, 0, MOST_INT, &bytes, &err) ||
        ask_room (d, bytes, &err))
      return;
  }
  if (n)
    add (l, "budgets", err.text);
}

static void check_one (looking *l) {
  device d;
  json named = json_member (l->root, "device");
  if (card_of (l, &d)) {
    if (asked_int (l->root, "budget_bytes", 0))
      check_budget (l, "budget_bytes", &d, asked_int (l->root, "budget_bytes", 0));
    check_share (l, &d);
    check_budgets (l, &d);
  } else if (json_is_absent (&named))
    add (l, "device", "the trace does not say which device it was made for: name one");
}

static void check_pack (looking *l) {
  json list = json_member (l->root, "devices");
  int64_t bytes = asked_int (l->root, "memory_bytes", 0);
  int before = l->a->n_faults;
  device d;
  if (!json_count (&list) && !l->own[0])
    add (l, "devices", "the first trace does not say which device it was made for: name one");
  if (!json_count (&list) && l->own[0] && bytes && find_card (l, l->own[0], &d))
    check_budget (l, "memory_bytes", &d, bytes);
  for (size_t i = 0; bytes && l->a->n_faults == before && i < json_count (&list); i++) {
    json e = json_element (&list, i);
    const char *name = request_text (l->q, &e);
    if (name && find_card (l, name, &d))
      check_budget (l, "memory_bytes", &d, bytes);
  }
}

/* The most ranks that the request has: as it says, or of its stages and jobs. */
static int64_t most_ranks (const looking *l, const char **where) {
  json list = json_member (l->root, "ranks"), stages = json_member (l->root, "stages"),
       jobs = json_member (l->root, "jobs");
  int64_t most = asked_int (l->root, "ranks", 0), ranks = 0;
  error ignored = { 0 };
  *where = "ranks";
  for (size_t i = 0; i < json_count (&list); i++) {
    json e = json_element (&list, i);
    if (json_get_int (&e, 1, MOST_INT, &ranks, &ignored))
      most = max_of (most, ranks);
  }
  int64_t traces =
      json_is_absent (&stages) ? (int64_t)json_count (&jobs) : 1 + (int64_t)json_count (&stages);
  if (most || !traces)
    return most;
  *where = json_is_absent (&stages) ? "jobs" : "stages";
  return traces;
}

/* A host, and no more ranks than it has cards. */
static void check_host (looking *l) {
  int64_t cards = 0;
  error wrong = { 0 };
  const char *where;
  json found;
  if (!find_host (l, &found)) {
    add (l, "host", "there is no such host; `ferry hosts` lists them");
    return;
  }
  json has = json_member (&found, "cards"), name = json_member (&found, "name");
  if (json_get_int (&has, 1, MOST_INT, &cards, &wrong) && most_ranks (l, &where) > cards) {
    error_set (&wrong, ERR_input, "%s has %lld cards", request_text (l->q, &name),
               (long long)cards);
    add (l, where, wrong.text);
  }
}

static void check_grid (looking *l) {
  json list = json_member (l->root, "devices"), from = json_member (l->root, "from");
  if (!json_count (&list) && json_is_absent (&from) && !l->own[0])
    add (l, "devices", "the trace does not say which device it was made for: name one");
}

/* False: it was uploaded to a version that did not note its card, and nothing is known. */
static bool read_info (looking *l, int i, const char *info) {
  error ignored = { 0 };
  json_document *d = json_open (info, (int64_t)strlen (info), &ignored);
  json root = d ? json_root (d) : (json){ 0 };
  json card = json_member (&root, "device");
  bool known = card.value; /* null is a word too */
  l->own[i] = known ? request_text (l->q, &card) : NULL;
  if (d && i == 0 && !json_read_int (&root, "peak_bytes", 0, MOST_INT, &l->peak_bytes, &ignored))
    l->peak_bytes = 0;
  json_close (d);
  return known;
}

static void check_all (looking *l, const job_kind *k) {
  bool grid = strcmp (k->name, "what-if") == 0;
  json host = json_member (l->root, "host");
  bool ranks = !json_is_absent (&host);
  if (ranks)
    check_host (l);
  if (l->a->n_faults)
    return;
  if (!ranks && k->operand == OPERAND_JOBS)
    check_pack (l);
  else if (!ranks && grid)
    check_grid (l);
  else if (!grid && k->operand == OPERAND_TRACE)
    check_one (l);
}

void cards_check (service *s, request *q, const job_kind *k, asked *a, const char *const *infos) {
  error ignored = { 0 };
  looking l = { .s = s, .q = q, .a = a };
  for (int i = 0; i < a->n_traces; i++)
    if (!read_info (&l, i, infos[i]))
      return;
  json_document *d = json_open (a->text, (int64_t)strlen (a->text), &ignored);
  json root = d ? json_root (d) : (json){ 0 };
  l.root = &root;
  if (d)
    check_all (&l, k);
  json_close (d);
  json_close (l.known);
  json_close (l.hosts);
}
