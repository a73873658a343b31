/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/run/run_link.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "executor/link/link.h"

enum { LARGEST_COPY = 64 << 20 }; /* a copy of more is no faster */

static bool measure (call *c, const program_run *r, device_link *out) {
  driver d = { 0 };
  link_result found;
  bool good = driver_open (&d, r->driver, &c->err) && driver_start (&d, 0, &c->err) &&
              link_measure (&d, false, LARGEST_COPY, 0, c->arena, &found, &c->err);
  if (good)
    *out = found.device.link;
  return good;
}

/* A context takes device memory for as long as its process lives. */
static void measure_apart (call *c, const program_run *r, int to, pid_t parent) {
  device_link found;
  if (child_ends_with (parent) && measure (c, r, &found) &&
      write (to, &found, sizeof found) == (ssize_t)sizeof found)
    _exit (0);
  _exit (1);
}

bool run_link (call *c, const program_run *r, device_link *out) {
  int ends[2], status = 0;
  device_link found;
  if (pipe (ends) != 0)
    return false;
  pid_t parent = getpid (), child = fork ();
  if (child == 0) {
    close (ends[0]);
    measure_apart (c, r, ends[1], parent);
  }
  close (ends[1]);
  bool good = child > 0 && read (ends[0], &found, sizeof found) == (ssize_t)sizeof found;
  close (ends[0]);
  good = child > 0 && waitpid (child, &status, 0) == child && status == 0 && good;
  if (good)
    *out = found;
  return good;
}
