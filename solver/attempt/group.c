/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A group lives from its first member's birth to its last member's death and rests only while all
   of its members rest, so a member is taken only where it costs little of either.  Tensors come in
   order of the op that lets them rest; each goes to the newest open group that it fits.  Where they
   live shortly, as at the turn to the way back, large groups find no kin: what is left goes into
   groups of a granule, or each would have one of its own. */
#include "solver/attempt/group.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "solver/attempt/pattern.h"
#include "solver/flow/peaks.h"
#include "solver/place/schedule.h"
#include "trace/unit.h"

enum { MEMBERS_LEAST = 2, MOST_OPEN = 32, ALONE = -1 };

typedef struct small {
  int32_t tensor;
  int32_t after, before; /* of the rest in which most of it leaves; else of its longest rest */
  bool persistent, stays;
} small;

typedef struct open_group {
  pattern used;
  int64_t most_rest_ns, least_life_ns; /* of the members */
  int64_t bytes;
  int32_t number;
  bool persistent, stays;
} open_group;

typedef struct grouping {
  const trace *trace;
  const group_rule *rule;
  int64_t granule_bytes;
  pattern_clock clock;
  small *all;
  int32_t count;
  open_group open[MOST_OPEN];
  int32_t n_open, made;
  int32_t *group_of; /* per `all` */
  pattern trial;
  peaks alive;  /* per op: bytes, what groups add included */
  peaks filled; /* and what the link can have brought back since the peak, or sends until then */
  int64_t peak_bytes;
} grouping;

static int by_rest (const void *a, const void *b) {
  const small *x = a, *y = b;
  if (x->persistent != y->persistent)
    return x->persistent - y->persistent;
  if (x->stays != y->stays)
    return x->stays - y->stays;
  if (x->after != y->after)
    return x->after < y->after ? -1 : 1;
  if (x->before != y->before)
    return x->before > y->before ? -1 : 1;
  return x->tensor < y->tensor ? -1 : x->tensor > y->tensor;
}

/* The gap in which the program sends most of the tensor, or NO_GAP. */
static int32_t gap_sent (const grouping *g, int32_t tensor) {
  const gaps *s = g->rule->singles;
  const double *share = g->rule->share;
  double leaves = (double)tuned (g->rule->tuning, TUNE_group_leaves_ppm) / 1e6;
  int32_t most = NO_GAP; /* shares of a solver's are never quite 0 */
  for (int32_t i = s->of_unit[tensor]; i < s->of_unit[tensor + 1]; i++)
    if (share[i] > (most == NO_GAP ? leaves : share[most]))
      most = i;
  return most;
}

/* From the peak on, and before it backward, the link carries what it can and what has room. */
static void count_carried (const grouping *g, const int64_t *alive, int32_t peak_op, int way,
                           int64_t *carried) {
  const int64_t *ends_ns = g->clock.ends_ns;
  int32_t end = way > 0 ? g->trace->n_ops : -1;
  int64_t most = 0;
  for (int32_t k = end - way; k != peak_op; k -= way) { /* bytes that live from k on at most */
    most = alive[k] > most ? alive[k] : most;
    carried[k] = alive[peak_op] - most;
  }
  carried[peak_op] = 0;
  for (int32_t k = peak_op + way; k != end; k += way) {
    int64_t ns = way > 0 ? ends_ns[k] - ends_ns[k - 1] : ends_ns[k + 1] - ends_ns[k];
    int64_t bytes = units_scale (ns, g->rule->link_bytes_per_s, 1000000000);
    if (bytes < carried[k] - carried[k - way])
      carried[k] = carried[k - way] + bytes;
  }
}

static bool count_filled (grouping *g, const int64_t *alive, arena *a, error *err) {
  int32_t n = g->trace->n_ops;
  int64_t *filled = NEW (a, n, int64_t, err);
  if (!filled)
    return false;
  if (g->rule->link_bytes_per_s && n > 0) {
    int32_t peak_op = peaks_at (&g->alive, 0, n);
    count_carried (g, alive, peak_op, 1, filled);
    count_carried (g, alive, peak_op, -1, filled);
  }
  for (int32_t k = 0; k < n; k++)
    filled[k] += alive[k];
  return peaks_build (&g->filled, filled, n, a, err);
}

