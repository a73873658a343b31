/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/import/common/accelerator.h"

#include <string.h>

/* The names and numbers of c10's DeviceType, and the categories that Kineto writes. */
static const struct {
  const char *device;
  int64_t type;
  const char *runtime, *driver;
} makers[] = {
  { "cuda", 1, "cuda_runtime", "cuda_driver" },
  { "hip", 6, "hip_runtime", NULL },
  { "maia", 8, NULL, NULL },
  { "xpu", 12, "xpu_runtime", "xpu_driver" },
  { "mps", 13, NULL, NULL },
  { "hpu", 15, NULL, NULL },
  { "mtia", 19, "mtia_runtime", NULL },
  { "privateuseone", 20, "privateuse1_runtime", "privateuse1_driver" },
  { "npu", 20, NULL, NULL },
  { "musa", 20, NULL, NULL },
};

enum { MAKERS = sizeof makers / sizeof makers[0] };

bool accelerator_is (slice device, int64_t *number) {
  *number = -1;
  for (int i = 0; i < MAKERS; i++) {
    int64_t n = (int64_t)strlen (makers[i].device);
    if (!slice_starts (device, makers[i].device) || (device.size > n && device.at[n] != ':'))
      continue;
    slice rest = { device.at + n + 1, device.size - n - 1, false };
    if (device.size > n && !slice_decimal (rest, 0, number))
      *number = -1;
    return true;
  }
  return false;
}

bool accelerator_is_type (int64_t type) {
  for (int i = 0; i < MAKERS; i++)
    if (makers[i].type == type)
      return true;
  return false;
}

bool accelerator_is_runtime (slice category) {
  for (int i = 0; i < MAKERS; i++)
    if ((makers[i].runtime != NULL && slice_is (category, makers[i].runtime)) ||
        (makers[i].driver != NULL && slice_is (category, makers[i].driver)))
      return true;
  return false;
}
