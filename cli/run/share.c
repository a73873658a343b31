/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/run/share.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sha256.h"
#include "base/units.h"
#include "cli/run/share_rooms.h"
#include "trace/trace.h"

enum { FAIR_PARTS = 8 };

/* ---- the group's folder and name ---- */

static bool group_file (call *c, const share *g, char *out, size_t size, const char *name) {
  return (size_t)snprintf (out, size, "%s/%s", g->folder, name) < size ||
         call_usage (c, "--share: the folder %s has too long a name", g->folder);
}

static bool find_folder (call *c, const char *name, share *g) {
  const char *under = getenv ("XDG_RUNTIME_DIR");
  char whole[PATH_MAX];
  struct stat about;
  if (!under || !*under)
    under = getenv ("TMPDIR");
  if (!under || !*under)
    under = "/tmp";
  size_t length = strlen (name);
  if (length < 1 || length > 64 || strchr (name, '/'))
    return call_usage (c, "--share: `%s` is no name of a group; use 1 to 64 characters and no `/`",
                       name);
  if (!realpath (under, whole)) /* the programs may go elsewhere */
    return error_set (&c->err, ERR_file, "--share: the folder %s: %s", under, strerror (errno));
  if ((size_t)snprintf (g->folder, sizeof g->folder, "%s/ferry-%u-%s", whole, (unsigned)geteuid (),
                        name) >= sizeof g->folder)
    return call_usage (c, "--share: the folder %s has too long a name", under);
  int seen;
  do { /* again, where the last of those who were there removed it in between */
    if (mkdir (g->folder, 0700) != 0 && errno != EEXIST)
      return error_set (&c->err, ERR_file, "%s: %s", g->folder, strerror (errno));
    seen = lstat (g->folder, &about);
  } while (seen != 0 && errno == ENOENT);
  if (seen != 0 || !S_ISDIR (about.st_mode) || about.st_uid != geteuid () ||
      (about.st_mode & 077) != 0)
    return error_set (&c->err, ERR_file, "%s is somebody else's; use another --share", g->folder);
  return true;
}

/* An address of the kernel's own, not of a folder: it goes with its process, and has room for any
   name. */
