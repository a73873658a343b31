/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Convolution as it is defined, loop in loop, in double: the oracle of executor/ops/conv. */
#pragma once

#include "trace/compute.h"

/* y = conv (x, w) + b, b may be NULL; all items of s->batch. */
void plain_conv (const compute_conv *s, const float *x, const float *w, const float *b, float *y);
/* What reaches x, and w, from dy. */
void plain_conv_data (const compute_conv *s, const float *dy, const float *w, float *dx);
void plain_conv_weights (const compute_conv *s, const float *x, const float *dy, float *dw);
/* Each input spreads over the outputs that it reaches. */
void plain_deconv (const compute_conv *s, const float *x, const float *w, const float *b, float *y);
