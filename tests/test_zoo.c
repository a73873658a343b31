/* The zoo: published sizes and flops, and whether every trace makes sense op by op. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "trace/rewrite.h"
#include "trace/roofline.h"
#include "trace/uses.h"
#include "trace/zoo/zoo.h"

static const device card = { .name = "card",
                             .memory_bytes = (int64_t)80 << 30,
                             .granule_bytes = 2 << 20,
                             .link = { 25000000000, 25000000000, 50000000000, 10000 },
                             .host_bytes = (int64_t)512 << 30,
                             .share_ppm = 1000000,
                             .has_roofline = true,
                             .roofline = { .fp32_flops = 20000000000000,
                                           .tf32_flops = 156000000000000,
                                           .bf16_flops = 312000000000000,
                                           .memory_bytes_per_s = 1555000000000,
                                           .efficiency_ppm = 1000000 } };

static arena *room;
static error err;

static void set_up (void) {
  err = (error){ 0 };
  room = arena_new (0);
  ck_assert_ptr_nonnull (room);
}

static void tear_down (void) {
  arena_free (room);
}

static const char *told (void) {
  static char line[1100];
  return error_line (&err, line, sizeof line);
}

static trace *made (const zoo_request *r) {
  trace *t = zoo_trace (r, room, &err);
  ck_assert_msg (t != NULL, "%s: %s", r->name, told ());
  return t;
}

static compute read_compute (const trace *t, int32_t i) {
  compute c;
  ck_assert_msg (t->ops[i].compute != NULL, "op %d (%s) has no compute", i, t->ops[i].name);
  ck_assert_msg (compute_parse (t->ops[i].compute, &c, &err), "op %s: %s", t->ops[i].name, told ());
  return c;
}

/* ---- published figures ---- */

/* Parameters: torchvision's documentation (num_params of the weights), the counts that PyTorch
   reports for the published checkpoints of Hugging Face and of the DCGAN example, imgclsmob's for
   ResNet-200, and the text of Cicek et al. 2016.  OverFeat: 145 million in Sermanet et al. 2013,
   counted here by hand: 34,944 + 614,656 + 1,180,160 + 4,719,616 + 9,438,208 + 113,249,280 +
   12,587,008 + 4,097,000. Multiplications of one image, in millions: torchvision's `_ops`, rounded
   there. */
static const struct published {
  const char *name;
  int64_t parameters, millions;
} published[] = {
  { "alexnet", 61100840, 714 },      { "vgg16", 138357544, 15470 },
  { "vgg19", 143667240, 19632 },     { "overfeat", 145920872, 0 },
  { "resnet18", 11689512, 1814 },    { "resnet34", 21797672, 3664 },
  { "resnet50", 25557032, 4089 },    { "resnet101", 44549160, 7801 },
  { "resnet152", 60192808, 11514 },  { "resnet200", 64673832, 0 },
  { "googlenet", 6624904, 1498 },    { "inception3", 27161264, 5713 },
  { "densenet121", 7978856, 2834 },  { "unet3d", 19069955, 0 },
  { "dcgan", 3576704 + 2765568, 0 }, { "bert-base", 109482240, 0 },
  { "bert-large", 335141888, 0 },    { "gpt2", 124439808, 0 },
  { "gpt2-medium", 354823168, 0 },   { "gpt2-large", 774030080, 0 },
  { "gpt2-xl", 1557611200, 0 },      { "llama-1b", 1235814400, 0 },
  { "llama-7b", 6738415616, 0 },     { "vit-b", 86567656, 17564 },
  { "vit-l", 304326632, 61555 },
};
enum { N_PUBLISHED = sizeof published / sizeof published[0] };

START_TEST (parameters_are_the_published_number) {
  const struct published *p = &published[_i];
  zoo_request r = { .name = p->name, .batch = 1, .device = &card };
  const trace *t = made (&r);
  ck_assert_int_eq (zoo_parameters (t), p->parameters);
  int64_t bytes = 0;
  for (int32_t i = 0; i < t->n_tensors; i++)
    if (t->tensors[i].kind == TENSOR_PARAMETER)
      bytes += t->tensors[i].bytes;
  ck_assert_int_eq (bytes, 4 * p->parameters);
}
END_TEST

START_TEST (the_list_states_what_is_built) {
  int count;
  const zoo_network *list = zoo_list (&count);
  for (int i = 0; i < count; i++) {
    int64_t known = 0;
    for (int k = 0; k < N_PUBLISHED; k++)
      if (strcmp (published[k].name, list[i].name) == 0)
        known = published[k].parameters;
    if (list[i].parameters > 0)
      ck_assert_int_eq (list[i].parameters, known);
    ck_assert_int_eq (list[i].parameters > 0, list[i].source != NULL);
  }
}
END_TEST

