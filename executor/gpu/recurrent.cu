/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The LSTM cell. */
#include "executor/gpu/device.h"

KERNEL (lstm_fwd) {
  int64_t n = k.c.lstm.hidden;
  EACH (at, k.items * n) {
    int64_t gate = at / n * 4 * n + at % n;
    float x[4];
    UNROLL for (int i = 0; i < 4; i++) x[i] = get (E (0), gate + i * n) + get (E (1), gate + i * n);
    float in = sigmoid_of (x[0]), forget = sigmoid_of (x[1]), out = sigmoid_of (x[3]);
    float cell = tanhf (x[2]), c = forget * get (E (2), at) + in * cell;
    put (E (5), gate, in);
    put (E (5), gate + n, forget);
    put (E (5), gate + 2 * n, cell);
    put (E (5), gate + 3 * n, out);
    put (E (4), at, c);
    put (E (3), at, out * tanhf (c));
  }
}

/* Operands: gates, c_before, c, dh, dc, dgate, dc_before. */
KERNEL (lstm_bwd) {
  int64_t n = k.c.lstm.hidden;
  EACH (at, k.items * n) {
    int64_t gate = at / n * 4 * n + at % n;
    float in = get (E (0), gate), forget = get (E (0), gate + n);
    float cell = get (E (0), gate + 2 * n), out = get (E (0), gate + 3 * n);
    float dh = E (3) != 0 ? get (E (3), at) : 0, squashed = tanhf (get (E (2), at));
    float dc = dh * out * (1 - squashed * squashed) + (E (4) != 0 ? get (E (4), at) : 0);
    put (E (5), gate, dc * cell * in * (1 - in));
    put (E (5), gate + n, dc * get (E (1), at) * forget * (1 - forget));
    put (E (5), gate + 2 * n, dc * in * (1 - cell * cell));
    put (E (5), gate + 3 * n, dh * squashed * out * (1 - out));
    put (E (6), at, dc * forget);
  }
}
