/* SPDX-License-Identifier: GPL-3.0-or-later */
/* /metrics, in Prometheus' text form: what is counted as it happens, and what is looked up. */
#include "config.h"

#include <dirent.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "server/api/routes.h"
#include "server/service/folder.h"

static bool put (bytes *out, const char *format, ...) PRINTF_LIKE (2, 3);
static bool put (bytes *out, const char *format, ...) {
  char line[512];
  error ignored = { 0 };
  va_list args;
  va_start (args, format);
  int n = vsnprintf (line, sizeof line, format, args);
  va_end (args);
  return bytes_append (out, line, n < (int)sizeof line ? n : (int)sizeof line - 1, &ignored);
}

static bool put_head (bytes *out, const char *name, const char *kind, const char *says) {
  return put (out, "# HELP %s %s\n# TYPE %s %s\n", name, says, name, kind);
}

static bool put_gauge (bytes *out, const char *name, const char *says, double value) {
  return put_head (out, name, "gauge", says) && put (out, "%s %.15g\n", name, value);
}

static bool put_counted (service *s, bytes *out) {
  char name[80];
  error ignored = { 0 };
  for (int i = 0; i < METRICS; i++) {
    const metric_row *m = &service_metrics[i];
    snprintf (name, sizeof name, "ferry_%s", m->name);
    if (!put_head (out, name, m->kind, m->says) ||
        !(s->meters[i] ? meter_write (s->meters[i], name, out, &ignored)
                       : put (out, "%s %lld\n", name, (long long)atomic_load (&s->metrics[i]))))
      return false;
  }
  return put_head (out, "ferry_store_duration_seconds", "histogram",
                   "statements of the store, with the wait for its connection") &&
         meter_write (store_meter (s->store), "ferry_store_duration_seconds", out, &ignored);
}

/* The store may be away: /readyz says so. */
static bool put_jobs (service *s, request *q, bytes *out) {
  store_counts counts;
  kind_count *kinds = NULL;
  int n = 0;
  error ignored = { 0 };
  if (!store_count (s->store, &counts, &ignored) ||
      !store_count_kinds (s->store, q->arena, &kinds, &n, &ignored))
    return true;
  bool ok = put_head (out, "ferry_jobs", "gauge", "jobs in the store");
  for (int i = 0; ok && i < JOB_STATES; i++)
    ok =
        put (out, "ferry_jobs{state=\"%s\"} %lld\n", job_state_names[i], (long long)counts.jobs[i]);
  ok = ok && put_head (out, "ferry_queue_length", "gauge", "jobs that wait for a worker");
  for (int i = 0; ok && i < n; i++)
    if (strcmp (kinds[i].state, job_state_names[JOB_queued]) == 0)
      ok = put (out, "ferry_queue_length{kind=\"%s\"} %lld\n", kinds[i].kind,
                (long long)kinds[i].jobs);
  int64_t now_ms = store_now_ms (), oldest_ms = counts.oldest_queued_ms;
  oldest_ms =
      oldest_ms && oldest_ms < now_ms ? now_ms - oldest_ms : 0; /* a clock may be put back */
  return ok && put_gauge (out, "ferry_queue_oldest_seconds", "age of the job that waits longest",
                          (double)oldest_ms / 1000);
}

static int open_files (void) {
  int n = 0;
  DIR *all = opendir ("/proc/self/fd");
  while (all && readdir (all))
    n++;
  if (all)
    closedir (all);
  return n > 3 ? n - 3 : 0; /* itself, and the two dots */
}

static bool put_process (bytes *out) {
  long long pages = 0, all = 0;
  struct rusage used;
  FILE *in = fopen ("/proc/self/statm", "re");
  if (in && fscanf (in, "%lld %lld", &all, &pages) != 2)
    pages = 0;
  if (in)
    fclose (in);
  getrusage (RUSAGE_SELF, &used);
  double seconds = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                   (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
  return put_head (out, "process_cpu_seconds_total", "counter", "processor time of the daemon") &&
         put (out, "process_cpu_seconds_total %.3f\n", seconds) &&
         put_gauge (out, "process_open_fds", "open files of the daemon", open_files ()) &&
         put_gauge (out, "process_resident_memory_bytes", "memory of the daemon",
                    (double)(pages * sysconf (_SC_PAGESIZE)));
}

void api_metrics (service *s, request *q, reply *p) {
  char spool[300];
  snprintf (spool, sizeof spool, "%s/spool", s->options.folder);
  bool ok = put_counted (s, &p->body) && put_jobs (s, q, &p->body) &&
            put_gauge (&p->body, "ferry_spool_bytes", "uploads on their way in",
                       (double)folder_bytes (spool)) &&
            put_process (&p->body) &&
            put_head (&p->body, "ferry_build_info", "gauge", "the version") &&
            put (&p->body, "ferry_build_info{version=\"%s\"} 1\n", PACKAGE_VERSION);
  p->status = ok ? 200 : 500;
  p->type = "text/plain; version=0.0.4";
}
