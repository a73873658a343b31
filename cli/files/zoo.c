/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry zoo`: one training step of a published network, as a trace. */
#include <string.h>

#include "base/json.h"
#include "cli/inputs/devices.h"
#include "cli/inputs/zoo_options.h"

static int list_json (call *c) {
  int count;
  const zoo_network *networks = zoo_list (&count);
  json_writer w;
  json_begin (&w, 1);
  json_open_array (&w);
  for (int i = 0; i < count; i++) {
    const zoo_network *n = &networks[i];
    json_open_object (&w);
    json_add_text (&w, "description", n->description);
    json_add_int (&w, "image", n->image);
    json_add_text (&w, "name", n->name);
    json_add_int (&w, "parameters", n->parameters);
    json_add_int (&w, "seq", n->seq);
    json_add_text (&w, "source", n->source);
    json_close_object (&w);
  }
  json_close_array (&w);
  return call_print_json (c, &w) ? EXIT_YES : call_failed (c);
}

static int list (call *c) {
  int count;
  const zoo_network *networks = zoo_list (&count);
  if (c->json)
    return list_json (c);
  for (int i = 0; i < count; i++) {
    const zoo_network *n = &networks[i];
    printf ("%-12s %-40s ", n->name, n->description);
    if (n->parameters > 0)
      printf ("%11lld parameters (%s)", (long long)n->parameters, n->source);
    puts ("");
  }
  return EXIT_YES;
}

static bool read_request (call *c, zoo_request *r, device *d) {
  if (!zoo_knows (c->operands[0], &c->err))
    return false;
  if (call_text (c, "batch") == NULL)
    return call_usage (c, "which batch? give --batch N");
  int shard = ZOO_SHARD_none;
  if (!zoo_options_read (c, r) || !call_quantity (c, "batch", &r->batch) ||
      !call_quantity (c, "data-parallel", &r->ranks) ||
      !call_word (c, "shard", zoo_shard_names, &shard) ||
      !call_quantity (c, "fabric", &r->fabric_bytes_per_s))
    return false;
  r->shard = (zoo_shard)shard;
  if (r->ranks < 2 && (call_text (c, "shard") || call_text (c, "fabric")))
    return call_usage (c, "--shard and --fabric are of several ranks: give --data-parallel N");
  if (call_text (c, "device") == NULL)
    return call_usage (c, "for which device? give --device NAME; `ferry devices` lists them");
  r->device = d;
  return device_named (c, call_text (c, "device"), d);
}

static int run (call *c) {
  zoo_request r;
  device d;
  bytes out = { 0 };
  if (call_flag (c, "list") || (c->n_operands && strcmp (c->operands[0], "list") == 0))
    return list (c);
  if (c->n_operands == 0)
    call_usage (c, "which network? `ferry zoo --list` names them");
  if (c->err.code || !read_request (c, &r, &d))
    return call_failed (c);
  trace *t = zoo_trace (&r, c->arena, &c->err);
  bool ok = t != NULL && trace_text (t, TRACE_PLAIN, &out, &c->err) &&
            call_write (c, call_text (c, "output"), out.data, out.size);
  bytes_free (&out);
  if (!ok)
    return call_failed (c);
  if (r.ranks > 1)
    call_note (c, "%s: %d ops, %d tensors; one rank of %lld", t->name, t->n_ops, t->n_tensors,
               (long long)r.ranks);
  else
    call_note (c, "%s: %d ops, %d tensors, %lld parameters", t->name, t->n_ops, t->n_tensors,
               (long long)zoo_parameters (t));
  return EXIT_YES;
}

/* clang-format off */
static const cli_option options[] = {
  { 0, "batch", "N", "items of the batch", { UNITS_COUNT, 1, ZOO_MOST_BATCH } },
  OPTIONS_OF_ZOO,
  OPTION_CARD,
  { 0, "data-parallel", "N", "one rank of N that train together, with their collectives",
    { UNITS_COUNT, 1, 1 << 20 } },
  { 0, "shard", "none|state|all",
    "ranks divide nothing; optimizer state and gradients; parameters too" },
  { 0, "fabric", "RATE", "bus bandwidth between the cards of ranks",
    { UNITS_RATE, DEVICE_LEAST_RATE, MOST_BYTES } },
  OPTION_OUTPUT ("where to; compressed if it ends in .gz or .zst; default: standard output"),
  { 'l', "list", NULL, "list the networks" },
  OPTIONS_END,
};
/* clang-format on */

const cli_command command_zoo = {
  .name = "zoo",
  .says = "make the trace of a published network",
  .operands = "NETWORK",
  .least = 0,
  .most = 1,
  .about =
      "Builds one training step (forward, backward, update) of a network from the shapes of its "
      "layers: every tensor, what is kept for the backward pass, what each op calculates, and how "
      "long it takes on a device by its peak rates.\n"
      "resnetN stands for any depth N with (N - 2) divisible by 3 from 152 on.\n",
  .options = options,
  .json = true,
  .run = run,
};
