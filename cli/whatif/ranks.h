/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry whatif --host NAME --ranks N,...`: the same step on more and more cards of a host. */
#pragma once

#include "cli/call/call.h"

/* The exit status. */
int whatif_ranks (call *c);
