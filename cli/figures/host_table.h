/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A host as a table: its memory, and what its cards and groups carry. */
#ifndef FERRY_CLI_FIGURES_HOST_TABLE_H
#define FERRY_CLI_FIGURES_HOST_TABLE_H

#include "trace/host.h"

void host_print (const gpu_host *h);

#endif
