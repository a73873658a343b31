/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Element by element. */
#include "executor/gpu/device.h"

KERNEL (relu_fwd) {
  float slope = (float)k.c.relu.slope_ppm * 1e-6f;
  EACH (i, k.items * k.c.relu.size) {
    float x = get (E (0), i);
    put (OUT (1, 0), i, x > 0 ? x : slope * x);
  }
}

KERNEL (relu_bwd) {
  float slope = (float)k.c.relu.slope_ppm * 1e-6f;
  EACH (i, k.items * k.c.relu.size) {
    float dy = get (E (1), i);
    put (OUT (2, 1), i, get (E (0), i) > 0 ? dy : slope * dy);
  }
}

KERNEL (tanh_fwd) {
  EACH (i, k.items * k.c.map.size) put (OUT (1, 0), i, tanhf (get (E (0), i)));
}

KERNEL (tanh_bwd) {
  EACH (i, k.items * k.c.map.size) {
    float y = get (E (0), i);
    put (OUT (2, 1), i, get (E (1), i) * (1 - y * y));
  }
}

KERNEL (sigmoid_fwd) {
  EACH (i, k.items * k.c.map.size) put (OUT (1, 0), i, sigmoid_of (get (E (0), i)));
}

KERNEL (sigmoid_bwd) {
  EACH (i, k.items * k.c.map.size) {
    float y = get (E (0), i);
    put (OUT (2, 1), i, get (E (1), i) * y * (1 - y));
  }
}

KERNEL (add) {
  EACH (i, k.items * k.c.map.size) put (OUT (2, 0), i, get (E (0), i) + get (E (1), i));
}

KERNEL (zero) {
  EACH (i, k.items * k.c.map.size) put (E (0), i, 0);
}

KERNEL (swiglu_fwd) {
  EACH (i, k.items * k.c.map.size) {
    float gate = get (E (0), i);
    put (E (2), i, gate * sigmoid_of (gate) * get (E (1), i));
  }
}

KERNEL (swiglu_bwd) {
  EACH (i, k.items * k.c.map.size) {
    float gate = get (E (0), i), up = get (E (1), i), dy = get (E (2), i), s = sigmoid_of (gate);
    put (E (4), i, dy * gate * s);
    put (E (3), i, dy * up * s * (1 + gate * (1 - s)));
  }
}

FN float gelu_inner (float x) {
  return 0.79788456f * (x + 0.044715f * x * x * x);
}

KERNEL (gelu_fwd) {
  const compute_gelu *s = &k.c.gelu;
  EACH (i, k.items * s->size) {
    float x = get (E (0), i);
    put (E (1), i,
         0.5f * x * (1 + (s->tanh ? tanhf (gelu_inner (x)) : erff (x * 0.70710678f))));
  }
}

KERNEL (gelu_bwd) {
  const compute_gelu *s = &k.c.gelu;
  EACH (i, k.items * s->size) {
    float x = get (E (0), i), slope;
    if (s->tanh) {
      float t = tanhf (gelu_inner (x));
      slope = 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * 0.79788456f * (1 + 3 * 0.044715f * x * x);
    } else {
      slope = 0.5f * (1 + erff (x * 0.70710678f)) + x * 0.39894228f * expf (-0.5f * x * x);
    }
    put (OUT (2, 1), i, get (E (1), i) * slope);
  }
}

KERNEL (dropout_fwd) {
  const compute_dropout *s = &k.c.dropout;
  float scale = 1 / (1 - (float)s->rate_ppm / 1e6f);
  int64_t first = s->offset + k.first_item * s->size;
  EACH (i, k.items * s->size) {
    bool kept = keeps (s->seed, k.step, first + i, s->rate_ppm);
    ((uint8_t *)k.at[2])[i] = kept;
    put (E (1), i, kept ? get (E (0), i) * scale : 0);
  }
}

KERNEL (dropout_bwd) {
  const compute_dropout *s = &k.c.dropout;
  float scale = 1 / (1 - (float)s->rate_ppm / 1e6f);
  EACH (i, k.items * s->size)
    put (OUT (2, 1), i, ((uint8_t *)k.at[0])[i] ? get (E (1), i) * scale : 0);
}
