/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/passing.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef union room {
  struct cmsghdr head;
  char bytes[CMSG_SPACE (MOST_PASSED * sizeof (int))];
} room;

bool passing_send (int socket, const int *files, int n) {
  assert (files && n > 0 && n <= MOST_PASSED);
  room control = { .bytes = { 0 } };
  char mark = 'f';
  size_t size = (size_t)n * sizeof *files;
  struct iovec text = { &mark, 1 };
  struct msghdr m = { .msg_iov = &text,
                      .msg_iovlen = 1,
                      .msg_control = control.bytes,
                      .msg_controllen = CMSG_SPACE (size) };
  struct cmsghdr *c = CMSG_FIRSTHDR (&m);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN (size);
  memcpy (CMSG_DATA (c), files, size);
  ssize_t sent;
  do
    sent = sendmsg (socket, &m, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent == 1;
}

/* Files of a message that is refused are open here all the same. */
static void close_passed (const struct cmsghdr *c) {
  size_t size = c->cmsg_type == SCM_RIGHTS ? c->cmsg_len - CMSG_LEN (0) : 0;
  for (size_t at = 0; at + sizeof (int) <= size; at += sizeof (int)) {
    int file;
    memcpy (&file, CMSG_DATA (c) + at, sizeof file);
    close (file);
  }
}

bool passing_take (int socket, int *files, int n) {
  assert (files && n > 0 && n <= MOST_PASSED);
  room control = { .bytes = { 0 } };
  char mark = 0;
  ssize_t got;
  struct iovec text = { &mark, 1 };
  struct msghdr m = { .msg_iov = &text,
                      .msg_iovlen = 1,
                      .msg_control = control.bytes,
                      .msg_controllen = sizeof control };
  do
    got = recvmsg (socket, &m, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  struct cmsghdr *c = got == 1 ? CMSG_FIRSTHDR (&m) : NULL;
  if (!c)
    return false;
  if (c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN ((size_t)n * sizeof *files)) {
    close_passed (c);
    return false;
  }
  memcpy (files, CMSG_DATA (c), (size_t)n * sizeof *files);
  return true;
}
