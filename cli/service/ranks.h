/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry worker ranks`: the plans of a host's ranks, checked, and simulated together once more. */
#pragma once

#include "cli/call/call.h"

/* ranks RESULT PICTURE HOST TRACE PLAN [TRACE PLAN]...: legal, and the step of RESULT comes out.
   An exit status. */
int ranks_verify (call *c);