static bool count_alive (grouping *g, arena *a, error *err) {
  const trace *t = g->trace;
  int64_t *alive = NEW (a, (int64_t)t->n_ops + 1, int64_t, err), peak = 0;
  if (!alive)
    return false;
  for (int32_t i = 0; i < t->n_tensors; i++) {
    if (uses_count (&g->clock.uses, i) == 0)
      continue;
    bool always = t->tensors[i].persistent;
    alive[always ? 0 : uses_first (&g->clock.uses, i)] += t->tensors[i].bytes;
    alive[always ? t->n_ops : uses_last (&g->clock.uses, i) + 1] -= t->tensors[i].bytes;
  }
  for (int32_t k = 0; k < t->n_ops; k++)
    alive[k + 1] += alive[k];
  for (int32_t k = 0; k < t->n_ops; k++) {
    alive[k] += t->ops[k].workspace_bytes;
    peak = alive[k] > peak ? alive[k] : peak;
  }
  g->peak_bytes = peak;
  return peaks_build (&g->alive, alive, t->n_ops, a, err) && count_filled (g, alive, a, err);
}

/* True if tensors that live as `narrow` says may live as the trial does. */
static bool has_room (const grouping *g, const pattern *narrow, int64_t bytes, bool stays) {
  const pattern *wide = &g->trial;
  const peaks *level = stays ? &g->filled : &g->alive;
  int64_t most =
      stays ? g->peak_bytes
            : units_scale (g->peak_bytes, tuned (g->rule->tuning, TUNE_group_crowded_ppm), 1000000);
  int32_t first = wide->ops[0], end = wide->ops[wide->count - 1] + 1;
  int32_t was = narrow->ops[0], was_end = narrow->ops[narrow->count - 1] + 1;
  int64_t before = peaks_most (level, first, was), after = peaks_most (level, was_end, end);
  return (first == was || before + bytes <= most) && (end == was_end || after + bytes <= most);
}

static void live_longer (grouping *g, const pattern *narrow, int64_t bytes) {
  const pattern *wide = &g->trial;
  peaks *levels[] = { &g->alive, &g->filled };
  for (int i = 0; i < 2; i++) {
    peaks_add (levels[i], wide->ops[0], narrow->ops[0], bytes);
    peaks_add (levels[i], narrow->ops[narrow->count - 1] + 1, wide->ops[wide->count - 1] + 1,
               bytes);
  }
}

static int64_t most_bytes (const grouping *g, const small *x) {
  if (!g->rule->share)
    return g->rule->most_bytes;
  return x->stays ? INT64_MAX / 4 : x->persistent ? g->rule->persistent_bytes : g->rule->most_bytes;
}

static bool is_small (const grouping *g, const small *x) {
  return unit_member_bytes (g->trace->tensors[x->tensor].bytes) <
         (x->stays ? most_bytes (g, x) : g->rule->most_bytes) / 2;
}

static bool find_small (grouping *g, arena *a, error *err) {
  const trace *t = g->trace;
  g->all = NEW (a, t->n_tensors, small, err);
  g->group_of = NEW (a, t->n_tensors, int32_t, err);
  g->trial.ops = NEW (a, t->n_ops, int32_t, err);
  if (!g->all || !g->group_of || !g->trial.ops ||
      !pattern_clock_of (t, g->rule->tuning, a, &g->clock, err))
    return false;
  for (int32_t i = 0; i < t->n_tensors; i++) {
    const tensor *x = &t->tensors[i];
    if ((x->persistent && !g->rule->persistent) || x->pinned ||
        uses_count (&g->clock.uses, i) == 0 || x->bytes < g->rule->least_bytes || x->twin != 0)
      continue;
    int32_t sent = g->rule->share ? gap_sent (g, i) : NO_GAP;
    bool stays = g->rule->share && sent == NO_GAP;
    small *s = &g->all[g->count];
    *s = (small){ .tensor = i, .persistent = x->persistent, .stays = stays };
    if (!is_small (g, s))
      continue;
    g->group_of[g->count++] = ALONE;
    pattern_longest (&g->clock, i, &s->after, &s->before);
    if (sent != NO_GAP) {
      s->after = g->rule->singles->at[sent].after;
      s->before = g->rule->singles->at[sent].before;
    }
  }
  qsort (g->all, (size_t)g->count, sizeof *g->all, by_rest);
  return true;
}

