/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "server/service/service.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/service/folder.h"

void service_count (service *s, metric m, int64_t n) {
  assert (s && m < METRICS);
  atomic_fetch_add_explicit (&s->metrics[m], n, memory_order_relaxed);
}

void service_count_of (service *s, metric m, const char *a, const char *b, const char *c) {
  assert (m < METRICS && s->meters[m]);
  meter_count (s->meters[m], (meter_labels){ { a, b, c } }, 1);
}

void service_observe (service *s, metric m, const char *a, int64_t nano) {
  assert (m < METRICS && s->meters[m]);
  meter_observe (s->meters[m], (meter_labels){ { a } }, nano);
}

const metric_row service_metrics[METRICS] = {
#define METRIC(name, kind, labels, says) { #name, #kind, labels, says },
#include "server/service/metrics.def"
#undef METRIC
};

static bool make_meters (service *s, error *err) {
  for (int i = 0; i < METRICS; i++) {
    bool histogram = strcmp (service_metrics[i].kind, "histogram") == 0;
    if ((histogram || *service_metrics[i].labels) &&
        !(s->meters[i] = meter_new (service_metrics[i].labels, histogram)))
      return error_memory (err);
  }
  return true;
}

void service_changed (service *s) {
  if (s->changed)
    s->changed (s->changed_context);
}

/* Pairs of a line, with "level", "msg" and "ts"; sorted by name, as all our JSON. */
static int by_name (const void *a, const void *b) {
  return strcmp (((const field *)a)->name, ((const field *)b)->name);
}

static void write_line (service *s, field *fields, int n) {
  json_writer w;
  bytes line = { 0 };
  error ignored = { 0 };
  qsort (fields, (size_t)n, sizeof *fields, by_name);
  json_begin_object (&w, 0);
  for (int i = 0; i < n; i++)
    json_add_text (&w, fields[i].name, fields[i].value);
  json_close_object (&w);
  if (json_finish (&w, &line, &ignored)) {
    pthread_mutex_lock (&s->log_lock);
    fwrite (line.data, 1, (size_t)line.size, s->options.log);
    if (line.size && line.data[line.size - 1] != '\n')
      fputc ('\n', s->options.log);
    fflush (s->options.log);
    pthread_mutex_unlock (&s->log_lock);
  }
  bytes_free (&line);
}

void service_log (service *s, const char *level, const char *message, ...) {
  enum { MOST_PAIRS = 16 };
  field fields[MOST_PAIRS + 3];
  struct timespec now;
  struct tm day;
  char when[40];
  int n = 0;
  if (!s->options.log)
    return;
  clock_gettime (CLOCK_REALTIME, &now);
  gmtime_r (&now.tv_sec, &day);
  strftime (when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &day);
  va_list args;
  va_start (args, message);
  for (const char *name; n < MOST_PAIRS && (name = va_arg (args, const char *));)
    fields[n++] = (field){ name, va_arg (args, const char *) };
  va_end (args);
  fields[n++] = (field){ "level", level };
  fields[n++] = (field){ "msg", message };
  fields[n++] = (field){ "ts", when };
  write_line (s, fields, n);
}

static bool make_folder (const char *folder, const char *name, error *err) {
  char path[300];
  snprintf (path, sizeof path, "%s/%s", folder, name);
  struct stat is;
  if (mkdir (path, 0700) == 0 || (stat (path, &is) == 0 && S_ISDIR (is.st_mode)))
    return true;
  return error_set (err, ERR_file, "the state folder %s cannot hold %s", folder, name);
}

/* Files that a daemon left behind when it died are of no use: its jobs are in the queue. */
static void sweep (const char *folder, const char *name) {
  char path[300];
  snprintf (path, sizeof path, "%s/%s", folder, name);
  folder_remove_inside (path);
}

/* It is read for each question, so that it may change; what nobody can read is told at once. */
static bool inventory_is_read (const char *path, error *err) {
  bytes text = { 0 };
  json_document *d = NULL;
  bool ok = !path || (file_read (path, INVENTORY_BYTES, &text, err) &&
                      (d = json_open (text.data, text.size, err)));
  json root = d ? json_root (d) : (json){ 0 };
  if (ok && path && !json_is_object (&root))
    ok = json_error (&root, err, "must be an object: {\"node\": bytes, ...}");
  if (!ok && path)
    error_in_file (err, path);
  json_close (d);
  bytes_free (&text);
  return ok;
}

service *service_new (const service_options *o, error *err) {
  assert (o);
  service *s = calloc (1, sizeof *s);
  if (!s) {
    error_memory (err);
    return NULL;
  }
  s->options = *o;
  pthread_mutex_init (&s->log_lock, NULL);
  snprintf (s->worker, sizeof s->worker, "%ld.%lld", (long)getpid (), (long long)monotonic_ns ());
  bool ok = make_folder (o->folder, "blobs", err) && make_folder (o->folder, "spool", err) &&
            make_folder (o->folder, "work", err);
  ok = ok && inventory_is_read (o->inventory, err);
  if (ok) {
    sweep (o->folder, "spool");
    sweep (o->folder, "work");
  }
  ok = ok && make_meters (s, err) && (!o->tokens || (s->tokens = tokens_open (o->tokens, err))) &&
       (s->store = store_open (o->store, o->folder, err));
  if (ok)
    return s;
  service_free (s);
  return NULL;
}

void service_free (service *s) {
  if (!s)
    return;
  store_close (s->store);
  for (int i = 0; i < METRICS; i++)
    meter_free (s->meters[i]);
  tokens_free (s->tokens);
  pthread_mutex_destroy (&s->log_lock);
  free (s);
}