static socklen_t address_of (const share *g, struct sockaddr_un *out) {
  char digest[SHA256_TEXT];
  sha256 whole;
  *out = (struct sockaddr_un){ .sun_family = AF_UNIX };
  sha256_start (&whole);
  sha256_add (&whole, g->folder, strlen (g->folder));
  sha256_text (&whole, digest);
  int n = snprintf (out->sun_path + 1, sizeof out->sun_path - 1, "ferry-share-%.40s", digest);
  return (socklen_t)(offsetof (struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static bool try_to_serve (share *g) {
  struct sockaddr_un at;
  if (g->socket >= 0)
    return true;
  socklen_t length = address_of (g, &at);
  int s = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (s < 0 || bind (s, (struct sockaddr *)&at, length) != 0 || listen (s, 8) != 0) {
    if (s >= 0)
      close (s);
    return false;
  }
  g->socket = s;
  return true;
}

/* The folder may have been removed before the table in it is opened, and the table between its
   opening and the row in it: then there are new ones. */
static bool take_row (call *c, share *g, int64_t total) {
  char path[SHIM_PATH];
  struct stat here, there;
  if (!group_file (c, g, path, sizeof path, "members"))
    return false;
  for (;;) {
    bool there_is = mkdir (g->folder, 0700) == 0 || errno == EEXIST;
    if (!roster_open (&g->group, path)) {
      if (there_is && errno == ENOENT)
        continue;
      return error_set (&c->err, ERR_file, "%s: %s", path, strerror (errno));
    }
    roster_enter (&g->group);
    if (stat (path, &there) == 0 && fstat (g->group.file, &here) == 0 &&
        here.st_ino == there.st_ino && here.st_dev == there.st_dev)
      break;
    roster_close (&g->group);
  }
  int64_t *all = g->group.at->word;
  bool alone = true;
  for (int i = 0; i < ROSTER_ROWS; i++)
    alone = alone && !roster_taken (&g->group, i);
  if (alone)
    all[GROUP_TOTAL] = total;
  bool good = all[GROUP_TOTAL] == total;
  int row = good ? roster_take (&g->group, SEAT_LAUNCHER) : ROSTER_NONE;
  if (row != ROSTER_NONE) {
    share_set (g, row, MEMBER_WANT, total);
    share_set (g, row, MEMBER_ORDER, ++all[GROUP_JOINED]);
    share_set (g, row, MEMBER_PID, getpid ());
  }
  int64_t theirs = all[GROUP_TOTAL];
  roster_leave (&g->group);
  char text[UNITS_TEXT];
  if (!good)
    return call_usage (c, "--budget: those who share this card have %s; use the same",
                       units_bytes (text, theirs));
  return row != ROSTER_NONE ||
         call_usage (c, "--share: %d programs are there, which is the most", ROSTER_ROWS);
}

bool share_join (call *c, const char *name, const device *d, shim_config *k, share *g) {
  *g = (share){
    .group = { .file = -1, .own = ROSTER_NONE }, .socket = -1, .packer = -1, .device = d
  };
  g->granule_bytes = k->emulated ? k->emu.granule_bytes : (int64_t)1 << 21;
  int64_t least = k->budget_bytes / FAIR_PARTS;
  if (!find_folder (c, name, g) || !call_quantity (c, "least", &least) ||
      !group_file (c, g, k->share, sizeof k->share, "members") ||
      !group_file (c, g, k->emu.shared, sizeof k->emu.shared, "device"))
    return false;
  if (least > k->budget_bytes)
    return call_usage (c, "--least is more than --budget");
  if (!take_row (c, g, k->budget_bytes))
    return false;
  if (k->emulated)
    k->emu.memory_bytes = k->budget_bytes;
  k->share_row = g->group.own;
  share_set (g, g->group.own, MEMBER_NEED, least);
  return true;
}

void share_leave (share *g) {
  bool last = g->group.at != NULL;
  char path[SHIM_PATH];
  if (g->packer > 0) {
    kill (g->packer, SIGKILL);
    waitpid (g->packer, NULL, 0);
  }
  if (!last)
    return;
  int own = g->group.own;
  snprintf (path, sizeof path, "%s/step-%d", g->folder, own);
  unlink (path);
  roster_enter (&g->group);
  for (int i = 0; i < ROSTER_ROWS; i++)
    last = last && (i == own ? !roster_seat_taken (&g->group, i, SEAT_PROGRAM)
                             : !roster_taken (&g->group, i));
  if (last) /* the table last: nobody can have begun a new one before */
    program_remove_folder (g->folder, "members");
  roster_close (&g->group); /* leaves it, too */
  if (g->socket >= 0)
    close (g->socket);
  g->socket = -1;
}

int64_t share_high_bytes (const share *g) {
  char path[SHIM_PATH];
  roster device;
  int64_t high = -1;
  snprintf (path, sizeof path, "%s/device", g->folder);
  if (access (path, R_OK) == 0 && roster_open (&device, path)) {
    high = device.at->word[EMU_SHARED_HIGH];
    roster_close (&device);
  }
  return high;
}

/* ---- the one who serves ---- */

static void tell_state (const share *g, int to) {
  json_writer w;
  bytes text = { 0 };
  error err = { 0 };
  member m[ROSTER_ROWS];
  int n = share_members (g, m);
  json_begin_object (&w, 1);
  json_add_int (&w, "budget_bytes", g->group.at->word[GROUP_TOTAL]);
  json_add_array (&w, "programs");
  for (int i = 0; i < n; i++) {
    json_open_object (&w);
    json_add_int (&w, "asked_bytes", share_get (g, m[i].row, MEMBER_ASKED));
    json_add_int (&w, "granted_bytes", share_get (g, m[i].row, MEMBER_GRANTED));
    json_add_int (&w, "launcher", share_get (g, m[i].row, MEMBER_PID));
    json_add_int (&w, "need_bytes", share_get (g, m[i].row, MEMBER_NEED));
    json_add_int (&w, "packed_bytes", share_get (g, m[i].row, MEMBER_PACKED));
    json_add_int (&w, "steps", share_get (g, m[i].row, MEMBER_STEPS));
    json_close_object (&w);
  }
  json_close_array (&w);
  json_add_int (&w, "served_by", getpid ());
  json_close_object (&w);
  if (json_finish (&w, &text, &err))
    (void)!send (to, text.data, (size_t)text.size, MSG_NOSIGNAL | MSG_DONTWAIT);
  bytes_free (&text);
}

static void serve_askers (share *g) {
  for (int to; (to = accept4 (g->socket, NULL, NULL, SOCK_CLOEXEC)) >= 0; close (to))
    tell_state (g, to);
}

void share_serve (call *c, share *g, const shim_block *b) {
  member m[ROSTER_ROWS];
  int own = g->group.own;
  bool sits = roster_seat_taken (&g->group, own, SEAT_PROGRAM);
  if (g->sat && !sits) { /* others behind the launcher have no use for a card */
    share_set (g, own, MEMBER_NEED, 0);
    share_set (g, own, MEMBER_WANT, 0);
    share_set (g, own, MEMBER_GRANTED, 0);
  }
  g->sat = sits;
  if (b->step_wanted > share_get (g, own, MEMBER_STEPS) && b->plan_ready == b->step_wanted)
    share_set (g, own, MEMBER_STEPS, b->step_wanted);
  if (!try_to_serve (g))
    return;
  int n = share_members (g, m);
  share_pack (c, g, m, n);
  share_divide (g, m, n);
  for (int i = 0; i < n; i++)
    if (share_get (g, m[i].row, MEMBER_ASKED) != m[i].target)
      share_set (g, m[i].row, MEMBER_ASKED, m[i].target);
  share_grant (g, m, n);
  serve_askers (g);
}

bool share_may_start (call *c, share *g) {
  int64_t need = share_up (g, share_get (g, g->group.own, MEMBER_NEED));
  if (share_get (g, g->group.own, MEMBER_GRANTED) >= need)
    return true;
  char text[UNITS_TEXT];
  if (!g->said && g->socket < 0)
    call_note (c, "waits for %s of the card that it shares", units_bytes (text, need));
  g->said = true;
  return false;
}

bool share_ask (call *c, const char *name) {
  share g = { .socket = -1 };
  struct sockaddr_un at;
  char text[4096];
  if (!find_folder (c, name, &g))
    return false;
  (void)rmdir (g.folder); /* it was made just now, or is in use */
  socklen_t length = address_of (&g, &at);
  int s = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (s < 0 || connect (s, (struct sockaddr *)&at, length) != 0) {
    if (s >= 0)
      close (s);
    return error_set (&c->err, ERR_unreachable, "--share: no program is in `%s`", name);
  }
  for (ssize_t n; (n = recv (s, text, sizeof text, 0)) > 0;)
    fwrite (text, 1, (size_t)n, stdout);
  close (s);
  return true;
}
