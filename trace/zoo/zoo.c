/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/zoo/zoo.h"
#include "trace/zoo/request.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/zoo/families.h"
#include "trace/zoo/parallel.h"

const char *const zoo_shard_names[ZOO_SHARDS + 1] = { "none", "state", "all", NULL };
const char *const zoo_optimizer_names[ZOO_OPTIMIZERS + 1] = { "sgd", "momentum", "adam", NULL };

typedef struct recipe {
  void (*step) (net *n);
  int variant;
  int64_t classes;
} recipe;

static const zoo_network networks[] = {
#define NETWORK(name, family, variant, image, seq, classes, parameters, source, description) \
  { name, description, image, seq, parameters, source },
#include "trace/zoo/networks.def"
};

static const recipe recipes[] = {
#define NETWORK(name, family, variant, image, seq, classes, parameters, source, description) \
  { family##_step, variant, classes },
#include "trace/zoo/networks.def"
};

enum { N_NETWORKS = sizeof networks / sizeof networks[0] };

const zoo_network *zoo_list (int *count) {
  *count = N_NETWORKS;
  return networks;
}

/* resnetN for a depth N without a row. */
static int resnet_depth (const char *name) {
  if (strncmp (name, "resnet", 6) != 0 || strspn (name + 6, "0123456789") != strlen (name + 6))
    return 0;
  long depth = strtol (name + 6, NULL, 10);
  return resnet_has_depth (depth) ? (int)depth : 0;
}

/* How many letters two names have in common, at their begin and at their end. */
static size_t alike (const char *a, const char *b) {
  size_t begin = 0, end = 0, a_size = strlen (a), b_size = strlen (b);
  while (a[begin] && a[begin] == b[begin])
    begin++;
  while (begin + end < a_size && begin + end < b_size && a[a_size - end - 1] == b[b_size - end - 1])
    end++;
  return begin > 2 ? begin + end : 0;
}

/* NULL where none begins with the same three letters. */
static const char *nearest (const char *name) {
  const char *best = NULL;
  size_t most = 0;
  for (int i = 0; i < N_NETWORKS; i++) {
    size_t same = alike (name, networks[i].name);
    if (same > most) {
      most = same;
      best = networks[i].name;
    }
  }
  return best;
}

static bool find (const char *name, zoo_network *network, recipe *r, error *err) {
  for (int i = 0; i < N_NETWORKS; i++)
    if (strcmp (networks[i].name, name) == 0) {
      *network = networks[i];
      *r = recipes[i];
      return true;
    }
  int depth = resnet_depth (name);
  const char *near = nearest (name);
  if (depth == 0)
    return error_set (err, ERR_usage,
                      "no network is called %.60s; %s%s%s`ferry zoo --list` names them", name,
                      near ? "did you mean `" : "", near ? near : "", near ? "`? " : "");
  *network = (zoo_network){ name, "ResNet", 224, 0, 0, NULL };
  *r = (recipe){ resnet_step, depth, 1000 };
  return true;
}

bool zoo_knows (const char *name, error *err) {
  assert (name);
  zoo_network network;
  recipe r;
  return find (name, &network, &r, err);
}

enum { MOST_EDGE = 1 << 16 };

static bool check_request (const zoo_request *r, const zoo_network *network, error *err) {
  if (r->batch < 1 || r->batch > ZOO_MOST_BATCH)
    return error_set (err, ERR_usage, "a batch of %lld: 1 to %lld are possible",
                      (long long)r->batch, (long long)ZOO_MOST_BATCH);
  if (r->image < 0 || r->image > MOST_EDGE || r->seq < 0 || r->seq > MOST_EDGE * 16)
    return error_set (err, ERR_usage, "an image of %lld, a sequence of %lld: too large",
                      (long long)r->image, (long long)r->seq);
  if (r->image > 0 && network->image == 0)
    return error_set (err, ERR_usage, "%s looks at no image: leave --image out", r->name);
  if (r->seq > 0 && network->seq == 0)
    return error_set (err, ERR_usage, "%s reads no sequence: leave --seq out", r->name);
  if (r->ranks > 1 && r->fabric_bytes_per_s < 1)
    return error_set (err, ERR_usage,
                      "how fast do the cards copy to each other? give --fabric RATE, the bus "
                      "bandwidth that nccl-tests show");
  if (r->classes < 0 || r->classes > (1 << 24))
    return error_set (err, ERR_usage, "%lld classes: too many", (long long)r->classes);
  return true;
}

static void add_option (char *text, size_t size, const char *option, int64_t value) {
  size_t used = strlen (text);
  if (value > 0)
    snprintf (text + used, size - used, " --%s %lld", option, (long long)value);
}

/* The command that makes the same trace again. */
static void put_source (const net *n) {
  const zoo_request *r = n->r;
  char text[512];
  snprintf (text, sizeof text, "%s --batch %lld", r->name, (long long)r->batch);
  add_option (text, sizeof text, "image", r->image);
  add_option (text, sizeof text, "seq", r->seq);
  add_option (text, sizeof text, "classes", r->classes);
  add_option (text, sizeof text, "width-divisor", r->width_divisor);
  add_option (text, sizeof text, "depth-divisor", r->depth_divisor);
  if (r->ranks > 1) {
    add_option (text, sizeof text, "data-parallel", r->ranks);
    add_option (text, sizeof text, "fabric", r->fabric_bytes_per_s);
    size_t at = strlen (text);
    snprintf (text + at, sizeof text - at, "B/s --shard %s", zoo_shard_names[r->shard]);
  }
  size_t used = strlen (text);
  snprintf (text + used, sizeof text - used, " --dtype %s --optimizer %s%s%s --device %.100s",
            compute_dtype_names[r->dtype], zoo_optimizer_names[r->optimizer],
            r->explicit_attention ? " --explicit-attention" : "",
            r->workspaces ? " --workspaces" : "", r->device->name);
  build_source (n->b, "zoo", text);
  build_zoo (n->b, r->device->name, zoo_request_text (r, n->a, n->err));
}

trace *zoo_trace (const zoo_request *r, arena *a, error *err) {
  zoo_network network = { 0 };
  recipe recipe = { 0 };
  if (!find (r->name, &network, &recipe, err) || !check_request (r, &network, err))
    return NULL;
  net *n = net_new (r, &network, a, err);
  if (n == NULL)
    return NULL;
  n->classes = r->classes > 0 ? r->classes : recipe.classes;
  put_source (n);
  n->variant = recipe.variant;
  recipe.step (n);
  trace *t = net_finish (n, err);
  return t && r->ranks > 1 ? zoo_parallel (t, r, a, err) : t;
}

int64_t zoo_parameters (const trace *t) {
  int64_t sum = 0;
  for (int32_t i = 0; i < t->n_ops; i++) {
    error err = { 0 };
    compute c;
    if (t->ops[i].phase == OP_UPDATE && t->ops[i].compute != NULL &&
        compute_parse (t->ops[i].compute, &c, &err) &&
        (c.kind == COMPUTE_sgd || c.kind == COMPUTE_momentum || c.kind == COMPUTE_adam))
      sum += c.update.count;
  }
  return sum;
}
