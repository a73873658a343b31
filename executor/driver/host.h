/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The limits of this machine's memory. */
#pragma once

#include <stdint.h>

#include "base/error.h"

typedef struct host_limits {
  int64_t lock_bytes;      /* RLIMIT_MEMLOCK; INT64_MAX: no limit */
  int64_t memory_bytes;    /* 0: not known */
  int64_t available_bytes; /* without swapping; 0: not known */
} host_limits;

host_limits host_limits_read (void);
/* An error where the bytes can surely not be had. */
bool host_has_room (const host_limits *h, int64_t bytes, error *err) MUST_CHECK;
