/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A process that reads what strangers send: no new privileges, no network, files of its own folder
   alone. Each part is there where the kernel has it. */
#pragma once

#include "base/error.h"

typedef enum sandbox_part {
  SANDBOX_privileges,
  SANDBOX_calls,
  SANDBOX_files,
  SANDBOX_signals,
  SANDBOX_PARTS
} sandbox_part;
extern const char *const sandbox_names[SANDBOX_PARTS];

/* True if this system has the part. */
bool sandbox_has (sandbox_part part);
/* Root becomes another user, without its groups; for anybody else nothing changes. */
bool sandbox_become (unsigned user, unsigned group, error *err) MUST_CHECK;
/* From now on, for this process and those that it starts: files below `reads` (NULL ends them) can
   be read and run, those below the current folder also written. False: a part that is to be had
   fails. */
bool sandbox_enter (const char *const *reads, error *err) MUST_CHECK;
