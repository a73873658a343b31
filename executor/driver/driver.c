/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/driver/driver.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "executor/driver/symbols.h"

static const symbol_row rows[] = {
#define DRIVER(field, symbol, must, parameters) { offsetof (driver, field), #symbol, must },
#include "executor/driver/driver.def"
#undef DRIVER
};

/* A loader without memory says so, or that there is no file; or it has what it needs by now. Leaves
   dlerror's text where it has none. */
static bool is_starved (const char *path) {
  const char *why = dlerror ();
  if (why && strstr (why, strerror (ENOMEM)))
    return true;
  void *again = dlopen (path, RTLD_NOW | RTLD_LOCAL);
  if (again != NULL)
    dlclose (again);
  return again != NULL;
}

bool driver_open (driver *d, const char *path, error *err) {
  assert (d);
  memset (d, 0, sizeof *d);
  bool real = path == NULL;
  if (real)
    path = DRIVER_REAL;
  if (strlen (path) >= sizeof d->path)
    return error_set (err, ERR_usage, "the driver's path has more than %zu characters",
                      sizeof d->path - 1);
  d->library = dlopen (path, RTLD_NOW | RTLD_LOCAL);
  if (d->library == NULL && is_starved (path))
    return error_memory (err);
  if (d->library == NULL)
    return error_set (err, ERR_unreachable, "no driver: %s; %s", dlerror (),
                      real ? "without a GPU, use --driver emulated"
                           : "FERRY_EMU=FILE says where the emulator's library lies");
  memcpy (d->path, path, strlen (path) + 1);
  const char *missing = symbols_take (d->library, rows, sizeof rows / sizeof *rows, d);
  if (missing == NULL)
    return true;
  dlclose (d->library);
  d->library = NULL;
  return error_set (err, ERR_unreachable, "%s has no %s; a driver of CUDA 11.2 or later is needed",
                    path, missing);
}

bool driver_start (driver *d, int ordinal, error *err) {
  int count = 0;
  if (!driver_ok (d, d->init (0), "cuInit", err) ||
      !driver_ok (d, d->driver_get_version (&d->version), "cuDriverGetVersion", err) ||
      !driver_ok (d, d->device_get_count (&count), "cuDeviceGetCount", err))
    return false;
  if (ordinal < 0 || ordinal >= count)
    return error_set (err, ERR_unreachable, "device %d is asked for, and the driver has %d",
                      ordinal, count);
  CUcontext context;
  if (!driver_ok (d, d->device_get (&d->device, ordinal), "cuDeviceGet", err) ||
      !driver_ok (d, d->primary_retain (&context, d->device), "cuDevicePrimaryCtxRetain", err))
    return false;
  d->context = context;
  return driver_ok (d, d->ctx_set_current (context), "cuCtxSetCurrent", err);
}

void driver_stop (driver *d) {
  if (d->context != NULL) {
    d->ctx_set_current (NULL);
    d->primary_release (d->device);
  }
  d->context = NULL;
}

const char *driver_error_name (const driver *d, CUresult result) {
  const char *name = NULL;
  if (d->get_error_name == NULL || d->get_error_name (result, &name) != CUDA_SUCCESS ||
      name == NULL)
    return "an error without a name";
  return name;
}

bool driver_ok (const driver *d, CUresult result, const char *call, error *err) {
  if (result == CUDA_SUCCESS)
    return true;
  const char *text = NULL;
  if (d->get_error_string (result, &text) != CUDA_SUCCESS || text == NULL)
    text = "the driver says no more";
  bool absent = result == CUDA_ERROR_NO_DEVICE || result == CUDA_ERROR_STUB_LIBRARY ||
                result == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
  return error_set (err, absent ? ERR_unreachable : ERR_device, "%s: %s (%u): %s", call,
                    driver_error_name (d, result), result, text);
}

void *driver_symbol (const driver *d, const char *name) {
  assert (d && name);
  return dlsym (d->library, name);
}