START_TEST (forward_flops_are_the_published_number) {
  const struct published *p = &published[_i];
  if (p->millions == 0)
    return;
  zoo_request r = { .name = p->name, .batch = 3, .explicit_attention = true, .device = &card };
  const trace *t = made (&r);
  int64_t flops = 0;
  for (int32_t i = 0; i < t->n_ops; i++) {
    compute c = read_compute (t, i);
    bool extra = strncmp (t->ops[i].name, "aux.", 4) == 0; /* not there when the figure was taken */
    if (t->ops[i].phase == OP_FORWARD && compute_is_product (&c) && !extra)
      flops += compute_flops (&c);
  }
  int64_t per_image = flops / 3 / 2;
  ck_assert_int_eq ((per_image + 500000) / 1000000, p->millions);
}
END_TEST

/* ---- every trace, op by op ---- */

/* Which combination of options the loop's number stands for. */
static zoo_request varied (const char *name, int variant) {
  return (zoo_request){ .name = name,
                        .batch = variant % 2 ? 33 : 1,
                        .dtype = (compute_dtype)(variant % DTYPES),
                        .optimizer = (zoo_optimizer)((variant + 1) % ZOO_OPTIMIZERS),
                        .explicit_attention = variant % 4 > 1,
                        .workspaces = variant % 2,
                        .depth_divisor = variant > 0 ? 4 : 1,
                        .width_divisor = variant > 3 ? 2 : 1,
                        .device = &card };
}
enum { VARIANTS = 5 };

static bool contains (const index_list *l, int32_t tensor) {
  for (int32_t i = 0; i < l->count; i++)
    if (l->at[i] == tensor)
      return true;
  return false;
}

/* reads, writes and side are the operands of compute.def in their order, with their bytes. */
static void check_operands (const trace *t, int32_t i) {
  const op *o = &t->ops[i];
  compute c = read_compute (t, i);
  operand operands[COMPUTE_MOST_OPERANDS];
  int count = compute_operands (&c, operands), reads = 0, writes = 0, side = 0;
  int64_t bytes = 0;
  for (int k = 0; k < count; k++) {
    const operand *p = &operands[k];
    int32_t tensor = -1;
    if (operand_reads (p)) {
      ck_assert_msg (reads < o->reads.count, "%s reads too little", o->name);
      tensor = o->reads.at[reads++];
    }
    if (operand_writes (p)) {
      ck_assert_msg (writes < o->writes.count, "%s writes too little", o->name);
      ck_assert (tensor == -1 || tensor == o->writes.at[writes]);
      tensor = o->writes.at[writes++];
    }
    if (p->use == ABSENT)
      continue;
    side += p->use == SIDE;
    ck_assert_msg (t->tensors[tensor].bytes == p->bytes, "%s: %s has %lld bytes, not %lld", o->name,
                   p->name, (long long)t->tensors[tensor].bytes, (long long)p->bytes);
    ck_assert_msg (t->tensors[tensor].split == p->item, "%s: %s is split wrongly", o->name,
                   p->name);
    ck_assert_int_eq (contains (&o->side, tensor), p->use == SIDE);
    ck_assert_int_le (p->touched, p->elements > p->touched ? p->elements : p->touched);
    bytes += p->bytes * (operand_reads (p) + operand_writes (p));
  }
  ck_assert_int_eq (reads, o->reads.count);
  ck_assert_int_eq (writes, o->writes.count);
  ck_assert_int_eq (side, o->side.count);
  ck_assert_int_eq (o->parts, compute_parts (&c));
  if (c.kind != COMPUTE_embedding_fwd) /* looks rows up more than once */
    ck_assert_int_le (compute_bytes (&c), bytes);
}

/* What the way back needs is kept, nothing is read before it is made, nothing is made for nobody.
 */
