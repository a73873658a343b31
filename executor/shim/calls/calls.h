/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The program's calls: what they have in common. */
#pragma once

#include "executor/shim/memory/memory.h"

/* life.c */
bool shim_enter (shim **s); /* locked, and the device is ours; false: pass the call on */
void shim_load (void);      /* from the first stub */
void shim_finish (void);    /* writes what is to be kept; once */

/* memory.c */
CUresult memory_serve (shim *s, CUdeviceptr *out, size_t bytes, CUstream stream, bool waits);
CUresult memory_release (shim *s, CUdeviceptr at, uint64_t stream_bits);
uint64_t stream_all (const shim *s); /* the program's */
/* The stream of copies in waits for all that it has done, and stands for it from now on. */
void stream_hand_over (shim *s, CUstream stream);

/* ops.c */
bool op_enter (op *o, op_kind kind, CUstream stream, bool waits);
void op_touch (op *o, CUdeviceptr at);
void op_touch_all (shim *s, op *o, const CUdeviceptr *at, int32_t n); /* of many */
void op_mix (op *o, uint64_t word);                                   /* into the token */
CUresult op_prepare (op *o);
CUresult op_leave (op *o, CUresult r);
enum { PAYLOAD_BYTES = 65536 }; /* longer ones are data, no list of addresses */
void op_payload (op *o, CUdeviceptr to, const void *from, size_t bytes);
CUresult shim_look (CUresult r); /* at what a call that waits returned */

/* functions.c */
int32_t shim_name (shim *s, const char *text);
function *function_of (shim *s, CUfunction f, CUresult *why); /* NULL: and why */
/* Each stretch of a launch's parameters. */
void function_params (const function *f, void **params, void **extra,
                      void (*see) (void *context, const void *from, size_t bytes), void *context);

/* copies.c */
void op_carried (op *o, const CUDA_MEMCPY3D *c); /* addresses in what it copies */
