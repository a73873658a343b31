/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Logs of operator calls as research on recomputation keeps them: one JSON object a line, with the
   calls, their times, what their results weigh and alias, and when names are released.

   Names are references; storages are what a trace has.  A result that aliases an argument, and a
   copy of a name, refer to the same storage; it dies when its last name is released.  MEMORY and
   ALIAS lines stand behind the call or the constant that they are of. */
#include <stdio.h>
#include <string.h>

#include "trace/import/common/calls.h"
#include "trace/import/common/intern.h"
#include "trace/import/common/job.h"

enum { NONE = -1, UNDEFINED = -2 };

typedef struct storage {
  int32_t tensor; /* NONE: no bytes, or not known yet */
  int64_t names;  /* that refer to it */
  bool constant;
  op_phase born, last; /* of the ops that made it and used it last */
} storage;

typedef struct result {
  int32_t name;
  int64_t bytes, alias; /* bytes -1: not given; alias -1: none */
} result;

/* One line, as far as any kind needs it. */
typedef struct line {
  slice kind, name, text, time, from, to, memory, alias;
  int64_t at;
} line;

typedef struct dtr {
  import_job *job;
  stream s;
  trace_builder *b;
  intern names;
  int32_t *storage_of; /* per name, or UNDEFINED */
  storage *storages;
  int32_t n_storages;
  int64_t name_room, storage_room, result_room, arg_room, mutated_room;
  /* The call, or constant, whose MEMORY and ALIAS lines are still to come. */
  result *results;
  int32_t *args; /* names */
  int64_t *mutated;
  int64_t n_results, n_args, n_mutated;
  slice call, time;
  int64_t call_at;
  bool pending, constant, backward;
} dtr;

static int32_t name_of (dtr *d, slice text) {
  int32_t name = intern_add (&d->names, text, false, d->job->err);
  if (name < 0)
    return NONE;
  int64_t before = d->name_room;
  if (!GROW (d->job->scratch, d->storage_of, &d->name_room, (int64_t)d->names.count, d->job->err))
    return NONE;
  for (int64_t i = before; i < d->name_room; i++)
    d->storage_of[i] = UNDEFINED;
  return name;
}

/* A name that has been defined, or a complaint. */
static bool need_name (dtr *d, slice text, int64_t at, int32_t *name) {
  *name = name_of (d, text);
  if (*name == NONE)
    return false;
  return d->storage_of[*name] != UNDEFINED ||
         stream_fail_at (&d->s, at, "`%.*s` has no definition before this line",
                         (int)(text.size < 60 ? text.size : 60), text.at);
}

static int32_t new_storage (dtr *d, bool constant) {
  if (!GROW (d->job->scratch, d->storages, &d->storage_room, (int64_t)d->n_storages + 1,
             d->job->err) ||
      d->n_storages == INT32_MAX - 1)
    return NONE;
  op_phase phase = d->backward ? OP_BACKWARD : OP_FORWARD;
  d->storages[d->n_storages] = (storage){ NONE, 0, constant, phase, phase };
  return d->n_storages++;
}

/* ---- lines ---- */

static bool read_names (dtr *d, int64_t *count, bool results) {
  *count = 0;
  if (!stream_array (&d->s))
    return false;
  while (stream_element (&d->s)) {
    slice text;
    if (!stream_text (&d->s, &text))
      return false;
    int32_t name = name_of (d, text);
    if (name == NONE)
      return false;
    if (results) {
      if (!GROW (d->job->scratch, d->results, &d->result_room, *count + 1, d->job->err))
        return false;
      d->results[(*count)++] = (result){ name, -1, -1 };
    } else {
      if (!GROW (d->job->scratch, d->args, &d->arg_room, *count + 1, d->job->err))
        return false;
      d->args[(*count)++] = name;
    }
  }
  return !d->s.failed;
}

