/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The two calls of a Kubernetes scheduler extender.  Newer schedulers write the outer names in
   camel case, older ones in lower case: both are read, camel case is written.  Where anything is in
   doubt all nodes pass: an answer that fails would hold the pod up. */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "server/api/advice.h"
#include "server/api/api.h"
#include "server/api/pods.h"
#include "server/api/routes.h"

#define OPERATOR_MEMORY "nvidia.com/gpu.memory" /* labels of the GPU operator: MiB of a card */
#define OPERATOR_CARDS "nvidia.com/gpu.count"
enum { MOST_NODES = 5000, BEST_SCORE = 10, MOST_CARDS = 64, MOST_UID = 253 };

typedef struct node {
  const char *name, *memory; /* as its label has it, or NULL */
  const char *mib, *cards;   /* the same and how many, by the labels of the GPU operator */
  const char *raw;           /* the whole object, where those were sent */
} node;

typedef struct asked_nodes {
  node *at;
  int n;
  bool whole;              /* objects were sent, and are sent back */
  const char *fingerprint; /* NULL: nothing can be known of the pod */
  int64_t slowdown_ppm;
  const char *uid;    /* of the pod; "": it has none */
  placed_row *placed; /* pods that hold memory already, by node */
  int n_placed;
  int odd;     /* values that were not understood; the log names the first ones */
  bool looked; /* for its advice, which is the same on all nodes but for the card */
  advice known;
  json_document *inventory; /* GPU memory by name: { "node": bytes, ... }; or NULL */
} asked_nodes;

/* In either spelling. */
static json outer (const json *object, const char *camel, const char *lower) {
  json j = json_member (object, camel);
  return json_is_absent (&j) ? json_member (object, lower) : j;
}

/* A value that is not understood is not known, and the log says so. */
static void complain (service *s, const request *q, asked_nodes *all, const char *of,
                      const char *name, const char *value) {
  enum { MOST_COMPLAINTS = 3, MOST_SHOWN = 100 };
  if (strlen (value) > MOST_SHOWN)
    value = "(a long text)";
  if (all->odd++ < MOST_COMPLAINTS)
    service_log (s, "warn", "a value is not understood", "key", name, "of", of, "request_id", q->id,
                 "value", value, NULL);
}

static void read_pod (service *s, request *q, const json *root, asked_nodes *out) {
  json pod = outer (root, "Pod", "pod"), meta = outer (&pod, "metadata", "Metadata");
  json notes = json_member (&meta, "annotations");
  json print = json_member (&notes, FINGERPRINT), ppm = json_member (&notes, SLOWDOWN);
  json uid = json_member (&meta, "uid");
  const char *patience = request_text (q, &ppm);
  out->uid = request_text (q, &uid);
  out->uid = out->uid && strlen (out->uid) <= MOST_UID ? out->uid : "";
  out->fingerprint = request_text (q, &print);
  out->slowdown_ppm = USUAL_SLOWDOWN_PPM;
  if (out->fingerprint && !advice_is_name (q, out->fingerprint)) {
    complain (s, q, out, "the pod", FINGERPRINT, out->fingerprint);
    out->fingerprint = NULL;
  }
  if (patience && !text_to_int (patience, MOST_SLOWDOWN_PPM, &out->slowdown_ppm)) {
    complain (s, q, out, "the pod", SLOWDOWN, patience);
    out->fingerprint = NULL;
  }
}

static void add_object (request *q, const json *e, asked_nodes *out) {
  error ignored = { 0 };
  json meta = json_member (e, "metadata"), labels = json_member (&meta, "labels");
  json name = json_member (&meta, "name"), memory = json_member (&labels, GPU_MEMORY);
  json mib = json_member (&labels, OPERATOR_MEMORY), cards = json_member (&labels, OPERATOR_CARDS);
  node n = { .name = request_text (q, &name),
             .memory = request_text (q, &memory),
             .mib = request_text (q, &mib),
             .cards = request_text (q, &cards),
             .raw = json_canonical (e, true, q->arena, &ignored) };
  if (n.name && *n.name && n.raw)
    out->at[out->n++] = n;
}

static json_document *open_inventory (service *s) {
  bytes text = { 0 };
  error err = { 0 };
  json_document *d = NULL;
  if (s->options.inventory && file_read (s->options.inventory, INVENTORY_BYTES, &text, &err))
    d = json_open (text.data, text.size, &err);
  if (err.code)
    service_log (s, "error", err.text, "file", s->options.inventory, NULL);
  bytes_free (&text);
  return d;
}

