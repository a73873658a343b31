/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Commands that ask a `ferry serve` instead of working themselves. */
#ifndef FERRY_CLI_REMOTE_REMOTE_H
#define FERRY_CLI_REMOTE_REMOTE_H

#include "cli/call/call.h"

/* clang-format off */
#define OPTION_SERVER { 0, "server", "URL", "a running `ferry serve`: http://HOST:PORT or " \
  "unix:PATH; a token for it is taken from FERRY_TOKEN" }
/* clang-format on */

/* `ferry solve --server`: the same plan, made there. */
int remote_solve (call *c);

#endif
