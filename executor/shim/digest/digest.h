/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A tensor's bytes in one word: its words are mixed with their places and summed, so that the order
   of threads does not matter.  The kernels are text for a GPU's driver (digest_ptx.c) and the same
   in C for the emulated device. */
#pragma once

#include <stdint.h>

/* The host can read the bytes; the end is filled up with zeros to a whole word. */
uint64_t digest_of (const void *at, int64_t bytes);

extern const char *const digest_ptx;
