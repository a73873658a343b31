/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The supervisor: one thread that claims jobs, starts their workers, listens to them and ends them.
   Only this thread spawns, so that a worker's death with it is certain (PR_SET_PDEATHSIG follows
   the thread). */
#include <assert.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/order.h"
#include "server/work/crew.h"
#include "server/work/spare.h"
#include "server/work/work.h"

#define SECOND ((int64_t)1000000000)
enum { MOST_WORKERS = 64 + 1, LEASE_MS = 30000, TICK_MS = 200, SWEEP_S = 3600 };
enum { GRACE_S = 2 };

struct crew {
  service *service;
  pthread_t thread;
  int wake;
  work works[MOST_WORKERS];
  int64_t reaped_ns, swept_ns;
};

void crew_wake (service *s) {
  uint64_t one = 1;
  if (write (s->crew->wake, &one, sizeof one) < 0)
    return; /* it is full: it wakes anyway */
}

/* ---- a worker at work ---- */

static void tell_found (crew *c, work *w) {
  error err = { 0 };
  bool held = false;
  if (!w->found[0])
    return;
  const char *kind = w->finds ? "incumbent" : "progress";
  if (store_event (c->service->store, &w->job, kind, w->found, &held, &err))
    service_changed (c->service);
  w->found[0] = 0;
  w->told_ns = monotonic_ns ();
}

static void take_line (work *w) {
  error ignored = { 0 };
  json_document *d = json_open (w->line, (int64_t)w->line_bytes, &ignored);
  if (d && w->line_bytes < sizeof w->found) {
    json root = json_root (d), step = json_member (&root, "step_ns");
    snprintf (w->found, sizeof w->found, "%.255s", w->line);
    w->finds = json_is_int (&step);
    if (!json_get_int (&step, 0, INT64_MAX, &w->step_ns, &ignored) ||
        !json_read_int (&root, "bound_ns", 0, INT64_MAX, &w->bound_ns, &ignored))
      w->bound_ns = 0;
  }
  json_close (d);
}

static void listen_to (work *w) {
  char text[4096];
  ssize_t n;
  while ((n = read (w->progress, text, sizeof text)) > 0)
    for (ssize_t i = 0; i < n; i++) {
      if (text[i] != '\n' && w->line_bytes + 1 < sizeof w->line) {
        w->line[w->line_bytes++] = text[i];
      } else {
        w->line[w->line_bytes] = 0;
        take_line (w);
        w->line_bytes = 0;
      }
    }
  if (n == 0) {
    close (w->progress);
    w->progress = -1;
  }
}

/* A solve keeps its best plan on an interrupt, so that comes first where time is up; what ends it
   for good comes when that had time to be written. */
static void send_stop (crew *c, work *w) {
  static const int rude[] = { SIGINT, SIGTERM, SIGKILL };
  int64_t now = monotonic_ns ();
  if (w->stop == STOP_NONE || now < w->signal_ns)
    return;
  if (w->stop != STOP_TIME && w->signals == 0)
    w->signals = 1;
  int at = w->signals < 2 ? w->signals : 2;
  if (at == 1 && w->stop == STOP_TIME)
    at = 2; /* its grace is over */
  if (w->signals++ < 4)
    kill (-w->pid, rude[at]);
  w->signal_ns = now + GRACE_S * SECOND;
  service_count (c->service, METRIC_worker_kills_total, 1);
}

/* Looks if the job is still ours: it may have been cancelled, or taken over. */
static void look (crew *c, work *w, bool beat) {
  error err = { 0 };
  job_row now;
  bool found = false, held = true;
  arena *a = arena_new (0);
  if (beat && a && !store_beat (c->service->store, &w->job, LEASE_MS, &held, &err))
    held = true; /* the store is away: the lease tells later */
  if (a && store_find_job (c->service->store, w->job.id, NULL, a, &now, &found, &err) && found &&
      (now.state != JOB_running || now.attempt != w->job.attempt) && w->stop == STOP_NONE)
    w->stop = now.state == JOB_cancelled ? STOP_CANCEL : STOP_LOST;
  arena_free (a);
}

/* Once its first process has ended nothing of its group may go on, and nobody waits for one that
   takes long to die: it is looked for again. */
