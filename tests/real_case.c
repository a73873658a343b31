/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/real_case.h"
#include "trace/import/import.h"

#include <stdio.h>

static const char *real (const char *name, char path[600]) {
  snprintf (path, 600, "%s/%s", getenv ("FERRY_REAL_TRACES"), name);
  return path;
}

void open_real (import_case *c, const char *name) {
  char path[600];
  import_case_open (c, real (name, path));
}

trace *import_real (const char *const *names, int n, import_report *report, error *err) {
  char paths[2][600];
  const char *at[2] = { paths[0], paths[1] };
  trace *t = NULL;
  for (int i = 0; i < n; i++)
    real (names[i], paths[i]);
  bool ok = import_files (at, n, NULL, import_arena (), &t, report, err);
  ck_assert_int_eq (ok, t != NULL);
  return t;
}

trace *import_one (const char *name, import_report *report) {
  error err = { 0 };
  char line[sizeof (error)];
  trace *t = import_real (&name, 1, report, &err);
  ck_assert_msg (t != NULL, "%s", error_line (&err, line, sizeof line));
  return t;
}

void open_kineto (opened *o, const char *name, bool steps) {
  open_real (&o->c, name);
  ck_assert (kineto_read (&o->c.job, &o->c.file, &o->k));
  ck_assert (kineto_nest (&o->c.job, &o->k));
  if (!steps)
    return;
  ck_assert (kineto_choose (&o->c.job, &o->k, &o->it));
  ck_assert (kineto_runs (&o->c.job, &o->k, o->it.window, &o->it));
}

void count_gpu (const kineto *k, int expected[3], int64_t sum_us) {
  int64_t n[3] = { 0 }, sum = 0;
  for (int32_t i = 0; i < k->n_gpu; i++) {
    n[k->gpu[i].kind]++;
    sum += k->gpu[i].ns;
    ck_assert_int_ne (k->gpu[i].launch, NONE);
    ck_assert_int_ne (k->gpu[i].owner, NONE);
  }
  ck_assert_int_eq (n[GPU_KERNEL], expected[0]);
  ck_assert_int_eq (n[GPU_MEMCPY], expected[1]);
  ck_assert_int_eq (n[GPU_MEMSET], expected[2]);
  ck_assert_int_eq (sum, sum_us * 1000);
}

int count_owners (const kineto *k) {
  char *seen = calloc ((size_t)k->n_ops, 1);
  int n = 0;
  for (int32_t i = 0; i < k->n_gpu; i++) {
    n += !seen[k->gpu[i].owner];
    seen[k->gpu[i].owner] = 1;
  }
  free (seen);
  return n;
}

stream_sum sum_stream (const kineto *k, int64_t stream) {
  stream_sum s = { 0 };
  int64_t end = -1;
  for (;;) {
    const kineto_gpu *next = NULL; /* the first that starts at or behind the end of the last */
    for (int32_t i = 0; i < k->n_gpu; i++) {
      const kineto_gpu *g = &k->gpu[i];
      if (g->stream == stream && g->start_ns >= end && g->ns > 0 &&
          (!next || g->start_ns < next->start_ns))
        next = g;
    }
    if (!next)
      break;
    if (end >= 0) {
      s.gap += next->start_ns - end;
      if (next->start_ns - end > s.largest)
        s.largest = next->start_ns - end;
    }
    end = next->start_ns + next->ns;
    s.sum += next->ns;
  }
  for (int32_t i = 0; i < k->n_gpu; i++)
    s.n += k->gpu[i].stream == stream;
  return s;
}
