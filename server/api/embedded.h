/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files that are part of the program: the page and the description of the API. */
#ifndef FERRY_SERVER_API_EMBEDDED_H
#define FERRY_SERVER_API_EMBEDDED_H

#include "plot/assets.h"

const asset *embedded_named (const char *name); /* or NULL */

#endif
