/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A device of PyTorch's that has its own memory: NVIDIA's, AMD's (which calls itself cuda), and
   those of other makers, which write the same files with other names. */
#pragma once

#include "trace/import/common/stream.h"

/* "cuda", "xpu:1" and the like, not the host's.  *number: of the device; -1: it has none. */
bool accelerator_is (slice device, int64_t *number);
/* By the number of a [memory] event; 0 is the host. */
bool accelerator_is_type (int64_t type);
/* A profile's category of calls that launch something. */
bool accelerator_is_runtime (slice category);
