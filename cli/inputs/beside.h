/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files that ferry ships lie beside the program: in a build tree, in an installation, or in one
   that was moved. */
#pragma once

#include "cli/call/call.h"

/* The first of these paths, relative to the program's folder, at which something can be read; NULL:
   none, or c->err has the reason. */
char *path_beside (call *c, const char *const *paths, int n) MUST_CHECK;

/* The folder of the shipped files of that kind ("devices", "hosts"): of FERRY_DATADIR, beside the
   program in a build tree or an installation that was moved, or where it was installed. */
const char *data_folder (call *c, const char *kind) MUST_CHECK;
/* Their names, sorted; NULL on failure. */
const char **data_names (call *c, const char *kind, int *count) MUST_CHECK;
/* Is it the path of a file, and not the name of one that ferry ships? */
bool data_is_file (const char *name);
/* The path of the shipped file or of that file. What has no such name is ERR_usage, which says what
   `one` it was. */
const char *data_path (call *c, const char *kind, const char *one, const char *name) MUST_CHECK;
