/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Jansson's reader, without its death where memory runs out: some versions free a text twice then.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* NULL: *said tells, or *starved. */
json_t *json_load_text (const char *text, int64_t size, json_error_t *said, bool *starved);
