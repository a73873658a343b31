/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A mutating admission webhook of Kubernetes: pods, templates of pods and claims of dynamic
   resource allocation that name a fingerprint get its figures; bindings and ends of pods say what
   is free on a node. Nothing is ever refused: a fingerprint that is not known is a warning. */
#include <string.h>

#include "base/units.h"
#include "server/api/advice.h"
#include "server/api/api.h"
#include "server/api/patch.h"
#include "server/api/pods.h"
#include "server/api/routes.h"
#include "server/protocol/claims.h"

#define SHARE "ferry.dev/share" /* hami, kai or dra; else memory is only noted */
#define PINNED "ferry.dev/pinned-host-bytes"
#define HOST "ferry.dev/host"   /* the pod's cards are of this host: one rank on each */
#define RANKS "ferry.dev/ranks" /* else as many as fit */
#define MIB ((int64_t)1 << 20)
enum { MOST_NAME = 253, MOST_SETS = 16 }; /* each is looked up */

typedef struct review {
  service *s;
  request *q;
  patch out;
  const char *warning; /* or NULL */
  error err;
} review;

/* ---- figures ---- */

static const char *note_of (review *r, const json *meta, const char *key) {
  json notes = json_member (meta, "annotations"), one = json_member (&notes, key);
  return request_text (r->q, &one);
}

/* Pinned memory is that of all ranks. */
static bool find_on_host (review *r, const char *print, const char *host, const char *ranks,
                          int64_t ppm, advice *out) {
  node_question asked = { .slowdown_ppm = ppm };
  node_advice found;
  int64_t n = 0;
  if (!name_is_plain (host) || (ranks && !text_to_int (ranks, HOST_MOST_CARDS, &n))) {
    r->warning = "ferry: " HOST " or " RANKS " is not understood";
    return false;
  }
  asked.ranks = (int32_t)n;
  if (!advice_find_host (r->s, r->q, print, host, &asked, &found, &r->err))
    return false;
  const node_row *row = found.answer.row;
  if (!row)
    r->warning = found.known ? arena_format (r->q->arena, &r->err, "ferry: %s", found.answer.reason)
                             : arena_format (r->q->arena, &r->err,
                                             "ferry: nothing is known of %s on %s", print, host);
  else
    *out = (advice){ .known = true,
                     .memory_bytes = row->budget_bytes,
                     .reserved_bytes = found.facts.reserved_bytes,
                     .ranks = row->ranks,
                     .host_bytes = row->pinned_bytes,
                     .step_ns = row->step_ns,
                     .baseline_ns = found.facts.baseline_ns };
  return row;
}

/* True: the object names a fingerprint whose figures are known. */
static bool find (review *r, const json *meta, advice *out) {
  const char *print = note_of (r, meta, FINGERPRINT), *patience = note_of (r, meta, SLOWDOWN);
  const char *host = note_of (r, meta, HOST);
  int64_t ppm = USUAL_SLOWDOWN_PPM;
  if (!print)
    return false;
  if (!advice_is_name (r->q, print) ||
      (patience && !text_to_int (patience, MOST_SLOWDOWN_PPM, &ppm)))
    r->warning = "ferry: " FINGERPRINT " or " SLOWDOWN " is not understood";
  else if (host)
    return find_on_host (r, print, host, note_of (r, meta, RANKS), ppm, out);
  else if (!advice_find (r->s, r->q, print, ppm, out, &r->err))
    return false;
  else if (!out->known)
    r->warning = arena_format (r->q->arena, &r->err, "ferry: nothing is known of %s", print);
  else if (!out->memory_bytes)
    r->warning = "ferry: no budget of its curve is fast enough";
  else
    return true;
  return false;
}

static const char *path_of (review *r, const char *base, const char *rest) {
  const char *path = arena_format (r->q->arena, &r->err, "%s%s", base, rest);
  return path ? path : "";
}

static const char *number (review *r, int64_t n, const char *unit) {
  const char *text = arena_format (r->q->arena, &r->err, "%lld%s", (long long)n, unit);
  return text ? text : "";
}

/* ---- a pod, or a template of one ---- */

