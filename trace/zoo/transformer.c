/* SPDX-License-Identifier: GPL-3.0-or-later */
/* BERT, GPT-2, LLaMA and ViT: blocks of attention and a feed-forward part. */
#include "trace/zoo/families.h"

typedef struct transformer_size {
  int64_t layers, heads, kv_heads, width, inner, positions; /* width of one head */
  bool tied;
} transformer_size;

/* Narrower: fewer heads of the same width. */
static transformer_size sized (const net *n, const transformer_size *s) {
  transformer_size t = *s;
  t.layers = net_few (n, s->layers);
  t.heads = net_thin (n, s->heads);
  t.kv_heads = t.heads % s->kv_heads == 0 && s->kv_heads < t.heads ? s->kv_heads : t.heads;
  if (s->kv_heads < s->heads)
    t.kv_heads = net_thin (n, s->kv_heads);
  while (t.heads % t.kv_heads != 0)
    t.kv_heads--;
  t.inner = net_thin (n, s->inner);
  return t;
}

static attention_form form_of (const transformer_size *s, bool causal, int64_t dropout_ppm) {
  return (attention_form){ s->heads, s->kv_heads, s->width, causal, dropout_ppm };
}

/* ---- GPT-2 and ViT: the norm first, q, k and v from one product ---- */

static value norm_first (net *n, value x, const transformer_size *s, bool causal, bool tanh,
                         int64_t eps_ppt, int64_t drop) {
  int64_t width = s->heads * s->width;
  value y = layernorm (n, "ln1", x, eps_ppt);
  y = linear (n, "attention.qkv", y, 3 * width, true);
  y = attention_packed (n, "attention", y, form_of (s, causal, drop));
  y = dropout (n, "attention.drop", linear (n, "attention.out", y, width, true), drop);
  x = add (n, "add1", x, y, false);
  y = layernorm (n, "ln2", x, eps_ppt);
  y = gelu (n, "mlp.gelu", linear (n, "mlp.in", y, s->inner, true), tanh);
  y = dropout (n, "mlp.drop", linear (n, "mlp.out", y, width, true), drop);
  return add (n, "add2", x, y, false);
}

void gpt2_step (net *n) {
  static const transformer_size sizes[] = {
    { 12, 12, 12, 64, 3072, 1024, true },
    { 24, 16, 16, 64, 4096, 1024, true },
    { 36, 20, 20, 64, 5120, 1024, true },
    { 48, 25, 25, 64, 6400, 1024, true },
  };
  transformer_size s = sized (n, &sizes[n->variant]);
  int64_t width = s.heads * s.width, drop = 100000;
  param words = net_param (n, "wte", "weight", n->classes * width);
  param places = net_param (n, "wpe", "weight", s.positions * width);
  value tokens = net_tokens (n, "tokens", n->seq), target = net_tokens (n, "targets", n->seq);
  value x = embedding (n, "wte", tokens, words, n->classes, width);
  x = dropout (n, "drop", position (n, "wpe", x, places, s.positions), drop);
  for (int64_t i = 0; i < s.layers && !n->failed; i++) {
    net_scope (n, "h%lld.", (long long)i);
    x = norm_first (n, x, &s, true, true, EPS_5, drop);
  }
  net_scope_end (n);
  x = layernorm (n, "ln_f", x, EPS_5);
  entropy (n, "loss", linear_with (n, "head", x, n->classes, words, NO_PARAM), target, false, 0);
  learn (n);
}

void vit_step (net *n) {
  static const transformer_size sizes[] = {
    { 12, 12, 12, 64, 3072, 0, false },
    { 24, 16, 16, 64, 4096, 0, false },
  };
  transformer_size s = sized (n, &sizes[n->variant]);
  int64_t width = s.heads * s.width;
  value x = net_input (n, "image", 3, 1, n->image, n->image);
  x = conv (n, "patches", x, width, (window){ 16, 16, 0 }, true);
  x = prepend (n, "class", transpose (n, "turn", x));
  int64_t rows = net_at (n, x)->h;
  x = position (n, "positions", x, net_param (n, "positions", "weight", rows * width), rows);
  for (int64_t i = 0; i < s.layers && !n->failed; i++) {
    net_scope (n, "h%lld.", (long long)i);
    x = norm_first (n, x, &s, false, false, EPS_6, 0);
  }
  net_scope_end (n);
  classify (n, select_row (n, "first", layernorm (n, "ln_f", x, EPS_6), 0));
}

/* ---- BERT: the norm last ---- */

