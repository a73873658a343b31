/* The GPU's kernels as nvcc made them, where it was there. */
#include "config.h"

#include "executor/calculate_cuda.h"

#ifdef HAVE_CUDA_H
#include "executor/calculate_ptx.inc"
const char *const calculate_ptx = (const char *)calculate_kernels_ptx;
#else
const char *const calculate_ptx = NULL;
#endif
