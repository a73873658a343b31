/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a test calls of the emulated driver, each call made to succeed; and a kernel that adds. */
#pragma once

#include <check.h>

#include "tests/emu_case.h"

enum { G = 65536 };

/* The driver of this test: `d` is `e.d`. */
extern emu_case e;
extern driver *const d;

void start (int clock); /* 0: real, 1: virtual */

typedef struct add_params {
  CUdeviceptr at;
  int64_t count, ns;
  uint32_t add;
} add_params;

/* Adds to so many words, in so many nanoseconds. Declared: the race checker and the mapping check
   see what it touches; silent: only the memory itself does. */
extern const emu_kernel declared, silent;
extern const emu_param add_layout[4];
void add_run (const emu_launch *l);
int64_t add_ns (const emu_launch *l);

CUfunction function (const emu_kernel *k);
CUresult add (CUfunction f, CUstream s, CUdeviceptr at, int64_t count, uint32_t by, int64_t ns);

CUstream stream_new (unsigned int flags);
CUevent event_new (void);
int64_t time_of (CUevent v);
CUdeviceptr alloc (size_t bytes); /* of zeros */
uint32_t word (CUdeviceptr at);
void *pinned (size_t bytes);

/* Virtual memory. */
extern const CUmemAllocationProp plain;
CUmemGenericAllocationHandle create (size_t bytes);
CUdeviceptr reserve (size_t bytes);
void allow (CUdeviceptr at, size_t bytes, unsigned int flags);
void map (CUdeviceptr at, size_t bytes, CUmemGenericAllocationHandle h);
