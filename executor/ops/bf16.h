/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The upper half of an fp32 number: rounded to the nearest, ties to even.  C and CUDA C++, and the
   same bits in both. */
#pragma once

#include <stdint.h>

#ifdef __CUDACC__
#define BF16_FN static __host__ __device__ __forceinline__
#else
#define BF16_FN static inline
#endif

typedef union bf16_bits {
  float number;
  uint32_t bits;
} bf16_bits;

BF16_FN float bf16_number (uint16_t x) {
  bf16_bits b;
  b.bits = (uint32_t)x << 16;
  return b.number;
}

BF16_FN uint16_t bf16_of (float x) {
  bf16_bits b;
  b.number = x;
  if ((b.bits & 0x7fffffffu) > 0x7f800000u)
    return (uint16_t)(b.bits >> 16 | 0x40); /* NaN stays NaN */
  return (uint16_t)((b.bits + 0x7fffu + (b.bits >> 16 & 1)) >> 16);
}

#undef BF16_FN
