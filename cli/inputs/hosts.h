/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Hosts by name, and ranks on the cards of one. */
#pragma once

#include "cli/call/call.h"
#include "trace/host.h"

/* clang-format off */
#define OPTION_HOST_OR_MEMORY { 0, "host", "SIZE|NAME|FILE", "host memory that may be used; or the " \
  "host that ranks share: a name of `ferry hosts` or a host file; default: all the memory that " \
  "the device file gives", RANGE_SIZE }
#define OPTION_RANKS { 0, "ranks", "N", "number of equal ranks, one on each card, that share " \
  "the links of --host; default: as many as the host has cards", { UNITS_COUNT, 1, HOST_MOST_CARDS } }
/* clang-format on */

/* By name or file, with the link of its cards. */
bool host_named (call *c, const char *name, gpu_host *out) MUST_CHECK;
/* The same with its card, which --device may name. */
bool host_and_card (call *c, const char *name, gpu_host *out, device *card) MUST_CHECK;
/* The text of --host where it is no size; NULL: it is one, or is not given. */
const char *host_text (const call *c);
/* The host that --host names; NULL where it is a size, and for commands without --ranks. */
const char *host_asked (const call *c);
/* Is it asked for by --host, or would it have to be, for --ranks? */
bool host_is_asked (const call *c);
/* The host of --host with its card, which --device may name. */
bool host_open (call *c, gpu_host *out, device *card) MUST_CHECK;
/* ERR_usage if the host has fewer cards than ranks. */
bool host_has (call *c, const gpu_host *h, int64_t ranks) MUST_CHECK;
/* The host of --host and its ranks: --ranks, at most its cards. `card`: what --device names, else
   the card that the host has. */
bool host_ranks (call *c, gpu_host *out, device *card, int32_t *ranks) MUST_CHECK;
/* The same of several traces: without --ranks, one rank for each. */
bool host_ranks_of (call *c, int32_t n_traces, gpu_host *out, device *card,
                    int32_t *ranks) MUST_CHECK;
/* The card of a rank while all ranks copy both ways, after a note that says so. */
bool host_card (call *c, device *out) MUST_CHECK;
