/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Our prototypes of cuBLAS and cuDNN against their own headers, where those exist. */
#include "config.h"

#if defined HAVE_CUDA_H && defined __has_include
#if __has_include(<cublas_v2.h>)
#include <cublas_v2.h>
#define HAVE_CUBLAS_HEADER
#endif
#if __has_include(<cudnn.h>)
#include <cudnn.h>
#define HAVE_CUDNN_HEADER
#endif
#endif

#include <stddef.h>

#define CONSTANT(name, value) _Static_assert((int)(name) == (value), #name);

#ifdef HAVE_CUBLAS_HEADER
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define CUBLAS(field, symbol, parameters)                                                 \
  _Static_assert(                                                                         \
      __builtin_types_compatible_p (__typeof__ (&symbol), cublasStatus_t (*) parameters), \
      #symbol);
#include "executor/libraries/cublas.def"
#include "executor/libraries/cublas_consts.def"
#endif

#ifdef HAVE_CUDNN_HEADER
#define CUDNN(field, symbol, parameters) \
  _Static_assert(                        \
      __builtin_types_compatible_p (__typeof__ (&symbol), cudnnStatus_t (*) parameters), #symbol);
#include "executor/libraries/cudnn.def"
#include "executor/libraries/cudnn_consts.def"
#define LAYOUT(type)                                                                        \
  _Static_assert(sizeof (type) == 48 && offsetof (type, memory) == 16 &&                    \
                     offsetof (type, determinism) == 24 && offsetof (type, mathType) == 28, \
                 #type);
LAYOUT (cudnnConvolutionFwdAlgoPerf_t)
LAYOUT (cudnnConvolutionBwdDataAlgoPerf_t)
LAYOUT (cudnnConvolutionBwdFilterAlgoPerf_t)
#endif

/* Which of them were there. */
extern const int abi_compared;
const int abi_compared =
#ifdef HAVE_CUBLAS_HEADER
    1 +
#endif
#ifdef HAVE_CUDNN_HEADER
    2 +
#endif
    0;
