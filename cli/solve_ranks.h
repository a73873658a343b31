/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry solve --host NAME --ranks N`: plans for ranks that share the links of a host. */
#ifndef FERRY_CLI_SOLVE_RANKS_H
#define FERRY_CLI_SOLVE_RANKS_H

#include "cli/call/call.h"

/* The exit status. */
int solve_ranks (call *c);

#endif
