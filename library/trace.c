/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Devices and traces: from files, memory, profiles and the zoo. */
#include "config.h"

#include "library/inner.h"

#include <stdlib.h>
#include <string.h>

#include "solver/fleet/needs.h"
#include "trace/cards.h"
#include "trace/import/import.h"
#include "trace/zoo/zoo.h"

/* ---- devices ---- */

static ferry_device *device_made (error *err) {
  ferry_device *d = calloc (1, sizeof *d);
  if (!d)
    error_memory (err);
  else if (!(d->arena = library_arena (err))) {
    free (d);
    d = NULL;
  }
  return d;
}

static ferry_device *device_end (ferry_device *d, ferry_error *out, const error *err) {
  if (library_told (out, err))
    return d;
  ferry_device_free (d);
  return NULL;
}

static bool find_device (const char *name, const char *folder, ferry_device *d, error *err) {
  bool file = strchr (name, '/') || strcmp (name, "-") == 0 || strstr (name, ".json");
  const char *path = name;
  if (!file)
    path =
        arena_format (d->arena, err, "%s/devices/%s.json", folder ? folder : FERRY_DATADIR, name);
  return path && device_load (path, NULL, d->arena, &d->device, err);
}

ferry_device *ferry_device_load (const char *name, const char *data_folder, ferry_error *out) {
  error err = { 0 };
  ferry_device *d = library_given (name, "the device's name", &err) ? device_made (&err) : NULL;
  if (d && !find_device (name, data_folder, d, &err) && !err.code)
    error_set (&err, ERR_internal, "no device and no reason");
  return device_end (d, out, &err);
}

ferry_device *ferry_device_parse (const void *text, size_t size, ferry_error *out) {
  error err = { 0 };
  ferry_device *d = library_given (text, "the text", &err) ? device_made (&err) : NULL;
  if (d && !device_parse (text, (int64_t)size, NULL, d->arena, &d->device, &err) && !err.code)
    error_set (&err, ERR_internal, "no device and no reason");
  return device_end (d, out, &err);
}

ferry_device *ferry_device_of_trace (const ferry_trace *t, const char *data_folder,
                                     ferry_error *out) {
  error err = { 0 };
  ferry_device *d = library_given (t, "the trace", &err) ? device_made (&err) : NULL;
  if (d) {
    const char *name = card_device_of_trace (t->trace);
    if (!name && !err.code)
      error_set (
          &err, ERR_usage,
          "the trace does not say which device it was made for, or ferry has no file for it");
    if (name && !find_device (name, data_folder, d, &err) && !err.code)
      error_set (&err, ERR_internal, "no device and no reason");
  }
  return device_end (d, out, &err);
}

void ferry_device_free (ferry_device *d) {
  if (d)
    arena_free (d->arena);
  free (d);
}

/* ---- traces ---- */

static ferry_trace *trace_end (arena *a, trace *t, ferry_error *out, error *err) {
  ferry_trace *made = NULL;
  if (a)
    made = library_trace (a, err->code ? NULL : t, err);
  return library_told (out, err) ? made : NULL;
}

ferry_trace *ferry_trace_load (const char *path, ferry_error *out) {
  error err = { 0 };
  arena *a = library_given (path, "the path", &err) ? library_arena (&err) : NULL;
  trace *t = a ? trace_load (path, NULL, a, &err) : NULL;
  return trace_end (a, t, out, &err);
}

ferry_trace *ferry_trace_parse (const void *text, size_t size, ferry_error *out) {
  error err = { 0 };
  arena *a = library_given (text, "the text", &err) ? library_arena (&err) : NULL;
  trace *t = a ? trace_parse (text, (int64_t)size, NULL, a, &err) : NULL;
  return trace_end (a, t, out, &err);
}

bool ferry_trace_store (const ferry_trace *t, const char *path, ferry_error *out) {
  error err = { 0 };
  bool ok = library_given (t, "the trace", &err) && library_given (path, "the path", &err) &&
            trace_store (t->trace, path, TRACE_PACKED, &err);
  return library_told (out, &err) && ok;
}

char *ferry_trace_text (const ferry_trace *t, size_t *size, ferry_error *out) {
  error err = { 0 };
  bytes text = { 0 };
  char *made = NULL;
  if (library_given (t, "the trace", &err) && trace_text (t->trace, TRACE_PACKED, &text, &err))
    made = library_text (&text, size, &err);
  return library_told (out, &err) ? made : NULL;
}