static bool read_nodes (service *s, request *q, const json *root, asked_nodes *out) {
  error ignored = { 0 };
  json names = outer (root, "NodeNames", "nodenames"), nodes = outer (root, "Nodes", "nodes");
  json items = outer (&nodes, "items", "Items");
  size_t n = json_count (&names) + json_count (&items);
  *out = (asked_nodes){ 0 };
  if (n > MOST_NODES || !(out->at = NEW (q->arena, (int64_t)n + 1, node, &ignored)))
    return false;
  out->whole = json_count (&items) > 0;
  for (size_t i = 0; i < json_count (&names) && !out->whole; i++) {
    json e = json_element (&names, i);
    const char *name = request_text (q, &e);
    if (name && *name)
      out->at[out->n++] = (node){ .name = name };
  }
  for (size_t i = 0; i < json_count (&items); i++) {
    json e = json_element (&items, i);
    add_object (q, &e, out);
  }
  read_pod (s, q, root, out);
  out->inventory = open_inventory (s);
  return true;
}

/* 0: nobody has said, or not so that it is understood. */
static int64_t memory_of (service *s, request *q, asked_nodes *all, const node *n) {
  error wrong = { 0 };
  int64_t has = 0;
  if (n->memory && !k8s_quantity (q, n->memory, &has)) {
    complain (s, q, all, n->name, GPU_MEMORY, n->memory);
    return 0;
  }
  if (n->memory)
    return has;
  if (n->mib && text_to_int (n->mib, MOST_INT >> 20, &has))
    return has << 20;
  if (n->mib)
    complain (s, q, all, n->name, OPERATOR_MEMORY, n->mib);
  if (!all->inventory)
    return 0;
  json root = json_root (all->inventory), one = json_member (&root, n->name);
  const char *text = request_text (q, &one);
  if (text ? k8s_quantity (q, text, &has) : json_get_int (&one, 0, MOST_INT, &has, &wrong))
    return has;
  complain (s, q, all, n->name, "--inventory", text ? text : wrong.text);
  return 0;
}

typedef struct verdict {
  bool fits;
  const char *reason;
  int score;
} verdict;

static int by_node (const void *name, const void *row) {
  return strcmp (name, ((const placed_row *)row)->node);
}

/* Free of the card that has most left: each pod took the first card of the node that had room. */
static int64_t free_of (const asked_nodes *all, const node *n, int64_t has) {
  int64_t used[MOST_CARDS] = { 0 }, cards = 1, least;
  const placed_row *end = all->placed + all->n_placed;
  const placed_row *at = all->n_placed ? bsearch (n->name, all->placed, (size_t)all->n_placed,
                                                  sizeof *all->placed, by_node)
                                       : NULL;
  if (!at)
    return has;
  if (n->cards && (!text_to_int (n->cards, MOST_CARDS, &cards) || !cards))
    cards = 1;
  while (at > all->placed && strcmp (at[-1].node, n->name) == 0)
    at--;
  for (; at < end && strcmp (at->node, n->name) == 0; at++) {
    int64_t to = 0;
    while (to < cards && used[to] + at->bytes > has)
      to++;
    used[to < cards ? to : 0] += at->bytes;
  }
  least = used[0];
  for (int64_t i = 1; i < cards; i++)
    least = min_of (least, used[i]);
  return max_of (0, has - least);
}

/* A pod that is asked about may be bound next: what it then holds is known by its uid. */
static void expect (service *s, request *q, asked_nodes *all) {
  error err = { 0 };
  int64_t bytes = advice_card_bytes (&all->known);
  if (!advice_sees_all (q))
    return;
  if (!store_list_placed (s->store, all->uid, q->arena, &all->placed, &all->n_placed, &err) ||
      (*all->uid && bytes && !store_expect (s->store, all->uid, bytes, &err)))
    service_log (s, "error", err.text, "request_id", q->id, NULL);
}

static void look (service *s, request *q, asked_nodes *all) {
  error err = { 0 };
  advice a;
  all->looked = true;
  if (!advice_find (s, q, all->fingerprint, all->slowdown_ppm, &a, &err))
    service_log (s, "error", err.text, "request_id", q->id, NULL);
  else if (a.known) {
    api_saw (s, a.job);
    all->known = a;
    expect (s, q, all);
  }
}

