#include "solver/place.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Large traces have room enough between their many stays, and places of theirs are dear. */
enum { CUTS = 49, CUTS_LARGE = 7, LARGE = 20000 };

/* Free granules of one home, oldest first: a ring of runs, each with the stay that held it last. */
typedef struct free_run {
  int32_t first, count, before; /* the stay that ended on it, or -1 */
} free_run;

typedef struct home {
  free_run *at;
  int64_t head, used, room; /* runs at[head .. head + used) */
  int32_t granules;         /* free here now */
  int64_t back;             /* rank at which its owner is born again; the common home: never */
  int32_t owner;
} home;

typedef struct held_run {
  int32_t first, count, home, next; /* next: of the same stay, or -1 */
} held_run;

typedef struct placing {
  const lives *l;
  arena *arena;
  error *err;
  places *out;
  int64_t *birth_rank, *end_rank; /* per stay, on the circle */
  int64_t ranks, cuts[CUTS];
  int n_cuts;
  int64_t give_up;      /* granules with which this cut is worse than another */
  int64_t *birth, *end; /* unrolled from the cut: birth < end */
  home *homes;          /* 0 is the common one */
  int32_t n_homes;
  uint64_t *stocked; /* one bit a home: it has granules; most have none at any moment */
  int32_t *home_of;  /* per stay that crosses the cut: its own home, else 0 */
  int32_t *held;     /* per stay: its runs */
  held_run *runs;
  int64_t n_runs, runs_room;
  int32_t granules;
} placing;

/* ---- ranks on the circle ---- */

typedef struct point {
  moment at;
  int32_t life;
  bool ends;
} point;

static int compare_points (const void *a, const void *b) {
  const point *x = a, *y = b;
  if (x->at.at_ns != y->at.at_ns)
    return x->at.at_ns < y->at.at_ns ? -1 : 1;
  return x->at.order < y->at.order ? -1 : x->at.order > y->at.order;
}

moment place_moment (moment m, moment start, moment period) {
  while (m.at_ns > start.at_ns + period.at_ns ||
         (m.at_ns == start.at_ns + period.at_ns && m.order >= start.order + period.order)) {
    m.at_ns -= period.at_ns;
    m.order -= period.order;
  }
  while (m.at_ns < start.at_ns || (m.at_ns == start.at_ns && m.order < start.order)) {
    m.at_ns += period.at_ns;
    m.order += period.order;
  }
  return m;
}

/* Moments as ranks, and the cuts to try: where fewest granules are held, over all the circle and
   then in each of its sectors. */
static bool rank (placing *p, moment start, moment period) {
  const lives *l = p->l;
  point *points = NEW (p->arena, 2 * (int64_t)l->count, point, p->err);
  if (!points)
    return false;
  int64_t n = 0;
  for (int32_t i = 0; i < l->count; i++) {
    const life *x = &l->at[i];
    if (x->always)
      continue;
    points[n++] = (point){ place_moment (x->from, start, period), i, false };
    points[n++] = (point){ place_moment (x->to, start, period), i, true };
  }
  qsort (points, (size_t)n, sizeof *points, compare_points);
  for (int64_t i = 0; i < n; i++)
    *(points[i].ends ? &p->end_rank[points[i].life] : &p->birth_rank[points[i].life]) = i;
  int64_t held = 0, least[CUTS];
  for (int32_t i = 0; i < l->count; i++)
    if (!l->at[i].always && p->end_rank[i] < p->birth_rank[i])
      held += l->at[i].granules;
  least[0] = held;
  p->n_cuts = l->count > LARGE ? CUTS_LARGE : CUTS;
  for (int i = 1; i < p->n_cuts; i++)
    least[i] = INT64_MAX;
  for (int64_t i = 0; i < n; i++) {
    int32_t granules = l->at[points[i].life].granules;
    int sector = 1 + (int)(i * (p->n_cuts - 1) / n);
    held += points[i].ends ? -granules : granules;
    if (held < least[0]) {
      least[0] = held;
      p->cuts[0] = i + 1;
    }
    if (held < least[sector]) {
      least[sector] = held;
      p->cuts[sector] = i + 1;
    }
  }
  p->ranks = n;
  return true;
}

