/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Networks repeat their blocks: what has the same part in each is a class, and sets are sought by
   classes before single drops.  A class is dropped as a whole, up to some layer or from one on, or
   every k-th is kept; where one class gives up memory, another may take it, so two change at a
   time, the second to where the sum costs least. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "solver/recompute/find.h"

enum { MOST_CLASSES = 40 };

typedef struct part {
  uint64_t role;
  int32_t drop;
} part;

typedef struct drop_class {
  int32_t first, end; /* in parts */
  int64_t bytes;
} drop_class;

typedef struct descent {
  finding *f;
  part *parts; /* by role, then as the drops are: in order of tensors */
  drop_class classes[MOST_CLASSES];
  int32_t n_classes;
  uint8_t how;   /* the way of tensors dropped anew */
  uint8_t *best; /* the set that is changed */
  int64_t best_ns, until;
} descent;

/* Which layer it is stands in a name as a number. */
static uint64_t name_role (uint64_t role, const char *name) {
  for (; name && *name; name++)
    if (*name < '0' || *name > '9')
      role = (role ^ (uint8_t)*name) * 0x100000001b3;
  return (role ^ 0xff) * 0x100000001b3;
}

static uint64_t role_of (const finding *f, const drop *d) {
  const trace *t = f->rw.trace;
  uint64_t role = 0xcbf29ce484222325 ^ (uint64_t)d->bytes;
  role = name_role (role, t->tensors[d->tensor].name);
  role = name_role (role, t->ops[d->after].name);
  return name_role (role, t->ops[d->before].name);
}

static int by_role (const void *a, const void *b) {
  const part *x = a, *y = b;
  if (x->role != y->role)
    return x->role < y->role ? -1 : 1;
  return x->drop < y->drop ? -1 : x->drop > y->drop;
}

static int by_bytes (const void *a, const void *b) {
  const drop_class *x = a, *y = b;
  if (x->bytes != y->bytes)
    return x->bytes > y->bytes ? -1 : 1;
  return x->first < y->first ? -1 : x->first > y->first;
}

/* The classes with the most bytes; those that hold next to none are left as they are. */
static bool find_classes (descent *d, error *err) {
  finding *f = d->f;
  int32_t n = f->n_drops, count = 0;
  int64_t sum_bytes = 0;
  d->parts = NEW (f->scratch, n, part, err);
  d->best = NEW (f->scratch, n, uint8_t, err);
  drop_class *all = NEW (f->scratch, n, drop_class, err);
  if (!d->parts || !d->best || !all)
    return false;
  for (int32_t i = 0; i < n; i++)
    d->parts[i] = (part){ role_of (f, &f->drops[i]), i };
  qsort (d->parts, (size_t)n, sizeof *d->parts, by_role);
  for (int32_t i = 0; i < n; i++) {
    int64_t bytes = f->drops[d->parts[i].drop].bytes;
    if (i == 0 || d->parts[i].role != d->parts[i - 1].role)
      all[count++] = (drop_class){ i, i, 0 };
    all[count - 1].end = i + 1;
    all[count - 1].bytes += bytes;
    sum_bytes += bytes;
  }
  qsort (all, (size_t)count, sizeof *all, by_bytes);
  int64_t least_bytes = sum_bytes / find_number (f, TUNE_classes_least_part);
  int64_t most = find_number (f, TUNE_classes_most);
  for (int32_t i = 0; i < count && i < most && all[i].bytes > least_bytes; i++)
    d->classes[d->n_classes++] = all[i];
  return true;
}

static bool is_over (const descent *d) {
  return d->f->ticks >= d->until || find_is_over (d->f);
}

/* The first n of a class dropped, or the last n; the others not. */
static void set_class (descent *d, const drop_class *c, int32_t n, bool last) {
  int32_t count = c->end - c->first;
  for (int32_t i = 0; i < count; i++)
    d->f->now.chosen[d->parts[c->first + i].drop] = (last ? i >= count - n : i < n) ? d->how : 0;
}

static void set_every (descent *d, const drop_class *c, int32_t k, int32_t phase) {
  for (int32_t i = 0; i < c->end - c->first; i++)
    d->f->now.chosen[d->parts[c->first + i].drop] = i % k != phase ? d->how : 0;
}

static bool price (descent *d, int64_t *ns, error *err) {
  if (!find_price (d->f, err))
    return false;
  *ns = d->f->now.ns;
  if (*ns < d->best_ns) {
    d->best_ns = *ns;
    memcpy (d->best, d->f->now.chosen, (size_t)d->f->n_drops);
  }
  return true;
}