static void check_lives (const trace *t) {
  bool *is_made = NEW (room, t->n_tensors, bool, &err);
  int32_t *last_read = NEW (room, t->n_tensors, int32_t, &err);
  int32_t *last_write = NEW (room, t->n_tensors, int32_t, &err);
  ck_assert (is_made && last_read && last_write);
  for (int32_t i = 0; i < t->n_tensors; i++) {
    const tensor *x = &t->tensors[i];
    is_made[i] = x->persistent || x->kind == TENSOR_INPUT;
    ck_assert_int_eq (x->kind == TENSOR_INPUT, x->born_before == 0);
    last_read[i] = last_write[i] = -1;
  }
  for (int32_t i = 0; i < t->n_ops; i++) {
    const op *o = &t->ops[i];
    for (int32_t k = 0; k < o->reads.count; k++) {
      int32_t x = o->reads.at[k];
      ck_assert_msg (is_made[x], "op %s reads %s, which nobody has made", o->name,
                     t->tensors[x].name);
      last_read[x] = i;
    }
    for (int32_t k = 0; k < o->writes.count; k++) {
      is_made[o->writes.at[k]] = true;
      last_write[o->writes.at[k]] = i;
    }
  }
  for (int32_t i = 0; i < t->n_tensors; i++) {
    const tensor *x = &t->tensors[i];
    bool loss = x->dies_after != NO_OP;
    if (x->kind == TENSOR_ACTIVATION && !loss)
      ck_assert_msg (last_read[i] > last_write[i] || last_read[i] == last_write[i],
                     "%s is made for nobody", x->name);
    if (x->kind == TENSOR_ACTIVATION && !loss)
      ck_assert_msg (last_read[i] >= 0, "%s is never read", x->name);
    if (loss)
      ck_assert_int_eq (x->bytes, t->batch * 4);
  }
}

/* Each parameter is updated once, with its gradient, after everything that needs its old value. */
static void check_updates (const trace *t) {
  for (int32_t i = 0; i < t->n_ops; i++) {
    const op *o = &t->ops[i];
    if (o->phase != OP_UPDATE)
      continue;
    int32_t w = o->writes.at[0];
    ck_assert_int_eq (t->tensors[w].kind, TENSOR_PARAMETER);
    for (int32_t k = 0; k < o->reads.count; k++)
      ck_assert (t->tensors[o->reads.at[k]].kind != TENSOR_ACTIVATION);
  }
  int32_t *updates = NEW (room, t->n_tensors, int32_t, &err);
  ck_assert_ptr_nonnull (updates);
  for (int32_t i = 0; i < t->n_ops; i++)
    if (t->ops[i].phase == OP_UPDATE)
      updates[t->ops[i].writes.at[0]]++;
  for (int32_t i = 0; i < t->n_tensors; i++)
    ck_assert_int_eq (updates[i], t->tensors[i].kind == TENSOR_PARAMETER);
}

/* Where the layer's name ends in an op's. */
static size_t layer_length (const op *o, const compute *c) {
  return strlen (o->name) - strlen (compute_kind_names[c->kind]);
}

/* "fc6.linear_bwd_data" and "fc6.linear_fwd", but not "fc6.relu_fwd". */
static bool same_layer (const char *forward, const char *backward, size_t length) {
  size_t stem = length + strcspn (forward + length, "_");
  return strncmp (forward, backward, stem + 1) == 0 && forward[stem] == '_';
}

/* An operand of the way back that has the name of one of the layer's forward op (its input, a
   weight, what it saved) is the same tensor, and nobody has written to it in between. */
static void check_versions (const trace *t) {
  typedef struct sight {
    const char *operand;
    int32_t op, tensor, version;
    size_t length;
  } sight;
  enum { MOST = 60000 };
  int32_t *version = NEW (room, t->n_tensors, int32_t, &err), n = 0;
  sight *seen = NEW (room, MOST, sight, &err);
  ck_assert (version && seen);
  for (int32_t i = 0; i < t->n_ops; i++) {
    const op *o = &t->ops[i];
    compute c = read_compute (t, i);
    operand operands[COMPUTE_MOST_OPERANDS];
    int count = compute_operands (&c, operands), reads = 0, writes = 0;
    size_t length = layer_length (o, &c);
    for (int32_t k = 0; k < o->writes.count; k++)
      version[o->writes.at[k]]++;
    for (int k = 0; k < count; k++) {
      const operand *p = &operands[k];
      int32_t x = operand_reads (p) ? o->reads.at[reads++] : -1;
      x = operand_writes (p) ? o->writes.at[writes++] : x;
      bool keeps = p->use == READ || p->use == WRITE;
      if (o->phase == OP_FORWARD && keeps && n < MOST)
        seen[n++] = (sight){ p->name, i, x, version[x], length };
      for (int32_t f = 0; f < n && o->phase == OP_BACKWARD && p->use == READ; f++)
        if (seen[f].length == length && strcmp (seen[f].operand, p->name) == 0 &&
            same_layer (t->ops[seen[f].op].name, o->name, length))
          ck_assert_msg (seen[f].tensor == x && seen[f].version == version[x],
                         "%s reads another %s than %s did", o->name, p->name,
                         t->ops[seen[f].op].name);
    }
  }
}

