/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A host with several cards: which of them share a switch or a CPU, what such a group carries, and
   how much of the host's memory may be pinned. */
#pragma once

#include "trace/device.h"

#define HOST_FORMAT "ferry-host/1"
enum { HOST_MOST_CARDS = 64, HOST_MOST_GROUPS = 64 };

typedef enum copy_way { WAY_out, WAY_in, COPY_WAYS } copy_way;
typedef enum host_kind { HOST_switch, HOST_cpu, HOST_whole } host_kind;
extern const char *const host_kinds[]; /* NULL behind the last */

/* Bytes a second of all cards of the group together, by way: while they copy one way only, and
   while they copy both ways. network: what a network card on the same link takes, which is off the
   others already. */
typedef struct host_group {
  const char *name;
  host_kind kind;
  uint64_t cards; /* a bit a card */
  int64_t one_way[COPY_WAYS], both[COPY_WAYS], network[COPY_WAYS];
} host_group;

typedef struct gpu_host {
  const char *name, *source; /* source: where the figures come from, for people */
  const char *device;        /* of each card: a name or a device file */
  int32_t n_cards, n_groups;
  bool has_link;
  device_link link; /* of one card alone; without has_link, the device's */
  int64_t host_bytes, pinned_bytes;
  host_group *groups;
} gpu_host;

bool host_load (const char *path, const read_options *o, arena *a, gpu_host *out,
                error *err) MUST_CHECK;
bool host_read (const json *j, const read_options *o, arena *a, gpu_host *out,
                error *err) MUST_CHECK;
void host_write (json_writer *w, const gpu_host *h);
bool host_store (const gpu_host *h, const char *path, error *err) MUST_CHECK;
