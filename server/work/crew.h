/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Workers: one thread claims jobs, and starts and ends their processes. */
#pragma once

#include "server/service/service.h"

/* Before any other thread asks for work, and behind the last of them. */
bool crew_open (service *s, error *err) MUST_CHECK;
void crew_close (service *s);
bool crew_start (service *s, error *err) MUST_CHECK;
/* There may be something to claim, or to stop. */
void crew_wake (service *s);
/* Ends what is running, which goes back into the queue. */
void crew_stop (service *s);