/* What is added to a gradient is used: but for a state before the first step, and for a
   discriminator that learns nothing just now. */
static void check_gradients (const trace *t) {
  int32_t *last_read = NEW (room, t->n_tensors, int32_t, &err);
  ck_assert_ptr_nonnull (last_read);
  for (int32_t i = 0; i < t->n_ops; i++)
    for (int32_t k = 0; k < t->ops[i].reads.count; k++)
      last_read[t->ops[i].reads.at[k]] = i;
  for (int32_t i = 0; i < t->n_ops; i++)
    for (int32_t k = 0; k < t->ops[i].writes.count; k++) {
      const tensor *x = &t->tensors[t->ops[i].writes.at[k]];
      if (x->kind == TENSOR_GRADIENT && strncmp (x->name, "d.judged.", 9) != 0 &&
          strcmp (x->name, "d0.input.dx1") != 0 && strstr (x->name, ".dc_before") == NULL)
        ck_assert_msg (last_read[t->ops[i].writes.at[k]] > i, "%s writes %s for nobody",
                       t->ops[i].name, x->name);
    }
}

static void check_whole (const zoo_request *r) {
  const trace *t = made (r);
  ck_assert_msg (trace_validate (t, &err), "%s: %s", r->name, told ());
  ck_assert_int_eq (t->batch, r->batch);
  for (int32_t i = 0; i < t->n_ops; i++)
    check_operands (t, i);
  check_lives (t);
  check_updates (t);
  check_gradients (t);
  if (t->n_ops < 2000) /* compares every op with every other */
    check_versions (t);
}

START_TEST (every_trace_makes_sense_op_by_op) {
  int count;
  const zoo_network *list = zoo_list (&count);
  for (int i = 0; i < count; i++) {
    zoo_request r = varied (list[i].name, _i);
    if (strlen (r.name) == strlen ("resnet1001") && r.depth_divisor < 8)
      r.depth_divisor = 8; /* the same blocks, only more of them */
    check_whole (&r);
  }
}
END_TEST

START_TEST (small_relatives_can_be_built) {
  static const zoo_request small[] = {
    { .name = "vgg16", .batch = 4, .image = 32, .width_divisor = 8, .classes = 10 },
    { .name = "resnet18", .batch = 4, .image = 32, .width_divisor = 8, .classes = 10 },
    { .name = "unet3d", .batch = 2, .image = 16, .width_divisor = 16 },
    { .name = "dcgan", .batch = 4, .image = 16, .width_divisor = 16 },
    { .name = "charrnn", .batch = 4, .seq = 8, .width_divisor = 16, .classes = 32 },
    { .name = "seq2seq", .batch = 4, .seq = 5, .width_divisor = 32, .classes = 50 },
    /* More words than one op joins. */
    { .name = "seq2seq", .batch = 2, .seq = 130, .width_divisor = 64, .classes = 10 },
    { .name = "gpt2",
      .batch = 2,
      .seq = 16,
      .width_divisor = 6,
      .depth_divisor = 6,
      .classes = 64 },
    { .name = "llama-1b",
      .batch = 2,
      .seq = 16,
      .width_divisor = 8,
      .depth_divisor = 8,
      .classes = 64,
      .explicit_attention = true },
    { .name = "bert-base", .batch = 2, .seq = 16, .width_divisor = 12, .depth_divisor = 12 },
    { .name = "vit-b", .batch = 2, .image = 32, .width_divisor = 6, .depth_divisor = 6 },
    { .name = "googlenet", .batch = 2, .image = 64, .width_divisor = 4 },
    { .name = "inception3", .batch = 2, .width_divisor = 8 },
    { .name = "densenet121", .batch = 2, .image = 64, .width_divisor = 4, .depth_divisor = 4 },
    { .name = "resnet1001", .batch = 1, .image = 32, .width_divisor = 16 },
    { .name = "resnet302", .batch = 1, .image = 32, .width_divisor = 16 },
  };
  for (size_t i = 0; i < sizeof small / sizeof small[0]; i++) {
    zoo_request r = small[i];
    r.device = &card;
    check_whole (&r);
  }
}
END_TEST

