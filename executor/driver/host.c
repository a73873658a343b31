/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/driver/host.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/units.h"

host_limits host_limits_read (void) {
  host_limits h = { .lock_bytes = INT64_MAX };
  struct rlimit r;
  if (getrlimit (RLIMIT_MEMLOCK, &r) == 0 && r.rlim_cur != RLIM_INFINITY &&
      r.rlim_cur < (rlim_t)INT64_MAX)
    h.lock_bytes = (int64_t)r.rlim_cur;
  FILE *f = fopen ("/proc/meminfo", "r");
  if (f == NULL)
    return h;
  char line[128];
  while (fgets (line, sizeof line, f) != NULL) {
    long long kib;
    if (sscanf (line, "MemTotal: %lld kB", &kib) == 1)
      h.memory_bytes = kib * 1024;
    else if (sscanf (line, "MemAvailable: %lld kB", &kib) == 1)
      h.available_bytes = kib * 1024;
  }
  fclose (f);
  return h;
}

bool host_has_room (const host_limits *h, int64_t bytes, error *err) {
  assert (h && bytes >= 0);
  if (h->available_bytes == 0 || bytes <= h->available_bytes)
    return true;
  char need[UNITS_TEXT], have[UNITS_TEXT];
  return error_set (err, ERR_infeasible,
                    "host memory: %s are needed and %s are available; solve again with a smaller "
                    "--host or a larger budget, or use --bytes none on the virtual clock",
                    units_bytes (need, bytes), units_bytes (have, h->available_bytes));
}