/* Nothing known of the pod or the node: it passes. */
static verdict judge (service *s, request *q, asked_nodes *all, const node *n) {
  error err = { 0 };
  int64_t has = all->fingerprint ? memory_of (s, q, all, n) : 0;
  verdict v = { .fits = true };
  if (has && !all->looked)
    look (s, q, all);
  if (!has || !all->known.known)
    return v;
  int64_t left = free_of (all, n, has);
  advice_weigh (&all->known, left);
  v.fits = left && all->known.fits;
  v.reason = arena_format (q->arena, &err, "%s%s", left ? all->known.reason : "no memory is",
                           left < has ? " free" : "");
  /* The least that suffices is best: more stays free for who needs it. */
  v.score = v.fits ? (int)(BEST_SCORE * advice_card_bytes (&all->known) / left) : 0;
  return v;
}

static void put_passing (json_writer *w, const asked_nodes *all, const bool *passes, bool objects) {
  if (objects != all->whole) {
    json_put_null (w);
    return;
  }
  if (objects) {
    json_open_object (w);
    json_put_key (w, "items");
  }
  json_open_array (w);
  for (int i = 0; i < all->n; i++)
    if (passes[i] && objects)
      json_put_raw (w, all->at[i].raw);
    else if (passes[i])
      json_put_text (w, all->at[i].name);
  json_close_array (w);
  if (objects)
    json_close_object (w);
}

static int by_name (const void *a, const void *b) {
  return strcmp (((const field *)a)->name, ((const field *)b)->name);
}

static void reply_filter (reply *p, const asked_nodes *all, const bool *passes, field *refused,
                          int n) {
  json_writer w;
  qsort (refused, (size_t)n, sizeof *refused, by_name);
  json_begin_object (&w, 0);
  json_add_text (&w, "Error", "");
  json_add_raw (&w, "FailedAndUnresolvableNodes", "{}");
  json_add_object (&w, "FailedNodes");
  for (int i = 0; i < n; i++)
    if (i == 0 || strcmp (refused[i].name, refused[i - 1].name) != 0)
      json_add_text (&w, refused[i].name, refused[i].value);
  json_close_object (&w);
  json_put_key (&w, "NodeNames");
  put_passing (&w, all, passes, false);
  json_put_key (&w, "Nodes");
  put_passing (&w, all, passes, true);
  json_close_object (&w);
  reply_json (p, 200, &w);
}

static json_document *open_body (service *s, request *q, reply *p, asked_nodes *out) {
  error err = { 0 };
  json_document *d = json_open (q->body.data ? q->body.data : "", q->body.size, &err);
  json root = d ? json_root (d) : (json){ 0 };
  if (!d || !json_is_object (&root)) {
    reply_problem (p, q, PROBLEM_malformed, "%s", d ? "the body is no object" : err.text);
  } else if (read_nodes (s, q, &root, out))
    return d;
  else
    reply_problem (p, q, PROBLEM_invalid, "more than %d nodes", MOST_NODES);
  json_close (d);
  return NULL;
}

void api_k8s_filter (service *s, request *q, reply *p) {
  asked_nodes all;
  error err = { 0 };
  int n = 0;
  json_document *d = open_body (s, q, p, &all);
  if (!d)
    return;
  bool *passes = NEW (q->arena, all.n + 1, bool, &err);
  field *refused = NEW (q->arena, all.n + 1, field, &err);
  for (int i = 0; passes && refused && i < all.n; i++) {
    verdict v = judge (s, q, &all, &all.at[i]);
    passes[i] = v.fits;
    if (!v.fits)
      refused[n++] = (field){ all.at[i].name, v.reason };
  }
  if (passes && refused)
    reply_filter (p, &all, passes, refused, n);
  else
    reply_error (p, q, &err);
  json_close (all.inventory);
  json_close (d);
}

void api_k8s_prioritize (service *s, request *q, reply *p) {
  asked_nodes all;
  json_writer w;
  json_document *d = open_body (s, q, p, &all);
  if (!d)
    return;
  json_begin (&w, 0);
  json_open_array (&w);
  for (int i = 0; i < all.n; i++) {
    json_open_object (&w);
    json_add_text (&w, "Host", all.at[i].name);
    json_add_int (&w, "Score", judge (s, q, &all, &all.at[i]).score);
    json_close_object (&w);
  }
  json_close_array (&w);
  reply_json (p, 200, &w);
  json_close (all.inventory);
  json_close (d);
}