/* True if a group may be like the trial: no member loses much by it. */
static bool is_close (const grouping *g, bool stays, int64_t most_rest_ns, int64_t least_life_ns) {
  int64_t keep = g->rule->keep;
  if (stays)
    return g->trial.life_ns <= least_life_ns + least_life_ns / g->rule->keep_life;
  return g->trial.rest_ns >= most_rest_ns - most_rest_ns / keep &&
         g->trial.life_ns <= least_life_ns + least_life_ns / keep;
}

static int64_t tail_of (const grouping *g, int64_t bytes) {
  return units_div_up (bytes, g->granule_bytes) * g->granule_bytes - bytes;
}

static int64_t more (int64_t a, int64_t b) {
  return a > b ? a : b;
}

static int64_t less (int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* True if x may join; the trial is then the group as it will be. */
static bool may_join (grouping *g, const open_group *o, const small *x, const pattern *own,
                      int64_t bytes) {
  if (o->persistent != x->persistent || o->stays != x->stays ||
      o->bytes + bytes > most_bytes (g, x))
    return false;
  pattern_merge (&g->clock, &o->used, x->tensor, x->stays, &g->trial);
  return is_close (g, x->stays, more (own->rest_ns, o->most_rest_ns),
                   less (own->life_ns, o->least_life_ns)) &&
         (x->persistent ||
          (has_room (g, &o->used, o->bytes, x->stays) && has_room (g, own, bytes, x->stays)));
}

/* The open group that x joins, or -1: the newest; of what stays and dies that whose last granule is
   then fullest, unless its own or the group's is full already. */
static int32_t choose_open (grouping *g, const small *x, const pattern *own, int64_t bytes) {
  bool by_tail = x->stays && !x->persistent;
  int64_t full = g->granule_bytes / tuned (g->rule->tuning, TUNE_group_tail_part),
          least = INT64_MAX;
  int32_t best = -1;
  if (by_tail && tail_of (g, bytes) <= full)
    return -1;
  for (int32_t i = g->n_open - 1; i >= 0 && least > 0; i--) {
    const open_group *o = &g->open[i];
    int64_t tail = by_tail ? tail_of (g, o->bytes + bytes) : 0;
    if (tail < least && (!by_tail || tail_of (g, o->bytes) > full) &&
        may_join (g, o, x, own, bytes)) {
      best = i;
      least = tail;
    }
  }
  return best;
}

static bool keep_ops (const grouping *g, arena *a, pattern *out, error *err) {
  *out = g->trial;
  out->ops = NEW (a, g->trial.count, int32_t, err);
  if (out->ops)
    memcpy (out->ops, g->trial.ops, (size_t)g->trial.count * sizeof (int32_t));
  return out->ops;
}

/* Puts one tensor into a group, which may be a new one. */
static bool put (grouping *g, int32_t i, arena *a, error *err) {
  const small *x = &g->all[i];
  int64_t bytes = unit_member_bytes (g->trace->tensors[x->tensor].bytes);
  pattern own;
  pattern_merge (&g->clock, NULL, x->tensor, x->stays, &g->trial);
  if (!keep_ops (g, a, &own, err))
    return false;
  int32_t at = choose_open (g, x, &own, bytes);
  if (at < 0) {
    if (g->n_open == MOST_OPEN) /* the oldest is closed */
      memmove (g->open, g->open + 1, (size_t)--g->n_open * sizeof *g->open);
    g->open[g->n_open++] = (open_group){ .used = own,
                                         .most_rest_ns = own.rest_ns,
                                         .least_life_ns = own.life_ns,
                                         .bytes = bytes,
                                         .number = g->made,
                                         .persistent = x->persistent,
                                         .stays = x->stays };
    g->group_of[i] = g->made++;
    return true;
  }
  open_group *o = &g->open[at];
  pattern_merge (&g->clock, &o->used, x->tensor, x->stays, &g->trial);
  if (!x->persistent) {
    live_longer (g, &o->used, o->bytes);
    live_longer (g, &own, bytes);
  }
  o->most_rest_ns = more (own.rest_ns, o->most_rest_ns);
  o->least_life_ns = less (own.life_ns, o->least_life_ns);
  o->bytes += bytes;
  g->group_of[i] = o->number;
  return keep_ops (g, a, &o->used, err);
}

/* Groups by this rule the tensors that are alone yet.  Groups of one member, and those that fill
   too little, are none. */
static bool gather (grouping *g, const group_rule *rule, arena *a, error *err) {
  int32_t first = g->made;
  g->rule = rule;
  g->n_open = 0;
  for (int32_t i = 0; i < g->count; i++)
    if (g->group_of[i] == ALONE && is_small (g, &g->all[i]) && !put (g, i, a, err))
      return false;
  int32_t *members = NEW (a, g->made - first, int32_t, err);
  int64_t *bytes = NEW (a, g->made - first, int64_t, err);
  if (!members || !bytes)
    return false;
  for (int32_t i = 0; i < g->count; i++)
    if (g->group_of[i] >= first) {
      members[g->group_of[i] - first]++;
      bytes[g->group_of[i] - first] +=
          unit_member_bytes (g->trace->tensors[g->all[i].tensor].bytes);
    }
  for (int32_t i = 0; i < g->count; i++) {
    int32_t k = g->group_of[i] - first;
    if (k < 0)
      continue;
    int64_t room = units_div_up (bytes[k], g->granule_bytes) * g->granule_bytes;
    if (members[k] < MEMBERS_LEAST || bytes[k] < units_scale (room, rule->fill_ppm, 1000000))
      g->group_of[i] = ALONE;
  }
  return true;
}

/* In the order in which they were begun. */
static bool write_groups (const grouping *g, arena *a, index_list **groups, int32_t *count,
                          error *err) {
  index_list *rows = NEW (a, g->made, index_list, err);
  if (!rows)
    return false;
  for (int32_t i = 0; i < g->count; i++)
    if (g->group_of[i] != ALONE)
      rows[g->group_of[i]].count++;
  for (int32_t k = 0; k < g->made; k++) {
    if (rows[k].count && !(rows[k].at = NEW (a, rows[k].count, int32_t, err)))
      return false;
    rows[k].count = 0;
  }
  for (int32_t i = 0; i < g->count; i++)
    if (g->group_of[i] != ALONE) {
      index_list *row = &rows[g->group_of[i]];
      row->at[row->count++] = g->all[i].tensor;
    }
  *count = 0;
  for (int32_t k = 0; k < g->made; k++)
    if (rows[k].at)
      rows[(*count)++] = rows[k];
  *groups = rows;
  return true;
}

bool group_tensors (const trace *t, int64_t granule_bytes, const group_rule *rule, arena *a,
                    index_list **groups, int32_t *count, error *err) {
  assert (granule_bytes > 0 && rule->keep > 0);
  assert (!rule->share || rule->singles);
  *count = 0;
  arena *scratch = arena_made (err);
  if (!scratch)
    return false;
  grouping *g = NEW (scratch, 1, grouping, err);
  bool ok = g != NULL;
  if (ok) {
    group_rule small = { .most_bytes = granule_bytes,
                         .keep = (int32_t)tuned (rule->tuning, TUNE_group_left_keep),
                         .keep_life = rule->keep_life,
                         .tuning = rule->tuning };
    *g = (grouping){ .trace = t, .rule = rule, .granule_bytes = granule_bytes };
    ok = find_small (g, scratch, err) && count_alive (g, scratch, err) &&
         gather (g, rule, scratch, err) &&
         (rule->most_bytes <= granule_bytes || gather (g, &small, scratch, err)) &&
         write_groups (g, a, groups, count, err);
  }
  arena_free (scratch);
  return ok;
}

bool group_choose (const trace *t, int64_t granule_bytes, const tuning *by, arena *a,
                   index_list **groups, int32_t *count, int64_t *pool_below_bytes, error *err) {
  assert (granule_bytes > 0 && groups && count);
  int64_t plain_bytes, plain_pool, grouped_bytes, grouped_pool;
  group_rule rule = { .most_bytes = granule_bytes,
                      .keep = (int32_t)tuned (by, TUNE_group_small_keep),
                      .tuning = by };
  if (!group_tensors (t, granule_bytes, &rule, a, groups, count, err) ||
      !schedule_pool (t, NULL, 0, granule_bytes, a, &plain_pool, &plain_bytes, err) ||
      !schedule_pool (t, *groups, *count, granule_bytes, a, &grouped_pool, &grouped_bytes, err))
    return false;
  bool better = *count > 0 && grouped_bytes < plain_bytes;
  if (!better)
    *count = 0;
  *pool_below_bytes = better ? grouped_pool : plain_pool;
  return true;
}
