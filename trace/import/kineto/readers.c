/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Possible readers of a saved tensor.  A Kineto file does not name them; it says which call made
   it, which calls ran later with inputs of which shapes, and when it was freed.  What follows from
   that: an op whose own call lists its inputs with shapes, none that the block may hold, does not
   read it; any other op of the forward pass may.  The backward of each that may read it may too,
   and so may every op from the first of these backward calls to the death.

   So a tensor made in a custom Function, or in a compiled region, is used by all of its kernels:
   they were launched by one call whose list of inputs does not hold what the call itself saved. */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "trace/import/common/calls.h"
#include "trace/import/common/launches.h"
#include "trace/import/kineto/kineto.h"
#include "trace/import/kineto/numbers.h"

/* A forward op that names an input of some size, or of which nothing is known. */
typedef struct reader {
  int64_t bytes;
  int32_t run, back; /* back: the first run of its backward, or NONE */
  bool view;         /* it hands on a part, whose readers do not have the shape of the whole */
} reader;

struct kineto_readers {
  const kineto *k;
  const kineto_iteration *it;
  bool likely;     /* only the next call reads */
  reader *sized;   /* by bytes, then by run */
  reader *unknown; /* by run */
  int32_t n_sized, n_unknown;
  kineto_slack slack;
  int32_t *first_run;      /* per op: the first run that it or a call in it owns, or NONE */
  int32_t *last_run;       /* likewise */
  int32_t *next_backward;  /* per run: the first behind it that belongs to the backward pass */
  launched *soonest;       /* of several streams: the first run of those launched from then on */
  int32_t *last_forward;   /* per run: the last run before it that belongs to the forward pass */
  kineto_numbers backward; /* ops */
};

static int by_bytes (const void *a, const void *b) {
  const reader *x = a, *y = b;
  return ORDER (x->bytes, y->bytes) ?: ORDER (x->run, y->run);
}

/* The earlier of two runs of which either may be none. */
static int32_t earlier (int32_t a, int32_t b) {
  return a == NONE ? b : b == NONE || a < b ? a : b;
}

/* Calls of the dispatcher list all that they read; Python functions and autograd nodes do not: what
   they hold beside their arguments is not in the list. */
static bool lists_inputs (const kineto *k, const kineto_op *o) {
  slice name = k->names.texts[o->name];
  return o->has_shapes && !o->has_list && !o->annotation && !call_is_backward (name) &&
         slice_holds (name, "::");
}