/* Pinned memory counts as the container's: its request and limit grow by as much. */
static void add_host (review *r, const json *resources, const char *path, int64_t bytes) {
  static const char *const kinds[] = { "requests", "limits" };
  for (int i = 0; i < 2; i++) {
    json of = json_member (resources, kinds[i]), one = json_member (&of, "memory");
    const char *has = request_text (r->q, &one);
    int64_t now = 0;
    if (!has)
      continue;
    if (k8s_quantity (r->q, has, &now))
      patch_add_text (&r->out, path_of (r, path, i == 0 ? "/requests/memory" : "/limits/memory"),
                      number (r, now + bytes, ""));
    else
      r->warning = "ferry: a container's memory is not understood: its pinned memory is not added";
  }
}

static bool has_claim (const review *r, const json *list) {
  for (size_t i = 0; i < json_count (list); i++) {
    json e = json_element (list, i), n = json_member (&e, "name");
    const char *name = request_text (r->q, &n);
    if (name && strcmp (name, "ferry") == 0)
      return true;
  }
  return false;
}

/* One more element of a list that may be absent. */
static void append (review *r, const json *list, const char *path, const char *element) {
  const char *whole = arena_format (r->q->arena, &r->err, "[%s]", element);
  if (has_claim (r, list))
    return;
  if (json_is_array (list))
    patch_add_raw (&r->out, path_of (r, path, "/-"), element);
  else if (whole)
    patch_add_raw (&r->out, path, whole);
}

/* The pod's claim is made of the template of the same fingerprint, which this webhook fills too. */
static void add_claim (review *r, const json *spec, const json *resources, const char *path,
                       const char *at, const char *print) {
  json of_pod = json_member (spec, "resourceClaims"), of_one = json_member (resources, "claims");
  char name[CLAIM_NAME];
  claim_name (print, name);
  const char *element = arena_format (
      r->q->arena, &r->err, "{\"name\":\"ferry\",\"resourceClaimTemplateName\":\"%s\"}", name);
  if (element)
    append (r, &of_pod, path_of (r, path, "/spec/resourceClaims"), element);
  append (r, &of_one, path_of (r, at, "/claims"), "{\"name\":\"ferry\"}");
}

/* The first container that asks for a card, else the first of all. */
static size_t container_of (const json *all) {
  for (size_t i = 0; i < json_count (all); i++) {
    json e = json_element (all, i), resources = json_member (&e, "resources");
    json limits = json_member (&resources, "limits");
    json card = json_member (&limits, "nvidia.com/gpu"),
         claims = json_member (&resources, "claims");
    if (!json_is_absent (&card) || json_count (&claims))
      return i;
  }
  return 0;
}

static void fill_container (review *r, const json *spec, const json *meta, const char *path,
                            const advice *a) {
  json all = json_member (spec, "containers");
  size_t i = container_of (&all);
  json one = json_element (&all, i), resources = json_member (&one, "resources");
  json limits = json_member (&resources, "limits");
  const char *share = note_of (r, meta, SHARE), *print = note_of (r, meta, FINGERPRINT);
  const char *at = arena_format (r->q->arena, &r->err, "%s/spec/containers/%zu/resources", path, i);
  if (!at || !json_count (&all))
    return;
  bool hami = share && strcmp (share, "hami") == 0, dra = share && strcmp (share, "dra") == 0;
  if ((hami || dra) && !json_is_object (&resources))
    patch_add_raw (&r->out, at, "{}");
  if (hami)
    patch_put (&r->out, &limits, path_of (r, at, "/limits"), "nvidia.com/gpumem",
               number (r, units_div_up (advice_card_bytes (a), MIB), ""));
  if (dra)
    add_claim (r, spec, &resources, path, at, print);
  if (a->host_bytes && !note_of (r, meta, PINNED)) /* else it was added before */
    add_host (r, &resources, at, a->host_bytes);
}

/* The step beside one without a budget. */
static int64_t slowdown_of (const advice *a) {
  int64_t over_ns = a->step_ns - a->baseline_ns;
  return over_ns > 0 && a->baseline_ns > 0 ? units_scale (over_ns, 1000000, a->baseline_ns) : 0;
}

