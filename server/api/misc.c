/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Questions to the service about itself. */
#include "config.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/api/embedded.h"
#include "server/api/routes.h"

void api_health (service *s, request *q, reply *p) {
  (void)s, (void)q;
  reply_text (p, 200, "text/plain", "alive\n");
}

void api_ready (service *s, request *q, reply *p) {
  error err = { 0 };
  store_counts counts;
  if (atomic_load (&s->stopping))
    reply_problem (p, q, PROBLEM_unavailable, "the service is stopping");
  else if (!store_count (s->store, &counts, &err))
    reply_problem (p, q, PROBLEM_unavailable, "%s", err.text);
  else if (access (s->options.folder, W_OK) != 0)
    reply_problem (p, q, PROBLEM_unavailable, "the state folder cannot be written");
  else
    reply_text (p, 200, "text/plain", "ready\n");
}

void api_version (service *s, request *q, reply *p) {
  json_writer w;
  (void)s, (void)q;
  json_begin (&w, 0);
  json_open_object (&w);
  json_add_text (&w, "api", "v1");
  json_add_text (&w, "ferry", PACKAGE_VERSION);
  json_close_object (&w);
  reply_json (p, 200, &w);
}

/* ---- metrics, in Prometheus' text form ---- */

static const struct {
  const char *name, *kind, *says;
} metrics[METRICS] = {
#define METRIC(name, kind, says) { #name, #kind, says },
#include "server/service/metrics.def"
#undef METRIC
};

static bool put_line (bytes *out, const char *format, ...) PRINTF_LIKE (2, 3);
static bool put_line (bytes *out, const char *format, ...) {
  char line[256];
  error ignored = { 0 };
  va_list args;
  va_start (args, format);
  int n = vsnprintf (line, sizeof line, format, args);
  va_end (args);
  return bytes_append (out, line, n, &ignored);
}

static bool put_gauge (bytes *out, const char *name, const char *says, int64_t value) {
  return put_line (out, "# HELP ferry_%s %s\n# TYPE ferry_%s gauge\nferry_%s %lld\n", name, says,
                   name, name, (long long)value);
}

static int64_t resident_bytes (void) {
  long long pages = 0, all = 0;
  FILE *in = fopen ("/proc/self/statm", "re");
  if (in && fscanf (in, "%lld %lld", &all, &pages) != 2)
    pages = 0;
  if (in)
    fclose (in);
  return pages * sysconf (_SC_PAGESIZE);
}

static bool put_jobs (service *s, bytes *out) {
  store_counts counts;
  error ignored = { 0 };
  if (!store_count (s->store, &counts, &ignored))
    return true; /* the store is away: readyz says so */
  bool ok = put_line (out, "# HELP ferry_jobs jobs in the store\n# TYPE ferry_jobs gauge\n");
  for (int i = 0; ok && i < JOB_STATES; i++)
    ok = put_line (out, "ferry_jobs{state=\"%s\"} %lld\n", job_state_names[i],
                   (long long)counts.jobs[i]);
  int64_t oldest_ms = counts.oldest_queued_ms ? store_now_ms () - counts.oldest_queued_ms : 0;
  return ok && put_gauge (out, "queue_oldest_milliseconds", "age of the job that waits longest",
                          oldest_ms);
}

void api_metrics (service *s, request *q, reply *p) {
  bool ok = true;
  (void)q;
  for (int i = 0; ok && i < METRICS; i++)
    ok = put_line (&p->body, "# HELP ferry_%s %s\n# TYPE ferry_%s %s\nferry_%s %lld\n",
                   metrics[i].name, metrics[i].says, metrics[i].name, metrics[i].kind,
                   metrics[i].name, (long long)atomic_load (&s->metrics[i]));
  ok = ok && put_jobs (s, &p->body) &&
       put_gauge (&p->body, "resident_bytes", "memory of the daemon", resident_bytes ()) &&
       put_line (&p->body,
                 "# HELP ferry_build_info the version\n# TYPE ferry_build_info gauge\n"
                 "ferry_build_info{version=\"%s\"} 1\n",
                 PACKAGE_VERSION);
  p->status = ok ? 200 : 500;
  p->type = "text/plain; version=0.0.4";
}

/* ---- files in the program ---- */

static void reply_embedded (request *q, reply *p, const char *name) {
  static const char policy[] = "default-src 'self'; img-src 'self' data:; object-src 'none';"
                               " base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
  const embedded_file *f = embedded_named (name);
  error ignored = { 0 };
  if (!f) {
    reply_problem (p, q, PROBLEM_not_found, "there is no such file");
    return;
  }
  p->status = 200;
  p->type = f->type;
  if (!bytes_append (&p->body, f->data, (int64_t)f->size, &ignored))
    p->status = 500;
  reply_header (p, "Content-Security-Policy", policy);
  reply_header (p, "X-Content-Type-Options", "nosniff");
  reply_header (p, "Referrer-Policy", "no-referrer");
  reply_header (p, "Cache-Control", "no-cache");
}

void api_openapi (service *s, request *q, reply *p) {
  (void)s;
  reply_embedded (q, p, "openapi.json");
}

void api_page (service *s, request *q, reply *p) {
  (void)s;
  reply_embedded (q, p, q->part[0] ? q->part[0] : "index.html");
}
