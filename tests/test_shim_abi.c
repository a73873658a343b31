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

#include "executor/shim/record/cupti_types.h"
#if defined HAVE_CUDA_H && defined __has_include
#if __has_include(<cupti.h>)
#include <cupti.h>
#define SAME(ours, own, theirs, field)                             \
  _Static_assert(offsetof (ours, own) == offsetof (theirs, field), \
                 #theirs " has " #field " elsewhere");
#define SAME_RECORD(ours, theirs)      \
  SAME (ours, kind, theirs, kind)      \
  SAME (ours, start_ns, theirs, start) \
  SAME (ours, end_ns, theirs, end) SAME (ours, call, theirs, correlationId)
SAME_RECORD (cupti_kernel, CUpti_ActivityKernel4)
SAME_RECORD (cupti_kernel, CUpti_ActivityKernel9)
SAME_RECORD (cupti_copy, CUpti_ActivityMemcpy3)
SAME_RECORD (cupti_copy, CUpti_ActivityMemcpy5)
SAME_RECORD (cupti_copy, CUpti_ActivityMemset2)
SAME_RECORD (cupti_copy, CUpti_ActivityMemset4)
SAME (cupti_outer, sort, CUpti_ActivityExternalCorrelation, externalKind)
SAME (cupti_outer, number, CUpti_ActivityExternalCorrelation, externalId)
SAME (cupti_outer, call, CUpti_ActivityExternalCorrelation, correlationId)
SAME (cupti_call, site, CUpti_CallbackData, callbackSite)
SAME (cupti_call, function, CUpti_CallbackData, functionName)
SAME (cupti_call, call, CUpti_CallbackData, correlationId)
_Static_assert((int)CUPTI_COPY == (int)CUPTI_ACTIVITY_KIND_MEMCPY &&
                   (int)CUPTI_SET == (int)CUPTI_ACTIVITY_KIND_MEMSET &&
                   (int)CUPTI_CALL == (int)CUPTI_ACTIVITY_KIND_DRIVER &&
                   (int)CUPTI_KERNEL == (int)CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL &&
                   (int)CUPTI_OUTER == (int)CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
               "kinds of records");
_Static_assert((int)CUPTI_CUSTOM == (int)CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0 &&
                   (int)CUPTI_FORCED == (int)CUPTI_ACTIVITY_FLAG_FLUSH_FORCED &&
                   (int)CUPTI_DRIVER_CALLS == (int)CUPTI_CB_DOMAIN_DRIVER_API &&
                   (int)CUPTI_RUNTIME_CALLS == (int)CUPTI_CB_DOMAIN_RUNTIME_API &&
                   CUPTI_API_ENTER == 0 && CUPTI_SUCCESS == 0,
               "numbers");
#endif
#endif

#include "executor/driver/types.h"
#include "tests/suite.h"

#ifdef HAVE_CUDA_H
/* Hidden by the toolkit: the older of two names with the same parameters. */
#define PFN_cuDevicePrimaryCtxRelease_v7000 PFN_cuDevicePrimaryCtxRelease_v11000
#define PFN_cuDevicePrimaryCtxReset_v7000 PFN_cuDevicePrimaryCtxReset_v11000
#define PFN_cuCtxDestroy_v2000 PFN_cuCtxDestroy_v4000
#define PFN_cuStreamDestroy_v2000 PFN_cuStreamDestroy_v4000
#define PFN_cuEventDestroy_v2000 PFN_cuEventDestroy_v4000
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
#define PFN_cuMemcpy2D_v7000_pt PFN_cuMemcpy2D_v7000_ptds
#define PFN_cuMemcpy2DUnaligned_v7000_pt PFN_cuMemcpy2DUnaligned_v7000_ptds
#define PFN_cuMemcpy2DAsync_v7000_pt PFN_cuMemcpy2DAsync_v7000_ptsz
#define PFN_cuMemcpy3D_v7000_pt PFN_cuMemcpy3D_v7000_ptds
#define PFN_cuMemcpy3DAsync_v7000_pt PFN_cuMemcpy3DAsync_v7000_ptsz
#define PFN_cuMemsetD2D8_v7000_pt PFN_cuMemsetD2D8_v7000_ptds
#define PFN_cuMemsetD2D16_v7000_pt PFN_cuMemsetD2D16_v7000_ptds
#define PFN_cuMemsetD2D32_v7000_pt PFN_cuMemsetD2D32_v7000_ptds
#define PFN_cuMemsetD2D8Async_v7000_pt PFN_cuMemsetD2D8Async_v7000_ptsz
#define PFN_cuMemsetD2D16Async_v7000_pt PFN_cuMemsetD2D16Async_v7000_ptsz
#define PFN_cuMemsetD2D32Async_v7000_pt PFN_cuMemsetD2D32Async_v7000_ptsz
#define PFN_cuEventRecord_v7000_pt PFN_cuEventRecord_v7000_ptsz
#define PFN_cuEventRecordWithFlags_v11010_pt PFN_cuEventRecordWithFlags_v11010_ptsz
#define PFN_cuStreamWaitEvent_v7000_pt PFN_cuStreamWaitEvent_v7000_ptsz
#define PFN_cuStreamSynchronize_v7000_pt PFN_cuStreamSynchronize_v7000_ptsz
#define PFN_cuStreamWaitValue32_v8000_pt PFN_cuStreamWaitValue32_v8000_ptsz
#define PFN_cuStreamWaitValue32_v11070_pt PFN_cuStreamWaitValue32_v11070_ptsz
#define PFN_cuStreamWaitValue64_v9000_pt PFN_cuStreamWaitValue64_v9000_ptsz
#define PFN_cuStreamWaitValue64_v11070_pt PFN_cuStreamWaitValue64_v11070_ptsz
#define PFN_cuStreamWriteValue32_v8000_pt PFN_cuStreamWriteValue32_v8000_ptsz
#define PFN_cuStreamWriteValue32_v11070_pt PFN_cuStreamWriteValue32_v11070_ptsz
#define PFN_cuStreamWriteValue64_v9000_pt PFN_cuStreamWriteValue64_v9000_ptsz
#define PFN_cuStreamWriteValue64_v11070_pt PFN_cuStreamWriteValue64_v11070_ptsz
#define PFN_cuStreamBeginCapture_v10010_pt PFN_cuStreamBeginCapture_v10010_ptsz
#define PFN_cuStreamBeginCaptureToGraph_v12030_pt PFN_cuStreamBeginCaptureToGraph_v12030_ptsz
#define PFN_cuStreamEndCapture_v10000_pt PFN_cuStreamEndCapture_v10000_ptsz
#define PFN_cuGraphInstantiateWithParams_v12000_pt PFN_cuGraphInstantiateWithParams_v12000_ptsz
#define PFN_cuGraphLaunch_v10000_pt PFN_cuGraphLaunch_v10000_ptsz
/* The older forms, which the toolkit hides too. */
typedef CUresult (*PFN_cuStreamBeginCapture_v10000) (CUstream);
typedef CUresult (*PFN_cuStreamBeginCapture_v10000_pt) (CUstream);
typedef CUresult (*PFN_cuGraphInstantiate_v10000) (CUgraphExec *, CUgraph, CUgraphNode *, char *,
                                                   size_t);
typedef CUresult (*PFN_cuGraphInstantiate_v11000) (CUgraphExec *, CUgraph, CUgraphNode *, char *,
                                                   size_t);
typedef CUresult (*PFN_cuGraphExecUpdate_v10020) (CUgraphExec, CUgraph, CUgraphNode *,
                                                  CUgraphExecUpdateResult *);
#define TYPE_0(type) type
#define TYPE_1(type) type##_pt
/* The toolkit's 64-bit numbers are of another name than ours. */
#define uint64_t cuuint64_t
#define IS(type, parameters) __builtin_types_compatible_p (type, CUresult (*) parameters)
#define WRAP(name, version, per_thread, symbol, wrapper, parameters) \
  _Static_assert(IS (TYPE_##per_thread (PFN_##name##_v##version), parameters), #name " " #version);
#include "executor/shim/state/wraps.def"
#undef WRAP
#undef uint64_t
#endif

static const struct {
  const char *name;
  int version, per_thread;
} abis[] = {
#define ABI(name, version, per_thread) { #name, version, per_thread },
#include "executor/shim/entry/abis.def"
#undef ABI
};

static const char *const exported[] = {
#define EXPORTED(name) #name,
#include "executor/shim/entry/exports.def"
#undef EXPORTED
};

static const struct {
  const char *name, *symbol;
  int version, per_thread;
} wraps[] = {
#define WRAP(name, version, per_thread, symbol, wrapper, parameters) \
  { #name, #symbol, version, per_thread },
#include "executor/shim/state/wraps.def"
#undef WRAP
};
enum { WRAPS = sizeof wraps / sizeof *wraps };

CLAIM (every_wrapper_is_of_a_version_that_the_toolkit_has) {
  for (int i = 0; i < WRAPS; i++) {
    int found = 0;
    for (size_t k = 0; k < sizeof abis / sizeof *abis; k++)
      found += strcmp (abis[k].name, wraps[i].name) == 0 && abis[k].version == wraps[i].version &&
               abis[k].per_thread == wraps[i].per_thread;
    ck_assert_msg (found == 1, "%s %d", wraps[i].name, wraps[i].version);
  }
}

CLAIM (every_wrapped_symbol_is_exported) {
  for (int i = 0; i < WRAPS; i++) {
    int found = 0;
    for (size_t k = 0; k < sizeof exported / sizeof *exported; k++)
      found += strcmp (exported[k], wraps[i].symbol) == 0;
    ck_assert_msg (found == 1, "%s", wraps[i].symbol);
  }
}

int main (void) {
  return suite_run ("shim_abi", 20);
}
