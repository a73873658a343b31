/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Faults of a request that the cards make: no card is named, or a budget is more than it has. */
#pragma once

#include "server/ask/asked.h"
#include "server/service/service.h"

/* infos: of its traces.  Adds to the faults of a. */
void cards_check (service *s, request *q, const job_kind *k, asked *a, const char *const *infos);
