/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The module for a GPU: nvcc -ptx -I ROOT -o kernels.ptx kernels.cu */
#include "tests/programs/kernels.h"

#define PARAMETER(type, name) type name,
#define VALUE(type, name) name,
#define KERNEL(name, parameters)                                                                   \
  extern "C" __global__ void name (parameters (PARAMETER) long count) {                            \
    name##_parameters p = { parameters (VALUE) count };                                            \
    long i = (long)blockIdx.x * blockDim.x + threadIdx.x;                                          \
    if (i < count)                                                                                 \
      name##_thread (&p, i);                                                                       \
  }
KERNELS (KERNEL)
