/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The LSTM cell: input, forget, cell and output gate, `hidden` of each behind the other. */
#include "executor/ops/inner.h"

void op_lstm_fwd (const work *k) {
  int64_t n = k->c->lstm.hidden;
  const float *x = ops_float (k, 0), *before_h = ops_float (k, 1), *before = ops_float (k, 2);
  float *h = ops_float (k, 3), *c = ops_float (k, 4), *gates = ops_float (k, 5);
  for (int64_t item = 0; item < k->items; item++) {
    for (int64_t i = 0; i < 4 * n; i++) {
      float sum = x[i] + before_h[i];
      gates[i] = i / n == 2 ? ops_tanh (sum) : ops_sigmoid (sum);
    }
    for (int64_t i = 0; i < n; i++) {
      c[i] = gates[n + i] * before[i] + gates[i] * gates[2 * n + i];
      h[i] = gates[3 * n + i] * ops_tanh (c[i]);
    }
    x += 4 * n;
    before_h += 4 * n;
    gates += 4 * n;
    before += n;
    c += n;
    h += n;
  }
}

/* Operands: gates, c_before, c, dh, dc, dgate, dc_before. */
void op_lstm_bwd (const work *k) {
  int64_t n = k->c->lstm.hidden;
  for (int64_t at = 0; at < k->items * n; at++) {
    int64_t gate = at / n * 4 * n + at % n;
    const float *gates = ops_float (k, 0) + gate;
    float in = gates[0], forget = gates[n], cell = gates[2 * n], out = gates[3 * n];
    float dh = k->at[3] != NULL ? ops_float (k, 3)[at] : 0;
    float squashed = ops_tanh (ops_float (k, 2)[at]);
    float dc = dh * out * (1 - squashed * squashed);
    if (k->at[4] != NULL)
      dc += ops_float (k, 4)[at];
    float *dgate = ops_float (k, 5) + gate;
    dgate[0] = dc * cell * in * (1 - in);
    dgate[n] = dc * ops_float (k, 1)[at] * forget * (1 - forget);
    dgate[2 * n] = dc * in * (1 - cell * cell);
    dgate[3 * n] = dh * squashed * out * (1 - out);
    ops_float (k, 6)[at] = dc * forget;
  }
}
