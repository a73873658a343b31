/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry worker wait`: one command of the daemon, in a sandbox. */
#pragma once

#include "cli/call/call.h"

int waiting_run (call *c);
/* Names this process by its command, for those who look at the processes. */
void waiting_name (const char *command);
