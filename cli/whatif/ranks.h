/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry whatif --host NAME --ranks N,...`: the same step on more and more cards of a host. */
#ifndef FERRY_CLI_WHATIF_RANKS_H
#define FERRY_CLI_WHATIF_RANKS_H

#include "cli/call/call.h"

/* The exit status. */
int whatif_ranks (call *c);

#endif
