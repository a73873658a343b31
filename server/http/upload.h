/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The body of a request as it comes: small ones in memory, uploads in a file of their own, which is
   made once there is more than a little: a flood of uploads that only begin makes none. */
#pragma once

#include "base/sha256.h"
#include "server/protocol/message.h"

typedef struct upload {
  sha256 hash;
  int file;       /* -1: there is none yet */
  bytes first;    /* those before there is one */
  char path[300]; /* "": the body stays in memory */
  int64_t most_bytes;
  bool too_large; /* bytes behind the limit were thrown away */
  int failed;     /* errno of what could not be kept; what comes behind it is thrown away */
} upload;

/* folder NULL: in memory. */
void upload_begin (upload *u, int64_t most_bytes, request *q, const char *folder);
/* False: the connection goes; it was told long ago that this is too much. */
bool upload_take (upload *u, request *q, const char *data, size_t size) MUST_CHECK;
/* All of it has come: now there is a file. */
void upload_end (upload *u, request *q);
/* The file goes, unless it was taken over. */
void upload_forget (upload *u);
