/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The door to CUPTI, the toolkit's stopwatch: when each op ran, without events around it; and each
   call that the driver gets, for the audit.  One of a process. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CUPTI_ANY "any" /* in place of a path: the newest that the loader finds */

typedef struct cupti cupti;
typedef void cupti_told (void *context, int64_t op, int64_t start_ns, int64_t end_ns);

/* NULL: there is none, or it is taken; *why says so. */
cupti *cupti_open (const char *path, const char **why);
/* Around the one call of the driver that is the op; `kind` 0 to 2 tells what it is. */
void cupti_begin (cupti *c, int kind, int64_t op);
void cupti_end (cupti *c, int kind);
/* Waits for all records, and tells of the ops in their order. The number of them. */
int64_t cupti_times (cupti *c, int64_t ops, cupti_told *told, void *context);
/* From now on `saw` gets the name of each driver function that is called, on the caller's thread.
 */
bool cupti_watch (cupti *c, void (*saw) (const char *function), const char **why);
