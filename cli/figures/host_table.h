/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A host as a table: its memory, and what its cards and groups carry. */
#pragma once

#include "trace/host.h"

void host_print (const gpu_host *h);
