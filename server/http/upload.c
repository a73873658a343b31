/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "server/http/upload.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { SPARE_BYTES = 1 << 16 };

bool upload_begin (upload *u, int64_t most_bytes, request *q, const char *folder) {
  assert (u && q && most_bytes >= 0);
  *u = (upload){ .file = -1, .most_bytes = most_bytes };
  if (!folder)
    return true;
  snprintf (u->path, sizeof u->path, "%s/spool/%s", folder, q->id);
  u->file = open (u->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  q->spool = u->path;
  sha256_start (&u->hash);
  return u->file >= 0;
}

bool upload_take (upload *u, request *q, const char *data, size_t size) {
  assert (u && q && (data || size == 0));
  error ignored = { 0 };
  q->body_bytes += (int64_t)size;
  if (q->body_bytes > u->most_bytes) {
    u->too_large = true;
    return q->body_bytes <= 2 * u->most_bytes + SPARE_BYTES;
  }
  if (u->failed)
    return true;
  if (u->file < 0)
    return bytes_append (&q->body, data, (int64_t)size, &ignored);
  sha256_add (&u->hash, data, size);
  while (size > 0) {
    ssize_t n = write (u->file, data, size);
    if (n <= 0) {
      u->failed = n < 0 ? errno : ENOSPC;
      upload_forget (u); /* others need the room */
      return true;
    }
    data += n;
    size -= (size_t)n;
  }
  return true;
}

void upload_end (upload *u, request *q) {
  if (u->file >= 0)
    sha256_text (&u->hash, q->digest);
}

void upload_forget (upload *u) {
  if (u->file < 0)
    return;
  close (u->file);
  unlink (u->path);
  u->file = -1;
}
