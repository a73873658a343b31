/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sockets to listen on: addresses, paths, and those that systemd hands over. */
#pragma once

#include "base/error.h"

/* "127.0.0.1:8077", "[::1]:0" or "unix:/path"; port 0: any that is free. -1 on failure.
   `is_local`: nobody from outside can reach it. */
int listen_at (const char *where, bool *is_local, error *err) MUST_CHECK;
/* The number of descriptors, from 3 on, that were handed to this process. */
int listen_given (const char *pid, const char *count);
bool listen_prepare (int fd);
/* "http://127.0.0.1:8077" or "unix:/path" of a socket. */
void listen_name (int fd, char *name, int size);
/* One datagram to systemd's socket, where there is one. */
void listen_notify (const char *path, const char *text);
