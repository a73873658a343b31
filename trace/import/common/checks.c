/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The self-checks of an import: what a sound trace of a training step has, whatever it was read
   from.  What fails lowers the confidence; what cannot be asked of a file says so and lowers
   nothing. */
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "trace/cards.h"
#include "trace/import/common/calls.h"
#include "trace/import/common/job.h"
#include "trace/summary.h"
#include "trace/uses.h"

static const struct {
  const char *name;
  confidence lowers;
} table[IMPORT_SELF_CHECKS] = {
#define CHECK(id, name, lowers, asks) { name, lowers },
#include "trace/import/common/checks.def"
#undef CHECK
};

const char *import_check_name (import_check_id id) {
  return table[id].name;
}

const char *import_check_lowers (import_check_id id) {
  return confidence_words[table[id].lowers];
}

typedef struct checker {
  import_job *job;
  const trace *t;
  uses u;
  int32_t n_of[OP_PHASES];
  bool failed; /* out of memory */
} checker;

static void answer (checker *c, import_check_id id, bool holds, const char *says) {
  if (!says) {
    c->failed = true;
    return;
  }
  c->job->report->self[id] = (import_check){ holds ? VERDICT_HOLDS : VERDICT_FAILS, says };
}

#define SAY(c, ...) arena_format ((c)->job->a, (c)->job->err, __VA_ARGS__)

/* In tenths of a percent. */
static int tenths (int64_t part, int64_t whole) {
  return whole > 0 ? (int)((__int128)part * 1000 / whole) : 0;
}

static void check_kept (checker *c) {
  const import_facts *f = &c->job->facts;
  char aside[UNITS_TEXT], unowned[UNITS_TEXT];
  if (f->seen_ns <= 0)
    return;
  int kept = tenths (f->kept_ns, f->seen_ns);
  units_time (aside, f->aside_ns);
  units_time (unowned, f->unowned_ns);
  if (f->timeless)
    answer (c, CHECK_kept, false,
            SAY (c, "%lld GPU events of the file have no time, and are left out",
                 (long long)f->timeless));
  else
    answer (c, CHECK_kept, kept >= 950,
            SAY (c, "%d.%d %% of GPU time is in ops; %s on other streams%s%s%s", kept / 10,
                 kept % 10, aside, f->unowned_ns ? ", " : "", f->unowned_ns ? unowned : "",
                 f->unowned_ns ? " without an owner" : ""));
}

/* That durations and gaps are the span, importers make sure of; a GPU that idles nearly always
   shows that work is missing. */
static void check_span (checker *c) {
  int64_t busy = 0, idle = 0;
  for (int32_t k = 0; k < c->t->n_ops; k++) {
    busy += c->t->ops[k].ns;
    idle += c->t->ops[k].gap_ns;
  }
  if (idle == 0)
    return;
  int share = tenths (busy, busy + idle);
  answer (c, CHECK_span, share >= 50, SAY (c, "busy for %d.%d %% of it", share / 10, share % 10));
}

static void check_launch (checker *c) {
  int64_t n = c->job->facts.unlaunched;
  if (n < 0)
    return;
  answer (c, CHECK_launch, n == 0,
          n ? SAY (c, "%lld kernels have none", (long long)n) : SAY (c, "all are known"));
}

static op_phase phase_at (const checker *c, int32_t op) {
  return c->t->ops[op].phase;
}

/* Made forward, alive at the first backward op behind: saved.  Somebody reads it there. */
static void check_turn (checker *c) {
  int64_t saved = 0, unread = 0;
  const char *example = NULL;
  if (c->t->n_tensors == 0)
    return;
  if (c->n_of[OP_BACKWARD] == 0) {
    if (c->n_of[OP_UPDATE])
      answer (c, CHECK_turn, false, SAY (c, "ops update parameters, but no op is backward"));
    return;
  }
  for (int32_t i = 0; i < c->t->n_tensors; i++) {
    const tensor *x = &c->t->tensors[i];
    int32_t first = uses_first (&c->u, i);
    if (x->kind != TENSOR_ACTIVATION || first == NO_OP || phase_at (c, first) != OP_FORWARD)
      continue;
    bool read = false;
    for (int32_t at = c->u.offset[i]; at < c->u.offset[i + 1] && !read; at++)
      read = phase_at (c, c->u.at[at].op) != OP_FORWARD && c->u.at[at].reads;
    saved++;
    unread += !read;
    if (!read && !example)
      example = x->name;
  }
  if (unread)
    answer (c, CHECK_turn, false,
            SAY (c, "%lld of %lld saved tensors have no reader, as %s", (long long)unread,
                 (long long)saved, example));
  else
    answer (c, CHECK_turn, true, SAY (c, "all %lld saved tensors are read", (long long)saved));
}