START_TEST (the_backward_of_each_layer_reads_what_it_saved) {
  static const struct {
    const char *network, *saved, *reader;
  } cases[] = {
    { "vgg16", "conv1_1.y", "pool1.maxpool_bwd" }, /* wrong on purpose: see below */
    { "vgg16", "conv1_2.y", "pool1.maxpool_bwd" },
    { "vgg16", "pool1.y", "pool1.maxpool_bwd" },
    { "vgg16", "pool1.y", "conv2_1.conv_bwd_weights" },
    { "vgg16", "conv1_1.y", "conv1_1.relu_bwd" },
    { "vgg16", "drop6.mask", "drop6.dropout_bwd" },
    { "resnet50", "bn1.mean", "bn1.batchnorm_bwd" },
    { "resnet50", "conv1.y", "bn1.batchnorm_bwd" },
    { "gpt2", "h0.attention.lse", "h0.attention.attention_bwd" },
    { "gpt2", "h0.attention.qkv.y", "h0.attention.attention_bwd" },
    { "gpt2", "h0.mlp.in.y", "h0.mlp.gelu.gelu_bwd" },
    { "gpt2", "h0.ln1.rstd", "h0.ln1.layernorm_bwd" },
    { "charrnn", "t3.lstm1.gates", "t3.lstm1.lstm_bwd" },
    { "charrnn", "t3.lstm1.c", "t4.lstm1.lstm_bwd" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    zoo_request r = { .name = cases[i].network, .batch = 2, .device = &card };
    const trace *t = made (&r);
    bool found = false;
    for (int32_t k = 0; k < t->n_ops; k++)
      if (strcmp (t->ops[k].name, cases[i].reader) == 0)
        for (int32_t x = 0; x < t->ops[k].reads.count; x++)
          found |= strcmp (t->tensors[t->ops[k].reads.at[x]].name, cases[i].saved) == 0;
    ck_assert_msg (found == (i > 0), "%s: %s reads %s: %d", r.name, cases[i].reader, cases[i].saved,
                   found);
  }
}
END_TEST

START_TEST (bfloat_halves_activations_and_keeps_a_master_copy) {
  zoo_request r = { .name = "resnet50", .batch = 8, .optimizer = ZOO_ADAM, .device = &card };
  int64_t bytes[2][TENSOR_KINDS] = { 0 };
  for (int half = 0; half < 2; half++) {
    r.dtype = half ? DTYPE_BF16 : DTYPE_FP32;
    const trace *t = made (&r);
    for (int32_t i = 0; i < t->n_tensors; i++)
      bytes[half][t->tensors[i].kind] += t->tensors[i].bytes;
  }
  ck_assert_int_eq (bytes[0][TENSOR_PARAMETER], 2 * bytes[1][TENSOR_PARAMETER]);
  ck_assert_int_lt (bytes[1][TENSOR_ACTIVATION], bytes[0][TENSOR_ACTIVATION] * 51 / 100);
  ck_assert_int_eq (bytes[1][TENSOR_OPTIMIZER],
                    bytes[0][TENSOR_OPTIMIZER] + bytes[0][TENSOR_PARAMETER]);
}
END_TEST

START_TEST (the_same_request_makes_the_same_trace) {
  static const char *const names[] = { "resnet50", "gpt2", "seq2seq", "dcgan" };
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    char first[TRACE_DIGEST], second[TRACE_DIGEST], other[TRACE_DIGEST];
    zoo_request r = { .name = names[i], .batch = 4, .device = &card };
    ck_assert (trace_digest (made (&r), first, &err));
    ck_assert (trace_digest (made (&r), second, &err));
    r.batch = 5;
    ck_assert (trace_digest (made (&r), other, &err));
    ck_assert_str_eq (first, second);
    ck_assert_str_ne (first, other);
  }
}
END_TEST

/* A change of this digest is a change of every plan made for such traces: it must be meant. */
START_TEST (the_digest_of_a_known_trace_stays) {
  char digest[TRACE_DIGEST];
  zoo_request r = { .name = "vgg16", .batch = 4, .optimizer = ZOO_MOMENTUM, .device = &card };
  ck_assert (trace_digest (made (&r), digest, &err));
  ck_assert_str_eq (digest,
                    "sha256:ec29f5d7bee744f13b61743936e3b372f893423d7c12fb97c1b75f72f9153aee");
  r = (zoo_request){ .name = "seq2seq", .batch = 2, .seq = 4, .device = &card };
  ck_assert (trace_digest (made (&r), digest, &err));
  ck_assert_str_eq (digest,
                    "sha256:2b4029ca9a1cdb726729d17cdf96365478c2c1691db073691b73b5790d13640a");
}
END_TEST

