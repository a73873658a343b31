/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Claims of Kubernetes' dynamic resource allocation, as the webhook and `ferry advise` write them.
 */
#pragma once

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { CLAIM_NAME = 80 };

/* Drivers that keep to a claim's memory. */
#define CLAIM_HONOURED                                                                           \
  "dra-driver-nvidia-gpu 0.5.0 or newer with --consumable-shares=memory, on Kubernetes 1.34 or " \
  "newer with DRAConsumableCapacity"

/* The template of the claims of a fingerprint: small letters, digits and `-`, the last inside
 * alone. */
static inline void claim_name (const char *fingerprint, char out[CLAIM_NAME]) {
  snprintf (out, CLAIM_NAME, "ferry-%.70s", fingerprint);
  for (char *at = out; *at; at++)
    *at = isalnum ((unsigned char)*at) ? (char)tolower ((unsigned char)*at) : '-';
  for (size_t n = strlen (out); n && out[n - 1] == '-'; n--)
    out[n - 1] = 0;
}
