/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One function a family: appends the whole step, of the variant that networks.def names. */
#pragma once

#include "trace/zoo/layers.h"

enum { EPS_5 = 10000000, EPS_3 = 1000000000, EPS_6 = 1000000, EPS_12 = 1 }; /* 10^-n, in 10^-12 */

void alexnet_step (net *n);
void vgg_step (net *n);
void overfeat_step (net *n);
void resnet_step (net *n);
void googlenet_step (net *n);
void inception_step (net *n);
void densenet_step (net *n);
void unet3d_step (net *n);
void dcgan_step (net *n);
void charrnn_step (net *n);
void seq2seq_step (net *n);
void bert_step (net *n);
void gpt2_step (net *n);
void llama_step (net *n);
void vit_step (net *n);

/* A depth for which resnet_step knows what to build? */
bool resnet_has_depth (int64_t depth);

/* From features to the end of the step: classes, loss, backward, update. */
void classify (net *n, value x);
void learn (net *n);
