/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files that are part of the program: the page and the description of the API. */
#pragma once

#include "plot/assets.h"

const asset *embedded_named (const char *name); /* or NULL */
