/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <stdint.h>

/* Bytes of the well-formed UTF-8 character at `at`, of which `left` bytes are there at most; 0: it
   is none. Nothing behind a NUL is read. */
int utf8_length (const char *at, int64_t left);
