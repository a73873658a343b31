/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/roster.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const int64_t magic = 0x7265747361666672; /* with the layout's version in its last byte */

/* Locks lie behind the rows: the first is of who is inside. */
static struct flock lock_at (int type, int byte) {
  return (struct flock){ .l_type = (short)type,
                         .l_whence = SEEK_SET,
                         .l_start = (off_t)sizeof (roster_file) + byte,
                         .l_len = 1 };
}

static int seat_byte (int row, int seat) {
  return 1 + row * ROSTER_SEATS + seat;
}

static bool map (roster *r) {
  struct stat about;
  if (fstat (r->file, &about) != 0)
    return false;
  if (about.st_size == 0 && ftruncate (r->file, sizeof (roster_file)) != 0)
    return false;
  if (about.st_size != 0 && about.st_size != (off_t)sizeof (roster_file)) {
    errno = EBADF;
    return false;
  }
  r->at = mmap (NULL, sizeof *r->at, PROT_READ | PROT_WRITE, MAP_SHARED, r->file, 0);
  if (r->at == MAP_FAILED) {
    r->at = NULL;
    return false;
  }
  if (r->at->magic == 0)
    r->at->magic = magic;
  errno = EBADF;
  return r->at->magic == magic;
}

bool roster_open (roster *r, const char *path) {
  *r = (roster){ .file = open (path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), .own = ROSTER_NONE };
  if (r->file < 0)
    return false;
  roster_enter (r);
  bool good = map (r);
  int why = errno;
  roster_leave (r);
  if (good)
    return true;
  roster_close (r);
  errno = why;
  return false;
}

void roster_close (roster *r) {
  if (r->at != NULL)
    munmap (r->at, sizeof *r->at);
  if (r->file >= 0)
    close (r->file);
  *r = (roster){ .file = -1, .own = ROSTER_NONE };
}

void roster_enter (roster *r) {
  struct flock l = lock_at (F_WRLCK, 0);
  while (fcntl (r->file, F_SETLKW, &l) != 0 && errno == EINTR) {
  }
}

void roster_leave (roster *r) {
  struct flock l = lock_at (F_UNLCK, 0);
  (void)fcntl (r->file, F_SETLK, &l);
}

bool roster_sit (roster *r, int row, int seat) {
  struct flock l = lock_at (F_WRLCK, seat_byte (row, seat));
  if (row < 0 || row >= ROSTER_ROWS || fcntl (r->file, F_SETLK, &l) != 0)
    return false;
  r->own = row;
  return true;
}

int roster_take (roster *r, int seat) {
  for (int row = 0; row < ROSTER_ROWS; row++)
    if (!roster_taken (r, row) && roster_sit (r, row, seat)) {
      memset (&r->at->row[row], 0, sizeof r->at->row[row]);
      return row;
    }
  return ROSTER_NONE;
}

bool roster_seat_taken (const roster *r, int row, int seat) {
  struct flock l = lock_at (F_WRLCK, seat_byte (row, seat));
  return fcntl (r->file, F_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

bool roster_taken (const roster *r, int row) {
  if (row == r->own)
    return true;
  for (int seat = 0; seat < ROSTER_SEATS; seat++)
    if (roster_seat_taken (r, row, seat))
      return true;
  return false;
}
