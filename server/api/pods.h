/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Cards in the words of pods and nodes of Kubernetes. */
#pragma once

#include "base/json.h"
#include "server/protocol/message.h"

#define FINGERPRINT "ferry.dev/fingerprint" /* annotations of a pod */
#define SLOWDOWN "ferry.dev/max-slowdown-ppm"
#define GPU_MEMORY \
  "ferry.dev/gpu-memory-bytes" /* of a pod: what it takes; a label of a node: what it has */

/* Bytes, or a quantity as Kubernetes writes them: "24Gi". */
bool k8s_quantity (request *q, const char *text, int64_t *out) MUST_CHECK;