/* Faster than the memory of any card that is not known, beside what a card's caches may hold. */
#define FASTEST_BYTES_PER_S 12000000000000
#define CACHED_BYTES ((int64_t)256 << 20)

static bool too_much (const op *o, int64_t bytes, int64_t bytes_per_s) {
  return !call_is_partial ((slice){ o->name, (int64_t)strlen (o->name), false }) &&
         bytes - CACHED_BYTES > (__int128)o->ns * bytes_per_s / 1000000000;
}

static void check_rate (checker *c) {
  const int64_t *moved = c->job->facts.moved_bytes;
  const char *card = c->job->report->card;
  int64_t known_rate = card_memory_bytes_per_s (card);
  int64_t bytes_per_s = known_rate ? known_rate : FASTEST_BYTES_PER_S;
  if (!known_rate)
    card = "any card";
  char size[UNITS_TEXT], time[UNITS_TEXT], rate[UNITS_TEXT];
  units_rate (rate, bytes_per_s);
  int32_t n = 0, first = NO_OP, known = 0;
  for (int32_t k = 0; moved && k < c->t->n_ops; k++) {
    known += moved[k] > 0;
    if (c->t->ops[k].ns == 0 || !too_much (&c->t->ops[k], moved[k], bytes_per_s))
      continue;
    if (first == NO_OP)
      first = k;
    n++;
  }
  if (!known)
    return;
  if (n)
    answer (c, CHECK_rate, false,
            SAY (c, "%d ops use more than %s moves in their time (%s), as op %d %.60s: %s in %s", n,
                 card, rate, first, c->t->ops[first].name, units_bytes (size, moved[first]),
                 units_time (time, c->t->ops[first].ns)));
  else
    answer (c, CHECK_rate, true, SAY (c, "no op uses more than %s moves (%s)", card, rate));
}

static void check_peak (checker *c, int64_t peak) {
  int64_t reference = c->job->report->reference_peak_bytes;
  if (reference <= 0)
    return;
  int64_t off = peak > reference ? peak - reference : reference - peak;
  int off_by = tenths (off, reference);
  answer (c, CHECK_peak, off_by <= 50,
          SAY (c, "%c%d.%d %% of what memory events say", peak < reference ? '-' : '+', off_by / 10,
               off_by % 10));
}

/* Adam in mixed precision keeps a master copy and two moments of four bytes for each two bytes of a
   parameter; gradients may lie in buckets beside. */
static void check_kinds (checker *c) {
  int64_t bytes[TENSOR_KINDS] = { 0 };
  for (int32_t i = 0; i < c->t->n_tensors; i++)
    if (!c->t->tensors[i].pinned)
      bytes[c->t->tensors[i].kind] += c->t->tensors[i].bytes;
  int64_t parameter = bytes[TENSOR_PARAMETER], state = bytes[TENSOR_OPTIMIZER];
  int64_t gradient = bytes[TENSOR_GRADIENT];
  if (parameter == 0 || c->n_of[OP_UPDATE] == 0)
    return;
  char p[UNITS_TEXT], g[UNITS_TEXT], s[UNITS_TEXT];
  bool holds = state / 7 <= parameter && gradient / 4 <= parameter;
  answer (c, CHECK_kinds, holds,
          SAY (c, "parameters %s, gradients %s, state %s", units_bytes (p, parameter),
               units_bytes (g, gradient), units_bytes (s, state)));
}

static const char *say_lists (checker *c) {
  const import_facts *f = &c->job->facts;
  if (f->ops_by_nobody == 0 && f->widened == 0)
    return "every op's does";
  const char *nobody = f->ops_by_nobody ? SAY (c, "%lld ops have no call%s",
                                               (long long)f->ops_by_nobody, f->widened ? "; " : "")
                                        : "";
  return nobody && f->widened
             ? SAY (c,
                    "%s%lld autograd nodes and Functions do not, so all that they may use counts",
                    nobody, (long long)f->widened)
             : nobody;
}

