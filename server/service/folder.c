/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "server/service/folder.h"

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

bool file_exists (const char *path) {
  struct stat is;
  return stat (path, &is) == 0 && S_ISREG (is.st_mode);
}

bool file_has_bytes (const char *path) {
  struct stat is;
  return stat (path, &is) == 0 && S_ISREG (is.st_mode) && is.st_size > 0;
}

bool file_digest (const char *path, char digest[65], int64_t *size, error *err) {
  char buffer[65536];
  sha256 s;
  ssize_t n = 0;
  int fd = open (path, O_RDONLY | O_CLOEXEC);
  sha256_start (&s);
  *size = 0;
  while (fd >= 0 && (n = read (fd, buffer, sizeof buffer)) > 0) {
    sha256_add (&s, buffer, (size_t)n);
    *size += n;
  }
  bool ok = fd >= 0 && n == 0;
  if (!ok)
    error_set (err, ERR_file, "%s cannot be read: %s", path, strerror (errno));
  if (fd >= 0)
    close (fd);
  sha256_text (&s, digest);
  return ok;
}
