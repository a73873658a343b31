/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The two calls of a Kubernetes scheduler extender.  Newer schedulers write the outer names in
   camel case, older ones in lower case: both are read, camel case is written.  Where anything is in
   doubt all nodes pass: an answer that fails would hold the pod up. */
#include <stdlib.h>
#include <string.h>

#include "server/api/advice.h"
#include "server/api/api.h"
#include "server/api/routes.h"

#define FINGERPRINT "ferry.dev/fingerprint"
#define SLOWDOWN "ferry.dev/max-slowdown-ppm"
#define GPU_MEMORY "ferry.dev/gpu-memory-bytes" /* a label of a node */
enum { MOST_NODES = 5000, BEST_SCORE = 10 };

typedef struct node {
  const char *name, *memory; /* as its label has it, or NULL */
  const char *raw;           /* the whole object, where those were sent */
} node;

typedef struct asked_nodes {
  node *at;
  int n;
  bool whole;              /* objects were sent, and are sent back */
  const char *fingerprint; /* NULL: nothing can be known of the pod */
  int64_t slowdown_ppm;
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

static const char *text_of (request *q, const json *j) {
  const char *text = NULL;
  error ignored = { 0 };
  return json_is_string (j) && json_get_text (j, &text, &ignored)
             ? arena_string (q->arena, text, &ignored)
             : NULL;
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
  const char *patience = text_of (q, &ppm);
  out->fingerprint = text_of (q, &print);
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
  node n = { text_of (q, &name), text_of (q, &memory),
             json_canonical (e, true, q->arena, &ignored) };
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
    const char *name = text_of (q, &e);
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

/* Bytes, or a quantity as Kubernetes writes them: "24Gi". */
static bool read_quantity (request *q, const char *text, int64_t *out) {
  static const struct {
    const char *unit;
    int64_t bytes;
  } units[] = { { "", 1 },
                { "k", 1000 },
                { "M", 1000000 },
                { "G", 1000000000 },
                { "T", 1000000000000 },
                { "Ki", (int64_t)1 << 10 },
                { "Mi", (int64_t)1 << 20 },
                { "Gi", (int64_t)1 << 30 },
                { "Ti", (int64_t)1 << 40 } };
  error ignored = { 0 };
  size_t digits = strspn (text, "0123456789");
  const char *number = arena_string_n (q->arena, text, digits, &ignored);
  for (size_t i = 0; number && i < sizeof units / sizeof *units; i++)
    if (strcmp (text + digits, units[i].unit) == 0)
      return text_to_int (number, MOST_INT, out) &&
             !__builtin_mul_overflow (*out, units[i].bytes, out) && *out <= MOST_INT;
  return false;
}

/* 0: nobody has said, or not so that it is understood. */
static int64_t memory_of (service *s, request *q, asked_nodes *all, const node *n) {
  error wrong = { 0 };
  int64_t has = 0;
  if (n->memory && !read_quantity (q, n->memory, &has)) {
    complain (s, q, all, n->name, GPU_MEMORY, n->memory);
    return 0;
  }
  if (n->memory || !all->inventory)
    return has;
  json root = json_root (all->inventory), one = json_member (&root, n->name);
  const char *text = text_of (q, &one);
  if (text ? read_quantity (q, text, &has) : json_get_int (&one, 0, MOST_INT, &has, &wrong))
    return has;
  complain (s, q, all, n->name, "--inventory", text ? text : wrong.text);
  return 0;
}

typedef struct verdict {
  bool fits;
  const char *reason;
  int score;
} verdict;

static void look (service *s, request *q, asked_nodes *all) {
  error err = { 0 };
  advice a;
  all->looked = true;
  if (!advice_find (s, q, all->fingerprint, all->slowdown_ppm, &a, &err))
    service_log (s, "error", err.text, "request_id", q->id, NULL);
  else if (a.known) {
    api_saw (s, a.job);
    all->known = a;
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
  advice_weigh (&all->known, has);
  v.fits = all->known.fits;
  v.reason = arena_string (q->arena, all->known.reason, &err);
  /* The tightest card that suffices is best: the others stay free for who needs them. */
  v.score = v.fits ? (int)(BEST_SCORE * advice_card_bytes (&all->known) / has) : 0;
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
  json_begin (&w, 0);
  json_open_object (&w);
  json_add_text (&w, "Error", "");
  json_add_raw (&w, "FailedAndUnresolvableNodes", "{}");
  json_put_key (&w, "FailedNodes");
  json_open_object (&w);
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
