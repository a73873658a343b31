/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A program's few helpers around the driver API.  Everything here ends the program with a line
   where something fails, as small programs do. */
#pragma once

#include "executor/driver/driver.h"

typedef struct gpu {
  void *library;
#define DRIVER(field, symbol, must, parameters) CUresult (*field) parameters;
#include "executor/driver/driver.def"
#undef DRIVER
  CUmodule module;
  CUcontext context;
  int steps;
} gpu;

/* argv: the module's file, and so many steps. */
void gpu_open (gpu *g, int argc, char **argv);
void gpu_close (gpu *g);
void gpu_must (const gpu *g, CUresult r, const char *what);

CUstream gpu_stream (const gpu *g); /* waits for no other */
CUevent gpu_event (const gpu *g, unsigned flags);
CUdeviceptr gpu_alloc (gpu *g, long floats, CUstream s); /* in the stream's order */
void gpu_free (gpu *g, CUdeviceptr at, CUstream s);
/* One thread an element: `count` of them; the parameters' addresses, all but the count's. */
void gpu_launch (gpu *g, const char *kernel, CUstream s, long count, int n, void **parameters);
#define LAUNCH(g, kernel, s, count, ...)                                                        \
  gpu_launch (g, kernel, s, count, (int)(sizeof ((void *[]){ __VA_ARGS__ }) / sizeof (void *)), \
              (void *[]){ __VA_ARGS__ })

void gpu_fill (gpu *g, CUdeviceptr at, long floats, long seed, CUstream s);
/* Prints one line with the bits of a scalar of the device. */
void gpu_say_scalar (gpu *g, const char *what, int step, CUdeviceptr at, CUstream s);
/* Prints a digest of what lies there. */
void gpu_say_digest (gpu *g, const char *what, CUdeviceptr at, long floats);
