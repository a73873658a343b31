/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry worker wait`: one command of the daemon, in a sandbox. */
#ifndef FERRY_CLI_SERVICE_WAITING_H
#define FERRY_CLI_SERVICE_WAITING_H

#include "cli/call/call.h"

int waiting_run (call *c);

#endif
