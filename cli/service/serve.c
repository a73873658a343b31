/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry serve`: the service, from its command line to its end. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "base/file.h"
#include "base/order.h"
#include "base/sandbox.h"
#include "base/units.h"
#include "cli/call/call.h"
#include "cli/inputs/beside.h"
#include "cli/inputs/devices.h"
#include "cli/inputs/hosts.h"

#ifdef HAVE_SERVER
#include "server/http/accept.h"
#include "server/http/http.h"
#include "server/http/listen.h"
#include "server/work/crew.h"

enum { DYING_S = 10, LOOKS_PER_S = 50 };

typedef struct sockets {
  int fd[ACCEPT_SOCKETS];
  int n;
  bool all_local;
} sockets;

/* ---- the options ---- */

static bool read_limits (call *c, service_options *o) {
  int64_t workers = sysconf (_SC_NPROCESSORS_ONLN), keep_days = 30;
  *o = (service_options){ .most_body_bytes = (int64_t)256 << 20,
                          .most_decoded_bytes = (int64_t)1 << 30,
                          .most_control_bytes = 1 << 20,
                          .most_queued = 1000,
                          .most_connections = 1024,
                          .most_tries = 3,
                          .disk_bytes = (int64_t)20 << 30,
                          .card_reserve_bytes = (int64_t)512 << 20,
                          .worker_bytes = (int64_t)4 << 30,
                          .job_s = 3600 };
  if (!call_quantity (c, "workers", &workers) ||
      !call_quantity (c, "max-body", &o->most_body_bytes) ||
      !call_quantity (c, "max-decoded", &o->most_decoded_bytes) ||
      !call_quantity (c, "max-queue", &o->most_queued) ||
      !call_quantity (c, "max-connections", &o->most_connections) ||
      !call_quantity (c, "tries", &o->most_tries) ||
      !call_quantity (c, "card-reserve", &o->card_reserve_bytes) ||
      !call_quantity (c, "disk-quota", &o->disk_bytes) ||
      !call_quantity (c, "worker-memory", &o->worker_bytes) ||
      !call_quantity (c, "job-seconds", &o->job_s) || !call_quantity (c, "keep", &keep_days))
    return false;
  o->keep_s = keep_days * 86400;
  o->workers = (int)workers;
  return true;
}

static bool is_there (const char *folder, const char *name) {
  char path[256];
  snprintf (path, sizeof path, "%s/%s", folder, name);
  return access (path, F_OK) == 0;
}

/* A daemon empties folders in there, which in a home would be somebody's. */
static bool is_ours (call *c, const char *folder) {
  static const char *const names[] = { "blobs", "spool", "work" };
  if (is_there (folder, "store.sqlite") ||
      (is_there (folder, "lock") && is_there (folder, "workers")))
    return true;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (is_there (folder, names[i]))
      return error_set (&c->err, ERR_file,
                        "--state: %s/%s is not of a ferry serve; give a folder of its own", folder,
                        names[i]);
  return true;
}

static const char *state_folder (call *c) {
  char path[4096];
  const char *given = call_text (c, "state");
  if (!given) {
    call_usage (c, "--state DIR says where traces and jobs are kept");
    return NULL;
  }
  if (mkdir (given, 0700) != 0 && access (given, W_OK | X_OK) != 0) {
    error_set (&c->err, ERR_file, "--state: the folder %s cannot be made or written", given);
    return NULL;
  }
  if (!realpath (given, path) || strlen (path) > 180) {
    error_set (&c->err, ERR_file, "--state: %s is no folder of a path below 180 bytes", given);
    return NULL;
  }
  return is_ours (c, path) ? arena_string (c->arena, path, &c->err) : NULL;
}

/* The lock goes with the process: a second daemon on the same folder would take its jobs away. */
static bool lock_state (call *c, const char *folder) {
  const char *path = arena_format (c->arena, &c->err, "%s/lock", folder);
  int lock = path ? open (path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
  if (!path || (lock >= 0 && flock (lock, LOCK_EX | LOCK_NB) == 0))
    return path;
  if (lock >= 0 && errno == EWOULDBLOCK)
    return error_set (&c->err, ERR_file, "the state folder %s is in use by another ferry serve",
                      folder);
  return error_set (&c->err, ERR_file, "%s cannot be locked: %s", path, strerror (errno));
}

/* Those that hold it may be a while. */
static bool lock_in_time (int lock) {
  for (int i = 0; i < DYING_S * LOOKS_PER_S; i++) {
    if (flock (lock, LOCK_EX | LOCK_NB) == 0)
      return true;
    if (errno != EWOULDBLOCK && errno != EINTR)
      return false;
    usleep (1000000 / LOOKS_PER_S);
  }
  errno = EWOULDBLOCK;
  return false;
}

/* All workers inherit this lock and hold it until they are gone: the folders of a daemon that was
   killed are swept when nothing writes into them any more. -1: *err. */
static int lock_workers (call *c, const char *folder) {
  const char *path = arena_format (c->arena, &c->err, "%s/workers", folder);
  int lock = path ? open (path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
  if (!path || (lock >= 0 && lock_in_time (lock)))
    return lock;
  if (lock >= 0 && errno == EWOULDBLOCK)
    error_set (&c->err, ERR_file,
               "workers of a ferry serve that was killed still use the state folder %s: end them "
               "first",
               folder);
  else
    error_set (&c->err, ERR_file, "%s cannot be locked: %s", path, strerror (errno));
  return -1;
}

/* With a NULL behind them. */
static const char *const *known_devices (call *c) {
  int n;
  const char *const *names = device_names (c, &n);
  const char **out = names ? NEW (c->arena, n + 1, const char *, &c->err) : NULL;
  for (int i = 0; out && i < n; i++)
    out[i] = names[i];
  return out;
}

static void put_device (call *c, const char *name, json_writer *w) {
  device d;
  if (device_named (c, name, &d))
    device_write (w, &d);
}

static void put_host (call *c, const char *name, json_writer *w) {
  gpu_host h;
  if (host_named (c, name, &h))
    host_write (w, &h);
}

/* An array of files, for clients that change one; one that cannot be read is left out, as a job
   that names it says why. */
static const char *files_of (call *c, const char *const *names, int n,
                             void (*put) (call *c, const char *name, json_writer *w)) {
  json_writer w;
  bytes text = { 0 };
  const char *out = NULL;
  json_begin (&w, 0);
  json_open_array (&w);
  for (int i = 0; i < n; i++) {
    error before = c->err;
    put (c, names[i], &w);
    c->err = before;
  }
  json_close_array (&w);
  if (json_finish (&w, &text, &c->err))
    out = arena_string (c->arena, text.data, &c->err);
  bytes_free (&text);
  return out;
}

static bool list_files (call *c, service_options *o) {
  int n_devices = 0, n_hosts;
  const char *const *hosts = data_names (c, "hosts", &n_hosts);
  if (!(o->devices = known_devices (c)))
    return false;
  while (o->devices[n_devices])
    n_devices++;
  return (o->device_files = files_of (c, o->devices, n_devices, put_device)) &&
         (o->host_files = files_of (c, hosts, hosts ? n_hosts : 0, put_host));
}

/* Root's workers are somebody without rights of their own. */
static bool read_worker_user (call *c, service_options *o) {
  const char *name = call_text (c, "worker-user");
  const struct passwd *user = getpwnam (name ? name : "nobody");
  if (geteuid () != 0)
    return !name || call_usage (c, "--worker-user is for a daemon of root alone");
  if (!user || user->pw_uid == 0)
    return call_usage (c, "--worker-user: %s is %s", name ? name : "nobody",
                       user ? "root itself" : "no user of this system");
  o->worker_user = user->pw_uid;
  o->worker_group = user->pw_gid;
  return true;
}

static bool read_options_of (call *c, service_options *o) {
  const char *store = call_text (c, "store");
  if (!read_limits (c, o) || !read_worker_user (c, o) || !(o->folder = state_folder (c)) ||
      !lock_state (c, o->folder) || (o->workers_lock = lock_workers (c, o->folder)) < 0)
    return false;
  o->program = "/proc/self/exe"; /* the same, though another version has taken its place */
  o->store = store ? store : "sqlite";
  o->datadir = getenv ("FERRY_DATADIR");
  if (!list_files (c, o))
    return false;
  o->tokens = call_text (c, "tokens");
  o->inventory = call_text (c, "inventory");
  o->log = c->quiet ? NULL : stderr;
  return true;
}

/* ---- sockets ---- */

static bool take_given (call *c, sockets *s) {
  int n = listen_given (getenv ("LISTEN_PID"), getenv ("LISTEN_FDS"));
  for (int i = 0; i < n && s->n < ACCEPT_SOCKETS; i++) {
    if (!listen_prepare (3 + i))
      return call_usage (c, "LISTEN_FDS: descriptor %d is not open", 3 + i);
    s->fd[s->n++] = 3 + i;
  }
  unsetenv ("LISTEN_PID");
  unsetenv ("LISTEN_FDS");
  return true;
}

static bool open_sockets (call *c, const service_options *o, sockets *s) {
  const char *text = call_text (c, "listen");
  *s = (sockets){ .all_local = true };
  if (!take_given (c, s))
    return false;
  char *list =
      arena_string (c->arena, text || s->n ? (text ? text : "") : "127.0.0.1:8077", &c->err);
  for (char *at = list, *end; at && *at; at = end) {
    bool local = true;
    if (s->n == ACCEPT_SOCKETS)
      return call_usage (c, "--listen: more than %d addresses", ACCEPT_SOCKETS);
    end = strchr (at, ',');
    if (end)
      *end++ = 0;
    int fd = listen_at (at, &local, &c->err);
    if (fd < 0)
      return false;
    s->fd[s->n++] = fd;
    s->all_local &= local;
  }
  if (list && !s->n)
    return call_usage (c, "--listen: no address; without it, 127.0.0.1:8077");
  if (!s->all_local && !o->tokens && !call_flag (c, "insecure"))
    return call_usage (
        c, "others can reach that address: give --tokens FILE, or --insecure if that is "
           "meant");
  return list;
}

static bool announce (call *c, const sockets *s) {
  char name[256];
  for (int i = 0; i < s->n; i++) {
    listen_name (s->fd[i], name, sizeof name);
    printf ("ferry listens on %s\n", name);
  }
  if (fflush (stdout) != 0)
    return error_set (&c->err, ERR_file, "standard output cannot be written");
  listen_notify (getenv ("NOTIFY_SOCKET"), "READY=1");
  return true;
}

/* ---- life ---- */

/* Blocked in all threads, so that this one alone waits for them. */
static void block_signals (sigset_t *all) {
  sigemptyset (all);
  sigaddset (all, SIGINT);
  sigaddset (all, SIGTERM);
  sigaddset (all, SIGHUP);
  pthread_sigmask (SIG_BLOCK, all, NULL);
  signal (SIGPIPE, SIG_IGN);
  signal (SIGXFSZ, SIG_IGN); /* a write that is too much fails, as on a full disk */
}

/* Without this each thread keeps a heap of its own as large as its largest request has made it;
   with it, memory goes back to the system. Before the first thread. */
static void keep_little (void) {
#ifdef __GLIBC__
  mallopt (M_ARENA_MAX, 2);
  mallopt (M_MMAP_THRESHOLD, 256 << 10);
  mallopt (M_TRIM_THRESHOLD, 1 << 20);
#endif
}

/* Each connection is an open file, and its upload or reply another; a system gives a program few of
   them before it asks. Where it gives fewer, there are fewer connections. */
static void allow_files (call *c, int64_t *connections) {
  enum { OTHER_FILES = 512, LEAST = 16 };
  struct rlimit l;
  rlim_t need = 2 * (rlim_t)*connections + OTHER_FILES;
  if (getrlimit (RLIMIT_NOFILE, &l) != 0 || l.rlim_cur >= need)
    return;
  l.rlim_cur = l.rlim_max < need ? l.rlim_max : need;
  if (setrlimit (RLIMIT_NOFILE, &l) != 0 || l.rlim_cur == need)
    return;
  *connections = max_of (LEAST, ((int64_t)l.rlim_cur - OTHER_FILES) / 2);
  call_note (c, "%lld connections at the same time: this system allows %lld open files",
             (long long)*connections, (long long)l.rlim_cur);
}

/* Behind SIGTERM: a second signal, or a stop that takes too long, ends the process as it is. Jobs
   are in the store. */
static void *end_in_time (void *signals) {
  enum { STOP_S = 15, STATUS_INTERNAL = 70 };
  struct timespec most = { .tv_sec = STOP_S };
  while (sigtimedwait (signals, NULL, &most) < 0 && errno == EINTR)
    continue;
  _exit (STATUS_INTERNAL);
}

static void end_soon (call *c, sigset_t *signals) {
  pthread_t ending;
  if (pthread_create (&ending, NULL, end_in_time, signals) == 0)
    pthread_detach (ending);
  else
    call_note (c, "no thread that ends the daemon in time");
}

/* A change of the file is seen anyway: who asks for it may want to know if it can be read. */
static void read_tokens_anew (service *s) {
  error err = { 0 };
  bool ok = !s->tokens || tokens_read (s->tokens, &err);
  service_log (s, ok ? "info" : "error", ok ? "tokens are read anew" : err.text, NULL);
}

static void tell_sandbox (service *s) {
  for (int i = 0; i < SANDBOX_PARTS; i++)
    if (!sandbox_has ((sandbox_part)i))
      service_log (s, "warn", "this system does not have what workers should", "part",
                   sandbox_names[i], NULL);
}

static int serve (call *c, service_options *o, const sockets *s) {
  sigset_t signals;
  int number = 0;
  http *h = NULL;
  keep_little ();
  allow_files (c, &o->most_connections);
  block_signals (&signals);
  service *it = service_new (o, &c->err);
  if (it)
    tell_sandbox (it);
  bool ok = it && crew_open (it, &c->err) && (h = http_start (it, s->fd, s->n, &c->err)) &&
            crew_start (it, &c->err) && announce (c, s);
  if (!ok)
    return call_failed (c); /* threads may run: the process ends */
  while (sigwait (&signals, &number) != 0 || number == SIGHUP)
    read_tokens_anew (it);
  sigdelset (&signals, SIGHUP);
  listen_notify (getenv ("NOTIFY_SOCKET"), "STOPPING=1");
  end_soon (c, &signals);
  service_log (it, "info", "stopping", NULL);
  atomic_store (&it->stopping, true);
  http_stop (h, crew_stop);
  crew_close (it);
  service_free (it);
  return EXIT_YES;
}

static int run (call *c) {
  service_options o;
  sockets s;
  if (!read_options_of (c, &o) || !open_sockets (c, &o, &s))
    return call_failed (c);
  return serve (c, &o, &s);
}

#else

static int run (call *c) {
  call_usage (c, "this ferry was built --without-server");
  return call_failed (c);
}

#endif

static const cli_option options[] = {
  { 0, "state", "DIR", "where traces, jobs and results are kept; it is made if it is not there" },
  { 0, "listen", "ADDRESS:PORT|unix:PATH,...",
    "where to listen; port 0 is any that is free; default: 127.0.0.1:8077, or what systemd "
    "hands "
    "over" },
  { 0, "tokens", "FILE",
    "who may ask: lines as `ferry token` prints them; others must not read it" },
  { 0, "insecure", NULL, "listen where others can reach it, without tokens" },
  { 0, "store", "sqlite|postgres:CONNECTION",
    "where jobs are kept: in the state folder, or in a PostgreSQL that several share; default: "
    "sqlite" },
  { 0,
    "workers",
    "N",
    "jobs at the same time; default: as many as there are processors",
    { UNITS_COUNT, 1, 64 } },
  { 0, "worker-memory", "SIZE", "address space of a worker; 0: no limit; default: 4GiB",
    RANGE_SIZE },
  { 0, "worker-user", "NAME", "who root's workers are; default: nobody" },
  { 0,
    "job-seconds",
    "N",
    "the longest that a job may take; default: 3600",
    { UNITS_COUNT, 1, 86400 } },
  { 0,
    "tries",
    "N",
    "how often a job is begun whose worker dies; default: 3",
    { UNITS_COUNT, 1, 1000 } },
  { 0, "max-body", "SIZE", "the largest upload, as it is sent; default: 256MiB", RANGE_SIZE },
  { 0, "max-decoded", "SIZE", "the largest upload when decompressed; default: 1GiB", RANGE_SIZE },
  { 0, "max-queue", "N", "jobs that may wait; default: 1000", { UNITS_COUNT, 1, 1000000 } },
  { 0,
    "max-connections",
    "N",
    "that are open at the same time, of all clients together; default: 1024",
    { UNITS_COUNT, 16, 65536 } },
  { 0, "disk-quota", "SIZE", "disk space for traces and results; default: 20GiB", RANGE_SIZE },
  { 0,
    "keep",
    "DAYS",
    "results that nobody has looked at for so long are deleted, and traces without owner; 0: "
    "never; default: "
    "30",
    { UNITS_COUNT, 0, 36500 } },
  { 0, "card-reserve", "SIZE",
    "what context and libraries of a process take of a card, where its device does not say; "
    "default: "
    "512MiB",
    RANGE_SIZE },
  { 0, "inventory", "FILE", "GPU memory of nodes for the Kubernetes extender" },
  OPTIONS_END,
};

const cli_command command_serve = {
  .name = "serve",
  .says = "answer over HTTP: traces in, plans and advice out",
  .operands = "",
  .least = 0,
  .most = 0,
  .about =
      "Runs the service. It takes traces and profiles, and worker processes make plans, curves "
      "and comparisons. Answers are kept: the same question is worked on once. docs/service.md "
      "has the API with a session; /openapi.json describes it.\n"
      "Prints its address on standard output, and its log on standard error, a JSON object a "
      "line. Ends at SIGTERM or an interrupt; unfinished jobs start again next time.\n",
  .options = options,
  .run = run,
};
