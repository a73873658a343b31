/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry solve --host NAME --ranks N`: plans for ranks that share the links of a host. */
#pragma once

#include "cli/call/call.h"

/* The exit status. */
int solve_ranks (call *c);