static void check_pair (checker *c) {
  const import_facts *f = &c->job->facts;
  if (f->calls >= 0)
    answer (c, CHECK_lists, f->widened == 0 && f->ops_by_nobody == 0, say_lists (c));
  if (f->calls >= 0)
    answer (c, CHECK_calls, f->calls_found >= f->calls,
            SAY (c, "%lld of %lld", (long long)f->calls_found, (long long)f->calls));
  if (f->two_runs)
    answer (c, CHECK_run, !*f->two_runs,
            *f->two_runs ? f->two_runs : "device, rank and process agree");
}

static void check_steps (checker *c) {
  const import_facts *f = &c->job->facts;
  if (f->other_steps == 0)
    return;
  bool halves = f->by_optimizers && f->same_steps < f->other_steps;
  answer (c, CHECK_steps, f->same_steps > 0 && !halves,
          SAY (c, "%lld of %lld others%s", (long long)f->same_steps, (long long)f->other_steps,
               halves ? "; if a step runs several optimizers, --marks repeat" : ""));
}

/* The lowest word of all that fail, and what the importer said itself. */
static bool lower (checker *c, trace *t) {
  confidence word = t->source.confidence;
  char text[600] = "";
  int length = snprintf (text, sizeof text, "%.240s", t->source.doubt);
  if (c->job->facts.unmarked) {
    word = word > CONFIDENCE_APPROXIMATE ? word : CONFIDENCE_APPROXIMATE;
    length += snprintf (text + length, sizeof text - (size_t)length, "%s%s", length ? "; " : "",
                        c->job->facts.unmarked);
  }
  for (import_check_id i = 0; i < IMPORT_SELF_CHECKS; i++) {
    const import_check *check = &c->job->report->self[i];
    if (check->verdict != VERDICT_FAILS)
      continue;
    if (table[i].lowers > word)
      word = table[i].lowers;
    if (length < 400)
      length += snprintf (text + length, sizeof text - (size_t)length, "%s%s: %.90s",
                          length ? "; " : "", table[i].name, check->says);
  }
  t->source.confidence = word;
  t->source.doubt = SAY (c, "%s", text);
  return t->source.doubt;
}

static bool keep_checks (checker *c, trace *t) {
  const char **texts = NEW (c->job->a, IMPORT_SELF_CHECKS, const char *, c->job->err);
  if (!texts)
    return false;
  t->source.checks = texts;
  for (import_check_id i = 0; i < IMPORT_SELF_CHECKS; i++) {
    const import_check *check = &c->job->report->self[i];
    if (check->verdict == VERDICT_UNKNOWN)
      continue;
    texts[t->source.n_checks] = SAY (c, "%s: %s, %s", table[i].name,
                                     check->verdict == VERDICT_HOLDS ? "yes" : "no", check->says);
    if (!texts[t->source.n_checks++])
      return false;
  }
  return true;
}

/* Nothing can be planned where nothing takes time: no gap is longer than another. */
static bool need_time (checker *c, trace *t) {
  bool timeless = trace_is_plannable (t);
  for (int32_t k = 0; timeless && k < t->n_ops; k++)
    timeless = t->ops[k].ns == 0;
  if (!timeless)
    return true;
  c->job->report->advice = "no op takes any time: the durations were lost on the way. Record them "
                           "(docs/record.md)";
  t->source.confidence = CONFIDENCE_NOT_PLANNABLE;
  t->source.doubt = "no durations";
  return true;
}

bool checks_run (import_job *job, trace *t) {
  checker c = { .job = job, .t = t };
  summary s;
  for (import_check_id i = 0; i < IMPORT_SELF_CHECKS; i++)
    job->report->self[i] = (import_check){ VERDICT_UNKNOWN, "" };
  if (!need_time (&c, t) || !uses_of (t, job->scratch, &c.u, job->err) ||
      !summary_of (t, job->scratch, &s, job->err))
    return false;
  if (trace_is_plannable (t)) {
    job->report->floor_bytes = s.floor_bytes;
    job->report->floor_at = SAY (&c, "op %d %s", s.floor_op, t->ops[s.floor_op].name);
  }
  for (int32_t k = 0; k < t->n_ops; k++)
    c.n_of[t->ops[k].phase]++;
  check_peak (&c, s.peak_bytes);
  if (job->facts.measured) {
    check_kept (&c);
    check_span (&c);
    check_launch (&c);
    check_turn (&c);
    check_rate (&c);
    check_kinds (&c);
    check_pair (&c);
    check_steps (&c);
  }
  return !c.failed && lower (&c, t) && keep_checks (&c, t);
}
