/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "server/http/listen.h"

#include <assert.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/protocol/message.h"

enum { BACKLOG = 4096, SOCKET_MODE = 0660 };

static int open_socket (const struct sockaddr *address, socklen_t size, const char *where,
                        error *err) {
  int one = 1;
  int fd = socket (address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd >= 0 && address->sa_family != AF_UNIX)
    setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (fd >= 0 && bind (fd, address, size) == 0 && listen (fd, BACKLOG) == 0)
    return fd;
  error_set (err, ERR_usage, "--listen %s: %s", where, strerror (errno));
  if (fd >= 0)
    close (fd);
  return -1;
}

/* A path that is left over is a socket that nobody answers. */
static void remove_stale (const struct sockaddr_un *address) {
  struct stat is;
  int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && lstat (address->sun_path, &is) == 0 && S_ISSOCK (is.st_mode) &&
      connect (fd, (const struct sockaddr *)address, sizeof *address) != 0 && errno == ECONNREFUSED)
    unlink (address->sun_path);
  if (fd >= 0)
    close (fd);
}

static int listen_on_path (const char *where, error *err) {
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  const char *path = where + 5;
  if (!*path || strlen (path) >= sizeof address.sun_path) {
    error_set (err, ERR_usage, "--listen %s: a path of 1 to %zu bytes is needed", where,
               sizeof address.sun_path - 1);
    return -1;
  }
  snprintf (address.sun_path, sizeof address.sun_path, "%s", path);
  remove_stale (&address);
  int fd = open_socket ((struct sockaddr *)&address, sizeof address, where, err);
  if (fd >= 0 && chmod (path, SOCKET_MODE) != 0) {
    error_set (err, ERR_file, "--listen %s: %s", where, strerror (errno));
    close (fd);
    return -1;
  }
  return fd;
}

static bool is_loopback (const struct sockaddr *address) {
  if (address->sa_family == AF_INET)
    return (ntohl (((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24) == 127;
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK (&((const struct sockaddr_in6 *)address)->sin6_addr);
}

int listen_at (const char *where, bool *is_local, error *err) {
  char host[128];
  struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                            .ai_socktype = SOCK_STREAM },
                  *found = NULL;
  *is_local = true;
  if (strncmp (where, "unix:", 5) == 0)
    return listen_on_path (where, err);
  const char *port = strrchr (where, ':');
  int64_t number = 0;
  bool ok = port && port > where && (size_t)(port - where) < sizeof host &&
            text_to_int (port + 1, UINT16_MAX, &number); /* getaddrinfo begins again at 65536 */
  snprintf (host, sizeof host, "%.*s", ok ? (int)(port - where) : 0, where);
  size_t n = strlen (host);
  if (n > 2 && host[0] == '[' && host[n - 1] == ']') {
    memmove (host, host + 1, n - 2);
    host[n - 2] = 0;
  }
  if (!ok || getaddrinfo (host, port + 1, &hints, &found) != 0) {
    error_set (err, ERR_usage,
               "--listen `%s` is not ADDRESS:PORT, with a port up to 65535, or unix:PATH", where);
    return -1;
  }
  *is_local = is_loopback (found->ai_addr);
  int fd = open_socket (found->ai_addr, found->ai_addrlen, where, err);
  freeaddrinfo (found);
  return fd;
}

int listen_given (const char *pid, const char *count) {
  if (!pid || !count || strtol (pid, NULL, 10) != (long)getpid ())
    return 0;
  long n = strtol (count, NULL, 10);
  return n < 0 ? 0 : n > 8 ? 8 : (int)n;
}

bool listen_prepare (int fd) {
  int how = fcntl (fd, F_GETFL);
  return how >= 0 && fcntl (fd, F_SETFL, how | O_NONBLOCK) == 0 &&
         fcntl (fd, F_SETFD, FD_CLOEXEC) == 0;
}

void listen_name (int fd, char *name, int size) {
  assert (fd >= 0 && name && size > 0);
  struct sockaddr_storage address;
  socklen_t length = sizeof address;
  char host[INET6_ADDRSTRLEN] = "";
  snprintf (name, (size_t)size, "a socket");
  if (getsockname (fd, (struct sockaddr *)&address, &length) != 0)
    return;
  if (address.ss_family == AF_INET) {
    const struct sockaddr_in *in = (const struct sockaddr_in *)&address;
    inet_ntop (AF_INET, &in->sin_addr, host, sizeof host);
    snprintf (name, (size_t)size, "http://%s:%d", host, ntohs (in->sin_port));
  } else if (address.ss_family == AF_INET6) {
    const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)&address;
    inet_ntop (AF_INET6, &in->sin6_addr, host, sizeof host);
    snprintf (name, (size_t)size, "http://[%s]:%d", host, ntohs (in->sin6_port));
  } else if (address.ss_family == AF_UNIX)
    snprintf (name, (size_t)size, "unix:%s", ((const struct sockaddr_un *)&address)->sun_path);
}

void listen_notify (const char *path, const char *text) {
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  if (!path || !*path || strlen (path) >= sizeof address.sun_path)
    return;
  snprintf (address.sun_path, sizeof address.sun_path, "%s", path);
  if (address.sun_path[0] == '@')
    address.sun_path[0] = 0;
  int fd = socket (AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  socklen_t size = (socklen_t)(offsetof (struct sockaddr_un, sun_path) + strlen (path));
  if (fd >= 0) {
    if (sendto (fd, text, strlen (text), MSG_NOSIGNAL, (struct sockaddr *)&address, size) < 0)
      text = NULL; /* nobody listens: no reason to stop */
    close (fd);
  }
}
