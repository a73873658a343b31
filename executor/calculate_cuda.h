/* Ops on a GPU: a kernel of executor/calculate_kernels.cu for each kind.  The emulated device runs
   the same source, compiled for the host. */
#ifndef FERRY_EXECUTOR_CALCULATE_CUDA_H
#define FERRY_EXECUTOR_CALCULATE_CUDA_H

#include "executor/calculate.h"
#include "executor/kernel_work.h"

extern const calculator calculator_cuda;

/* The kernels as text that a driver compiles; NULL: built without the CUDA toolkit. */
extern const char *const calculate_ptx;

/* The same kernels as functions of the host, by compute_kind. */
typedef void calculate_on_host (const kernel_work k);
extern calculate_on_host *const calculate_host_kernels[COMPUTE_KINDS];

#endif
