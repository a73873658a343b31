/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The layers: each appends its forward ops and leaves a node for its backward ones. */
#pragma once

#include "trace/zoo/net.h"

/* One number for all axes; depth 1 stays as it is (kernel 1, no stride, no padding). */
typedef struct window {
  int64_t kernel, stride, pad;
} window;

/* ---- layers_image.c ---- */
value conv (net *n, const char *name, value x, int64_t channels, window w, bool bias);
/* A kernel of two edges; padded so that the size stays. */
value conv_flat (net *n, const char *name, value x, int64_t channels, int64_t kernel_h,
                 int64_t kernel_w);
value deconv (net *n, const char *name, value x, int64_t channels, window w, bool bias);
value maxpool (net *n, const char *name, value x, window w, bool ceil);
value avgpool (net *n, const char *name, value x, window w);
/* To edge x edge, whatever it is now (nothing where it is that already). */
value adaptive (net *n, const char *name, value x, int64_t edge);
/* The middle, as large as `like`. */
value crop (net *n, const char *name, value x, value like);
value batchnorm (net *n, const char *name, value x, bool affine, int64_t eps_ppt);
/* Channels behind each other, or rows for sequences. */
value concat (net *n, const char *name, const value *x, int count);

/* ---- layers_map.c ---- */
value relu (net *n, const char *name, value x, int64_t slope_ppm); /* in place */
value tanh_layer (net *n, const char *name, value x);
value sigmoid (net *n, const char *name, value x);
value gelu (net *n, const char *name, value x, bool tanh);
value swiglu (net *n, const char *name, value gate, value up);
value add (net *n, const char *name, value a, value b, bool in_place); /* on a */
value dropout (net *n, const char *name, value x, int64_t rate_ppm);   /* x itself for rate 0 */
value zeros (net *n, const char *name, int64_t size);
/* Classes along c (rows of c, or c x d x h x w); weight 0 counts as 1. */
void entropy (net *n, const char *name, value x, value target, bool image, int64_t weight_ppm);
void binary_entropy (net *n, const char *name, value x, bool label);

/* ---- layers_rows.c: sequences of h rows of c elements ---- */
value linear (net *n, const char *name, value x, int64_t out, bool bias);
/* With parameters that exist already. */
value linear_with (net *n, const char *name, value x, int64_t out, param w, param b);
value layernorm (net *n, const char *name, value x, int64_t eps_ppt);
value rmsnorm (net *n, const char *name, value x, int64_t eps_ppt);
value embedding (net *n, const char *name, value token, param table, int64_t table_rows,
                 int64_t width);
value position (net *n, const char *name, value x, param table, int64_t table_rows); /* in place */
value prepend (net *n, const char *name, value x);
value select_row (net *n, const char *name, value x, int64_t row);
value add_row (net *n, const char *name, value x, value one);
value transpose (net *n, const char *name, value x); /* c x (d h w) to rows of c */
/* a (rows of h x c) times b (a.c rows of b.c) */
value product (net *n, const char *name, value a, value b);
value softmax (net *n, const char *name, value x); /* over c */

/* ---- layers_attention.c ---- */
typedef struct attention_form {
  int64_t heads, kv_heads, width; /* kv_heads may be fewer; width of one head */
  bool causal;
  int64_t dropout_ppm;
} attention_form;
/* With the score matrix where the request wants it. */
value attention (net *n, const char *name, value q, value k, value v, attention_form f);
/* q, k and v side by side in one tensor. */
value attention_packed (net *n, const char *name, value qkv, attention_form f);
value rotary (net *n, const char *name, value x, int64_t heads, int64_t theta); /* in place */

/* ---- layers_recurrent.c ---- */
typedef struct lstm_weights {
  param w_x, w_h, b_x, b_h;
  int64_t hidden;
} lstm_weights;
typedef struct lstm_state {
  value h, c;
} lstm_state;
lstm_weights lstm_new (net *n, const char *name, int64_t in, int64_t hidden);
lstm_state lstm_start (net *n, const char *name, int64_t hidden);
lstm_state lstm_step (net *n, const char *name, const lstm_weights *w, value x, lstm_state s);
