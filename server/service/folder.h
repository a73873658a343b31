/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Folders of the state, and small things with files. */
#pragma once

#include "base/file.h"

/* Everything in it goes, folders too; nothing is followed. */
void folder_remove_inside (const char *path);
void folder_remove (const char *path);
/* The sizes of the files that lie in it. */
int64_t folder_bytes (const char *path);
/* A worker's file is read where it is one and no link, and kept as a copy, since one of its
   processes may still hold it open. */
bool file_take (const char *path, const char *to, char digest[65], int64_t *size,
                error *err) MUST_CHECK;
bool file_read_own (const char *path, int64_t most, bytes *out, error *err) MUST_CHECK;
bool file_exists (const char *path);
bool file_has_bytes (const char *path);
