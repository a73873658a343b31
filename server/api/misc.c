/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Questions to the service about itself. */
#include "config.h"

#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "server/api/embedded.h"
#include "server/api/routes.h"
#include "server/service/folder.h"

void api_health (service *s, request *q, reply *p) {
  (void)s, (void)q;
  reply_text (p, 200, "text/plain", "alive\n");
}

static bool disk_is_full (const service *s) {
  enum { LEAST_BYTES = 4 << 20 };
  char blobs[300];
  struct statvfs is;
  snprintf (blobs, sizeof blobs, "%s/blobs", s->options.folder);
  return (statvfs (blobs, &is) == 0 && (int64_t)(is.f_bavail * is.f_frsize) < LEAST_BYTES) ||
         folder_bytes (blobs) >= s->options.disk_bytes;
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
  else if (disk_is_full (s))
    reply_problem (p, q, PROBLEM_unavailable, "there is no room for traces and results");
  else
    reply_text (p, 200, "text/plain", "ready\n");
}

void api_version (service *s, request *q, reply *p) {
  json_writer w;
  (void)s, (void)q;
  json_begin_object (&w, 0);
  json_add_text (&w, "api", "v1");
  json_add_text (&w, "ferry", PACKAGE_VERSION);
  json_close_object (&w);
  reply_json (p, 200, &w);
}

void api_devices (service *s, request *q, reply *p) {
  json_writer w;
  (void)q;
  json_begin_object (&w, 0);
  json_add_array (&w, "devices");
  for (const char *const *at = s->options.devices; at && *at; at++)
    json_put_text (&w, *at);
  json_close_array (&w);
  if (s->options.device_files)
    json_add_raw (&w, "files", s->options.device_files);
  if (s->options.host_files)
    json_add_raw (&w, "hosts", s->options.host_files);
  json_close_object (&w);
  reply_json (p, 200, &w);
}

/* ---- files in the program ---- */

static void reply_embedded (request *q, reply *p, const char *name) {
  static const char policy[] = "default-src 'self'; img-src 'self' data:; object-src 'none';"
                               " base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
  const asset *f = embedded_named (name);
  error ignored = { 0 };
  if (!f) {
    reply_problem (p, q, PROBLEM_not_found, "there is no such file");
    return;
  }
  p->status = 200;
  p->type = f->type;
  if (!bytes_append (&p->body, f->data, f->size, &ignored))
    p->status = 500;
  reply_header (p, "Content-Security-Policy", policy);
  reply_header (p, "Referrer-Policy", "no-referrer");
  reply_header (p, "Cache-Control", "no-cache");
}

void api_openapi (service *s, request *q, reply *p) {
  (void)s;
  reply_embedded (q, p, "openapi.json");
}

void api_page (service *s, request *q, reply *p) {
  (void)s;
  reply_embedded (q, p, q->part[0] ? q->part[0] : "page.html");
}