/* ---- sections ---- */

static int32_t first_of (const trace *t, op_phase phase) {
  int32_t i = 0;
  while (i < t->n_ops && t->ops[i].phase != phase)
    i++;
  return i;
}

START_TEST (a_network_without_batch_norm_can_be_cut_as_a_whole) {
  static const char *const names[] = { "vgg16", "gpt2", "charrnn", "llama-1b", "vit-b" };
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    zoo_request r = { .name = names[i], .batch = 6, .depth_divisor = 8, .device = &card };
    r.seq = strcmp (names[i], "charrnn") == 0 ? 5 : 0;
    const trace *t = made (&r);
    for (int32_t k = 0; k < first_of (t, OP_UPDATE); k++)
      ck_assert_msg (t->ops[k].parts == 6, "%s runs once", t->ops[k].name);
    section whole = { 0, first_of (t, OP_UPDATE), 3, SECTION_DEPTH };
    rewritten out;
    ck_assert_msg (trace_rewrite (t, &whole, 1, NULL, 0, 0, room, &out, &err), "%s: %s", r.name,
                   told ());
    ck_assert_int_eq (out.trace->n_ops, t->n_ops + 2 * whole.end);
  }
}
END_TEST

START_TEST (batch_norm_needs_the_whole_batch) {
  zoo_request r = { .name = "resnet18", .batch = 6, .device = &card };
  const trace *t = made (&r);
  for (int32_t k = 0; k < first_of (t, OP_UPDATE); k++)
    ck_assert_int_eq (t->ops[k].parts, strstr (t->ops[k].name, "batchnorm") != NULL ? 1 : 6);
}
END_TEST

/* ---- compute and roofline ---- */

START_TEST (what_is_written_is_read_again) {
  static const char *const names[] = { "inception3", "unet3d", "seq2seq", "llama-1b", "bert-base" };
  bool seen[COMPUTE_KINDS] = { false };
  for (size_t i = 0; i < 2 * sizeof names / sizeof names[0]; i++) {
    zoo_request r = { .name = names[i / 2],
                      .batch = 3,
                      .explicit_attention = i % 2,
                      .depth_divisor = 4,
                      .device = &card };
    const trace *t = made (&r);
    for (int32_t k = 0; k < t->n_ops; k++) {
      compute c = read_compute (t, k);
      const char *again = compute_text (&c, room, &err);
      ck_assert_ptr_nonnull (again);
      ck_assert_str_eq (again, t->ops[k].compute);
      seen[c.kind] = true;
    }
  }
  ck_assert (seen[COMPUTE_concat_fwd] && seen[COMPUTE_deconv_bwd_weights] &&
             seen[COMPUTE_attention_bwd] && seen[COMPUTE_matmul] && seen[COMPUTE_repeat_bwd]);
}
END_TEST

START_TEST (every_kind_is_made_by_some_network) {
  bool seen[COMPUTE_KINDS] = { false };
  int count;
  const zoo_network *list = zoo_list (&count);
  for (int i = 0; i < count; i++)
    for (int k = 0; k < ZOO_OPTIMIZERS; k++) {
      zoo_request r = { .name = list[i].name,
                        .batch = 1,
                        .optimizer = (zoo_optimizer)k,
                        .explicit_attention = k == 1,
                        .depth_divisor = 50,
                        .device = &card };
      const trace *t = made (&r);
      for (int32_t o = 0; o < t->n_ops; o++)
        seen[read_compute (t, o).kind] = true;
    }
  for (int i = 0; i < COMPUTE_KINDS; i++)
    if (i != COMPUTE_adaptive_fwd && i != COMPUTE_adaptive_bwd)
      ck_assert_msg (seen[i], "nobody makes %s", compute_kind_names[i]);
}
END_TEST

