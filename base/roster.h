/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Processes that share something: a file of rows that all of them map.  A row is taken as long as
   one of its seats is.  A seat is a lock on a byte of the file, which the kernel takes away when
   its process ends, however that happens; so nobody has to tidy up after a process that was killed.
   Locks belong to processes: one that closes the file by other ways loses them, and a child has
   none of its parent's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { ROSTER_ROWS = 64, ROSTER_WORDS = 12, ROSTER_SEATS = 2, ROSTER_NONE = -1 };

typedef struct roster_row {
  int64_t word[ROSTER_WORDS];
} roster_row;

typedef struct roster_file {
  int64_t magic;
  int64_t word[ROSTER_WORDS]; /* of all */
  roster_row row[ROSTER_ROWS];
} roster_file;

typedef struct roster {
  int file; /* -1: not open */
  roster_file *at;
  int own; /* its row, or ROSTER_NONE */
} roster;

/* Made where it is not there. false: errno says why; EBADF: the file is something else. */
bool roster_open (roster *r, const char *path);
/* Its seats are free from here on. */
void roster_close (roster *r);
/* One process at a time is inside. */
void roster_enter (roster *r);
void roster_leave (roster *r);
/* A free row of zeros, which is the process's own from now on; call it inside. ROSTER_NONE: all are
   taken. */
int roster_take (roster *r, int seat);
/* Another seat of a row that somebody has. */
bool roster_sit (roster *r, int row, int seat);
/* True if another process has this seat; the caller's own seats do not show. */
bool roster_seat_taken (const roster *r, int row, int seat);
bool roster_taken (const roster *r, int row);