void ferry_trace_free (ferry_trace *t) {
  if (t)
    arena_free (t->arena);
  free (t);
}

static bool read_options_of (const ferry_import_options *o, import_options *how, error *err) {
  const size_t least = offsetof (ferry_import_options, marks);
  ferry_import_options mine = { 0 };
  *how = IMPORT_DEFAULTS;
  if (o && !library_sized (o, least, "the options", err))
    return false;
  if (o)
    library_in (&mine, o, sizeof mine);
  how->step = mine.step > 0 ? mine.step - 1 : how->step;
  how->device = mine.gpu > 0 ? mine.gpu - 1 : how->device;
  how->marks = (import_marks)mine.marks;
  return true;
}

/* The files are in memory, or lie at these paths. */
typedef struct profile {
  const char *const *paths;
  const import_source *sources;
  int count;
} profile;

static ferry_trace *import_profile (const profile *p, const ferry_import_options *o, char **report,
                                    error *err, ferry_error *out) {
  import_report found;
  import_options how;
  trace *t = NULL;
  bool ok = !err->code && read_options_of (o, &how, err);
  if (ok && (p->count < 1 || p->count > IMPORT_FILES))
    ok = error_set (err, ERR_usage, "%d files: 1 to %d", p->count, IMPORT_FILES);
  arena *a = ok ? library_arena (err) : NULL;
  ok = a && (p->paths ? import_files (p->paths, p->count, &how, a, &t, &found, err)
                      : import_memory (p->sources, p->count, &how, a, &t, &found, err));
  if (ok && report) {
    json_writer w;
    bytes text = { 0 };
    json_begin (&w, 1);
    import_report_json (&found, &w);
    if (json_finish (&w, &text, err))
      *report = library_text (&text, NULL, err);
  }
  ferry_trace *made = trace_end (a, t, out, err);
  if (!made && report) {
    free (*report);
    *report = NULL;
  }
  return made;
}

ferry_trace *ferry_import (const char *const *paths, int n_paths, const ferry_import_options *o,
                           char **report, ferry_error *out) {
  error err = { 0 };
  profile p = { .paths = paths, .count = n_paths };
  if (report)
    *report = NULL;
  if (library_given (paths, "the paths", &err) && n_paths <= IMPORT_FILES)
    for (int i = 0; i < n_paths; i++)
      if (!library_given (paths[i], "a path", &err))
        break;
  return import_profile (&p, o, report, &err, out);
}

ferry_trace *ferry_import_memory (const ferry_file *files, int n_files,
                                  const ferry_import_options *o, char **report, ferry_error *out) {
  error err = { 0 };
  import_source sources[IMPORT_FILES] = { { 0 } };
  profile p = { .sources = sources, .count = n_files };
  if (report)
    *report = NULL;
  /* too many are refused by their number, none of them is looked at */
  if (library_given (files, "the files", &err) && n_files <= IMPORT_FILES)
    for (int i = 0; i < n_files && !err.code; i++) {
      /* each is as large as the caller's first says */
      const ferry_file *at = (const ferry_file *)((const char *)files + (size_t)i * files->size);
      if (library_sized (files, sizeof *files, "the files", &err) &&
          library_given (at->data, "a file's data", &err))
        sources[i] =
            (import_source){ at->name ? at->name : "profile", at->data, (int64_t)at->bytes };
    }
  return import_profile (&p, o, report, &err, out);
}

static bool word_of (const char *word, const char *const *words, const char *name, int *out,
                     error *err) {
  for (int i = 0; word && words[i]; i++)
    if (strcmp (words[i], word) == 0) {
      *out = i;
      return true;
    }
  return !word || error_set (err, ERR_usage, "`%s` is no %s", word, name);
}

