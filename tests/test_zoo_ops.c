/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every trace of the zoo, op by op: what it reads, writes and keeps. */
#include <string.h>

#include "tests/zoo_case.h"

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

CLAIM_EACH (every_trace_makes_sense_op_by_op, 0, VARIANTS) {
  int count;
  const zoo_network *list = zoo_list (&count);
  for (int i = 0; i < count; i++) {
    zoo_request r = varied (list[i].name, _i);
    if (strlen (r.name) == strlen ("resnet1001") && r.depth_divisor < 8)
      r.depth_divisor = 8; /* the same blocks, only more of them */
    check_whole (&r);
  }
}

CLAIM (small_relatives_can_be_built) {
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

CLAIM (the_backward_of_each_layer_reads_what_it_saved) {
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

int main (void) {
  return suite_run_with ("zoo ops", zoo_set_up, zoo_tear_down, 60);
}
