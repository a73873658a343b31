/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The types of cuDNN's ABI, as far as we call it, so that nothing needs its headers.  In a file
   that has included them this header is empty, and its names mean theirs: that is how a test
   compares. */
#pragma once

#ifndef CUDNN_CNN_H_

#include <stddef.h>

typedef unsigned int cudnnStatus_t, cudnnDataType_t, cudnnTensorFormat_t, cudnnConvolutionMode_t;
typedef unsigned int cudnnMathType_t, cudnnDeterminism_t;
typedef unsigned int cudnnConvolutionFwdAlgo_t, cudnnConvolutionBwdDataAlgo_t;
typedef unsigned int cudnnConvolutionBwdFilterAlgo_t;
typedef struct cudnnContext *cudnnHandle_t;
typedef struct cudnnTensorStruct *cudnnTensorDescriptor_t;
typedef struct cudnnFilterStruct *cudnnFilterDescriptor_t;
typedef struct cudnnConvolutionStruct *cudnnConvolutionDescriptor_t;
typedef struct CUstream_st *cudaStream_t;

/* Three types of one layout. */
typedef struct cudnnConvolutionFwdAlgoPerf_t {
  unsigned int algo;
  cudnnStatus_t status;
  float time;
  size_t memory;
  cudnnDeterminism_t determinism;
  cudnnMathType_t mathType;
  int reserved[3];
} cudnnConvolutionFwdAlgoPerf_t;
typedef cudnnConvolutionFwdAlgoPerf_t cudnnConvolutionBwdDataAlgoPerf_t;
typedef cudnnConvolutionFwdAlgoPerf_t cudnnConvolutionBwdFilterAlgoPerf_t;

enum cudnn_constants {
#define CONSTANT(name, value) name = value,
#include "executor/libraries/cudnn_consts.def"
#undef CONSTANT
};

#endif
