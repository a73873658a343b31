/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A profile's audit: does every call that makes or uses memory come through the shim? */
#pragma once

#include "executor/shim/record/cupti.h"
#include "executor/shim/state/shim.h"

/* Counts in the block, from now on. */
bool audit_start (shim *s, cupti *c, const char **why);
