/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Two rewritings of one trace compared field by field, origins included. */
#pragma once

#include "trace/rewrite/rewrite.h"

enum { DIFFERENCE = 160 };

/* False: `difference` says the first place and field that differ. */
bool same_rewritten (const rewritten *x, const rewritten *y, char difference[DIFFERENCE]);
