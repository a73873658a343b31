/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Unrolled LSTMs: a model of characters, and translation with additive attention. */
#include <stdio.h>

#include "trace/zoo/families.h"

enum { MOST_LAYERS = 8 };

typedef struct stack {
  int64_t layers;
  lstm_weights weights[MOST_LAYERS];
  lstm_state state[MOST_LAYERS];
} stack;

static stack stack_new (net *n, const char *name, int64_t layers, int64_t in, int64_t hidden) {
  char text[64];
  stack s = { .layers = layers };
  for (int64_t i = 0; i < layers; i++) {
    snprintf (text, sizeof text, "%s%lld", name, (long long)i + 1);
    s.weights[i] = lstm_new (n, text, i == 0 ? in : hidden, hidden);
    s.state[i] = lstm_start (n, text, hidden);
  }
  return s;
}

static value stack_step (net *n, const char *name, stack *s, value x, int64_t drop) {
  char text[64];
  for (int64_t i = 0; i < s->layers; i++) {
    snprintf (text, sizeof text, "%s%lld", name, (long long)i + 1);
    s->state[i] = lstm_step (n, text, &s->weights[i], x, s->state[i]);
    x = s->state[i].h;
    snprintf (text, sizeof text, "%s%lld.drop", name, (long long)i + 1);
    if (i + 1 < s->layers)
      x = dropout (n, text, x, drop);
  }
  return x;
}

static value token (net *n, const char *name, int64_t step) {
  char text[64];
  snprintf (text, sizeof text, "%s%lld", name, (long long)step);
  return net_tokens (n, text, 1);
}

/* Two layers of 512; a loss for each character. */
void charrnn_step (net *n) {
  int64_t hidden = net_thin (n, 512), classes = n->classes;
  param letters = net_param (n, "letters", "weight", classes * hidden);
  stack s = stack_new (n, "lstm", net_few (n, 2), hidden, hidden);
  param w = net_param (n, "out", "weight", hidden * classes);
  param b = net_param (n, "out", "bias", classes);
  for (int64_t t = 0; t < n->seq && !n->failed; t++) {
    net_scope_end (n);
    value in = token (n, "char", t), target = token (n, "target", t);
    net_scope (n, "t%lld.", (long long)t);
    value x = embedding (n, "letters", in, letters, classes, hidden);
    x = stack_step (n, "lstm", &s, x, 0);
    x = linear_with (n, "out", x, classes, w, b);
    entropy (n, "loss", x, target, false, 1000000 / n->seq);
  }
  net_scope_end (n);
  learn (n);
}

typedef struct additive {
  param query, query_bias, score; /* the scores' vector */
  value keys, values;             /* a row for each source word */
  int64_t width;
} additive;

/* softmax over the words of v . tanh (keys + query), times the encoder's states. */
static value attend (net *n, const additive *a, value h) {
  int64_t words = net_at (n, a->keys)->h;
  value query = linear_with (n, "attention.query", h, a->width, a->query, a->query_bias);
  value x = tanh_layer (n, "attention.tanh", add_row (n, "attention.sum", a->keys, query));
  x = linear_with (n, "attention.score", x, 1, a->score, NO_PARAM);
  x = softmax (n, "attention.softmax", net_reshape (n, x, words, 1, 1, 1));
  return product (n, "attention.context", x, a->values);
}

static additive encode (net *n, int64_t words, int64_t hidden, int64_t layers) {
  additive a = { .width = hidden };
  value *states = NEW (n->a, n->seq, value, n->err);
  if (states == NULL) {
    n->failed = true;
    return a;
  }
  param table = net_param (n, "source", "weight", words * hidden);
  stack s = stack_new (n, "encoder", layers, hidden, hidden);
  for (int64_t t = 0; t < n->seq && !n->failed; t++) {
    net_scope_end (n);
    value in = token (n, "source", t);
    net_scope (n, "e%lld.", (long long)t);
    value x = embedding (n, "words", in, table, words, hidden);
    states[t] = stack_step (n, "encoder", &s, x, 200000);
  }
  net_scope_end (n);
  a.values = concat (n, "states", states, (int)n->seq);
  a.values = net_reshape (n, a.values, hidden, 1, n->seq, 1);
  a.keys = linear (n, "keys", a.values, hidden, false);
  a.query = net_param (n, "query", "weight", hidden * hidden);
  a.query_bias = net_param (n, "query", "bias", hidden);
  a.score = net_param (n, "score", "weight", hidden);
  return a;
}

/* Source and target of equal length; two layers of 512 each; the context goes into the next step
   and into the word's scores. */
void seq2seq_step (net *n) {
  int64_t hidden = net_thin (n, 512), words = n->classes, layers = net_few (n, 2);
  additive a = encode (n, words, hidden, layers);
  param table = net_param (n, "target", "weight", words * hidden);
  stack s = stack_new (n, "decoder", layers, 2 * hidden, hidden);
  param w = net_param (n, "out", "weight", words * 2 * hidden);
  param b = net_param (n, "out", "bias", words);
  value context = zeros (n, "context0", hidden);
  for (int64_t t = 0; t < n->seq && !n->failed; t++) {
    net_scope_end (n);
    value in = token (n, "given", t), target = token (n, "target", t);
    net_scope (n, "d%lld.", (long long)t);
    value pair[2];
    pair[0] = embedding (n, "words", in, table, words, hidden);
    pair[1] = context;
    value h = stack_step (n, "decoder", &s, concat (n, "input", pair, 2), 200000);
    context = attend (n, &a, h);
    value both[2];
    both[0] = h;
    both[1] = context;
    value x = linear_with (n, "out", concat (n, "joined", both, 2), words, w, b);
    entropy (n, "loss", x, target, false, 1000000 / n->seq);
  }
  net_scope_end (n);
  learn (n);
}