static bool read_places (dtr *d) {
  d->n_mutated = 0;
  if (!stream_array (&d->s))
    return false;
  while (stream_element (&d->s)) {
    if (!GROW (d->job->scratch, d->mutated, &d->mutated_room, d->n_mutated + 1, d->job->err) ||
        !stream_int (&d->s, &d->mutated[d->n_mutated]))
      return false;
    d->n_mutated++;
  }
  return !d->s.failed;
}

static bool finish_call (dtr *d);

/* Lists go to the pending call right away, so the call before is finished at the first key that can
   only be of another. */
static bool read_line (dtr *d, line *l) {
  static const slice none = { "", 0, false };
  stream ahead = d->s;
  slice key;
  *l = (line){ none, none, none, none, none, none, none, none, d->s.at };
  /* the kind first: keys are sorted, so it stands in the middle */
  if (stream_object (&ahead))
    while (stream_member (&ahead, &key))
      if (!(slice_is (key, "INSTRUCTION") && stream_peek (&ahead) == STREAM_TEXT
                ? stream_text (&ahead, &l->kind)
                : stream_skip (&ahead)))
        break;
  if (ahead.failed) /* before the call is finished, which would miss what stands in this line */
    return false;
  bool detail = slice_is (l->kind, "MEMORY") || slice_is (l->kind, "ALIAS");
  if (!detail && !finish_call (d))
    return false;
  const struct {
    const char *key;
    slice *to;
  } fields[] = { { "NAME", &l->name },  { "ANNOTATION", &l->text }, { "TIME", &l->time },
                 { "SRC", &l->from },   { "DST", &l->to },          { "MEMORY", &l->memory },
                 { "ALIAS", &l->alias } };
  if (!stream_object (&d->s))
    return false;
  while (stream_member (&d->s, &key)) {
    bool list = stream_peek (&d->s) == STREAM_ARRAY;
    slice *to = NULL;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
      if (slice_is (key, fields[i].key))
        to = fields[i].to;
    bool ok = list && slice_is (key, "RESULT")   ? read_names (d, &d->n_results, true)
              : list && slice_is (key, "ARGS")   ? read_names (d, &d->n_args, false)
              : list && slice_is (key, "MUTATE") ? read_places (d)
              : to && !list && stream_peek (&d->s) != STREAM_OBJECT ? stream_scalar (&d->s, to)
                                                                    : stream_skip (&d->s);
    if (!ok)
      return false;
  }
  return !d->s.failed;
}

/* ---- calls ---- */

static bool set_bytes (dtr *d, const result *r, storage *to) {
  if (r->bytes < 0)
    return stream_fail_at (&d->s, d->call_at, "a result or constant without a MEMORY line");
  if (r->bytes == 0) {
    d->job->report->zero_tensors++;
    return true;
  }
  const char *name = slice_name (d->names.texts[r->name], d->job->scratch, d->job->err);
  if (!name)
    return false;
  to->tensor =
      build_tensor (d->b, name, r->bytes, to->constant ? TENSOR_PARAMETER : TENSOR_TEMPORARY);
  return true;
}

/* The storage that a result refers to: that of an argument, or a new one. */
static bool define (dtr *d, const result *r, int32_t *made) {
  int32_t at;
  *made = NONE;
  if (r->alias >= 0) {
    if (r->alias >= d->n_args)
      return stream_fail_at (&d->s, d->call_at, "an alias of argument %lld, but there are %lld",
                             (long long)r->alias, (long long)d->n_args);
    at = d->storage_of[d->args[r->alias]];
  } else {
    at = new_storage (d, d->constant);
    if (at == NONE || !set_bytes (d, r, &d->storages[at]))
      return false;
    *made = at;
  }
  d->storages[at].names++;
  d->storage_of[r->name] = at;
  return true;
}