static void take_status (crew *c, work *w) {
  struct rusage used;
  siginfo_t seen = { 0 };
  if (waitid (P_PID, (id_t)w->pid, &seen, WEXITED | WNOHANG | WNOWAIT) != 0 || !seen.si_pid)
    return;
  kill (-w->pid, SIGKILL); /* the group is theirs as long as its first is not reaped */
  if (wait4 (w->pid, &w->wait_status, 0, &used) != w->pid)
    return;
  w->has_status = true;
  if (w->pidfd >= 0)
    close (w->pidfd); /* it would wake the crew again and again */
  w->pidfd = -1;
  _Atomic int64_t *peak = &c->service->metrics[METRIC_worker_peak_rss_bytes];
  if (used.ru_maxrss * 1024 > atomic_load (peak))
    atomic_store (peak, used.ru_maxrss * 1024); /* this thread alone writes it */
}

/* A worker's own processes end with it, and have ended when this says so: nothing writes into the
   job's folder any more. */
static bool has_ended (crew *c, work *w, work_end *e) {
  pid_t other;
  if (!w->has_status)
    take_status (c, w);
  if (!w->has_status)
    return false;
  while ((other = waitpid (-w->pid, NULL, WNOHANG)) > 0)
    continue;
  if (other == 0)
    return false;
  w->has_status = false;
  e->by_signal = WIFSIGNALED (w->wait_status);
  e->number = e->by_signal ? WTERMSIG (w->wait_status) : WEXITSTATUS (w->wait_status);
  return true;
}

static bool is_at_work (const work *w) {
  return w->phase == WORK_RUNS || w->phase == WORK_VERIFIES;
}

/* A process of a worker that went into another group is this one's child once the worker has
   ended. Workers are reaped where their jobs are tended. */
static void reap_strays (const crew *c) {
  siginfo_t seen = { 0 };
  while (waitid (P_ALL, 0, &seen, WEXITED | WNOHANG | WNOWAIT) == 0 && seen.si_pid) {
    for (int i = 0; i < MOST_WORKERS; i++)
      if (is_at_work (&c->works[i]) && c->works[i].pid == seen.si_pid && !c->works[i].has_status)
        return;
    if (!spares_lost (c->service, seen.si_pid))
      waitpid (seen.si_pid, NULL, WNOHANG);
    seen.si_pid = 0;
  }
}

static const char *reason_of (const work_end *e) {
  return e->by_signal     ? "signal"
         : e->number == 0 ? "done"
         : e->number == 1 ? "no"
         : e->number == 4 ? "limit"
                          : "failed";
}

static int64_t limit_s (const crew *c, const work *w) {
  int64_t most = c->service->options.job_s, own = w->call.time_limit_s;
  if (w->phase == WORK_VERIFIES)
    return VERIFY_S;
  return own ? min_of (own, most) : most;
}

static void tend (crew *c, work *w, bool woken) {
  work_end e = { 0 };
  int64_t now = monotonic_ns ();
  if (w->phase == WORK_STRANDED) {
    work_rescue (c->service, w);
    return;
  }
  if (w->progress >= 0)
    listen_to (w);
  if (now - w->told_ns > SECOND / 4)
    tell_found (c, w);
  if (now - w->started_ns > limit_s (c, w) * SECOND && w->stop == STOP_NONE)
    w->stop = STOP_TIME;
  bool beat = now - w->beat_ns > LEASE_MS / 3 * SECOND / 1000;
  if (woken || beat)
    look (c, w, beat);
  if (beat)
    w->beat_ns = now;
  send_stop (c, w);
  if (has_ended (c, w, &e)) {
    w->worked_ns += now - w->started_ns;
    service_count_of (c->service, METRIC_worker_exits_total, reason_of (&e), NULL, NULL);
    if (w->progress >= 0)
      listen_to (w);
    tell_found (c, w);
    work_ended (c->service, w, e);
  }
}

/* ---- the queue ---- */

static void begin_job (crew *c, work *w) {
  error err = { 0 };
  w->beat_ns = monotonic_ns ();
  /* The job is a span of its own in the trace of whoever asked for it first. */
  snprintf (w->trace_id, sizeof w->trace_id, "%.32s", w->job.trace ? w->job.trace : w->job.id);
  snprintf (w->span_id, sizeof w->span_id, "%.16s", w->job.id);
  service_log (c->service, "info", "job started", "job_id", w->job.id, "kind", w->job.kind,
               "span_id", w->span_id, "trace_id", w->trace_id, NULL);
  if (work_start (c->service, w, &err))
    service_changed (c->service);
  else
    work_fail (c->service, w, "/problems/failed", err.text);
}