/* Ranks unrolled from the cut on. */
static void unroll (placing *p, int64_t cut) {
  const lives *l = p->l;
  int64_t n = p->ranks;
  for (int32_t i = 0; i < l->count; i++) {
    if (l->at[i].always)
      continue;
    p->birth[i] = (p->birth_rank[i] - cut + n) % n;
    p->end[i] = (p->end_rank[i] - cut + n) % n;
    if (p->end[i] < p->birth[i])
      p->end[i] += n;
  }
}

/* ---- free granules ---- */

enum { WORD = 64 };

static void note_stock (placing *p, int32_t h) {
  uint64_t bit = (uint64_t)1 << (h % WORD);
  if (p->homes[h].granules > 0)
    p->stocked[h / WORD] |= bit;
  else
    p->stocked[h / WORD] &= ~bit;
}

/* The first home from `h` on with granules, or n_homes. */
static int32_t stocked_from (const placing *p, int32_t h) {
  if (h >= p->n_homes)
    return p->n_homes;
  int32_t word = h / WORD, words = (p->n_homes + WORD - 1) / WORD;
  uint64_t bits = p->stocked[word] >> (h % WORD) << (h % WORD);
  while (!bits && ++word < words)
    bits = p->stocked[word];
  return bits ? word * WORD + __builtin_ctzll (bits) : p->n_homes;
}

/* The last home up to `h` with granules, or -1. */
static int32_t stocked_until (const placing *p, int32_t h) {
  if (h < 0)
    return -1;
  int32_t word = h / WORD, above = WORD - 1 - h % WORD;
  uint64_t bits = p->stocked[word] << above >> above;
  while (!bits && --word >= 0)
    bits = p->stocked[word];
  return bits ? word * WORD + WORD - 1 - __builtin_clzll (bits) : -1;
}

static bool home_give (placing *p, int32_t h, free_run run) {
  home *x = &p->homes[h];
  free_run *last = x->used ? &x->at[x->head + x->used - 1] : NULL;
  x->granules += run.count;
  note_stock (p, h);
  if (last && last->before == run.before && last->first + last->count == run.first) {
    last->count += run.count;
    return true;
  }
  if (x->head + x->used == x->room && x->head > x->room / 2) {
    memmove (x->at, x->at + x->head, (size_t)x->used * sizeof *x->at);
    x->head = 0;
  }
  free_run *moved =
      arena_grow (p->arena, x->at, &x->room, x->head + x->used + 1, sizeof *x->at, p->err);
  if (!moved)
    return false;
  x->at = moved;
  x->at[x->head + x->used++] = run;
  return true;
}

/* ---- what a new owner waits for ---- */

static void need (int64_t *what, int64_t count) {
  if (*what < count)
    *what = count;
}

void place_follow (const lives *l, places *out, int32_t before, int32_t next) {
  const life *a = &l->at[before], *b = &l->at[next];
  int32_t next_step = b->op > a->op ? 0 : 1; /* owners follow one another in order of their ops */
  int32_t steps = (int32_t)a->end_wraps - next_step;
  bool by_copy = b->kind == STAY_MOVE;
  if (steps > 0) {
    out->tangled = true;
    return;
  }
  if (a->end_is_out) {
    int64_t count = l->out_place[a->end] + 1 + (int64_t)steps * l->n_outs;
    need (by_copy ? &out->in_outs[b->index] : &out->op_outs[b->op], count);
  } else if (by_copy)
    need (&out->in_ops[b->index], a->end + 1 + (int64_t)steps * l->trace->n_ops);
  else if (steps == 0 && a->end >= b->op)
    out->tangled = true;
}

/* ---- the sweep ---- */

static bool hold (placing *p, int32_t life, int32_t h, free_run run) {
  held_run *moved =
      arena_grow (p->arena, p->runs, &p->runs_room, p->n_runs + 1, sizeof *p->runs, p->err);
  if (!moved)
    return false;
  p->runs = moved;
  p->runs[p->n_runs] = (held_run){ run.first, run.count, h, p->held[life] };
  p->held[life] = (int32_t)p->n_runs++;
  if (run.before >= 0)
    place_follow (p->l, p->out, run.before, life);
  return true;
}

