/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The answer of a published policy, as text. */
#pragma once

#include <stdio.h>

#include "solver/policy/policy.h"

void policy_answer_print (FILE *to, const policy_answer *a, int64_t budget_bytes);