ferry_trace *ferry_zoo (const ferry_zoo_request *r, ferry_error *out) {
  error err = { 0 };
  ferry_zoo_request mine = { 0 };
  int dtype = DTYPE_FP32, optimizer = ZOO_MOMENTUM;
  trace *t = NULL;
  arena *a = NULL;
  const size_t least = offsetof (ferry_zoo_request, explicit_attention);
  if (library_sized (r, least, "the request", &err)) {
    library_in (&mine, r, sizeof mine);
    if (library_given (mine.network, "the network", &err) &&
        library_given (mine.device, "the request's device", &err) &&
        word_of (mine.dtype, compute_dtype_names, "dtype", &dtype, &err) &&
        word_of (mine.optimizer, zoo_optimizer_names, "optimizer", &optimizer, &err) &&
        (a = library_arena (&err))) {
      zoo_request how = { .name = mine.network,
                          .batch = mine.batch,
                          .image = mine.image,
                          .seq = mine.seq,
                          .dtype = (compute_dtype)dtype,
                          .optimizer = (zoo_optimizer)optimizer,
                          .width_divisor = mine.width_divisor,
                          .depth_divisor = mine.depth_divisor,
                          .classes = mine.classes,
                          .explicit_attention = mine.explicit_attention,
                          .workspaces = mine.workspaces,
                          .device = &mine.device->device };
      t = zoo_trace (&how, a, &err);
    }
  }
  return trace_end (a, t, out, &err);
}

const char *ferry_zoo_name (int i) {
  int count;
  const zoo_network *all = zoo_list (&count);
  return i >= 0 && i < count ? all[i].name : NULL;
}

/* ---- contents of a trace ---- */

int64_t ferry_trace_peak_bytes (const ferry_trace *t) {
  return t ? t->peak_bytes : -1;
}

int32_t ferry_trace_ops (const ferry_trace *t) {
  return t ? t->trace->n_ops : -1;
}

int32_t ferry_trace_tensors (const ferry_trace *t) {
  return t ? t->trace->n_tensors : -1;
}

static bool is_there (int32_t i, int32_t count, const char *what, error *err) {
  return (i >= 0 && i < count) ||
         error_set (err, ERR_usage, "there is no %s %d, but 0 to %d", what, i, count - 1);
}

bool ferry_trace_op (const ferry_trace *t, int32_t i, ferry_op *out, ferry_error *told) {
  error err = { 0 };
  if (library_given (t, "the trace", &err) && library_sized (out, sizeof *out, "the op", &err) &&
      is_there (i, t->trace->n_ops, "op", &err)) {
    const op *o = &t->trace->ops[i];
    ferry_op made = { .name = o->name ? o->name : "",
                      .phase = op_phase_names[o->phase],
                      .ns = o->ns,
                      .gap_ns = o->gap_ns,
                      .workspace_bytes = o->workspace_bytes,
                      .reads = o->reads.at,
                      .writes = o->writes.at,
                      .n_reads = o->reads.count,
                      .n_writes = o->writes.count };
    library_out (out, &made, sizeof made);
  }
  return library_told (told, &err);
}

bool ferry_trace_tensor (const ferry_trace *t, int32_t i, ferry_tensor *out, ferry_error *told) {
  error err = { 0 };
  if (library_given (t, "the trace", &err) &&
      library_sized (out, sizeof *out, "the tensor", &err) &&
      is_there (i, t->trace->n_tensors, "tensor", &err)) {
    const tensor *x = &t->trace->tensors[i];
    ferry_tensor made = { .name = x->name ? x->name : "",
                          .kind = tensor_kind_names[x->kind],
                          .bytes = x->bytes,
                          .persistent = x->persistent,
                          .pinned = x->pinned };
    library_out (out, &made, sizeof made);
  }
  return library_told (told, &err);
}

bool ferry_trace_need (const ferry_trace *t, const ferry_device *d, ferry_need *out,
                       ferry_error *told) {
  error err = { 0 };
  needs n;
  arena *a = NULL;
  if (library_given (t, "the trace", &err) && library_given (d, "the device", &err) &&
      library_sized (out, sizeof *out, "the need", &err) && (a = library_arena (&err)) &&
      needs_of (t->trace, &d->device, a, &n, &err)) {
    int64_t all = reserve_onto (n.bytes, reserve_ppm (t->trace));
    ferry_need made = { .bytes = all,
                        .tensor_bytes = n.tensor_bytes,
                        .granule_bytes = n.granule_bytes,
                        .reserve_bytes = all - n.bytes };
    library_out (out, &made, sizeof made);
  }
  arena_free (a);
  return library_told (told, &err);
}
