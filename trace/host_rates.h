/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rates of copies that several cards of a host carry at one moment: docs/machine-model.md,
   section "Ranks of one host". */
#pragma once

#include "trace/host.h"

/* Bytes a second of card i by way; 0 where it carries nothing that way. carries: a bit a card. */
typedef struct host_flows {
  uint64_t carries[COPY_WAYS];
  int64_t rate[COPY_WAYS][HOST_MOST_CARDS];
} host_flows;

/* Fills the rates of flows->carries. link: of one card alone, which has its rates whole. */
void host_rates (const gpu_host *h, const link_rates *link, host_flows *flows);
