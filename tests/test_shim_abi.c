/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Each wrapper of the shim has the type that the toolkit gives the version by which it is asked
   for, where the toolkit is; and the tables that stand in for it say what it says. */
#include "config.h"

#ifdef HAVE_CUDA_H
#include <cuda.h>
#include <cudaTypedefs.h>
#endif

#include <stdint.h>
#include <string.h>

#include "executor/driver/types.h"
#include "tests/suite.h"

#ifdef HAVE_CUDA_H
/* Flavours: _ptsz where the entry has a stream, _ptds where it has none. */
#define PFN_cuMemAllocAsync_v11020_pt PFN_cuMemAllocAsync_v11020_ptsz
#define PFN_cuMemAllocFromPoolAsync_v11020_pt PFN_cuMemAllocFromPoolAsync_v11020_ptsz
#define PFN_cuMemFreeAsync_v11020_pt PFN_cuMemFreeAsync_v11020_ptsz
#define PFN_cuLaunchKernel_v7000_pt PFN_cuLaunchKernel_v7000_ptsz
#define PFN_cuLaunchCooperativeKernel_v9000_pt PFN_cuLaunchCooperativeKernel_v9000_ptsz
#define PFN_cuLaunchKernelEx_v11060_pt PFN_cuLaunchKernelEx_v11060_ptsz
#define PFN_cuMemcpy_v7000_pt PFN_cuMemcpy_v7000_ptds
#define PFN_cuMemcpyAsync_v7000_pt PFN_cuMemcpyAsync_v7000_ptsz
#define PFN_cuMemcpyHtoD_v7000_pt PFN_cuMemcpyHtoD_v7000_ptds
#define PFN_cuMemcpyHtoDAsync_v7000_pt PFN_cuMemcpyHtoDAsync_v7000_ptsz
#define PFN_cuMemcpyDtoH_v7000_pt PFN_cuMemcpyDtoH_v7000_ptds
#define PFN_cuMemcpyDtoHAsync_v7000_pt PFN_cuMemcpyDtoHAsync_v7000_ptsz
#define PFN_cuMemcpyDtoD_v7000_pt PFN_cuMemcpyDtoD_v7000_ptds
#define PFN_cuMemcpyDtoDAsync_v7000_pt PFN_cuMemcpyDtoDAsync_v7000_ptsz
#define PFN_cuMemsetD8_v7000_pt PFN_cuMemsetD8_v7000_ptds
#define PFN_cuMemsetD16_v7000_pt PFN_cuMemsetD16_v7000_ptds
#define PFN_cuMemsetD32_v7000_pt PFN_cuMemsetD32_v7000_ptds
#define PFN_cuMemsetD8Async_v7000_pt PFN_cuMemsetD8Async_v7000_ptsz
#define PFN_cuMemsetD16Async_v7000_pt PFN_cuMemsetD16Async_v7000_ptsz
#define PFN_cuMemsetD32Async_v7000_pt PFN_cuMemsetD32Async_v7000_ptsz
#define PFN_cuEventRecord_v7000_pt PFN_cuEventRecord_v7000_ptsz
#define PFN_cuEventRecordWithFlags_v11010_pt PFN_cuEventRecordWithFlags_v11010_ptsz
#define PFN_cuStreamWaitEvent_v7000_pt PFN_cuStreamWaitEvent_v7000_ptsz
#define PFN_cuStreamSynchronize_v7000_pt PFN_cuStreamSynchronize_v7000_ptsz
#define TYPE_0(type) type
#define TYPE_1(type) type##_pt
/* The toolkit's 64-bit numbers are of another name than ours. */
#define uint64_t cuuint64_t
#define IS(type, parameters) __builtin_types_compatible_p (type, CUresult (*) parameters)
#define WRAP(name, version, per_thread, symbol, wrapper, parameters) \
  _Static_assert(IS (TYPE_##per_thread (PFN_##name##_v##version), parameters), #name " " #version);
#include "executor/shim/wraps.def"
#undef WRAP
#undef uint64_t
#endif

static const struct {
  const char *name;
  int version, per_thread;
} abis[] = {
#define ABI(name, version, per_thread) { #name, version, per_thread },
#include "executor/shim/abis.def"
#undef ABI
};

static const char *const exported[] = {
#define EXPORTED(name) #name,
#include "executor/shim/exports.def"
#undef EXPORTED
};

static const struct {
  const char *name, *symbol;
  int version, per_thread;
} wraps[] = {
#define WRAP(name, version, per_thread, symbol, wrapper, parameters) \
  { #name, #symbol, version, per_thread },
#include "executor/shim/wraps.def"
#undef WRAP
};
enum { WRAPS = sizeof wraps / sizeof *wraps };

START_TEST (every_wrapper_is_of_a_version_that_the_toolkit_has) {
  for (int i = 0; i < WRAPS; i++) {
    int found = 0;
    for (size_t k = 0; k < sizeof abis / sizeof *abis; k++)
      found += strcmp (abis[k].name, wraps[i].name) == 0 && abis[k].version == wraps[i].version &&
               abis[k].per_thread == wraps[i].per_thread;
    ck_assert_msg (found == 1, "%s %d", wraps[i].name, wraps[i].version);
  }
}
END_TEST

START_TEST (every_wrapped_symbol_is_exported) {
  for (int i = 0; i < WRAPS; i++) {
    int found = 0;
    for (size_t k = 0; k < sizeof exported / sizeof *exported; k++)
      found += strcmp (exported[k], wraps[i].symbol) == 0;
    ck_assert_msg (found == 1, "%s", wraps[i].symbol);
  }
}
END_TEST

int main (void) {
  const TTest *const tests[] = {
    every_wrapper_is_of_a_version_that_the_toolkit_has,
    every_wrapped_symbol_is_exported,
    NULL,
  };
  return suite_run ("shim_abi", tests, 20);
}
