#include "tests/every_cut.h"

#include <string.h>

#include "base/random.h"
#include "tests/ref_rewrite.h"
#include "trace/build.h"

enum {
  GRANULE = 512,
  OPS = 8,
  UNITS = 6,
  MOST_IDLE = 6,
  MOST_ENTRIES = 40,
  FEW_ENTRIES = 6,
  LIST = 2
};

/* ---- the trace ---- */

/* One nanosecond carries 64 bytes / step, so that any multiple of 64 bytes ends with one. */
static int64_t rate_of (random_state *r) {
  static const int64_t steps[] = { 125, 250, 500, 800 };
  return 64000000000 / steps[random_between (r, 0, 3)];
}

static void add_tensors (trace_builder *b, random_state *r, int32_t count) {
  for (int32_t x = 0; x < count; x++) {
    bool weight = random_chance (r, 250000);
    int64_t bytes = GRANULE * random_between (r, 1, 2);
    int32_t i = build_tensor (b, "t", bytes, weight ? TENSOR_PARAMETER : TENSOR_ACTIVATION);
    build_tensor_at (b, i)->split = !weight && random_chance (r, 800000);
  }
}

static void add_ops (trace_builder *b, random_state *r, int32_t n_ops, int32_t n_tensors) {
  for (int32_t k = 0; k < n_ops; k++) {
    build_op (b, "op", OP_FORWARD, random_between (r, 1, 6) * 500);
    build_op_at (b, k)->parts = random_chance (r, 750000) ? 2 : 1;
    build_op_at (b, k)->workspace_bytes = random_chance (r, 150000) ? GRANULE : 0;
    for (int32_t x = 0; x < n_tensors; x++) {
      bool first = k == x % n_ops, twice = first || k == n_ops - 1 - x % 2;
      if (!twice && !random_chance (r, 200000))
        continue;
      if ((first && !build_tensor_at (b, x)->persistent) || random_chance (r, 250000))
        build_write (b, x);
      else
        build_read (b, x);
    }
  }
}

static bool names (const index_list *list, int32_t x) {
  for (int32_t i = 0; i < list->count; i++)
    if (list->at[i] == x)
      return true;
  return false;
}

static bool touches (const op *o, int32_t x) {
  return names (&o->reads, x) || names (&o->writes, x);
}

/* Granules at the fullest op with all there. */
static int64_t peak_of (const trace *t) {
  int64_t peak = 0;
  for (int32_t k = 0; k < t->n_ops; k++) {
    int64_t all = (t->ops[k].workspace_bytes + GRANULE - 1) / GRANULE;
    for (int32_t x = 0; x < t->n_tensors; x++) {
      bool before = t->tensors[x].persistent, behind = before;
      for (int32_t i = 0; i < t->n_ops; i++) {
        before |= touches (&t->ops[i], x) && i <= k;
        behind |= touches (&t->ops[i], x) && i >= k;
      }
      all += before && behind ? (t->tensors[x].bytes + GRANULE - 1) / GRANULE : 0;
    }
    peak = all > peak ? all : peak;
  }
  return peak;
}

bool cut_case_make (uint64_t seed, arena *a, tiny_case *out, error *err) {
  random_state r = random_seed (seed * 0x9e3779b97f4a7c15u + 29);
  int32_t n_tensors = (int32_t)random_between (&r, 2, 3);
  trace_builder *b = build_new (a, "tiny", 2, err);
  if (!b)
    return false;
  add_tensors (b, &r, n_tensors);
  add_ops (b, &r, (int32_t)random_between (&r, 3, 4), n_tensors);
  *out = (tiny_case){ .trace = build_finish (b, err) };
  if (!out->trace)
    return false;
  out->device = (device){ .name = "tiny",
                          .memory_bytes = (int64_t)1 << 40,
                          .host_bytes = (int64_t)1 << 40,
                          .granule_bytes = GRANULE,
                          .section_ns = random_between (&r, 0, 4) * 100,
                          .share_ppm = 1000000 };
  device_link *l = &out->device.link;
  l->d2h_bytes_per_s = rate_of (&r);
  l->h2d_bytes_per_s = random_chance (&r, 500000) ? l->d2h_bytes_per_s : rate_of (&r);
  l->both_bytes_per_s = l->d2h_bytes_per_s + l->h2d_bytes_per_s;
  int64_t peak = peak_of (out->trace);
  if (peak < 3)
    return false;
  out->budget_bytes = random_between (&r, peak > 4 ? peak - 3 : 2, peak - 1) * GRANULE;
  return true;
}

/* ---- one way to rewrite it ---- */

typedef struct trying {
  const tiny_case *c;
  bool level_only, drops;
  arena *arena;
  every_cut *out;
  error *err;
} trying;

/* The rewritten trace without tensors that are nothing, as best_search wants it. False: too much
   for it. */
