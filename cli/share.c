/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/share.h"

#include <errno.h>
#include <fcntl.h>
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
#include "solver/fleet/cards.h"
#include "trace/trace.h"

enum { FAIR_PARTS = 8, PACK_TICKS = 4000 };

static int64_t get (const share *g, int row, int word) {
  return __atomic_load_n (&g->group.at->row[row].word[word], __ATOMIC_ACQUIRE);
}

static void set (share *g, int row, int word, int64_t value) {
  __atomic_store_n (&g->group.at->row[row].word[word], value, __ATOMIC_RELEASE);
}

/* ---- the group's folder and name ---- */

static bool group_file (call *c, const share *g, char *out, size_t size, const char *name) {
  return (size_t)snprintf (out, size, "%s/%s", g->folder, name) < size ||
         error_set (&c->err, ERR_usage, "--share: the folder %s has too long a name", g->folder);
}

static bool find_folder (call *c, const char *name, share *g) {
  const char *under = getenv ("XDG_RUNTIME_DIR");
  struct stat about;
  if (!under || !*under)
    under = getenv ("TMPDIR");
  if (!under || !*under)
    under = "/tmp";
  for (const char *at = name; *at; at++)
    if (*at == '/' || at - name > 63)
      return error_set (&c->err, ERR_usage,
                        "--share: `%s` is no name of a group; use at most 64 "
                        "characters and no `/`",
                        name);
  if ((size_t)snprintf (g->folder, sizeof g->folder, "%s/ferry-%u-%s", under, (unsigned)geteuid (),
                        name) >= sizeof g->folder)
    return error_set (&c->err, ERR_usage, "--share: the folder %s has too long a name", under);
  if (mkdir (g->folder, 0700) != 0 && errno != EEXIST)
    return error_set (&c->err, ERR_file, "%s: %s", g->folder, strerror (errno));
  if (lstat (g->folder, &about) != 0 || !S_ISDIR (about.st_mode) || about.st_uid != geteuid () ||
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

/* The table may have been removed between its opening and the row in it: then there is a new one.
 */
static bool take_row (call *c, share *g, int64_t total) {
  char path[SHIM_PATH];
  struct stat here, there;
  if (!group_file (c, g, path, sizeof path, "members"))
    return false;
  for (;;) {
    (void)mkdir (g->folder, 0700);
    if (!roster_open (&g->group, path))
      return error_set (&c->err, ERR_file, "%s: %s", path, strerror (errno));
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
    set (g, row, MEMBER_WANT, total);
    set (g, row, MEMBER_ORDER, ++all[GROUP_JOINED]);
    set (g, row, MEMBER_PID, getpid ());
  }
  int64_t theirs = all[GROUP_TOTAL];
  roster_leave (&g->group);
  char text[UNITS_TEXT];
  if (!good)
    return error_set (&c->err, ERR_usage,
                      "--budget: those who share this card have %s; use the same",
                      units_bytes (text, theirs));
  return row != ROSTER_NONE ||
         error_set (&c->err, ERR_usage, "--share: %d programs are there, which is the most",
                    ROSTER_ROWS);
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
    return error_set (&c->err, ERR_usage, "--least is more than --budget");
  if (!take_row (c, g, k->budget_bytes))
    return false;
  if (k->emulated)
    k->emu.memory_bytes = k->budget_bytes;
  k->share_row = g->group.own;
  set (g, g->group.own, MEMBER_NEED, least);
  return true;
}

void share_leave (share *g) {
  static const char *const files[] = { "members", "device" };
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
  for (size_t i = 0; last && i < sizeof files / sizeof *files; i++) {
    snprintf (path, sizeof path, "%s/%s", g->folder, files[i]);
    unlink (path);
  }
  if (last)
    rmdir (g->folder);
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

/* ---- rooms for all ---- */

typedef struct member {
  int row;
  int64_t order, target;
} member;

static int by_order (const void *x, const void *y) {
  const member *a = x, *b = y;
  return (a->order > b->order) - (a->order < b->order);
}

static int members_of (const share *g, member *out) {
  int n = 0;
  for (int i = 0; i < ROSTER_ROWS; i++)
    if (get (g, i, MEMBER_ORDER) != 0 && roster_taken (&g->group, i))
      out[n++] = (member){ i, get (g, i, MEMBER_ORDER), 0 };
  qsort (out, (size_t)n, sizeof *out, by_order);
  return n;
}

static int64_t up (const share *g, int64_t bytes) {
  return (bytes + g->granule_bytes - 1) / g->granule_bytes * g->granule_bytes;
}

/* The members and what is known of them, in a word. */
static int64_t key_of (const share *g, const member *m, int n) {
  uint64_t h = 1469598103934665603u;
  for (int i = 0; i < n; i++) {
    h = (h ^ (uint64_t)m[i].order) * 1099511628211u;
    int times = 0; /* doubled: not after each new step of a program that has many */
    for (int64_t steps = get (g, m[i].row, MEMBER_STEPS); steps > 0; steps /= 2)
      times++;
    h = (h ^ (uint64_t)times) * 1099511628211u;
  }
  return (int64_t)(h >> 1);
}

/* First what each needs, in the order in which they came: nobody overtakes who waits. Then what the
   plan for all gives them, and the rest in equal parts to who has a use for it. */
static void share_out (const share *g, member *m, int n) {
  int64_t left = g->group.at->word[GROUP_TOTAL];
  bool packed = g->group.at->word[GROUP_PACKED] == key_of (g, m, n);
  int in = 0;
  for (; in < n && up (g, get (g, m[in].row, MEMBER_NEED)) <= left; in++) {
    m[in].target = up (g, get (g, m[in].row, MEMBER_NEED));
    left -= m[in].target;
  }
  for (int i = 0; packed && i < in; i++) {
    int64_t more = up (g, get (g, m[i].row, MEMBER_PACKED)) - m[i].target;
    if (more > 0 && more <= left) {
      m[i].target += more;
      left -= more;
    }
  }
  for (int takers = in; takers > 0 && left >= g->granule_bytes;) {
    int64_t part = left / takers / g->granule_bytes * g->granule_bytes;
    part = part > 0 ? part : g->granule_bytes;
    takers = 0;
    for (int i = 0; i < in && left >= g->granule_bytes; i++) {
      int64_t more = up (g, get (g, m[i].row, MEMBER_WANT)) - m[i].target;
      more = more < part ? more : part;
      more = more < left ? more : left / g->granule_bytes * g->granule_bytes;
      if (more > 0) {
        m[i].target += more;
        left -= more;
        takers++;
      }
    }
  }
}

/* Room is raised where it is there, with the table to itself: also if two should serve at once,
   never more is granted than there is. */
static void grant (share *g, const member *m, int n) {
  roster_enter (&g->group);
  int64_t left = g->group.at->word[GROUP_TOTAL];
  for (int i = 0; i < ROSTER_ROWS; i++)
    if (get (g, i, MEMBER_GRANTED) > 0) {
      if (roster_taken (&g->group, i))
        left -= get (g, i, MEMBER_GRANTED);
      else
        set (g, i, MEMBER_GRANTED, 0);
    }
  for (int i = 0; i < n; i++) {
    int row = m[i].row;
    int64_t has = get (g, row, MEMBER_GRANTED), asked = get (g, row, MEMBER_ASKED);
    int64_t more = asked - has, need = up (g, get (g, row, MEMBER_NEED)) - has;
    if (asked < has && !roster_seat_taken (&g->group, row, SEAT_PROGRAM)) {
      set (g, row, MEMBER_GRANTED, asked); /* its program has not begun */
      left += has - asked;
    }
    if (more > left && need > 0 && need <= left)
      more = left / g->granule_bytes * g->granule_bytes;
    if (more <= 0 || more > left)
      continue;
    if (__atomic_compare_exchange_n (&g->group.at->row[row].word[MEMBER_GRANTED], &has, has + more,
                                     false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
      left -= more;
  }
  roster_leave (&g->group);
}

/* ---- a plan for all, in a process of its own ---- */

bool share_tell_step (call *c, const share *g, const trace *t) {
  char path[SHIM_PATH];
  snprintf (path, sizeof path, "%s/step-%d", g->folder, g->group.own);
  return trace_store (t, path, TRACE_PLAIN, &c->err);
}

static bool pack_all (call *c, const share *g, const member *m, int n) {
  cards_job jobs[CARDS_MOST_JOBS];
  cards_answer found;
  device card = *g->device;
  int64_t total = g->group.at->word[GROUP_TOTAL];
  for (int i = 0; i < n; i++) {
    const char *path = arena_format (c->arena, &c->err, "%s/step-%d", g->folder, m[i].row);
    jobs[i].name = path;
    jobs[i].trace = path ? trace_load (path, NULL, c->arena, &c->err) : NULL;
    if (!jobs[i].trace)
      return false;
  }
  card.memory_bytes = total;
  card.reserved_bytes = 0; /* the budget is of tensors */
  card.granule_bytes = g->granule_bytes;
  cards_options o = { .cards = &card,
                      .n_cards = 1,
                      .memory_bytes = total,
                      .points = 6,
                      .sampling = { .device = &card, .limit_ticks = PACK_TICKS },
                      .limit_ticks = PACK_TICKS };
  if (!cards_place_jobs (jobs, n, &o, c->arena, &found, &c->err))
    return false;
  for (int i = 0; i < n; i++)
    if (found.places[i].card < 0)
      return error_set (&c->err, ERR_infeasible, "%s", found.places[i].reason);
  for (int i = 0; i < n; i++)
    __atomic_store_n (&g->group.at->row[m[i].row].word[MEMBER_PACKED], found.places[i].budget_bytes,
                      __ATOMIC_RELEASE);
  return true;
}

static void serve_packer (call *c, share *g, const member *m, int n) {
  int64_t key = key_of (g, m, n);
  bool known = n > 1 && n <= CARDS_MOST_JOBS;
  if (g->packer > 0 && waitpid (g->packer, NULL, WNOHANG) != g->packer)
    return;
  g->packer = -1;
  for (int i = 0; i < n; i++)
    known = known && get (g, m[i].row, MEMBER_STEPS) > 0;
  if (!known || g->packing == key)
    return;
  g->packing = key;
  fflush (NULL);
  g->packer = fork ();
  if (g->packer != 0)
    return;
  c->err = (error){ 0 };
  if (pack_all (c, g, m, n))
    __atomic_store_n (&g->group.at->word[GROUP_PACKED], key, __ATOMIC_RELEASE);
  else
    fprintf (stderr, "ferry: no plan for all who share: %s; they have equal parts\n", c->err.text);
  _exit (0);
}

/* ---- the one who serves ---- */

static void tell_state (const share *g, int to) {
  json_writer w;
  bytes text = { 0 };
  error err = { 0 };
  member m[ROSTER_ROWS];
  int n = members_of (g, m);
  json_begin (&w, 1);
  json_open_object (&w);
  json_add_int (&w, "budget_bytes", g->group.at->word[GROUP_TOTAL]);
  json_put_key (&w, "programs");
  json_open_array (&w);
  for (int i = 0; i < n; i++) {
    json_open_object (&w);
    json_add_int (&w, "asked_bytes", get (g, m[i].row, MEMBER_ASKED));
    json_add_int (&w, "granted_bytes", get (g, m[i].row, MEMBER_GRANTED));
    json_add_int (&w, "launcher", get (g, m[i].row, MEMBER_PID));
    json_add_int (&w, "need_bytes", get (g, m[i].row, MEMBER_NEED));
    json_add_int (&w, "packed_bytes", get (g, m[i].row, MEMBER_PACKED));
    json_add_int (&w, "steps", get (g, m[i].row, MEMBER_STEPS));
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
    set (g, own, MEMBER_NEED, 0);
    set (g, own, MEMBER_WANT, 0);
    set (g, own, MEMBER_GRANTED, 0);
  }
  g->sat = sits;
  if (b->step_wanted > get (g, own, MEMBER_STEPS) && b->plan_ready == b->step_wanted)
    set (g, own, MEMBER_STEPS, b->step_wanted);
  if (!try_to_serve (g))
    return;
  int n = members_of (g, m);
  serve_packer (c, g, m, n);
  share_out (g, m, n);
  for (int i = 0; i < n; i++)
    if (get (g, m[i].row, MEMBER_ASKED) != m[i].target)
      set (g, m[i].row, MEMBER_ASKED, m[i].target);
  grant (g, m, n);
  serve_askers (g);
}

bool share_may_start (call *c, share *g) {
  int64_t need = up (g, get (g, g->group.own, MEMBER_NEED));
  if (get (g, g->group.own, MEMBER_GRANTED) >= need)
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
