/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One function a family: appends the whole step, of the variant that networks.def names. */
#ifndef FERRY_TRACE_ZOO_FAMILIES_H
#define FERRY_TRACE_ZOO_FAMILIES_H

#include "trace/zoo/layers.h"

enum { EPS_5 = 10000000, EPS_3 = 1000000000, EPS_6 = 1000000, EPS_12 = 1 }; /* 10^-n, in 10^-12 */

void alexnet_step (net *n, int variant);
void vgg_step (net *n, int variant);
void overfeat_step (net *n, int variant);
void resnet_step (net *n, int depth);
void googlenet_step (net *n, int variant);
void inception_step (net *n, int variant);
void densenet_step (net *n, int variant);
void unet3d_step (net *n, int variant);
void dcgan_step (net *n, int variant);
void charrnn_step (net *n, int variant);
void seq2seq_step (net *n, int variant);
void bert_step (net *n, int variant);
void gpt2_step (net *n, int variant);
void llama_step (net *n, int variant);
void vit_step (net *n, int variant);

/* A depth for which resnet_step knows what to build? */
bool resnet_has_depth (int64_t depth);

/* From features to the end of the step: classes, loss, backward, update. */
void classify (net *n, value x);
void learn (net *n);

#endif
