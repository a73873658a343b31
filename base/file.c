/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/coding.h"
#include "base/units.h"

enum { READ_CHUNK = 1 << 20 };
#define DEFAULT_LIMIT ((int64_t)4 << 30)

void bytes_free (bytes *b) {
  free (b->data);
  *b = (bytes){ 0 };
}

bool bytes_room (bytes *b, int64_t more, error *err) {
  assert (more >= 0);
  if (more > INT64_MAX / 4 - b->size)
    return error_memory (err);
  int64_t need = b->size + more + 1; /* the NUL */
  if (need <= b->capacity)
    return true;
  int64_t larger = b->capacity + b->capacity / 2;
  if (larger < need)
    larger = need;
  char *moved = realloc (b->data, (size_t)larger);
  if (!moved)
    return error_memory (err);
  b->data = moved;
  b->capacity = larger;
  return true;
}

bool bytes_append (bytes *b, const void *data, int64_t size, error *err) {
  if (!bytes_room (b, size, err))
    return false;
  if (size > 0)
    memcpy (b->data + b->size, data, (size_t)size);
  b->size += size;
  b->data[b->size] = 0;
  return true;
}

static bool read_all (int fd, int64_t limit_bytes, bytes *out, error *err) {
  for (;;) {
    if (!bytes_room (out, READ_CHUNK, err))
      return false;
    ssize_t got = read (fd, out->data + out->size, READ_CHUNK);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return error_set (err, ERR_file, "cannot be read: %s", strerror (errno));
    out->size += got;
    if (out->size > limit_bytes) {
      char limit[UNITS_TEXT];
      return error_set (err, ERR_too_large, "the file is larger than %s",
                        units_bytes (limit, limit_bytes));
    }
    if (got == 0) {
      out->data[out->size] = 0;
      return true;
    }
  }
}