static bool start_op (dtr *d) {
  int64_t ns;
  const char *name = slice_name (d->call, d->job->scratch, d->job->err);
  if (!name)
    return false;
  if (!slice_decimal (d->time, 0, &ns) || ns < 0 || ns > MOST_NS)
    return stream_fail_at (&d->s, d->call_at, "a call without a sound TIME in nanoseconds");
  d->backward |= slice_holds (d->call, "backward") || slice_holds (d->call, "Backward");
  build_op (d->b, name, d->backward ? OP_BACKWARD : OP_FORWARD, ns);
  for (int64_t i = 0; i < d->n_args; i++) {
    int32_t at = d->storage_of[d->args[i]];
    if (at == UNDEFINED)
      return stream_fail_at (&d->s, d->call_at, "argument %lld has no definition before this line",
                             (long long)i);
    d->storages[at].last = d->backward ? OP_BACKWARD : OP_FORWARD;
    if (d->storages[at].tensor != NONE)
      build_read (d->b, d->storages[at].tensor);
  }
  return true;
}

static bool finish_call (dtr *d) {
  if (!d->pending)
    return true;
  d->pending = false;
  if (!d->constant && !start_op (d))
    return false;
  for (int64_t i = 0; i < d->n_mutated; i++) {
    if (d->mutated[i] < 0 || d->mutated[i] >= d->n_args)
      return stream_fail_at (&d->s, d->call_at, "argument %lld is mutated, but there are %lld",
                             (long long)d->mutated[i], (long long)d->n_args);
    int32_t at = d->storage_of[d->args[d->mutated[i]]];
    if (d->storages[at].tensor != NONE)
      build_write (d->b, d->storages[at].tensor);
  }
  for (int64_t i = 0; i < d->n_results; i++) {
    int32_t made;
    if (!define (d, &d->results[i], &made))
      return false;
    if (made != NONE && !d->constant && d->storages[made].tensor != NONE)
      build_write (d->b, d->storages[made].tensor);
  }
  d->n_results = d->n_args = d->n_mutated = 0;
  return true;
}

static void open_call (dtr *d, const line *l, bool constant) {
  d->pending = true;
  d->constant = constant;
  d->call = l->name;
  d->time = l->time;
  d->call_at = l->at;
}

static bool see_constant (dtr *d, const line *l) {
  int32_t name = name_of (d, l->name);
  if (name == NONE)
    return false;
  if (!GROW (d->job->scratch, d->results, &d->result_room, 1, d->job->err))
    return false;
  d->results[0] = (result){ name, -1, -1 };
  d->n_results = 1;
  d->n_args = d->n_mutated = 0;
  open_call (d, l, true);
  return true;
}

static bool see_detail (dtr *d, const line *l, bool alias) {
  int32_t name = name_of (d, l->name);
  int64_t value;
  if (name == NONE)
    return false;
  if (!slice_decimal (alias ? l->alias : l->memory, 0, &value) || value < -1 ||
      value > MOST_TENSOR_BYTES || (!alias && value < 0))
    return stream_fail_at (&d->s, l->at, "no sound number in %s", alias ? "ALIAS" : "MEMORY");
  for (int64_t i = 0; d->pending && i < d->n_results; i++)
    if (d->results[i].name == name) {
      *(alias ? &d->results[i].alias : &d->results[i].bytes) = value;
      return true;
    }
  return stream_fail_at (&d->s, l->at, "it is of no result of the call before");
}

/* ---- names ---- */

/* The storage is there until the op that ran last has ended. */
static void release (dtr *d, int32_t at) {
  storage *x = &d->storages[at];
  if (--x->names > 0 || x->tensor == NONE || x->constant)
    return;
  if (build_ops (d->b))
    build_tensor_at (d->b, x->tensor)->dies_after = build_ops (d->b) - 1;
}

static bool see_copy (dtr *d, const line *l, bool over) {
  int32_t from, to;
  if (!need_name (d, l->from, l->at, &from))
    return false;
  if (!(over ? need_name (d, l->to, l->at, &to) : (to = name_of (d, l->to)) != NONE))
    return false;
  d->storages[d->storage_of[from]].names++;
  if (over)
    release (d, d->storage_of[to]);
  d->storage_of[to] = d->storage_of[from];
  return true;
}