/* One more worker than jobs may have is for imports alone: whoever uploads waits for it. */
static void claim (crew *c) {
  int workers = c->service->options.workers;
  for (int i = 0; i <= workers; i++) {
    work *w = &c->works[i];
    const char *only = i == workers ? "imports" : NULL;
    error err = { 0 };
    bool found = false;
    if (w->phase != WORK_NONE)
      continue;
    w->arena = arena_new (0);
    if (w->arena &&
        store_claim (c->service->store, c->service->worker, LEASE_MS, only, w->arena, &w->job,
                     &found, &err) &&
        found) {
      begin_job (c, w);
      continue;
    }
    if (err.code)
      service_log (c->service, "error", err.text, NULL);
    arena_free (w->arena);
    w->arena = NULL;
    if (err.code || only)
      return;
    i = workers - 1; /* the other places find no more than this one */
  }
}

static void reap (crew *c) {
  error err = { 0 };
  if (!store_is_shared (c->service->store) || monotonic_ns () - c->reaped_ns < 5 * SECOND)
    return;
  c->reaped_ns = monotonic_ns ();
  if (!store_reap (c->service->store, c->service->options.most_tries, &err))
    service_log (c->service, "error", err.text, NULL);
}

static void sweep (crew *c) {
  error err = { 0 };
  int64_t now = monotonic_ns (), keep_s = c->service->options.keep_s;
  if (!keep_s || (c->swept_ns && now - c->swept_ns < SWEEP_S * SECOND))
    return;
  c->swept_ns = now;
  if (!store_sweep (c->service->store, keep_s * 1000, &err))
    service_log (c->service, "error", err.text, NULL);
}

static int running (const crew *c) {
  int n = 0;
  for (int i = 0; i < MOST_WORKERS; i++)
    n += c->works[i].phase != WORK_NONE;
  return n;
}

/* Until something happens; whether somebody called. */
static bool wait_for (crew *c) {
  struct pollfd all[1 + 2 * MOST_WORKERS] = { { .fd = c->wake, .events = POLLIN } };
  uint64_t count;
  int n = 1;
  for (int i = 0; i < MOST_WORKERS; i++) {
    if (!is_at_work (&c->works[i]))
      continue;
    all[n++] = (struct pollfd){ .fd = c->works[i].pidfd, .events = POLLIN };
    all[n++] = (struct pollfd){ .fd = c->works[i].progress, .events = POLLIN };
  }
  poll (all, (nfds_t)n, n > 1 ? TICK_MS : 10 * TICK_MS);
  return (all[0].revents & POLLIN) && read (c->wake, &count, sizeof count) > 0;
}

static void *supervise (void *context) {
  crew *c = context;
  int64_t stop_ns = 0;
  for (;;) {
    bool stopping = atomic_load (&c->service->stopping);
    if (stopping && !stop_ns)
      stop_ns = monotonic_ns ();
    if (stopping && !running (c)) {
      spares_close (c->service);
      return NULL;
    }
    if (!stopping)
      spares_fill (c->service, !running (c));
    bool woken = wait_for (c);
    for (int i = 0; i < MOST_WORKERS; i++) {
      work *w = &c->works[i];
      if (w->phase == WORK_NONE)
        continue;
      if (stopping && w->stop == STOP_NONE)
        w->stop = STOP_DRAIN;
      tend (c, w, woken);
    }
    reap_strays (c);
    if (!stopping) {
      reap (c);
      sweep (c);
      claim (c);
    }
    atomic_store (&c->service->metrics[METRIC_solves_running], running (c));
  }
}

static void on_told (void *context) {
  crew_wake (context);
  service_changed (context);
}

bool crew_open (service *s, error *err) {
  crew *c = calloc (1, sizeof *c);
  if (!c)
    return error_memory (err);
  c->service = s;
  for (int i = 0; i < MOST_WORKERS; i++)
    c->works[i].pidfd = c->works[i].progress = -1;
  prctl (PR_SET_CHILD_SUBREAPER, 1); /* the children of a dead worker are this process's then */
  c->wake = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  s->crew = c;
  if (c->wake < 0)
    return error_set (err, ERR_internal, "no event for the workers");
  return spares_open (s, err);
}

bool crew_start (service *s, error *err) {
  assert (s);
  if (!store_watch (s->store, on_told, s, err))
    return false;
  return pthread_create (&s->crew->thread, NULL, supervise, s->crew) == 0 ||
         error_set (err, ERR_internal, "no thread for the workers");
}

void crew_stop (service *s) {
  atomic_store (&s->stopping, true);
  crew_wake (s);
  pthread_join (s->crew->thread, NULL);
  store_deafen (s->store);
}

void crew_close (service *s) {
  close (s->crew->wake);
  free (s->crew);
  s->crew = NULL;
}
