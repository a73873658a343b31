/* A group lives from its first member's birth to its last member's death and rests only while all
   of its members rest, so a member is taken only where it costs little of either.  Tensors come in
   order of the op that lets them rest; each goes to the newest open group that it fits. */
#include "solver/group.h"

#include <stdlib.h>
#include <string.h>

#include "solver/schedule.h"
#include "trace/unit.h"

enum { MEMBERS_LEAST = 2, MOST_OPEN = 32, REST_KEPT = 3, REST_OF = 4, LIFE_MORE = 5, LIFE_OF = 4 };

typedef struct small {
  int32_t tensor, first, last;
  int32_t after, before; /* of its longest rest */
} small;

static int by_rest (const void *a, const void *b) {
  const small *x = a, *y = b;
  if (x->after != y->after)
    return x->after < y->after ? -1 : 1;
  if (x->before != y->before)
    return x->before > y->before ? -1 : 1;
  return x->tensor < y->tensor ? -1 : x->tensor > y->tensor;
}

typedef struct open_group {
  small common; /* what all members have in common, and the span of all of them */
  int64_t bytes;
  int32_t number;
} open_group;

/* start_ns[k]: when op k starts if nothing stalls; n_ops + 1 entries. */
static void longest_rest (const uses *u, const int64_t *start_ns, small *x) {
  int64_t longest = -1;
  for (int32_t i = u->offset[x->tensor]; i + 1 < u->offset[x->tensor + 1]; i++) {
    int32_t after = u->at[i].op, before = u->at[i + 1].op;
    if (start_ns[before] - start_ns[after + 1] > longest) {
      longest = start_ns[before] - start_ns[after + 1];
      x->after = after;
      x->before = before;
    }
  }
  if (longest < 0) /* one use only: it never rests */
    x->after = x->before = x->first;
}

static int64_t between (const int64_t *start_ns, int32_t from, int32_t to) {
  return from < to ? start_ns[to] - start_ns[from] : 0;
}

/* Whether the group `g` may take x: `g` is what all members have in common so far, and their span.
 */
static bool goes_with (const small *g, const small *x, const int64_t *start_ns) {
  int32_t after = x->after > g->after ? x->after : g->after;
  int32_t before = x->before < g->before ? x->before : g->before;
  int32_t first = x->first < g->first ? x->first : g->first;
  int32_t last = x->last > g->last ? x->last : g->last;
  int64_t rest = between (start_ns, after + 1, before);
  int64_t life = between (start_ns, first, last + 1);
  int64_t rest_x = between (start_ns, x->after + 1, x->before);
  int64_t rest_g = between (start_ns, g->after + 1, g->before);
  int64_t life_x = between (start_ns, x->first, x->last + 1);
  int64_t life_g = between (start_ns, g->first, g->last + 1);
  return REST_OF * rest >= REST_KEPT * rest_x && REST_OF * rest >= REST_KEPT * rest_g &&
         LIFE_OF * life <= LIFE_MORE * life_x && LIFE_OF * life <= LIFE_MORE * life_g;
}

static void join (small *g, const small *x) {
  g->after = x->after > g->after ? x->after : g->after;
  g->before = x->before < g->before ? x->before : g->before;
  g->first = x->first < g->first ? x->first : g->first;
  g->last = x->last > g->last ? x->last : g->last;
}

static bool find_small (const trace *t, int64_t granule_bytes, arena *a, small **out,
                        int32_t *count, int64_t **start_ns, error *err) {
  uses u;
  *out = NEW (a, t->n_tensors, small, err);
  *start_ns = NEW (a, (int64_t)t->n_ops + 1, int64_t, err);
  if (!*out || !*start_ns || !uses_of (t, a, &u, err))
    return false;
  for (int32_t k = 0; k < t->n_ops; k++)
    (*start_ns)[k + 1] = (*start_ns)[k] + t->ops[k].gap_ns + t->ops[k].ns;
  *count = 0;
  for (int32_t i = 0; i < t->n_tensors; i++) {
    const tensor *x = &t->tensors[i];
    if (x->persistent || x->pinned || uses_count (&u, i) == 0 ||
        unit_member_bytes (x->bytes) >= granule_bytes / 2)
      continue;
    small *s = &(*out)[(*count)++];
    *s = (small){ .tensor = i, .first = uses_first (&u, i), .last = uses_last (&u, i) };
    longest_rest (&u, *start_ns, s);
  }
  qsort (*out, (size_t)*count, sizeof **out, by_rest);
  return true;
}

