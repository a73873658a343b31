/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Members of a request that cannot stand together. */
#pragma once

#include "server/ask/asked.h"

void asked_add_fault (asked *out, const error *wrong);
/* Each pair that cannot becomes a fault. */
void together_check (const job_kind *k, const json *root, asked *out);
