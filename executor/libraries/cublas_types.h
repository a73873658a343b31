/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The types of cuBLAS' ABI, as far as we call it, so that nothing needs its headers.  In a file
   that has included them this header is empty, and its names mean theirs: that is how a test
   compares. */
#pragma once

#ifndef CUBLAS_API_H_

#include <stddef.h>

typedef unsigned int cublasStatus_t, cublasOperation_t, cublasAtomicsMode_t, cublasMath_t;
typedef unsigned int cudaDataType, cublasComputeType_t;
typedef int cublasGemmAlgo_t;
typedef struct cublasContext *cublasHandle_t;
typedef struct CUstream_st *cudaStream_t;

enum cublas_constants {
#define CONSTANT(name, value) name = value,
#include "executor/libraries/cublas_consts.def"
#undef CONSTANT
};

#endif