START_TEST (a_bad_compute_is_refused) {
  static const char *const bad[] = {
    "{\"dtype\":\"fp32\",\"kind\":\"cov_fwd\"}",
    "{\"kind\":\"add\",\"batch\":1,\"size\":1}",
    "{\"dtype\":\"fp64\",\"kind\":\"add\",\"batch\":1,\"size\":1}",
    "{\"dtype\":\"fp32\",\"kind\":\"add\",\"batch\":1}",
    "{\"dtype\":\"fp32\",\"kind\":\"add\",\"batch\":0,\"size\":4}",
    "{\"dtype\":\"fp32\",\"kind\":\"add\",\"batch\":1,\"size\":-4}",
    "{\"dtype\":\"fp32\",\"kind\":\"add\",\"batch\":1,\"size\":4,\"sise\":4}",
    "{\"dtype\":\"fp32\",\"kind\":\"add\",\"batch\":4503599627370496,\"size\":4503599627370496}",
    "{\"dtype\":\"fp32\",\"kind\":\"concat_fwd\",\"batch\":1,\"outer\":1}",
    "{\"dtype\":\"fp32\",\"kind\":\"concat_fwd\",\"batch\":1,\"outer\":1,\"sizes\":[3,0]}",
    "{\"dtype\":\"fp32\",\"kind\":\"concat_fwd\",\"batch\":1,\"outer\":1,\"sizes\":[]}",
    "{\"dtype\":\"fp32\",\"kind\":\"add\",\"batch\":1.5,\"size\":4}",
    "[]",
    /* the second head would end behind the item */
    "{\"dtype\":\"fp32\",\"kind\":\"matmul\",\"batch\":1,\"heads\":2,\"m\":2,\"n\":2,\"k\":2,"
    "\"a_item\":7,\"a_head\":4,\"a_row\":2,\"b_item\":8,\"b_head\":4,\"b_row\":2,"
    "\"c_item\":8,\"c_head\":4,\"c_row\":2}",
    "{\"dtype\":\"fp32\",\"kind\":\"select_fwd\",\"batch\":1,\"rows\":2,\"width\":1,\"row\":2}",
    ("{\"dtype\":\"fp32\",\"kind\":\"rotary_fwd\",\"batch\":1,\"rows\":2,\"heads\":1,"
     "\"width\":3,\"theta\":10000}"),
  };
  compute c;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    err = (error){ 0 };
    ck_assert_msg (!compute_parse (bad[i], &c, &err), "%s is taken", bad[i]);
    ck_assert_int_eq (err.code, ERR_input);
  }
  err = (error){ 0 };
  ck_assert (
      compute_parse ("{\"dtype\":\"fp32\",\"kind\":\"add\",\"batch\":1,\"size\":4}", &c, &err));
}
END_TEST

/* By hand: 2 x 4 x 1000 x 500 x 250 = 10^9 flops at 20 x 10^12 are 50,000 ns; the bytes, 4 x (4 x
   500 x 1000 + 250 x 500 + ... ), take less. */
START_TEST (times_are_the_roofline_by_hand) {
  device d = card;
  compute c = { .kind = COMPUTE_linear_fwd, .dtype = DTYPE_FP32 };
  c.linear = (compute_linear){ .batch = 4, .rows = 1000, .in = 500, .out = 250 };
  int64_t ns;
  ck_assert_int_eq (compute_flops (&c), 1000000000);
  ck_assert_int_eq (compute_bytes (&c), 4 * (4 * 1000 * 500 + 500 * 250 + 4 * 1000 * 250));
  ck_assert (roofline_ns (&d, &c, &ns, &err));
  ck_assert_int_eq (ns, 50000);
  d.roofline.efficiency_ppm = 600000;
  d.roofline.op_ns = 7;
  ck_assert (roofline_ns (&d, &c, &ns, &err));
  ck_assert_int_eq (ns, 83334 + 7); /* 83333.3 rounded up */
  /* 12,000,000 bytes both ways at 1555 GB/s: 7717.04 ns */
  d = card;
  c = (compute){ .kind = COMPUTE_relu_fwd };
  c.relu = (compute_relu){ .batch = 3, .size = 500000, .in_place = 1 };
  ck_assert_int_eq (compute_bytes (&c), 12000000);
  ck_assert (roofline_ns (&d, &c, &ns, &err));
  ck_assert_int_eq (ns, 7718);
  d.roofline.bf16_flops = 0;
  c = (compute){ .kind = COMPUTE_linear_fwd, .dtype = DTYPE_BF16 };
  c.linear = (compute_linear){ .batch = 4, .rows = 1000, .in = 500, .out = 250 };
  ck_assert (!roofline_ns (&d, &c, &ns, &err));
  ck_assert_ptr_nonnull (strstr (err.text, "bf16"));
}
END_TEST