/* Groups of one member are none; the others keep the order in which they were begun. */
static bool write_groups (const small *all, const int32_t *group_of, int32_t n, int32_t made,
                          arena *a, index_list **groups, int32_t *count, error *err) {
  index_list *rows = NEW (a, made, index_list, err);
  if (!rows)
    return false;
  for (int32_t i = 0; i < n; i++)
    rows[group_of[i]].count++;
  for (int32_t g = 0; g < made; g++) {
    rows[g].at = rows[g].count >= MEMBERS_LEAST ? NEW (a, rows[g].count, int32_t, err) : NULL;
    if (rows[g].count >= MEMBERS_LEAST && !rows[g].at)
      return false;
    rows[g].count = 0;
  }
  for (int32_t i = 0; i < n; i++)
    if (rows[group_of[i]].at)
      rows[group_of[i]].at[rows[group_of[i]].count++] = all[i].tensor;
  *count = 0;
  for (int32_t g = 0; g < made; g++)
    if (rows[g].at)
      rows[(*count)++] = rows[g];
  *groups = rows;
  return true;
}

bool group_small (const trace *t, int64_t granule_bytes, arena *a, index_list **groups,
                  int32_t *count, error *err) {
  small *all;
  int64_t *start_ns;
  int32_t n;
  *count = 0;
  arena *scratch = arena_new (0);
  if (!scratch)
    return error_set (err, ERR_memory, "out of memory");
  bool ok = find_small (t, granule_bytes, scratch, &all, &n, &start_ns, err);
  open_group *open = ok ? NEW (scratch, MOST_OPEN, open_group, err) : NULL;
  int32_t *group_of = ok ? NEW (scratch, n, int32_t, err) : NULL;
  int32_t n_open = 0, made = 0;
  ok = open && group_of;
  for (int32_t i = 0; ok && i < n; i++) {
    int64_t bytes = unit_member_bytes (t->tensors[all[i].tensor].bytes);
    int32_t at = n_open - 1;
    while (at >= 0 && (open[at].bytes + bytes > granule_bytes ||
                       !goes_with (&open[at].common, &all[i], start_ns)))
      at--;
    if (at < 0) {
      if (n_open == MOST_OPEN) /* the oldest is closed */
        memmove (open, open + 1, (size_t)--n_open * sizeof *open);
      at = n_open++;
      open[at] = (open_group){ .common = all[i], .number = made++ };
    } else
      join (&open[at].common, &all[i]);
    open[at].bytes += bytes;
    group_of[i] = open[at].number;
  }
  ok = ok && write_groups (all, group_of, n, made, a, groups, count, err);
  arena_free (scratch);
  return ok;
}

bool group_choose (const trace *t, int64_t granule_bytes, arena *a, index_list **groups,
                   int32_t *count, int64_t *pool_below_bytes, error *err) {
  int64_t plain_bytes, plain_pool, grouped_bytes, grouped_pool;
  if (!group_small (t, granule_bytes, a, groups, count, err) ||
      !schedule_pool (t, NULL, 0, granule_bytes, a, &plain_pool, &plain_bytes, err) ||
      !schedule_pool (t, *groups, *count, granule_bytes, a, &grouped_pool, &grouped_bytes, err))
    return false;
  bool better = *count > 0 && grouped_bytes < plain_bytes;
  if (!better)
    *count = 0;
  *pool_below_bytes = better ? grouped_pool : plain_pool;
  return true;
}
