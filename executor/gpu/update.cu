/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Updates of parameters.  What they keep is in fp32, whatever the parameter is. */
#include "executor/gpu/device.h"

#define RATE(s) ((float)((double)(s)->rate_ppb * 1e-9))
#define DECAY(s) ((float)((double)(s)->decay_ppb * 1e-9))

/* The parameter before the update, and after it: in the fp32 copy of it, where there is one. */
FN float main_of (const kernel_work *k, int64_t i) {
  return k->at[2] != 0 ? ((const float *)k->at[2])[i] : get ((const element *)k->at[0], i);
}
FN void update (const kernel_work *k, int64_t i, float weight) {
  if (k->at[2] != 0)
    ((float *)k->at[2])[i] = weight;
  put ((element *)k->at[0], i, weight);
}

KERNEL (sgd) {
  const compute_update *s = &k.c.update;
  float rate = RATE (s), decay = DECAY (s);
  EACH (i, s->count) {
    float w = main_of (&k, i);
    update (&k, i, w - rate * (get (E (1), i) + decay * w));
  }
}

KERNEL (momentum) {
  const compute_update *s = &k.c.update;
  float *v = F (3), rate = RATE (s), decay = DECAY (s);
  float kept = (float)((double)s->momentum_ppm * 1e-6);
  EACH (i, s->count) {
    float w = main_of (&k, i);
    v[i] = kept * v[i] + (get (E (1), i) + decay * w);
    update (&k, i, w - rate * v[i]);
  }
}

KERNEL (adam) {
  const compute_update *s = &k.c.update;
  float *m = F (3), *v = F (4);
  double beta1 = (double)s->beta1_ppm * 1e-6, beta2 = (double)s->beta2_ppm * 1e-6;
  float first = (float)beta1, second = (float)beta2, eps = (float)((double)s->eps_ppt * 1e-12);
  float rate = (float)(RATE (s) / (1 - pow (beta1, (double)k.step + 1)));
  float root = (float)(1 / sqrt (1 - pow (beta2, (double)k.step + 1)));
  EACH (i, s->count) {
    float g = get (E (1), i), w = main_of (&k, i);
    m[i] = first * m[i] + (1 - first) * g;
    v[i] = second * v[i] + (1 - second) * g * g;
    update (&k, i, w - RATE (s) * DECAY (s) * w - rate * m[i] / (sqrtf (v[i]) * root + eps));
  }
}