static bool see_release (dtr *d, const line *l) {
  int32_t name = name_of (d, l->name);
  if (name == NONE)
    return false;
  if (d->storage_of[name] == UNDEFINED) {
    report_warn (d->job, "releases of names without a definition", 1, NULL);
    return true;
  }
  release (d, d->storage_of[name]);
  d->storage_of[name] = UNDEFINED;
  return true;
}

static bool see_line (dtr *d, const line *l) {
  if (slice_is (l->kind, "CALL") || slice_is (l->kind, "MUTATE")) {
    open_call (d, l, false);
    return true;
  }
  if (slice_is (l->kind, "CONSTANT"))
    return see_constant (d, l);
  if (slice_is (l->kind, "MEMORY") || slice_is (l->kind, "ALIAS"))
    return see_detail (d, l, slice_is (l->kind, "ALIAS"));
  if (slice_is (l->kind, "COPY") || slice_is (l->kind, "COPY_FROM"))
    return see_copy (d, l, slice_is (l->kind, "COPY_FROM"));
  if (slice_is (l->kind, "RELEASE"))
    return see_release (d, l);
  if (slice_is (l->kind, "ANNOTATE")) {
    d->backward |= slice_is (l->text, "BACKWARD");
    return true;
  }
  if (slice_is (l->kind, "PIN")) /* an output: it is never released */
    return true;
  return stream_fail_at (&d->s, l->at, "INSTRUCTION `%.*s` is not known",
                         (int)(l->kind.size < 40 ? l->kind.size : 40), l->kind.at);
}

static bool more (dtr *d) {
  while (d->s.at < d->s.size && strchr (" \t\r\n", d->s.text[d->s.at]) && d->s.text[d->s.at])
    d->s.at++;
  return d->s.at < d->s.size;
}

/* Calls logged before the mark START are not of the step. */
static int64_t start_of (const import_text *file) {
  static const char mark[] = "\"START\"";
  const char *at = memmem (file->text, (size_t)file->size, mark, sizeof mark - 1);
  if (!at)
    return 0;
  const char *end = memchr (at, '\n', (size_t)(file->text + file->size - at));
  return end ? end + 1 - file->text : file->size;
}

/* Kinds, once all uses are known; what still has a name at the end is the step's result. */
static void tell_kinds (dtr *d) {
  int32_t last = build_ops (d->b) - 1;
  for (int32_t i = 0; i < d->n_storages; i++) {
    const storage *x = &d->storages[i];
    if (x->tensor == NONE || x->constant)
      continue;
    tensor *t = build_tensor_at (d->b, x->tensor);
    bool kept = x->names > 0;
    if (kept)
      t->dies_after = last;
    t->kind = x->born == OP_FORWARD && x->last == OP_BACKWARD ? TENSOR_ACTIVATION
              : x->born == OP_BACKWARD && kept                ? TENSOR_GRADIENT
                                                              : TENSOR_TEMPORARY;
  }
}

bool dtr_import (import_job *job, const import_text *file, trace **out) {
  dtr d = { .job = job,
            .s = stream_open (file->text, file->size, job->err),
            .names = intern_new (job->scratch) };
  const char *name = job_trace_name (job, file);
  d.b = name ? build_new (job->a, name, 1, job->err) : NULL;
  if (!d.b)
    return false;
  d.s.at = start_of (file);
  while (more (&d)) {
    line l;
    if (!read_line (&d, &l) || !see_line (&d, &l))
      return false;
  }
  if (!finish_call (&d))
    return false;
  if (build_ops (d.b) == 0)
    return error_set (job->err, ERR_infeasible, "a log without calls: nothing to plan");
  tell_kinds (&d);
  build_source (d.b, "import", "log of operator calls");
  build_confidence (d.b, CONFIDENCE_EXACT, "gaps are unknown");
  job->report->peak_by = "releases";
  job->report->inferred = "phases (from names and marks); gaps: unknown";
  *out = build_finish (d.b, job->err);
  return *out;
}