/* `above`: metadata that may name the fingerprint in its place. */
static void fill_pod (review *r, const json *pod, const char *path, const json *above) {
  json own = json_member (pod, "metadata"), spec = json_member (pod, "spec");
  const json *meta = note_of (r, &own, FINGERPRINT) || !above ? &own : above;
  json notes = json_member (&own, "annotations");
  const char *at = path_of (r, path, "/metadata/annotations");
  advice a;
  if (!find (r, meta, &a))
    return;
  if (!json_is_object (&own))
    patch_add_raw (&r->out, path_of (r, path, "/metadata"), "{}");
  if (!json_is_object (&notes))
    patch_add_raw (&r->out, at, "{}");
  fill_container (r, &spec, meta, path, &a);
  const char *share = note_of (r, meta, SHARE);
  patch_add_text (&r->out, path_of (r, at, "/ferry.dev~1gpu-memory-bytes"),
                  number (r, advice_card_bytes (&a), ""));
  patch_add_text (&r->out, path_of (r, at, "/ferry.dev~1pinned-host-bytes"),
                  number (r, a.host_bytes, ""));
  patch_add_text (&r->out, path_of (r, at, "/ferry.dev~1slowdown-ppm"),
                  number (r, slowdown_of (&a), ""));
  if (a.ranks)
    patch_add_text (&r->out, path_of (r, at, "/ferry.dev~1ranks"), number (r, a.ranks, ""));
  if (share && strcmp (share, "kai") == 0)
    patch_add_text (&r->out, path_of (r, at, "/gpu-memory"),
                    number (r, units_div_up (advice_card_bytes (&a), MIB), ""));
  if (meta == above)
    patch_add_text (&r->out, path_of (r, at, "/ferry.dev~1fingerprint"),
                    note_of (r, meta, FINGERPRINT));
}

/* ---- claims ---- */

static void fill_request (review *r, const json *e, const char *path, const char *memory) {
  json exactly = json_member (e, "exactly"), capacity = json_member (&exactly, "capacity");
  json requests = json_member (&capacity, "requests");
  if (!json_is_object (&exactly))
    return;
  if (!json_is_object (&capacity))
    patch_add_raw (&r->out, path_of (r, path, "/exactly/capacity"), "{}");
  patch_put (&r->out, &requests, path_of (r, path, "/exactly/capacity/requests"), "memory", memory);
}

static void fill_claim (review *r, const json *object, const json *spec, const char *path) {
  json meta = json_member (object, "metadata"), devices = json_member (spec, "devices");
  json list = json_member (&devices, "requests");
  advice a;
  if (!find (r, &meta, &a))
    return;
  const char *memory = number (r, units_div_up (advice_card_bytes (&a), MIB), "Mi");
  for (size_t i = 0; i < json_count (&list); i++) {
    json e = json_element (&list, i);
    const char *at = arena_format (r->q->arena, &r->err, "%s/devices/requests/%zu", path, i);
    if (at)
      fill_request (r, &e, at, memory);
  }
  patch_add_text (&r->out, "/metadata/annotations/ferry.dev~1honoured-by", CLAIM_HONOURED);
}

/* ---- objects ---- */

/* Kueue's Workload has a template for each of its sets of pods. */
static void fill_sets (review *r, const json *spec, const json *meta) {
  json sets = json_member (spec, "podSets");
  size_t n = json_count (&sets);
  if (n > MOST_SETS)
    r->warning = "ferry: a Workload with this many sets of pods is not looked at";
  for (size_t i = 0; n <= MOST_SETS && i < n; i++) {
    json e = json_element (&sets, i), pod = json_member (&e, "template");
    const char *at = arena_format (r->q->arena, &r->err, "/spec/podSets/%zu/template", i);
    if (at)
      fill_pod (r, &pod, at, meta);
  }
}

static void fill (review *r, const char *kind, const json *object) {
  json meta = json_member (object, "metadata"), spec = json_member (object, "spec");
  json inner = json_member (&spec, "spec"), pod = json_member (&spec, "template");
  if (strcmp (kind, "Pod") == 0)
    fill_pod (r, object, "", NULL);
  else if (strcmp (kind, "ResourceClaim") == 0)
    fill_claim (r, object, &spec, "/spec");
  else if (strcmp (kind, "ResourceClaimTemplate") == 0)
    fill_claim (r, object, &inner, "/spec/spec");
  else if (strcmp (kind, "Workload") == 0)
    fill_sets (r, &spec, &meta);
  else if (json_is_object (&pod)) /* a Job, or what else makes pods */
    fill_pod (r, &pod, "/spec/template", &meta);
}

