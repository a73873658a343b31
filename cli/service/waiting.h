/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry worker wait`: one command of the daemon, in a sandbox. */
#ifndef FERRY_CLI_SERVICE_WAITING_H
#define FERRY_CLI_SERVICE_WAITING_H

#include "cli/call/call.h"

int waiting_run (call *c);
/* Names this process by its command, for those who look at the processes. */
void waiting_name (const char *command);

#endif
