/* The GPU's kernels compiled for the host: each is a function that does what all threads do. */
#include "executor/calculate_kernels.cu"

#include "executor/calculate_cuda.h"

calculate_on_host *const calculate_host_kernels[COMPUTE_KINDS] = {
#define COMPUTE(kind, ...) ferry_op_##kind,
#include "trace/compute.def"
};
