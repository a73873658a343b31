/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files by digest, in blobs/ of the state folder.  A file is complete under its own name or not
   there.  Where several replicas share the database, it is also kept there, compressed, in parts
   written as hexadecimal digits; a replica that lacks it fetches it once. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/coding.h"
#include "base/file.h"
#include "base/order.h"
#include "server/store/inner.h"

enum { PART_BYTES = 1 << 19 };

static void path_of (const store *s, const char *digest, char *path, size_t size) {
  snprintf (path, size, "%s/blobs/%s", s->folder, digest);
}

static bool sync_folder (const store *s) {
  char path[256];
  snprintf (path, sizeof path, "%s/blobs", s->folder);
  int fd = open (path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  bool ok = fd >= 0 && fsync (fd) == 0;
  if (fd >= 0)
    close (fd);
  return ok;
}

static const char *hex_part (const bytes *b, int64_t from, int64_t size, arena *a, error *err) {
  static const char digits[] = "0123456789abcdef";
  char *text = NEW (a, 2 * size + 1, char, err);
  for (int64_t i = 0; text && i < size; i++) {
    unsigned char c = (unsigned char)b->data[from + i];
    text[2 * i] = digits[c >> 4];
    text[2 * i + 1] = digits[c & 15];
  }
  return text;
}

/* A part at a time, so that nothing else waits for a large file; the first one comes last, and says
   that all are there. */
static bool share_parts (store *s, const char *digest, const bytes *packed, error *err) {
  arena *a = arena_new (0);
  bool ok = a || error_memory (err);
  for (int64_t part = (packed->size - 1) / PART_BYTES; ok && part >= 0; part--) {
    arena_mark here = arena_here (a);
    int64_t at = part * PART_BYTES;
    const char *text = hex_part (packed, at, min_of (packed->size - at, PART_BYTES), a, err);
    ok = text && STORE_RUN (s,
                            "insert into blob (digest, part, data) values ($1, $2, $3)"
                            " on conflict do nothing",
                            NULL, NULL, err, digest, store_number (part).text, text);
    arena_back (a, here);
  }
  arena_free (a);
  return ok;
}

/* The others' copy. */
static bool share (store *s, const char *digest, const char *path, error *err) {
  bytes plain = { 0 }, packed = { 0 };
  if (!s->driver->shared)
    return true;
  bool ok = file_read_raw (path, 0, &plain, err) &&
            zstd_encode (plain.data, plain.size, &packed, err) &&
            share_parts (s, digest, &packed, err);
  bytes_free (&plain);
  bytes_free (&packed);
  return ok;
}

/* A file that is there under this digest has the same bytes, and stays: a worker may read that very
   file, and its sandbox knows no other. One of another size is what a fault has left. */
static bool put_in_place (const char *path, const char *target) {
  struct stat own, there;
  if (renameat2 (AT_FDCWD, path, AT_FDCWD, target, RENAME_NOREPLACE) == 0)
    return true;
  if (stat (path, &own) == 0 && stat (target, &there) == 0 && own.st_size == there.st_size)
    return unlink (path) == 0;
  return rename (path, target) == 0;
}

bool store_put_file (store *s, const char *digest, const char *path, error *err) {
  assert (digest && *digest);
  char target[384];
  path_of (s, digest, target, sizeof target);
  int fd = open (path, O_RDONLY | O_CLOEXEC);
  bool ok = fd >= 0 && fsync (fd) == 0 && put_in_place (path, target) && sync_folder (s);
  if (!ok)
    error_set (err, ERR_file, "the state folder cannot take a file: %s", strerror (errno));
  if (fd >= 0)
    close (fd);
  return ok && share (s, digest, target, err);
}

bool store_put_bytes (store *s, const char *digest, const void *data, int64_t size, error *err) {
  assert (s && digest && size >= 0);
  char target[384];
  path_of (s, digest, target, sizeof target);
  return file_write (target, data, size, FILE_PLAIN, err) && share (s, digest, target, err);
}

static int value_of (char c) {
  return c <= '9' ? c - '0' : c - 'a' + 10;
}

static bool unhex (const sql_rows *rows, bytes *out, error *err) {
  for (int i = 0; i < rows->rows; i++) {
    const char *text = sql_cell (rows, i, 0);
    int64_t size = (int64_t)strlen (text) / 2;
    if (!bytes_room (out, size, err))
      return false;
    for (int64_t k = 0; k < size; k++)
      out->data[out->size + k] = (char)(value_of (text[2 * k]) << 4 | value_of (text[2 * k + 1]));
    out->size += size;
  }
  return true;
}

static bool fetch (store *s, const char *digest, const char *path, error *err) {
  sql_rows rows;
  bytes packed = { 0 }, plain = { 0 };
  arena *a = arena_new (0);
  bool ok = a || error_memory (err);
  ok = ok && STORE_READ (s, "select data, part from blob where digest = $1 order by part", a, &rows,
                         err, digest);
  ok = ok && ((rows.rows && store_int (&rows, 0, 1) == 0) ||
              error_set (err, ERR_file, "no replica has %s", digest));
  /* Once alone: an upload may be packed itself, and is kept as it came. */
  ok = ok && unhex (&rows, &packed, err) &&
       zstd_decode (packed.data, packed.size, INT64_MAX, &plain, err) &&
       file_write (path, plain.data, plain.size, FILE_PLAIN, err);
  bytes_free (&packed);
  bytes_free (&plain);
  arena_free (a);
  return ok;
}

const char *store_file (store *s, const char *digest, arena *a, error *err) {
  assert (digest && *digest);
  char path[384];
  path_of (s, digest, path, sizeof path);
  if (access (path, R_OK) != 0) {
    if (!s->driver->shared) {
      error_set (err, ERR_file, "the file %s is not there", digest);
      return NULL;
    }
    if (!fetch (s, digest, path, err))
      return NULL;
  }
  return arena_string (a, path, err);
}
