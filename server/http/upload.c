/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "server/http/upload.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { SPARE_BYTES = 1 << 16, FIRST_BYTES = 16 << 10 };

void upload_begin (upload *u, int64_t most_bytes, request *q, const char *folder) {
  assert (u && q && most_bytes >= 0);
  *u = (upload){ .file = -1, .most_bytes = most_bytes };
  if (!folder)
    return;
  snprintf (u->path, sizeof u->path, "%s/spool/%s", folder, q->id);
  q->spool = u->path;
  sha256_start (&u->hash);
}

static void write_all (upload *u, const char *data, size_t size) {
  while (size > 0) {
    ssize_t n = write (u->file, data, size);
    if (n <= 0) {
      u->failed = n < 0 ? errno : ENOSPC;
      upload_forget (u); /* others need the room */
      return;
    }
    data += n;
    size -= (size_t)n;
  }
}

static void make_file (upload *u) {
  u->file = open (u->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (u->file < 0)
    u->failed = errno;
  else
    write_all (u, u->first.data, (size_t)u->first.size);
  bytes_free (&u->first);
}

static void keep (upload *u, const char *data, size_t size) {
  error ignored = { 0 };
  sha256_add (&u->hash, data, size);
  if (u->file < 0 && u->first.size + (int64_t)size <= FIRST_BYTES &&
      bytes_append (&u->first, data, (int64_t)size, &ignored))
    return;
  if (u->file < 0)
    make_file (u);
  if (!u->failed)
    write_all (u, data, size);
}

bool upload_take (upload *u, request *q, const char *data, size_t size) {
  assert (u && q && (data || size == 0));
  error ignored = { 0 };
  q->body_bytes += (int64_t)size;
  if (q->body_bytes > u->most_bytes) {
    u->too_large = true;
    return q->body_bytes <= 2 * u->most_bytes + SPARE_BYTES;
  }
  if (!u->path[0])
    return bytes_append (&q->body, data, (int64_t)size, &ignored);
  if (!u->failed)
    keep (u, data, size);
  return true;
}

void upload_end (upload *u, request *q) {
  if (!u->path[0] || u->failed || u->too_large)
    return;
  if (u->file < 0)
    make_file (u);
  sha256_text (&u->hash, q->digest);
}

void upload_forget (upload *u) {
  bytes_free (&u->first);
  if (u->file < 0)
    return;
  close (u->file);
  unlink (u->path);
  u->file = -1;
}