/* How many of a class are dropped at least cost, from either end: a few, then halves. */
static bool fit_class (descent *d, const drop_class *c, bool last, error *err) {
  int32_t sizes = (int32_t)find_number (d->f, TUNE_classes_first);
  int32_t count = c->end - c->first, step = (count + sizes - 1) / sizes, best = 0;
  int64_t ns, least_ns = INT64_MAX;
  for (int32_t n = 0; n < count + step && !is_over (d); n += step) {
    int32_t here = n < count ? n : count;
    set_class (d, c, here, last);
    if (!price (d, &ns, err))
      return false;
    if (ns < least_ns) {
      least_ns = ns;
      best = here;
    }
  }
  while (step > 1) {
    step = (step + 1) / 2;
    for (int side = -1, centre = best; side <= 1; side += 2) {
      int32_t n = centre + side * step;
      if (n <= 0 || n >= count || is_over (d))
        continue;
      set_class (d, c, n, last);
      if (!price (d, &ns, err))
        return false;
      if (ns < least_ns) {
        least_ns = ns;
        best = n;
      }
    }
  }
  return true;
}

/* All of it that is dropped the other way. */
static bool turn_class (descent *d, const drop_class *c, error *err) {
  int64_t ns;
  uint8_t *now = d->f->now.chosen;
  memcpy (now, d->best, (size_t)d->f->n_drops);
  for (int32_t i = c->first; i < c->end; i++) {
    int32_t k = d->parts[i].drop;
    now[k] = !now[k] ? 0 : d->how == DROP_STAYS ? DROP_PASSES : DROP_STAYS;
  }
  return price (d, &ns, err);
}

static bool change_one (descent *d, const drop_class *c, error *err) {
  int64_t ns;
  for (int last = 0; last < 2; last++) {
    memcpy (d->f->now.chosen, d->best, (size_t)d->f->n_drops);
    if (!fit_class (d, c, last, err))
      return false;
  }
  memcpy (d->f->now.chosen, d->best, (size_t)d->f->n_drops);
  for (int32_t k = 2;
       k <= find_number (d->f, TUNE_classes_every) && k < c->end - c->first && !is_over (d); k++) {
    set_every (d, c, k, k / 2);
    if (!price (d, &ns, err))
      return false;
  }
  return true;
}

/* One wholly dropped or wholly kept, and the other as far as is best then. */
static bool change_two (descent *d, const drop_class *c, const drop_class *other, error *err) {
  uint8_t *from = d->f->now.chosen;
  for (int whole = 0; whole < 2; whole++) {
    int32_t count = c->end - c->first, had = 0;
    for (int32_t i = c->first; i < c->end; i++)
      had += d->best[d->parts[i].drop] != 0;
    if (had == (whole ? count : 0))
      continue;
    memcpy (from, d->best, (size_t)d->f->n_drops);
    set_class (d, c, whole ? count : 0, false);
    if (!fit_class (d, other, false, err))
      return false;
  }
  return true;
}

static bool sweep (descent *d, bool passes, error *err) {
  for (d->how = DROP_STAYS; d->how <= (passes ? DROP_PASSES : DROP_STAYS); d->how++)
    for (int32_t i = 0; i < d->n_classes && !is_over (d); i++)
      if (!change_one (d, &d->classes[i], err) || (passes && !turn_class (d, &d->classes[i], err)))
        return false;
  d->how = passes ? DROP_PASSES : DROP_STAYS;
  for (int32_t i = 0; i < d->n_classes; i++)
    for (int32_t j = 0; j < d->n_classes && !is_over (d); j++)
      if (i != j && !change_two (d, &d->classes[i], &d->classes[j], err))
        return false;
  return true;
}

bool find_by_classes (finding *f, const drop_set *from, int64_t until, error *err) {
  assert (from->chosen && from->chosen != f->now.chosen);
  descent d = { .f = f, .until = until };
  arena_mark mark = arena_here (f->scratch);
  int64_t before_ns;
  bool passes = false;
  if (!find_classes (&d, err))
    return false;
  for (int32_t i = 0; i < f->n_drops; i++)
    passes |= from->chosen[i] == DROP_PASSES;
  f->now.near_ns = from->near_ns;
  memcpy (f->now.chosen, from->chosen, (size_t)f->n_drops);
  d.best_ns = INT64_MAX;
  bool ok = price (&d, &before_ns, err);
  do {
    before_ns = d.best_ns;
    ok = ok && sweep (&d, passes, err);
  } while (ok && d.best_ns < before_ns && !is_over (&d));
  log_say (f->o->log, LOG_DETAIL, "classes: %d, %.6g s, %d sets, %lld ticks", d.n_classes,
           (double)d.best_ns / 1e9, f->priced, (long long)f->ticks);
  arena_back (f->scratch, mark);
  return ok;
}
