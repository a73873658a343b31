/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An LSTM, one step at a time: two products, then the cell. */
#include "trace/zoo/layers.h"

lstm_weights lstm_new (net *n, const char *layer, int64_t in, int64_t hidden) {
  const char *name = net_name (n, layer);
  lstm_weights w = { .hidden = hidden };
  w.w_x = net_param (n, name, "weight_ih", 4 * hidden * in);
  w.w_h = net_param (n, name, "weight_hh", 4 * hidden * hidden);
  w.b_x = net_param (n, name, "bias_ih", 4 * hidden);
  w.b_h = net_param (n, name, "bias_hh", 4 * hidden);
  return w;
}

lstm_state lstm_start (net *n, const char *name, int64_t hidden) {
  lstm_state s;
  s.h = zeros (n, net_join (n, name, "h0"), hidden);
  s.c = zeros (n, net_join (n, name, "c0"), hidden);
  return s;
}

/* in: gate_x, gate_h, c before; out: h; second: c. */
static void cell_back (net *n, const node *k) {
  bool alone;
  int32_t dh = net_take (n, k->out, &alone), dc = net_take (n, k->second, &alone);
  if (dh == NO_TENSOR && dc == NO_TENSOR)
    return;
  compute c = k->c;
  c.kind = COMPUTE_lstm_bwd;
  c.lstm.has_dh = dh != NO_TENSOR;
  c.lstm.has_dc = dc != NO_TENSOR;
  int32_t t[] = { k->saved[0], net_tensor (n, k->in[2]), net_tensor (n, k->second), dh, dc, MADE,
                  MADE };
  net_op (n, k->name, &c, t);
  net_give_both (n, k->in[0], k->in[1], t[5]);
  net_give (n, k->in[2], t[6]);
}

lstm_state lstm_step (net *n, const char *layer, const lstm_weights *w, value x, lstm_state s) {
  value gate_x = linear_with (n, net_join (n, layer, "input"), x, 4 * w->hidden, w->w_x, w->b_x);
  value gate_h = linear_with (n, net_join (n, layer, "hidden"), s.h, 4 * w->hidden, w->w_h, w->b_h);
  const char *name = net_name (n, layer);
  compute c = { .kind = COMPUTE_lstm_fwd };
  c.lstm = (compute_lstm){ .batch = n->batch, .hidden = w->hidden };
  int32_t t[] = {
    net_tensor (n, gate_x), net_tensor (n, gate_h), net_tensor (n, s.c), MADE, MADE, MADE
  };
  net_op (n, name, &c, t);
  lstm_state next = { net_value (n, name, t[3], w->hidden, 1, 1, 1),
                      net_value (n, net_join (n, name, "c"), t[4], w->hidden, 1, 1, 1) };
  node *k = net_node (n, name, cell_back, &c, next.h);
  if (k != NULL) {
    net_at (n, next.c)->wants_gradient = true;
    k->in[0] = gate_x;
    k->in[1] = gate_h;
    k->in[2] = s.c;
    k->second = next.c;
    k->saved[0] = t[5];
  }
  return next;
}
