/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "server/service/folder.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sha256.h"

static void remove_inside (int at) {
  DIR *all = at >= 0 ? fdopendir (at) : NULL;
  struct dirent *e;
  while (all && (e = readdir (all))) {
    if (strcmp (e->d_name, ".") == 0 || strcmp (e->d_name, "..") == 0)
      continue;
    if (unlinkat (at, e->d_name, 0) == 0)
      continue;
    int below = openat (at, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (below >= 0)
      remove_inside (below);
    unlinkat (at, e->d_name, AT_REMOVEDIR);
  }
  if (all)
    closedir (all);
  else if (at >= 0)
    close (at);
}

void folder_remove_inside (const char *path) {
  remove_inside (open (path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

void folder_remove (const char *path) {
  assert (path && *path);
  folder_remove_inside (path);
  rmdir (path);
}

int64_t folder_bytes (const char *path) {
  int64_t sum = 0;
  DIR *all = opendir (path);
  struct dirent *e;
  struct stat is;
  while (all && (e = readdir (all)))
    if (fstatat (dirfd (all), e->d_name, &is, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG (is.st_mode))
      sum += is.st_size;
  if (all)
    closedir (all);
  return sum;
}

static bool is_file (const char *path, struct stat *is) {
  return lstat (path, is) == 0 && S_ISREG (is->st_mode);
}

bool file_exists (const char *path) {
  struct stat is;
  return is_file (path, &is);
}

bool file_has_bytes (const char *path) {
  struct stat is;
  return is_file (path, &is) && is.st_size > 0;
}

static int open_own (const char *path, error *err) {
  struct stat is;
  int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd >= 0 && fstat (fd, &is) == 0 && S_ISREG (is.st_mode))
    return fd;
  error_set (err, ERR_file, "%s cannot be read: %s", path,
             fd < 0 ? strerror (errno) : "it is no file");
  if (fd >= 0)
    close (fd);
  return -1;
}

bool file_read_own (const char *path, int64_t most, bytes *out, error *err) {
  assert (most > 0);
  char buffer[65536];
  ssize_t n = 0;
  int fd = open_own (path, err);
  bool ok = fd >= 0;
  while (ok && (n = read (fd, buffer, sizeof buffer)) > 0)
    ok = (out->size + n <= most || error_set (err, ERR_too_large, "%s is too large", path)) &&
         bytes_append (out, buffer, n, err);
  if (ok && n < 0)
    ok = error_set (err, ERR_file, "%s cannot be read: %s", path, strerror (errno));
  if (fd >= 0)
    close (fd);
  return ok;
}

bool file_take (const char *path, const char *to, char digest[65], int64_t *size, error *err) {
  char buffer[65536];
  sha256 s;
  ssize_t n = 0;
  int in = open_own (path, err), out = -1;
  bool ok = in >= 0;
  sha256_start (&s);
  *size = 0;
  unlink (to);
  if (ok && (out = open (to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600)) < 0)
    ok = error_set (err, ERR_file, "%s cannot be written: %s", to, strerror (errno));
  while (ok && (n = read (in, buffer, sizeof buffer)) > 0) {
    sha256_add (&s, buffer, (size_t)n);
    *size += n;
    ok = file_put (out, buffer, n, err);
    if (!ok)
      error_in_file (err, to);
  }
  if (ok && n < 0)
    ok = error_set (err, ERR_file, "%s cannot be read: %s", path, strerror (errno));
  if (in >= 0)
    close (in);
  if (out >= 0)
    close (out);
  sha256_text (&s, digest);
  if (!ok)
    unlink (to);
  return ok;
}