int64_t file_mark (const char *text, int64_t size) {
  return size >= 3 && memcmp (text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

bool file_decode (const void *data, int64_t size, int64_t limit_bytes, bytes *out, error *err) {
  if (limit_bytes <= 0)
    limit_bytes = DEFAULT_LIMIT;
  *out = (bytes){ 0 };
  bool ok = coding_is_gzip (data, size)   ? gzip_decode (data, size, limit_bytes, out, err)
            : coding_is_zstd (data, size) ? zstd_decode (data, size, limit_bytes, out, err)
                                          : bytes_append (out, data, size, err);
  if (ok && coding_is_packed (data, size) && coding_is_packed (out->data, out->size))
    ok = error_set (err, ERR_input, "this is packed twice: unpack it once");
  ok = ok && bytes_append (out, "", 0, err); /* the NUL */
  if (!ok)
    bytes_free (out);
  return ok;
}

bool file_read_raw (const char *path, int64_t limit_bytes, bytes *out, error *err) {
  if (limit_bytes <= 0)
    limit_bytes = DEFAULT_LIMIT;
  *out = (bytes){ 0 };
  bool standard = strcmp (path, "-") == 0;
  int fd = standard ? STDIN_FILENO : open (path, O_RDONLY | O_CLOEXEC);
  bool ok = fd >= 0 || error_set (err, ERR_file, "cannot be opened: %s", strerror (errno));
  ok = ok && read_all (fd, limit_bytes, out, err);
  if (fd >= 0 && !standard)
    close (fd);
  if (!ok) {
    bytes_free (out);
    error_in_file (err, standard ? "standard input" : path);
  }
  return ok;
}

bool file_read (const char *path, int64_t limit_bytes, bytes *out, error *err) {
  bytes raw = { 0 };
  *out = (bytes){ 0 };
  if (!file_read_raw (path, limit_bytes, &raw, err))
    return false;
  bool ok = true;
  if (!coding_is_packed (raw.data, raw.size)) {
    *out = raw;
    raw = (bytes){ 0 };
  } else
    ok = file_decode (raw.data, raw.size, limit_bytes, out, err);
  bytes_free (&raw);
  if (!ok)
    error_in_file (err, strcmp (path, "-") == 0 ? "standard input" : path);
  return ok;
}

bool file_put (int fd, const void *data, int64_t size, error *err) {
  const char *at = data;
  while (size > 0) {
    ssize_t put = write (fd, at, (size_t)size);
    if (put < 0 && errno == EINTR)
      continue;
    if (put <= 0)
      return error_set (err, ERR_file, "cannot be written: %s", strerror (errno));
    at += put;
    size -= put;
  }
  return true;
}

/* The folder that a path lies in; false where the path is too long. */
static bool folder_of (const char *path, char *folder, size_t size) {
  if (snprintf (folder, size, "%s", path) >= (int)size)
    return false;
  char *slash = strrchr (folder, '/');
  if (slash)
    slash[slash == folder] = 0;
  else
    snprintf (folder, size, ".");
  return true;
}

enum { MADE_MODE = 0600 };

/* All of it, readable as the mask allows, and on the disk. */
static bool fill (int fd, const char *data, int64_t size, error *err) {
  mode_t mask = umask (0);
  umask (mask);
  if (!file_put (fd, data, size, err))
    return false;
  bool other = (0666 & ~mask) != MADE_MODE; /* a worker of the service changes no modes */
  if ((other && fchmod (fd, 0666 & ~mask)) || fsync (fd))
    return error_set (err, ERR_file, "cannot be written: %s", strerror (errno));
  return true;
}

/* A file without a name gets one beside the target: `temporary`. Whoever is killed before leaves
   nothing behind. */
static bool name_it (int fd, const char *path, char *temporary, size_t size) {
  enum { MOST_NAMES = 1000 };
  char own[64];
  int got = -1;
  snprintf (own, sizeof own, "/proc/self/fd/%d", fd);
  for (int i = 0; i < MOST_NAMES && got < 0; i++) {
    if (snprintf (temporary, size, "%s.%d.%d", path, (int)getpid (), i) >= (int)size)
      return false;
    got = linkat (AT_FDCWD, own, AT_FDCWD, temporary, AT_SYMLINK_FOLLOW);
    if (got < 0 && errno != EEXIST)
      return false;
  }
  return got == 0;
}

/* A name beside the target, so that the rename stays on one file system: made at the end where the
   file system knows files without one, else at once. */
static bool write_temporary (const char *path, const char *folder, const char *data, int64_t size,
                             char *temporary, size_t room, error *err) {
  int fd = open (folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, MADE_MODE);
  if (fd >= 0) {
    bool ok = fill (fd, data, size, err);
    bool named = ok && name_it (fd, path, temporary, room);
    close (fd);
    if (!ok || named)
      return ok;
  }
  if (snprintf (temporary, room, "%s.XXXXXX", path) >= (int)room)
    return error_set (err, ERR_file, "the path is too long");
  fd = mkostemp (temporary, O_CLOEXEC);
  if (fd < 0)
    return error_set (err, ERR_file, "cannot be created: %s", strerror (errno));
  bool ok = fill (fd, data, size, err);
  close (fd);
  if (!ok)
    unlink (temporary);
  return ok;
}

/* In the end the folder itself is synced, or a crash could lose the new name. */
static bool write_renamed (const char *path, const char *data, int64_t size, error *err) {
  char temporary[4096], folder[4096];
  if (!folder_of (path, folder, sizeof folder))
    return error_set (err, ERR_file, "the path is too long");
  if (!write_temporary (path, folder, data, size, temporary, sizeof temporary, err))
    return false;
  if (rename (temporary, path)) {
    error_set (err, ERR_file, "cannot be renamed into place: %s", strerror (errno));
    unlink (temporary);
    return false;
  }
  int dir = open (folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir >= 0) {
    fsync (dir);
    close (dir);
  }
  return true;
}

/* The file at the end of a symbolic link is replaced, not the link: /dev/stdout is one. NULL where
   there is no link, or one that leads nowhere yet. */
static char *link_target (const char *path) {
  struct stat st;
  return lstat (path, &st) == 0 && S_ISLNK (st.st_mode) ? realpath (path, NULL) : NULL;
}

/* Something that is there and not a plain file (a pipe, a terminal) is written to, not replaced. */
static bool is_special (const char *path) {
  struct stat st;
  return stat (path, &st) == 0 && !S_ISREG (st.st_mode);
}

bool file_write (const char *path, const void *data, int64_t size, file_coding coding, error *err) {
  bytes coded = { 0 };
  bool ok = true;
  if (coding != FILE_PLAIN) {
    ok = coding == FILE_GZIP ? gzip_encode (data, size, &coded, err)
                             : zstd_encode (data, size, &coded, err);
    data = coded.data;
    size = coded.size;
  }
  bool standard = strcmp (path, "-") == 0;
  if (ok && standard)
    ok = file_put (STDOUT_FILENO, data, size, err);
  else if (ok && is_special (path)) {
    int fd = open (path, O_WRONLY | O_CLOEXEC);
    ok = fd >= 0 ? file_put (fd, data, size, err)
                 : error_set (err, ERR_file, "cannot be opened: %s", strerror (errno));
    if (fd >= 0)
      close (fd);
  } else if (ok) {
    char *target = link_target (path);
    ok = write_renamed (target ? target : path, data, size, err);
    free (target);
  }
  bytes_free (&coded);
  if (!ok)
    error_in_file (err, standard ? "standard output" : path);
  return ok;
}

static bool is_folder (const char *path) {
  struct stat st;
  errno = EISDIR;
  return stat (path, &st) == 0 && S_ISDIR (st.st_mode);
}

/* A plain file in the place of a folder is no question of permissions. */
static bool is_writable_folder (const char *path) {
  if (access (path, F_OK) == 0 && !is_folder (path)) {
    errno = ENOTDIR;
    return false;
  }
  return access (path, W_OK | X_OK) == 0;
}

bool file_creatable (const char *path, error *err) {
  char folder[4096];
  if (strcmp (path, "-") == 0)
    return true;
  char *target = link_target (path);
  bool there = is_special (path);
  errno = ENOENT;
  bool ok = !*path  ? false
            : there ? access (path, W_OK) == 0 && !is_folder (path)
                    : folder_of (target ? target : path, folder, sizeof folder) &&
                          is_writable_folder (folder);
  if (!ok)
    error_set (err, ERR_file, "cannot be %s: %s", there ? "written" : "created", strerror (errno));
  free (target);
  if (!ok)
    error_in_file (err, path);
  return ok;
}

file_coding file_coding_of (const char *path) {
  size_t length = strlen (path);
  if (length > 3 && strcmp (path + length - 3, ".gz") == 0)
    return FILE_GZIP;
  if (length > 4 && strcmp (path + length - 4, ".zst") == 0)
    return FILE_ZSTD;
  return FILE_PLAIN;
}

bool file_store (const char *path, bytes *text, error *err) {
  bool ok = file_write (path, text->data, text->size, file_coding_of (path), err);
  bytes_free (text);
  return ok;
}
