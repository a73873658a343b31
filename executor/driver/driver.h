/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The CUDA driver API behind one table, opened at run time: a real driver or the emulator, which
   the code above cannot tell apart.  The only door to CUDA. */
#pragma once

#include "base/error.h"
#include "executor/driver/types.h"

#define DRIVER_REAL "libcuda.so.1"

typedef struct driver {
#define DRIVER(field, symbol, must, parameters) CUresult (*field) parameters;
#include "executor/driver/driver.def"
#undef DRIVER
  void *library;
  char path[256];
  int version; /* 13000: 13.0; known after driver_start */
  CUdevice device;
  CUcontext context; /* NULL: not started */
} driver;

/* Opens the library and fills the table; optional entries may be NULL. Nothing is initialised. path
   NULL: the real driver, by its name. */
bool driver_open (driver *d, const char *path, error *err) MUST_CHECK;
/* cuInit, and the primary context of a device made current. */
bool driver_start (driver *d, int ordinal, error *err) MUST_CHECK;
/* Gives the context back. The library stays open: a driver's threads may outlive any of our calls.
 */
void driver_stop (driver *d);

/* True for success; else an error that names the call and the driver's own name of the error. */
bool driver_ok (const driver *d, CUresult result, const char *call, error *err) MUST_CHECK;
const char *driver_error_name (const driver *d, CUresult result);

/* An entry that is not in the table, for the emulator's own; NULL where there is none. */
void *driver_symbol (const driver *d, const char *name);
