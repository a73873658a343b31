/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The part of CUPTI that is used, without its headers: versions 12 and 13 agree on it, and a test
   has the compiler compare it with theirs. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef int32_t cupti_result; /* 0: success */

/* Kinds of records. */
enum { CUPTI_COPY = 1, CUPTI_SET = 2, CUPTI_CALL = 4, CUPTI_KERNEL = 10, CUPTI_OUTER = 39 };
enum { CUPTI_CUSTOM = 3 }; /* the first kind of numbers that are ours to give */
enum { CUPTI_FORCED = 1 }; /* of a flush: buffers that are not full too */
enum { CUPTI_DRIVER_CALLS = 1, CUPTI_RUNTIME_CALLS = 2 }; /* domains of callbacks */

/* An op that ran: `call` is the number of the driver call that asked for it. */
typedef struct cupti_kernel {
  int32_t kind;
  char head[12];
  uint64_t start_ns, end_ns;
  char rest[60];
  uint32_t call;
} cupti_kernel;

typedef struct cupti_copy { /* and a fill */
  int32_t kind;
  char head[12];
  uint64_t start_ns, end_ns;
  char rest[12];
  uint32_t call;
} cupti_copy;

/* A driver call happened while a number of ours was pushed. */
typedef struct cupti_outer {
  int32_t kind, sort;
  uint64_t number;
  uint32_t call, reserved;
} cupti_outer;

/* For a callback: a call begins (0) or ends; `call` is its number. */
typedef struct cupti_call {
  int32_t site;
  const char *function;
  char rest[48];
  uint32_t call;
} cupti_call;

typedef void cupti_give (uint8_t **buffer, size_t *bytes, size_t *most_records);
typedef void cupti_take (void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                         size_t valid_bytes);
typedef void cupti_callback (void *user, int32_t domain, uint32_t number, const void *data);