START_TEST (a_request_that_makes_no_sense_is_told_so) {
  static const struct {
    zoo_request r;
    const char *says;
  } cases[] = {
    { { .name = "vgg17", .batch = 1 }, "no network is called" },
    { { .name = "resnet51", .batch = 1 }, "no network is called" },
    { { .name = "resnet", .batch = 1 }, "no network is called" },
    { { .name = "vgg16", .batch = 0 }, "batch" },
    { { .name = "vgg16", .batch = 1, .image = 16 }, "larger --image" },
    { { .name = "vgg16", .batch = 1, .seq = 16 }, "--seq" },
    { { .name = "gpt2", .batch = 1, .image = 16 }, "--image" },
    { { .name = "gpt2", .batch = 1, .seq = 1025 }, "1024 positions" },
    { { .name = "dcgan", .batch = 1, .image = 48 }, "must be" },
    { { .name = "unet3d", .batch = 1, .image = 20 }, "multiple of 8" },
    { { .name = "unet3d", .batch = 65536, .image = 4096 }, "elements" },
    { { .name = "vgg16", .batch = 65536, .image = 65536 }, "elements" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    zoo_request r = cases[i].r;
    r.device = &card;
    err = (error){ 0 };
    ck_assert_msg (zoo_trace (&r, room, &err) == NULL, "%s is built", r.name);
    ck_assert_msg (strstr (err.text, cases[i].says) != NULL, "%s: %s", r.name, told ());
    ck_assert_int_eq (err.code, ERR_usage);
  }
}
END_TEST

START_TEST (an_allocation_that_fails_is_only_an_error) {
  for (int64_t fuse = 1; fuse < 4000; fuse += fuse < 200 ? 1 : 37) {
    arena *a = arena_new (0);
    ck_assert_ptr_nonnull (a);
    arena_fuse (a, fuse);
    err = (error){ 0 };
    zoo_request r = { .name = "seq2seq", .batch = 1, .seq = 3, .device = &card };
    if (zoo_trace (&r, a, &err) == NULL)
      ck_assert_int_eq (err.code, ERR_memory);
    arena_free (a);
  }
}
END_TEST

/* ---- device files ---- */

START_TEST (every_shipped_device_can_be_read) {
  static const char *const names[] = { "titanx-pascal", "titanx-maxwell", "m40",         "p100",
                                       "p100-nvlink",   "v100",           "v100-nvlink", "a100-40",
                                       "a100-80",       "h100-pcie",      "h100-sxm",    "h200",
                                       "rtx4090",       "gh200" };
  const char *source = getenv ("srcdir");
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    device d;
    read_options strict = { .strict = true };
    const char *path = arena_format (room, &err, "%s/data/devices/%s.json",
                                     source != NULL ? source : ".", names[i]);
    ck_assert_ptr_nonnull (path);
    ck_assert_msg (device_load (path, &strict, room, &d, &err), "%s: %s", path, told ());
    ck_assert_str_eq (d.name, names[i]);
    ck_assert (d.has_roofline && d.link.both_bytes_per_s >= d.link.h2d_bytes_per_s);
    zoo_request r = { .name = "alexnet", .batch = 8, .device = &d };
    ck_assert_int_gt (trace_total_ns (made (&r)), 0);
  }
}
END_TEST

int main (void) {
  Suite *s = suite_create ("zoo");
  TCase *c = tcase_create ("zoo");
  tcase_add_checked_fixture (c, set_up, tear_down);
  tcase_set_timeout (c, 60);
  tcase_add_loop_test (c, parameters_are_the_published_number, 0, N_PUBLISHED);
  tcase_add_test (c, the_list_states_what_is_built);
  tcase_add_loop_test (c, forward_flops_are_the_published_number, 0, N_PUBLISHED);
  tcase_add_loop_test (c, every_trace_makes_sense_op_by_op, 0, VARIANTS);
  tcase_add_test (c, small_relatives_can_be_built);
  tcase_add_test (c, the_backward_of_each_layer_reads_what_it_saved);
  tcase_add_test (c, bfloat_halves_activations_and_keeps_a_master_copy);
  tcase_add_test (c, the_same_request_makes_the_same_trace);
  tcase_add_test (c, the_digest_of_a_known_trace_stays);
  tcase_add_test (c, a_network_without_batch_norm_can_be_cut_as_a_whole);
  tcase_add_test (c, batch_norm_needs_the_whole_batch);
  tcase_add_test (c, what_is_written_is_read_again);
  tcase_add_test (c, every_kind_is_made_by_some_network);
  tcase_add_test (c, a_bad_compute_is_refused);
  tcase_add_test (c, times_are_the_roofline_by_hand);
  tcase_add_test (c, a_request_that_makes_no_sense_is_told_so);
  tcase_add_test (c, an_allocation_that_fails_is_only_an_error);
  tcase_add_test (c, every_shipped_device_can_be_read);
  suite_add_tcase (s, c);
  SRunner *runner = srunner_create (s);
  srunner_run_all (runner, CK_ENV);
  int failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