static value bert_block (net *n, value x, const transformer_size *s, int64_t drop) {
  int64_t width = s->heads * s->width;
  value q = linear (n, "attention.q", x, width, true);
  value k = linear (n, "attention.k", x, width, true);
  value v = linear (n, "attention.v", x, width, true);
  value y = attention (n, "attention", q, k, v, form_of (s, false, drop));
  y = dropout (n, "attention.drop", linear (n, "attention.out", y, width, true), drop);
  x = layernorm (n, "ln1", add (n, "add1", y, x, false), EPS_12);
  y = gelu (n, "mlp.gelu", linear (n, "mlp.in", x, s->inner, true), false);
  y = dropout (n, "mlp.drop", linear (n, "mlp.out", y, width, true), drop);
  return layernorm (n, "ln2", add (n, "add2", y, x, false), EPS_12);
}

/* The encoder and its pooler have all the parameters of the published number; so that the step can
   learn something without further ones, the pooled vector itself serves as the scores of classes.
 */
void bert_step (net *n) {
  static const transformer_size sizes[] = {
    { 12, 12, 12, 64, 3072, 512, false },
    { 24, 16, 16, 64, 4096, 512, false },
  };
  transformer_size s = sized (n, &sizes[n->variant]);
  int64_t width = s.heads * s.width, drop = 100000;
  param words = net_param (n, "words", "weight", n->classes * width);
  param places = net_param (n, "positions", "weight", s.positions * width);
  param types = net_param (n, "types", "weight", 2 * width);
  value tokens = net_tokens (n, "tokens", n->seq), kinds = net_tokens (n, "token_types", n->seq);
  value x = embedding (n, "words", tokens, words, n->classes, width);
  x = add (n, "add", x, embedding (n, "types", kinds, types, 2, width), true);
  x = layernorm (n, "ln", position (n, "positions", x, places, s.positions), EPS_12);
  x = dropout (n, "drop", x, drop);
  for (int64_t i = 0; i < s.layers && !n->failed; i++) {
    net_scope (n, "h%lld.", (long long)i);
    x = bert_block (n, x, &s, drop);
  }
  net_scope_end (n);
  x = linear (n, "pooler", select_row (n, "first", x, 0), width, true);
  x = dropout (n, "pooled_drop", tanh_layer (n, "pooled", x), drop);
  entropy (n, "loss", x, net_tokens (n, "labels", 1), false, 0);
  learn (n);
}

/* ---- LLaMA ---- */

static value llama_block (net *n, value x, const transformer_size *s, int64_t theta) {
  int64_t width = s->heads * s->width;
  value y = rmsnorm (n, "norm1", x, EPS_5);
  value q = linear (n, "attention.q", y, width, false);
  value k = linear (n, "attention.k", y, s->kv_heads * s->width, false);
  value v = linear (n, "attention.v", y, s->kv_heads * s->width, false);
  q = rotary (n, "attention.rotary_q", q, s->heads, theta);
  k = rotary (n, "attention.rotary_k", k, s->kv_heads, theta);
  y = attention (n, "attention", q, k, v, form_of (s, true, 0));
  x = add (n, "add1", x, linear (n, "attention.out", y, width, false), false);
  y = rmsnorm (n, "norm2", x, EPS_5);
  value gate = linear (n, "mlp.gate", y, s->inner, false);
  value up = linear (n, "mlp.up", y, s->inner, false);
  y = linear (n, "mlp.down", swiglu (n, "mlp.swiglu", gate, up), width, false);
  return add (n, "add2", x, y, false);
}

void llama_step (net *n) {
  static const transformer_size sizes[] = {
    { 16, 32, 8, 64, 8192, 0, true },     /* Llama 3.2 1B */
    { 32, 32, 32, 128, 11008, 0, false }, /* LLaMA and Llama 2, 7B */
  };
  transformer_size s = sized (n, &sizes[n->variant]);
  int64_t width = s.heads * s.width, theta = s.tied ? 500000 : 10000;
  param words = net_param (n, "words", "weight", n->classes * width);
  value tokens = net_tokens (n, "tokens", n->seq), target = net_tokens (n, "targets", n->seq);
  value x = embedding (n, "words", tokens, words, n->classes, width);
  for (int64_t i = 0; i < s.layers && !n->failed; i++) {
    net_scope (n, "h%lld.", (long long)i);
    x = llama_block (n, x, &s, theta);
  }
  net_scope_end (n);
  x = rmsnorm (n, "norm", x, EPS_5);
  x = s.tied ? linear_with (n, "head", x, n->classes, words, NO_PARAM)
             : linear (n, "head", x, n->classes, false);
  entropy (n, "loss", x, target, false, 0);
  learn (n);
}
