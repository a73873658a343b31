/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The types of the CUDA driver's ABI, so that nothing needs cuda.h.  In a file that has included
   cuda.h, this header is empty and its names mean cuda.h's: that is how a test compares them. */
#pragma once

#ifndef __cuda_cuda_h__

#include <stddef.h>
#include <stdint.h>

/* C leaves an enumeration's type to the compiler; on every platform with this driver it is this. */
typedef unsigned int CUresult;
typedef unsigned int CUpointer_attribute, CUdevice_attribute, CUmemPool_attribute;
typedef unsigned int CUmemAllocationGranularity_flags, CUstreamCaptureStatus;
typedef unsigned int CUdriverProcAddressQueryResult, CUjit_option, CUlibraryOption;
typedef unsigned int CUtensorMapDataType, CUtensorMapInterleave, CUtensorMapSwizzle;
typedef unsigned int CUtensorMapL2promotion, CUtensorMapFloatOOBfill;
typedef unsigned int CUgraphNodeType, CUstreamCaptureMode, CUgraphInstantiateResult;
typedef unsigned int CUgraphExecUpdateResult;

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUgraphEdgeData_st CUgraphEdgeData;

typedef void (*CUhostFn) (void *user);
typedef void (*CUstreamCallback) (CUstream stream, CUresult status, void *user);

typedef struct CUuuid {
  char bytes[16];
} CUuuid;

typedef struct CUmemLocation {
  unsigned int type;
  int id;
} CUmemLocation;

typedef struct CUmemAllocationProp {
  unsigned int type, requestedHandleTypes;
  CUmemLocation location;
  void *win32HandleMetaData;
  struct {
    unsigned char compressionType, gpuDirectRDMACapable;
    unsigned short usage;
    unsigned char reserved[4];
  } allocFlags;
} CUmemAllocationProp;

typedef struct CUmemAccessDesc {
  CUmemLocation location;
  unsigned int flags;
} CUmemAccessDesc;

typedef struct CUlaunchAttribute {
  unsigned int id;
  char pad[4], value[64];
} CUlaunchAttribute;

typedef struct CUDA_MEMCPY2D {
  size_t srcXInBytes, srcY;
  unsigned int srcMemoryType;
  const void *srcHost;
  CUdeviceptr srcDevice;
  void *srcArray;
  size_t srcPitch;
  size_t dstXInBytes, dstY;
  unsigned int dstMemoryType;
  void *dstHost;
  CUdeviceptr dstDevice;
  void *dstArray;
  size_t dstPitch;
  size_t WidthInBytes, Height;
} CUDA_MEMCPY2D;

typedef struct CUDA_MEMCPY3D {
  size_t srcXInBytes, srcY, srcZ, srcLOD;
  unsigned int srcMemoryType;
  const void *srcHost;
  CUdeviceptr srcDevice;
  void *srcArray, *reserved0;
  size_t srcPitch, srcHeight;
  size_t dstXInBytes, dstY, dstZ, dstLOD;
  unsigned int dstMemoryType;
  void *dstHost;
  CUdeviceptr dstDevice;
  void *dstArray, *reserved1;
  size_t dstPitch, dstHeight;
  size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D;

typedef struct CUlaunchConfig {
  unsigned int gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ;
  unsigned int sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute *attrs;
  unsigned int numAttrs;
} CUlaunchConfig;

typedef struct CUDA_KERNEL_NODE_PARAMS_v1 {
  CUfunction func;
  unsigned int gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ;
  unsigned int sharedMemBytes;
  void **kernelParams, **extra;
} CUDA_KERNEL_NODE_PARAMS_v1;

typedef struct CUDA_KERNEL_NODE_PARAMS { /* begins as the older one */
  CUfunction func;
  unsigned int gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ;
  unsigned int sharedMemBytes;
  void **kernelParams, **extra;
  CUkernel kern; /* counts if func is NULL */
  CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;

typedef struct CUDA_MEMSET_NODE_PARAMS {
  CUdeviceptr dst;
  size_t pitch;
  unsigned int value, elementSize;
  size_t width, height; /* in elements, and rows */
} CUDA_MEMSET_NODE_PARAMS;

typedef struct CUDA_HOST_NODE_PARAMS {
  CUhostFn fn;
  void *userData;
} CUDA_HOST_NODE_PARAMS;

typedef struct CUDA_GRAPH_INSTANTIATE_PARAMS {
  uint64_t flags;
  CUstream hUploadStream;
  CUgraphNode hErrNode_out;
  CUgraphInstantiateResult result_out;
} CUDA_GRAPH_INSTANTIATE_PARAMS;

typedef struct CUgraphExecUpdateResultInfo {
  CUgraphExecUpdateResult result;
  CUgraphNode errorNode, errorFromNode;
} CUgraphExecUpdateResultInfo;

typedef struct CUtensorMap {
  _Alignas(64) uint64_t opaque[16];
} CUtensorMap;

enum driver_constants {
#define CONSTANT(name, value) name = value,
#define LAYOUT(type, bytes)
#include "executor/driver/consts.def"
#undef CONSTANT
#undef LAYOUT
};

#define CU_STREAM_LEGACY ((CUstream)1)
#define CU_STREAM_PER_THREAD ((CUstream)2)
#define CU_LAUNCH_PARAM_END ((void *)0)
#define CU_LAUNCH_PARAM_BUFFER_POINTER ((void *)1)
#define CU_LAUNCH_PARAM_BUFFER_SIZE ((void *)2)

#endif