static bool compact (trying *w, const trace *t, tiny_case *to) {
  int32_t kept = 0, idle = 0;
  trace *made = NEW (w->arena, 1, trace, w->err);
  int32_t *at = NEW (w->arena, t->n_tensors, int32_t, w->err);
  tensor *tensors = NEW (w->arena, t->n_tensors, tensor, w->err);
  op *ops = NEW (w->arena, t->n_ops, op, w->err);
  if (!made || !at || !tensors || !ops)
    return false;
  for (int32_t x = 0; x < t->n_tensors; x++) {
    int32_t uses = 0;
    for (int32_t k = 0; k < t->n_ops; k++)
      uses += touches (&t->ops[k], x);
    if (!uses)
      continue;
    at[x] = kept;
    tensors[kept++] = t->tensors[x];
    idle += (uses - !t->tensors[x].persistent) *
            (int32_t)((t->tensors[x].bytes + GRANULE - 1) / GRANULE);
  }
  for (int32_t k = 0; k < t->n_ops; k++) {
    ops[k] = t->ops[k];
    index_list *lists[] = { &ops[k].reads, &ops[k].writes };
    for (int which = 0; which < 2; which++) {
      int32_t *copy = NEW (w->arena, lists[which]->count, int32_t, w->err);
      if (!copy)
        return false;
      for (int32_t i = 0; i < lists[which]->count; i++)
        copy[i] = at[lists[which]->at[i]];
      lists[which]->at = copy;
    }
  }
  *made = *t;
  made->tensors = tensors;
  made->ops = ops;
  made->n_tensors = kept;
  *to = *w->c;
  to->trace = made;
  return t->n_ops <= OPS && kept <= UNITS && idle <= MOST_IDLE;
}

static bool judge (trying *w, const section *s, int32_t n_s, const recompute *r, int32_t n_r) {
  rewritten made;
  tiny_case c;
  best_plan best;
  error refused = { 0 };
  if (!ref_rewrite (w->c->trace, s, n_s, r, n_r, w->c->device.section_ns, w->arena, &made,
                    &refused))
    return refused.code == ERR_infeasible || error_set (w->err, refused.code, "%s", refused.text);
  w->out->made++;
  if (trace_total_ns (made.trace) >= w->out->least_ns)
    return true;
  if (!compact (w, made.trace, &c)) {
    w->out->complete = false;
    return w->err->code == ERR_none;
  }
  if (!best_search (&c, w->out->least_ns, w->arena, &best, w->err))
    return false;
  w->out->complete &= best.complete;
  if (best.counted_ns < w->out->least_ns) {
    w->out->least_ns = best.counted_ns;
    w->out->in_parts = n_s > 0;
    w->out->again = n_r > 0;
  }
  return true;
}

/* ---- all ways ---- */

typedef struct entry {
  recompute r;
  int32_t ops[LIST], replaces[1];
} entry;

/* One op, or one and another before it, run again for one tensor before any op: whether that is
   sound the rewriting says. */
static int32_t entries_of (const trace *t, entry *to) {
  int32_t n = 0;
  for (int32_t before = 2; before < t->n_ops; before++)
    for (int32_t x = 0; x < t->n_tensors; x++)
      for (int32_t k = 0; k < before; k++)
        for (int32_t other = -1; other < k; other++) {
          if (t->tensors[x].persistent || !touches (&t->ops[before], x) ||
              !names (&t->ops[k].writes, x) || n == MOST_ENTRIES)
            continue;
          entry *e = &to[n++];
          int32_t count = 0;
          if (other >= 0)
            e->ops[count++] = other;
          e->ops[count++] = k;
          e->replaces[0] = x;
          e->r = (recompute){ .before = before,
                              .ops = { e->ops, count },
                              .replaces = { e->replaces, 1 } };
        }
  return n;
}

static bool choose_drops (trying *w, const section *s, int32_t n_s) {
  rewritten cut;
  entry at[MOST_ENTRIES];
  if (!ref_rewrite (w->c->trace, s, n_s, NULL, 0, w->c->device.section_ns, w->arena, &cut, w->err))
    return false;
  int32_t n = entries_of (cut.trace, at);
  for (int32_t i = 0; i < n; i++)
    for (int32_t j = i; j < (n > FEW_ENTRIES ? i + 1 : n); j++) {
      recompute two[] = { at[i].r, at[j].r };
      arena_mark here = arena_here (w->arena);
      if (!judge (w, s, n_s, two, i == j ? 1 : 2))
        return false;
      arena_back (w->arena, here);
    }
  return true;
}

static bool choose_cut (trying *w, section *s, int32_t n_s, int32_t k) {
  int32_t n = w->c->trace->n_ops;
  if (k == n) {
    rewritten cut;
    error refused = { 0 };
    if (!ref_rewrite (w->c->trace, s, n_s, NULL, 0, w->c->device.section_ns, w->arena, &cut,
                      &refused))
      return refused.code == ERR_infeasible || error_set (w->err, refused.code, "%s", refused.text);
    w->out->cuts++;
    return judge (w, s, n_s, NULL, 0) && (!w->drops || choose_drops (w, s, n_s));
  }
  if (!choose_cut (w, s, n_s, k + 1))
    return false;
  for (int32_t end = k + 1; end <= n; end++) {
    if (end > k + 1 && w->level_only)
      break;
    s[n_s] = (section){ k, end, 2, end > k + 1 ? SECTION_DEPTH : SECTION_LEVEL };
    if (!choose_cut (w, s, n_s + 1, end))
      return false;
  }
  return true;
}

bool every_cut_search (const tiny_case *c, bool level_only, bool drops, int64_t below_ns,
                       every_cut *out, error *err) {
  section s[OPS];
  trying w = { .c = c, .level_only = level_only, .drops = drops, .out = out, .err = err };
  *out = (every_cut){ .least_ns = below_ns, .complete = true };
  w.arena = arena_new (0);
  bool ok = w.arena ? choose_cut (&w, s, 0, 0) : error_set (err, ERR_memory, "out of memory");
  arena_free (w.arena);
  return ok;
}
