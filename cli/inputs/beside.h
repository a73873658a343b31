/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files that ferry ships lie beside the program: in a build tree, in an installation, or in one
   that was moved. */
#ifndef FERRY_CLI_INPUTS_BESIDE_H
#define FERRY_CLI_INPUTS_BESIDE_H

#include "cli/call/call.h"

/* The first of these paths, relative to the program's folder, at which something can be read; NULL:
   none, or it is said in c->err why not. */
char *path_beside (call *c, const char *const *paths, int n) MUST_CHECK;

#endif