/* Calls that hand on a part of their input, or more than it by repeating it. */
static bool is_part (slice name) {
  static const char *const names[] = { "aten::slice",
                                       "aten::select",
                                       "aten::split",
                                       "aten::chunk",
                                       "aten::narrow",
                                       "aten::unbind",
                                       "aten::expand",
                                       "aten::unfold",
                                       "aten::diagonal",
                                       "aten::split_with_sizes",
                                       "aten::broadcast_to",
                                       "aten::expand_as",
                                       "aten::tensor_split",
                                       "aten::real",
                                       "aten::imag",
                                       "aten::view_as_real",
                                       "aten::movedim",
                                       "aten::unsafe_split",
                                       "aten::unsafe_chunk",
                                       "aten::hsplit",
                                       "aten::vsplit",
                                       "aten::set_",
                                       "aten::detach_",
                                       "aten::as_strided_",
                                       "aten::unsafe_split_with_sizes" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (slice_is (name, names[i]))
      return true;
  return false;
}

/* aten::as_strided is in every call that makes a view, and most of those hand on the whole: that of
   a program itself may hand on anything. */
static bool hands_on_part (const kineto *k, const kineto_op *o) {
  slice name = k->names.texts[o->name];
  if (is_part (name))
    return true;
  return slice_is (name, "aten::as_strided") &&
         (o->parent == NONE || !slice_starts (k->names.texts[k->ops[o->parent].name], "aten::"));
}

/* The call that an op belongs to: one op of the dispatcher, a Function, a compiled region or an
   autograd node; what Python merely names around them is none. */
static int32_t call_of (const kineto *k, int32_t op) {
  int32_t call = op;
  for (int depth = 0; op != NONE && depth < 64; depth++, op = k->ops[op].parent) {
    const kineto_op *o = &k->ops[op];
    slice name = k->names.texts[o->name];
    if (!o->annotation && (o->sequence >= 0 || slice_holds (name, "::")))
      call = op;
  }
  return call;
}

/* The first run, behind another, of the backward of the call around. */
static int32_t backward_run (const kineto_readers *r, int32_t around, int32_t behind) {
  int32_t first = NONE;
  for (int depth = 0; around != NONE && depth < 64; depth++, around = r->k->ops[around].parent) {
    const kineto_op *o = &r->k->ops[around];
    int32_t at = o->sequence >= 0 && o->mark == MARK_NONE
                     ? kineto_numbers_behind (&r->backward, o->sequence, behind)
                     : NONE;
    first = earlier (first, at == NONE ? NONE : r->backward.at[at].run);
  }
  return first;
}

static bool number_backward (import_job *job, kineto_readers *r) {
  const kineto *k = r->k;
  for (int32_t i = 0; i < k->n_ops; i++) {
    const kineto_op *o = &k->ops[i];
    if (o->sequence < 0 || o->mark != MARK_BACKWARD || r->first_run[i] == NONE ||
        o->start_ns < r->it->window.start_ns || o->start_ns >= r->it->window.end_ns)
      continue;
    if (!kineto_numbers_add (job, &r->backward, (kineto_number){ o->sequence, r->first_run[i], i }))
      return false;
  }
  kineto_numbers_sort (&r->backward);
  return true;
}

static void find_runs (kineto_readers *r) {
  const kineto *k = r->k;
  for (int32_t i = 0; i < k->n_ops; i++)
    r->first_run[i] = r->last_run[i] = NONE;
  int32_t last = NONE;
  for (int32_t i = 0; i < r->it->n_runs; i++) {
    int32_t op = r->it->runs[i].owner;
    r->last_forward[i] = last;
    if (kineto_phase (k, op) == OP_FORWARD || kineto_phase (k, op) == OP_OTHER)
      last = i;
    for (int depth = 0; op != NONE && depth < 64; depth++, op = k->ops[op].parent) {
      if (r->first_run[op] == NONE)
        r->first_run[op] = i;
      r->last_run[op] = i;
    }
  }
}

static void find_backward (kineto_readers *r) {
  int32_t next = NONE;
  for (int32_t i = r->it->n_runs - 1; i >= 0; i--) {
    r->next_backward[i] = next;
    if (kineto_phase (r->k, r->it->runs[i].owner) == OP_BACKWARD)
      next = i;
  }
}

static bool add (import_job *job, reader **rows, int32_t *n, int64_t *room, reader row) {
  if (!GROW (job->scratch, *rows, room, (int64_t)*n + 1, job->err))
    return false;
  (*rows)[(*n)++] = row;
  return true;
}

/* The run at which a forward call without GPU work of its own counts: the next of its thread; calls
   come in no order here, so each looks. */
static int32_t run_behind (const kineto_readers *r, const kineto_op *o) {
  int32_t n = r->it->n_runs;
  if (r->soonest) {
    int32_t at = launches_first (r->soonest, n, 0, o->start_ns);
    return at < n ? r->soonest[at].run : n - 1;
  }
  int32_t at = FIRST_WHERE (i, 0, n, r->it->runs[i].last_launch_ns >= o->start_ns);
  return at < n ? at : n - 1;
}

/* From then on a row speaks for all of its size behind it, too. */
static void sort_rows (reader *rows, int32_t n) {
  if (n)
    qsort (rows, (size_t)n, sizeof *rows, by_bytes);
  for (int32_t i = n - 2; i >= 0; i--)
    if (rows[i].bytes == rows[i + 1].bytes) {
      rows[i].back = earlier (rows[i].back, rows[i + 1].back);
      rows[i].view |= rows[i + 1].view;
    }
}

/* Each op that owns GPU work, and each call that hands on parts. */
static bool list_readers (import_job *job, kineto_readers *r) {
  const kineto *k = r->k;
  int64_t sized_room = 0, unknown_room = 0;
  bool *owns = NEW (job->scratch, k->n_ops, bool, job->err);
  if (!owns)
    return false;
  for (int32_t i = 0; i < r->it->n_runs; i++) {
    const kineto_run *run = &r->it->runs[i];
    if (run->owner == NONE) {
      if (!add (job, &r->unknown, &r->n_unknown, &unknown_room, (reader){ 0, i, NONE, false }))
        return false;
      continue;
    }
    owns[run->owner] = true;
  }
  for (int32_t i = 0; i < k->n_ops; i++) {
    const kineto_op *o = &k->ops[i];
    bool part = hands_on_part (k, o);
    if (o->mark != MARK_NONE || (!owns[i] && !part) || o->start_ns < r->it->window.start_ns ||
        o->start_ns >= r->it->window.end_ns)
      continue;
    int32_t run = owns[i] ? r->last_run[i] : run_behind (r, o), back = backward_run (r, i, run);
    if (!lists_inputs (k, o)) {
      if (!add (job, &r->unknown, &r->n_unknown, &unknown_room, (reader){ 0, run, back, part }))
        return false;
      continue;
    }
    for (int32_t n = 0; n < o->n_inputs; n++)
      if (!add (job, &r->sized, &r->n_sized, &sized_room,
                (reader){ k->inputs[o->first_input + n], run, back, part }))
        return false;
  }
  sort_rows (r->sized, r->n_sized);
  sort_rows (r->unknown, r->n_unknown);
  return true;
}

static bool order_launches (import_job *job, kineto_readers *r) {
  int32_t n = r->it->n_runs;
  if (!r->it->all)
    return true;
  r->soonest = NEW (job->scratch, n, launched, job->err);
  for (int32_t i = 0; r->soonest && i < n; i++)
    r->soonest[i] = (launched){ r->it->runs[i].last_launch_ns, 0, i };
  if (r->soonest) {
    launches_sort (r->soonest, n);
    launches_soonest (r->soonest, n);
  }
  return r->soonest;
}

static bool find_slack (import_job *job, kineto_readers *r, const kineto_blocks *blocks) {
  int64_t *inputs = NEW (job->scratch, r->n_sized, int64_t, job->err);
  int64_t *held = NEW (job->scratch, blocks->count, int64_t, job->err);
  if (!inputs || !held)
    return false;
  int32_t n = 0;
  for (int32_t i = 0; i < r->n_sized; i++)
    if (!n || inputs[n - 1] != r->sized[i].bytes)
      inputs[n++] = r->sized[i].bytes;
  for (int32_t i = 0; i < blocks->count; i++)
    held[i] = blocks->at[i].bytes;
  r->slack = kineto_slack_of (inputs, n, held, blocks->count);
  return true;
}

kineto_readers *kineto_readers_new (import_job *job, const kineto *k, const kineto_iteration *it,
                                    const kineto_blocks *blocks) {
  kineto_readers *r = NEW (job->scratch, 1, kineto_readers, job->err);
  if (!r)
    return NULL;
  r->k = k;
  r->it = it;
  r->likely = job->options.likely;
  if (!ALLOC (job->scratch, r->first_run, k->n_ops, job->err) ||
      !ALLOC (job->scratch, r->last_run, k->n_ops, job->err) ||
      !ALLOC (job->scratch, r->last_forward, it->n_runs, job->err) ||
      !ALLOC (job->scratch, r->next_backward, it->n_runs, job->err))
    return NULL;
  find_runs (r);
  find_backward (r);
  bool ok = order_launches (job, r) && number_backward (job, r) && list_readers (job, r) &&
            find_slack (job, r, blocks);
  return ok ? r : NULL;
}

typedef struct search {
  int32_t birth, limit; /* readers are looked for between them */
  int32_t last, back;
  bool view;
} search;

/* The first row of a size at or behind a run. */
static int32_t first_row (const reader *rows, int32_t n, int64_t bytes, int32_t run) {
  return FIRST_WHERE (i, 0, n,
                      rows[i].bytes > bytes || (rows[i].bytes == bytes && rows[i].run >= run));
}

/* Rows of one size from the birth to the limit. */
static void look (const reader *rows, int32_t n, int64_t bytes, search *s) {
  int32_t first = first_row (rows, n, bytes, s->birth);
  int32_t end = first_row (rows, n, bytes, s->limit);
  if (first == end)
    return;
  if (rows[end - 1].run > s->last)
    s->last = rows[end - 1].run;
  s->back = earlier (s->back, rows[first].back);
  s->view |= rows[first].view;
}

/* Rows of all inputs that a block of `bytes` may be. */
static void look_sized (const kineto_readers *r, int64_t bytes, search *s) {
  int64_t least = kineto_least_slack (r->slack, bytes);
  look (r->sized, r->n_sized, bytes, s);
  int32_t at = first_row (r->sized, r->n_sized, least, 0);
  while (at < r->n_sized && r->sized[at].bytes < bytes) {
    look (r->sized, r->n_sized, r->sized[at].bytes, s);
    at = first_row (r->sized, r->n_sized, r->sized[at].bytes + 1, 0);
  }
}

/* The last run, before the limit, of the call that a run belongs to. */
static int32_t end_of_call (const kineto_readers *r, int32_t run, int32_t limit) {
  int32_t owner = r->it->runs[run].owner;
  int32_t call = owner != NONE ? call_of (r->k, owner) : NONE;
  int32_t last = call != NONE ? r->last_run[call] : run;
  return last < limit ? last : limit - 1;
}

kineto_spell kineto_readers_of (const kineto_readers *r, const kineto_memory *alloc, int64_t bytes,
                                int32_t birth, int32_t death) {
  int32_t owner = r->it->runs[death].owner;
  int32_t call = owner != NONE ? call_of (r->k, owner) : NONE;
  int32_t limit = call != NONE && r->first_run[call] != NONE ? r->first_run[call] : death;
  if (limit <= birth)
    return (kineto_spell){ death, death };
  search s = { birth, limit, birth, backward_run (r, alloc->around, birth), false };
  /* A maker without a backward: a mask, or what the backward pass begins with. */
  if (s.back == NONE)
    s.back = r->next_backward[birth];
  int32_t own = end_of_call (r, birth, limit);
  int32_t next = own + 1 < limit ? end_of_call (r, own + 1, limit) : own;
  s.last = next > own ? next : own;
  if (own + 1 < limit)
    s.back = earlier (s.back, backward_run (r, r->it->runs[own + 1].owner, own + 1));
  if (!r->likely) {
    look_sized (r, bytes, &s);
    look (r->unknown, r->n_unknown, 0, &s);
  }
  if (s.back <= birth || s.back > limit)
    s.back = limit;
  int32_t turn = r->last_forward[s.back] > birth ? r->last_forward[s.back] : birth;
  if (s.view || s.last > turn)
    s.last = turn;
  return (kineto_spell){ s.last, s.back };
}
