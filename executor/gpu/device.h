/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The language of the kernels is CUDA, and C as well: compiled for the host, a
   kernel is a function that does alone what all threads do, so that the emulated device can run it.
   Every sum has a fixed order: that of its loop, or the tree of a block's 256 threads.  Numbers of
   an op's own type are read and written by `get` and `put`; KERNEL_BF16 says which type that is. */
#pragma once

#include "executor/ops/bf16.h"
#include "executor/gpu/kernel_work.h"

enum { TEAM = 256, AHEAD = 8 };

#if defined KERNEL_BF16
typedef uint16_t element;
#define KERNEL_NAME(name) ferry_bf16_##name
#else
typedef float element;
#define KERNEL_NAME(name) ferry_op_##name
#endif

#ifdef __CUDACC__

#define FN static __device__ __forceinline__
#define KERNEL(name)                                  \
  extern "C" __global__ void __launch_bounds__ (TEAM) \
      KERNEL_NAME (name) (const __grid_constant__ kernel_work k)
/* For a compiler that would else take more registers than two teams side by side have, or fewer: both
   were seen to be slower on an H200. */
#define KERNEL_OF_TWO(name)                              \
  extern "C" __global__ void __launch_bounds__ (TEAM, 2) \
      KERNEL_NAME (name) (const __grid_constant__ kernel_work k)
#define SHARED __shared__ __align__ (16)
/* The threads of all blocks share n pieces of work. */
#define EACH(i, n)                                                                   \
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (int64_t)(n); \
       i += (int64_t)gridDim.x * blockDim.x)
/* The blocks share n, and the threads of a block what belongs to one. */
#define TEAMS(t, n) for (int64_t t = blockIdx.x; t < (int64_t)(n); t += gridDim.x)
#define LANES(i, n) for (int64_t i = threadIdx.x; i < (int64_t)(n); i += blockDim.x)
#define LANES_WIDE TEAM
/* The work of each thread between two TEAM_SYNCs, with numbers of its own that outlive them. */
#define OWN(type, name, count) type name[1][count]
#define EVERY_LANE(l) for (int l = threadIdx.x, l##_once = 1; l##_once; l##_once = 0)
#define MINE(l) 0
#define TEAM_SYNC __syncthreads ()
#define UNROLL _Pragma ("unroll")

FN double team_sum (double x) {
  __shared__ double all[TEAM];
  __syncthreads ();
  all[threadIdx.x] = x;
  for (int half = TEAM / 2; half > 0; half /= 2) {
    __syncthreads ();
    if (threadIdx.x < half)
      all[threadIdx.x] += all[threadIdx.x + half];
  }
  __syncthreads ();
  return all[0];
}

FN float team_most (float x) {
  __shared__ float all[TEAM];
  __syncthreads ();
  all[threadIdx.x] = x;
  for (int half = TEAM / 2; half > 0; half /= 2) {
    __syncthreads ();
    if (threadIdx.x < half && all[threadIdx.x + half] > all[threadIdx.x])
      all[threadIdx.x] = all[threadIdx.x + half];
  }
  __syncthreads ();
  return all[0];
}

#else

#include <math.h>
#include <stdbool.h>

#define FN static inline
#define KERNEL(name)                             \
  void KERNEL_NAME (name) (const kernel_work k); \
  void KERNEL_NAME (name) (const kernel_work k)
#define KERNEL_OF_TWO(name) KERNEL (name)
#define SHARED
#define EACH(i, n) for (int64_t i = 0; i < (int64_t)(n); i++)
#define TEAMS(t, n) for (int64_t t = 0; t < (int64_t)(n); t++)
#define LANES(i, n) for (int64_t i = 0; i < (int64_t)(n); i++)
#define LANES_WIDE 1
#define OWN(type, name, count) type name[TEAM][count]
#define EVERY_LANE(l) for (int l = 0; l < TEAM; l++)
#define MINE(l) (l)
#define TEAM_SYNC (void)0
#define UNROLL

FN double team_sum (double x) {
  return x;
}

FN float team_most (float x) {
  return x;
}

#endif

/* A lane's numbers i, i + LANES_WIDE and so on, AHEAD of them at once: as many loads are on their
   way. */
#define LANES_AHEAD(i, n)                                                      \
  for (int64_t i##_first = 0; i##_first < (n); i##_first += AHEAD * LANES_WIDE) \
    LANES (i##_lane, LANES_WIDE) \
      for (int64_t i = i##_first + i##_lane, i##_once = 1; i##_once; i##_once = 0)

/* Operands: of the op's own type, and of fp32 whatever that is. */
#define E(operand) ((element *)k.at[operand])
#define F(operand) ((float *)k.at[operand])
/* The last operand of an op in place is absent: the result stands where `other` was. */
#define OUT(operand, other) ((element *)(k.at[operand] != 0 ? k.at[operand] : k.at[other]))
/* For kinds that need the whole batch. */
#define ITEM_OF(operand, item) (((element *const *)k.at[operand])[item])

FN float get (const element *x, int64_t i) {
#if defined KERNEL_BF16
  return bf16_number (x[i]);
#else
  return x[i];
#endif
}

FN void put (element *x, int64_t i, float value) {
#if defined KERNEL_BF16
  x[i] = bf16_of (value);
#else
  x[i] = value;
#endif
}

FN float sigmoid_of (float x) {
  return 1 / (1 + expf (-x));
}

/* False, and told, where it is not in [0, limit). */
FN bool in_range (int32_t index, int64_t limit, int32_t *failed) {
  if (index >= 0 && index < limit)
    return true;
  *failed = 1;
  return false;
}

FN uint64_t mixed (uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* The same numbers as ops_random and ops_keeps. */
FN bool keeps (int64_t seed, int64_t step, int64_t n, int64_t rate_ppm) {
  const uint64_t golden = 0x9e3779b97f4a7c15u;
  uint64_t state = mixed ((uint64_t)seed + golden) ^ (uint64_t)step;
  uint64_t stream = mixed (state + golden) + (uint64_t)n * golden;
  uint64_t random = mixed (stream + golden);
  return (int64_t)((random >> 32) * 1000000 >> 32) >= rate_ppm;
}

/* [0, count) in `parts` stretches: where number `part` begins. */
FN int64_t begin_of (int64_t count, int64_t part, int64_t parts) {
  return count / parts * part + (count % parts < part ? count % parts : part);
}
