/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the fuzzers of the importers do with one input, and what a replay of the corpus does too. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Imports the bytes, or two files that a line "=====" parts.  Aborts where an import succeeds with
   a trace that is not sound, or fails without a message. */
void import_fuzz (const uint8_t *data, size_t size);