/* ---- places of pods ---- */

static bool has_ended (review *r, const json *object) {
  json status = json_member (object, "status"), phase = json_member (&status, "phase");
  const char *text = request_text (r->q, &phase);
  return text && (strcmp (text, "Succeeded") == 0 || strcmp (text, "Failed") == 0);
}

static const char *uid_of (review *r, const json *object) {
  json meta = json_member (object, "metadata"), uid = json_member (&meta, "uid");
  const char *text = request_text (r->q, &uid);
  return text && strlen (text) <= MOST_NAME ? text : "";
}

static void bind (review *r, const json *object) {
  json target = json_member (object, "target"), name = json_member (&target, "name");
  const char *node = request_text (r->q, &name);
  if (node && strlen (node) <= MOST_NAME &&
      !store_place (r->s->store, uid_of (r, object), node, &r->err))
    service_log (r->s, "error", r->err.text, "request_id", r->q->id, NULL);
}

static void release (review *r, const json *object) {
  if (!store_release (r->s->store, uid_of (r, object), &r->err))
    service_log (r->s, "error", r->err.text, "request_id", r->q->id, NULL);
}

/* ---- the review ---- */

static const char *text_at (review *r, const json *object, const char *key) {
  json one = json_member (object, key);
  const char *text = request_text (r->q, &one);
  return text ? text : "";
}

static void look_at (review *r, const json *asked) {
  json kind = json_member (asked, "kind"), object = json_member (asked, "object");
  json old = json_member (asked, "oldObject");
  const char *name = text_at (r, &kind, "kind");
  bool trial = false, whole = !*text_at (r, asked, "subResource");
  bool places =
      json_read_bool (asked, "dryRun", &trial, &r->err) && !trial && advice_sees_all (r->q);
  if (strcmp (name, "Binding") == 0) {
    if (places)
      bind (r, &object);
  } else if (strcmp (text_at (r, asked, "operation"), "DELETE") == 0) {
    if (places && whole && strcmp (name, "Pod") == 0)
      release (r, &old);
  } else if (whole)
    fill (r, name, &object);
  else if (places && has_ended (r, &object))
    release (r, &object);
}

static void reply_review (reply *p, review *r, const char *uid) {
  json_writer w;
  const char *change = patch_end (&r->out, &r->err);
  json_begin_object (&w, 0);
  json_add_text (&w, "apiVersion", "admission.k8s.io/v1");
  json_add_text (&w, "kind", "AdmissionReview");
  json_add_object (&w, "response");
  json_add_bool (&w, "allowed", true);
  if (change) {
    json_add_text (&w, "patch", change);
    json_add_text (&w, "patchType", "JSONPatch");
  }
  json_add_text (&w, "uid", uid);
  if (r->warning) {
    json_add_array (&w, "warnings");
    json_put_text (&w, r->warning);
    json_close_array (&w);
  }
  json_close_object (&w);
  json_close_object (&w);
  reply_json (p, 200, &w);
}

void api_k8s_mutate (service *s, request *q, reply *p) {
  review r = { .s = s, .q = q };
  error err = { 0 };
  json_document *d = json_open (q->body.data ? q->body.data : "", q->body.size, &err);
  json root = d ? json_root (d) : (json){ 0 }, asked = json_member (&root, "request");
  const char *uid = text_at (&r, &asked, "uid");
  if (!d)
    reply_problem (p, q, PROBLEM_malformed, "%s", err.text);
  else if (strcmp (text_at (&r, &root, "apiVersion"), "admission.k8s.io/v1") != 0 || !*uid)
    reply_problem (p, q, PROBLEM_invalid,
                   "the body is no AdmissionReview of admission.k8s.io/v1 with a request");
  else {
    patch_begin (&r.out, q->arena);
    look_at (&r, &asked);
    if (r.err.code)
      service_log (s, "error", r.err.text, "request_id", q->id, NULL);
    r.err = (error){ 0 };
    reply_review (p, &r, uid);
  }
  json_close (d);
}
