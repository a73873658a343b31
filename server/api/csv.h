/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Results that are tables, as comma-separated values. */
#pragma once

#include "base/json.h"

bool csv_has (const char *kind);
/* `result` is what the command of the kind prints with --json. */
bool csv_write (const char *kind, const bytes *result, bytes *out, error *err) MUST_CHECK;
