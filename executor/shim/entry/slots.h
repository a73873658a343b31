/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The slots behind the exported entries, and who fills them. */
#pragma once

#include <stdint.h>

/* A slot an exported symbol, in the order of their names; of the assembler's making. */
extern void *shim_slots[] __attribute__ ((visibility ("hidden")));
extern const char *const shim_names[];
extern const int shim_exports;

/* From a stub: fills all slots, once, and says where the call goes. */
void *shim_resolve (uint64_t slot) __attribute__ ((visibility ("hidden"), used));
