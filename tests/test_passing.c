/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Open files go from one end of a socket pair to the other, or none does. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/passing.h"
#include "tests/suite.h"

CLAIM (files_arrive_in_order) {
  int ends[2], one[2], two[2], got[2] = { -1, -1 };
  char text[4] = "";
  ck_assert (socketpair (AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
  ck_assert (pipe (one) == 0 && pipe (two) == 0);
  ck_assert (passing_send (ends[0], (int[]){ one[0], two[1] }, 2));
  ck_assert (passing_take (ends[1], got, 2));
  ck_assert (write (one[1], "abc", 3) == 3 && read (got[0], text, 3) == 3);
  ck_assert_str_eq (text, "abc");
  ck_assert (write (got[1], "def", 3) == 3 && read (two[0], text, 3) == 3);
  ck_assert_str_eq (text, "def");
}

CLAIM (other_messages_are_none) {
  int ends[2], got[2] = { -1, -1 };
  ck_assert (socketpair (AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
  int next = dup (ends[0]);
  close (next);
  ck_assert (write (ends[0], "x", 1) == 1);
  ck_assert (!passing_take (ends[1], got, 2)); /* no files */
  ck_assert (passing_send (ends[0], (int[]){ 0 }, 1));
  ck_assert (!passing_take (ends[1], got, 2)); /* too few */
  ck_assert_int_eq (got[0], -1);
  ck_assert_int_eq (dup (ends[0]), next); /* nothing stays open */
  close (next);
  close (ends[0]);
  ck_assert (!passing_take (ends[1], got, 2));
  ck_assert (!passing_send (ends[1], (int[]){ 0 }, 1));
}

int main (void) {
  return suite_run ("passing", 10);
}