static bool take (placing *p, int32_t life, int32_t h, int32_t *wanted) {
  home *x = &p->homes[h];
  while (*wanted > 0 && x->used > 0) {
    free_run *oldest = &x->at[x->head];
    free_run part = *oldest;
    if (part.count > *wanted)
      part.count = *wanted;
    oldest->first += part.count;
    oldest->count -= part.count;
    x->granules -= part.count;
    note_stock (p, h);
    *wanted -= part.count;
    if (oldest->count == 0) {
      x->head++;
      x->used--;
    }
    if (!hold (p, life, h, part))
      return false;
  }
  return true;
}

static bool fresh (placing *p, int32_t life, int32_t h, int32_t count) {
  free_run run = { p->granules, count, -1 };
  if (count > INT32_MAX / 2 - p->granules)
    return error_set (p->err, ERR_input, "the plan needs too many granules");
  p->granules += count;
  return count == 0 || hold (p, life, h, run);
}

/* Homes are sorted by `back`: the first that is late enough keeps the later ones for longer stays.
 */
static int32_t first_late_enough (const placing *p, int64_t end) {
  int32_t low = 1, high = p->n_homes;
  while (low < high) {
    int32_t middle = (low + high) / 2;
    if (p->homes[middle].back < end)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Too few granules for this stay, although some that it could have lie free in homes whose owners
   come back too early: where the copy in of such an owner can wait until this stay has ended, that
   is asked for. */
static void ask_to_wait (placing *p, int32_t life, int32_t missing) {
  const struct life *x = &p->l->at[life];
  int32_t end_op = x->end_is_out ? p->l->moves[x->end].out_after : x->end;
  for (int32_t h = stocked_until (p, first_late_enough (p, p->end[life]) - 1);
       h >= 1 && missing > 0; h = stocked_until (p, h - 1)) {
    const struct life *owner = &p->l->at[p->homes[h].owner];
    if (owner->kind != STAY_MOVE || x->end_wraps || end_op >= owner->op)
      continue;
    if (p->out->wait_ops[owner->index] < end_op + 1)
      p->out->wait_ops[owner->index] = end_op + 1;
    missing -= p->homes[h].granules;
  }
}

static bool bear (placing *p, int32_t life, int64_t budget) {
  int32_t wanted = p->l->at[life].granules;
  if (p->home_of[life])
    return take (p, life, p->home_of[life], &wanted) && (assert (wanted == 0), true);
  for (int32_t h = stocked_from (p, first_late_enough (p, p->end[life]));
       h < p->n_homes && wanted > 0; h = stocked_from (p, h + 1))
    if (!take (p, life, h, &wanted))
      return false;
  /* Granules that nobody has held yet cost no wait, as long as there are any. */
  int64_t spare = budget - p->granules;
  int32_t unused = spare <= 0 ? 0 : spare < wanted ? (int32_t)spare : wanted;
  wanted -= unused;
  if (wanted > p->homes[0].granules)
    ask_to_wait (p, life, wanted - p->homes[0].granules);
  return fresh (p, life, 0, unused) && take (p, life, 0, &wanted) && fresh (p, life, 0, wanted);
}

static bool bury (placing *p, int32_t life) {
  /* the list is newest first: give it back as it was taken */
  int32_t run = p->held[life], before = -1;
  while (run >= 0) {
    int32_t next = p->runs[run].next;
    p->runs[run].next = before;
    before = run;
    run = next;
  }
  p->held[life] = before;
  for (run = before; run >= 0; run = p->runs[run].next)
    if (!home_give (p, p->runs[run].home,
                    (free_run){ p->runs[run].first, p->runs[run].count, life }))
      return false;
  return true;
}

static int by_birth (const void *a, const void *b, void *context) {
  const placing *p = context;
  int64_t x = p->birth[*(const int32_t *)a], y = p->birth[*(const int32_t *)b];
  return x < y ? -1 : x > y;
}

/* Stays that cross the cut hold their granules when the sweep begins. */
static bool settle_crossing (placing *p, int64_t ranks) {
  const lives *l = p->l;
  int32_t *crossing = NEW (p->arena, l->count, int32_t, p->err);
  int32_t n = 0;
  if (!crossing)
    return false;
  for (int32_t i = 0; i < l->count; i++)
    if (!l->at[i].always && p->end[i] >= ranks)
      crossing[n++] = i;
  qsort_r (crossing, (size_t)n, sizeof *crossing, by_birth, p);
  p->homes = NEW (p->arena, (int64_t)n + 1, home, p->err);
  p->stocked = NEW (p->arena, n / WORD + 1, uint64_t, p->err);
  if (!p->homes || !p->stocked)
    return false;
  p->n_homes = n + 1;
  for (int32_t i = 0; i < n; i++) {
    p->homes[i + 1].back = p->birth[crossing[i]];
    p->homes[i + 1].owner = crossing[i];
    p->home_of[crossing[i]] = i + 1;
    if (!fresh (p, crossing[i], i + 1, l->at[crossing[i]].granules))
      return false;
  }
  return true;
}

/* Every rank is one stay's birth or one stay's end. */
static bool sweep (placing *p, int64_t ranks, int64_t budget) {
  const lives *l = p->l;
  int32_t *at = NEW (p->arena, ranks, int32_t, p->err);
  if (!at)
    return false;
  for (int32_t i = 0; i < l->count; i++)
    if (!l->at[i].always) {
      at[p->birth[i]] = i;
      at[p->end[i] % ranks] = -1 - i;
    }
  for (int64_t i = 0; i < ranks; i++) {
    if (p->granules >= p->give_up)
      return true;
    if (at[i] < 0 ? !bury (p, -1 - at[i]) : (p->held[at[i]] = -1, !bear (p, at[i], budget)))
      return false;
  }
  return true;
}

/* The last owner of each common granule is followed by the first one of the next step. The runs
   that a stay took keep their order, so the first owners are those with nobody before: found by
   walking all stays in order of birth. */
static bool close_circle (placing *p) {
  const lives *l = p->l;
  int32_t *first = NEW (p->arena, p->granules, int32_t, p->err);
  int32_t *order = NEW (p->arena, l->count, int32_t, p->err);
  if (!first || !order)
    return false;
  memset (first, 0xff, (size_t)p->granules * sizeof *first);
  int32_t n = 0;
  for (int32_t i = 0; i < l->count; i++)
    if (!l->at[i].always)
      order[n++] = i;
  qsort_r (order, (size_t)n, sizeof *order, by_birth, p);
  for (int32_t i = 0; i < n; i++)
    for (int32_t run = p->held[order[i]]; run >= 0; run = p->runs[run].next)
      for (int32_t g = 0; g < p->runs[run].count; g++)
        if (first[p->runs[run].first + g] < 0)
          first[p->runs[run].first + g] = order[i];
  const home *common = &p->homes[0];
  for (int64_t i = common->head; i < common->head + common->used; i++) {
    const free_run *run = &common->at[i];
    int32_t last = -1;
    for (int32_t g = 0; g < run->count; g++)
      if (first[run->first + g] != last) {
        last = first[run->first + g];
        place_follow (l, p->out, run->before, last);
      }
  }
  return true;
}

static int compare_runs (const void *a, const void *b) {
  int32_t x = ((const granule_run *)a)->first, y = ((const granule_run *)b)->first;
  return x < y ? -1 : x > y;
}

/* Runs in order of granules, neighbours joined. */
static bool write_runs (placing *p) {
  const lives *l = p->l;
  places *out = p->out;
  out->runs = NEW (p->arena, p->n_runs, granule_run, p->err);
  out->first_run = NEW (p->arena, (int64_t)l->count + 1, int64_t, p->err);
  if (!out->runs || !out->first_run)
    return false;
  int64_t n = 0;
  for (int32_t i = 0; i < l->count; i++) {
    int64_t first = n, kept;
    for (int32_t run = p->held[i]; run >= 0; run = p->runs[run].next)
      out->runs[n++] = (granule_run){ p->runs[run].first, p->runs[run].count };
    qsort (out->runs + first, (size_t)(n - first), sizeof *out->runs, compare_runs);
    kept = first;
    for (int64_t j = first; j < n; j++)
      if (kept > first &&
          out->runs[kept - 1].first + out->runs[kept - 1].count == out->runs[j].first)
        out->runs[kept - 1].count += out->runs[j].count;
      else
        out->runs[kept++] = out->runs[j];
    n = kept;
    out->first_run[i + 1] = n;
  }
  out->n_runs = n;
  out->granules = p->granules;
  return true;
}

static bool prepare (placing *p) {
  const lives *l = p->l;
  p->birth_rank = NEW (p->arena, l->count, int64_t, p->err);
  p->end_rank = NEW (p->arena, l->count, int64_t, p->err);
  p->birth = NEW (p->arena, l->count, int64_t, p->err);
  p->end = NEW (p->arena, l->count, int64_t, p->err);
  return p->birth_rank && p->end_rank && p->birth && p->end;
}

static bool begin (placing *p) {
  const lives *l = p->l;
  places *out = p->out;
  *out = (places){ 0 };
  p->homes = NULL;
  p->runs = NULL;
  p->n_homes = p->granules = 0;
  p->n_runs = p->runs_room = 0;
  p->home_of = NEW (p->arena, l->count, int32_t, p->err);
  p->held = NEW (p->arena, l->count, int32_t, p->err);
  out->op_outs = NEW (p->arena, l->trace->n_ops, int64_t, p->err);
  out->in_ops = NEW (p->arena, l->n_moves, int64_t, p->err);
  out->in_outs = NEW (p->arena, l->n_moves, int64_t, p->err);
  out->wait_ops = NEW (p->arena, l->n_moves, int32_t, p->err);
  if (!out->wait_ops || !p->home_of || !p->held || !out->op_outs || !out->in_ops || !out->in_outs)
    return false;
  memset (p->held, 0xff, (size_t)l->count * sizeof *p->held);
  for (int32_t i = 0; i < l->trace->n_ops; i++)
    out->op_outs[i] = NOTHING_NEEDED;
  for (int32_t i = 0; i < l->n_moves; i++) {
    out->in_ops[i] = out->in_outs[i] = NOTHING_NEEDED;
    out->wait_ops[i] = NO_WAIT;
  }
  return true;
}

/* Everything but the runs in their last form. */
static bool place_from (placing *p, int64_t cut, int64_t budget) {
  if (!begin (p))
    return false;
  unroll (p, cut);
  for (int32_t i = 0; i < p->l->count; i++)
    if (p->l->at[i].always && !fresh (p, i, 0, p->l->at[i].granules))
      return false;
  p->out->granules = 0;
  if (!settle_crossing (p, p->ranks) || !sweep (p, p->ranks, budget))
    return false;
  if (p->granules < p->give_up && !close_circle (p))
    return false;
  p->out->granules = p->granules;
  return true;
}

bool place (const lives *l, moment period, moment start, int64_t budget, arena *a, places *out,
            error *err) {
  placing p = { .l = l, .arena = a, .err = err, .out = out };
  if (!prepare (&p) || !rank (&p, start, period))
    return false;
  int64_t best = -1, least = INT64_MAX;
  p.give_up = INT64_MAX;
  for (int i = 0; i < p.n_cuts; i++) {
    arena_mark mark = arena_here (a);
    if (!place_from (&p, p.cuts[i], budget))
      return false;
    if (out->granules <= budget && !out->tangled)
      return write_runs (&p);
    int64_t granules = out->granules + (out->tangled ? INT32_MAX : 0);
    if (granules < least) {
      least = granules;
      best = p.cuts[i];
      p.give_up = out->tangled ? p.give_up : granules;
    }
    arena_back (a, mark);
  }
  p.give_up = INT64_MAX;
  return place_from (&p, best, budget) && write_runs (&p);
}
