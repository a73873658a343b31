/* SPDX-License-Identifier: GPL-3.0-or-later */
/* New connections: each is taken once or waits at its socket, however often taking them is stopped
   and begun again, and none is taken while there is no room. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <unistd.h>

#include "server/http/accept.h"
#include "server/http/listen.h"
#include "tests/suite.h"

enum { ROUNDS = 300, CLIENTS = 4, SOCKETS = 2 };

static atomic_int taken;
static atomic_bool full;

static bool is_full (void *context) {
  (void)context;
  return full;
}

static void take (void *context, int fd, const struct sockaddr *from, socklen_t size) {
  (void)context;
  ck_assert_int_eq (from->sa_family, AF_INET);
  ck_assert_uint_ge (size, sizeof (struct sockaddr_in));
  close (fd);
  taken++;
}

static const accept_to to = { .is_full = is_full, .take = take };

static int socket_here (void) {
  error err = { 0 };
  bool local;
  int fd = listen_at ("127.0.0.1:0", &local, &err);
  ck_assert_int_ge (fd, 0);
  return fd;
}

static accepting *begin (const int *sockets, int n) {
  error err = { 0 };
  accepting *a = accept_start (sockets, n, &to, &err);
  ck_assert_ptr_nonnull (a);
  return a;
}

static void knock (int at_socket) {
  struct sockaddr_storage at;
  socklen_t size = sizeof at;
  ck_assert_int_eq (getsockname (at_socket, (struct sockaddr *)&at, &size), 0);
  int fd = socket (AF_INET, SOCK_STREAM, 0);
  ck_assert_int_eq (connect (fd, (struct sockaddr *)&at, size), 0);
  close (fd);
}

static int left_at (int socket) {
  int n = 0;
  for (int fd; (fd = accept (socket, NULL, NULL)) >= 0; n++)
    close (fd);
  return n;
}

static void wait_for (int number) {
  for (int i = 0; i < 100000 && taken < number; i++)
    usleep (100);
  ck_assert_int_ge (taken, number);
}

CLAIM (each_is_taken_once_or_stays) {
  int sockets[SOCKETS] = { socket_here (), socket_here () }, stayed = 0;
  for (int i = 0; i < ROUNDS; i++) {
    accepting *a = begin (sockets, SOCKETS);
    for (int k = 0; k < CLIENTS; k++)
      knock (sockets[k % SOCKETS]);
    if (i % 2) /* else it may be stopped before it has taken any */
      wait_for (i * CLIENTS - stayed + 1);
    accept_stop (a);
    stayed += left_at (sockets[0]) + left_at (sockets[1]);
    ck_assert_int_eq (taken + stayed, (i + 1) * CLIENTS);
  }
  close (sockets[0]);
  close (sockets[1]);
}

CLAIM (those_that_stayed_are_taken_next_time) {
  int socket = socket_here ();
  for (int k = 0; k < 50; k++)
    knock (socket);
  accepting *a = begin (&socket, 1);
  wait_for (50);
  accept_stop (a);
  close (socket);
}

CLAIM (none_is_taken_while_there_is_no_room) {
  int socket = socket_here ();
  full = true;
  accepting *a = begin (&socket, 1);
  knock (socket);
  usleep (100000);
  ck_assert_int_eq (taken, 0);
  full = false;
  wait_for (1);
  accept_stop (a);
  close (socket);
}

/* Its socket is no socket any more: the thread goes on, and is stopped as ever. */
CLAIM (a_socket_that_fails_holds_up_no_other) {
  int sockets[SOCKETS] = { socket_here (), socket_here () };
  shutdown (sockets[0], SHUT_RDWR);
  accepting *a = begin (sockets, SOCKETS);
  knock (sockets[1]);
  wait_for (1);
  accept_stop (a);
  close (sockets[0]);
  close (sockets[1]);
}

int main (void) {
  return suite_run ("accept", 60);
}
