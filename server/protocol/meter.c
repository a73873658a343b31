/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "server/protocol/meter.h"

#include <assert.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SERIES = 256, BUCKETS = 10 };

/* Upper ends, in billionths; all is below the one that has none. */
static const int64_t ends_nano[BUCKETS - 1] = { 1000000,     5000000,     20000000,
                                                100000000,   500000000,   2000000000,
                                                10000000000, 60000000000, 600000000000 };

typedef struct series {
  meter_labels labels;
  int64_t count, sum_nano, buckets[BUCKETS];
} series;

struct meter {
  pthread_mutex_t lock; /* guards all below */
  const char *names;
  bool histogram;
  series all[SERIES];
  int n;
};

meter *meter_new (const char *names, bool histogram) {
  meter *m = calloc (1, sizeof *m);
  if (!m)
    return NULL;
  pthread_mutex_init (&m->lock, NULL);
  m->names = names;
  m->histogram = histogram;
  return m;
}

void meter_free (meter *m) {
  if (m)
    pthread_mutex_destroy (&m->lock);
  free (m);
}

/* The one of these labels; where there is no room for another, the last takes all. */
static series *find (meter *m, const meter_labels *of) {
  for (int i = 0; i < m->n; i++)
    if (memcmp (&m->all[i].labels, of, sizeof *of) == 0)
      return &m->all[i];
  if (m->n == SERIES)
    return &m->all[SERIES - 1];
  m->all[m->n].labels = *of;
  return &m->all[m->n++];
}

void meter_count (meter *m, meter_labels of, int64_t n) {
  assert (m && n >= 0);
  pthread_mutex_lock (&m->lock);
  find (m, &of)->count += n;
  pthread_mutex_unlock (&m->lock);
}

void meter_observe (meter *m, meter_labels of, int64_t nano) {
  assert (m);
  int at = 0;
  while (at < BUCKETS - 1 && nano > ends_nano[at])
    at++;
  pthread_mutex_lock (&m->lock);
  series *s = find (m, &of);
  s->count++;
  s->sum_nano += nano;
  s->buckets[at]++;
  pthread_mutex_unlock (&m->lock);
}

static bool put (bytes *out, error *err, const char *format, ...) PRINTF_LIKE (3, 4);
static bool put (bytes *out, error *err, const char *format, ...) {
  char line[512];
  va_list args;
  va_start (args, format);
  int n = vsnprintf (line, sizeof line, format, args);
  va_end (args);
  return bytes_append (out, line, n < (int)sizeof line ? n : (int)sizeof line - 1, err);
}

/* `more` is a label of its own, such as le="1". */
static void put_labels (const meter *m, const series *s, const char *more, char text[384]) {
  const char *at = m->names;
  size_t used = 0;
  text[0] = 0;
  for (int i = 0; i < METER_LABELS && *at; i++) {
    size_t n = strcspn (at, " ");
    used += (size_t)snprintf (text + used, 384 - used, "%s%.*s=\"%.80s\"", used ? "," : "", (int)n,
                              at, s->labels.values[i] ? s->labels.values[i] : "");
    at += n + (at[n] != 0);
  }
  if (*more)
    snprintf (text + used, 384 - used, "%s%s", used ? "," : "", more);
}

static bool put_histogram (const meter *m, const series *s, const char *name, bytes *out,
                           error *err) {
  char labels[384], end[40];
  int64_t below = 0;
  for (int i = 0; i < BUCKETS; i++) {
    below += s->buckets[i];
    if (i < BUCKETS - 1)
      snprintf (end, sizeof end, "le=\"%g\"", (double)ends_nano[i] / 1e9);
    else
      snprintf (end, sizeof end, "le=\"+Inf\"");
    put_labels (m, s, end, labels);
    if (!put (out, err, "%s_bucket{%s} %lld\n", name, labels, (long long)below))
      return false;
  }
  put_labels (m, s, "", labels);
  const char *open = *labels ? "{" : "", *close = *labels ? "}" : "";
  return put (out, err, "%s_sum%s%s%s %.9f\n", name, open, labels, close,
              (double)s->sum_nano / 1e9) &&
         put (out, err, "%s_count%s%s%s %lld\n", name, open, labels, close, (long long)s->count);
}

bool meter_write (meter *m, const char *name, bytes *out, error *err) {
  assert (m && name && out);
  char labels[384];
  bool ok = true;
  pthread_mutex_lock (&m->lock);
  for (int i = 0; ok && i < m->n; i++) {
    put_labels (m, &m->all[i], "", labels);
    ok = m->histogram ? put_histogram (m, &m->all[i], name, out, err)
                      : put (out, err, "%s%s%s%s %lld\n", name, *labels ? "{" : "", labels,
                             *labels ? "}" : "", (long long)m->all[i].count);
  }
  pthread_mutex_unlock (&m->lock);
  return ok;
}
