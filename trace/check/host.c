/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The host arena: where each copy lies, and who takes over whose bytes. */
#include "trace/check/inner.h"
#include "trace/check/line.h"

static bool in_arena (checker *c, int32_t i) {
  const move *x = &c->p->moves[i];
  int64_t bytes = check_part_bytes (c, x);
  if (x->host_offset < 0 || x->host_offset % 512)
    return check_breaks (c, RULE_host_offset, "moves", i, "host_offset",
                         "%lld is not a multiple of 512", (long long)x->host_offset);
  __int128 end = ((__int128)x->host_offset + bytes + 511) / 512 * 512;
  if (end > c->p->host_bytes - c->resting_bytes)
    return check_breaks (c, RULE_host_arena, "moves", i, "host_offset",
                         "a copy of %lld bytes at %lld, rounded up to 512, ends behind the host's "
                         "%lld%s",
                         (long long)bytes, (long long)x->host_offset,
                         (long long)(c->p->host_bytes - c->resting_bytes),
                         c->resting_bytes ? " that resting tensors leave" : "");
  return true;
}

/* For each copy, the move that reads it last. In order of time from the copy's out on, cyclically,
   the last of those that have it as their source. */
static bool find_last_ins (checker *c) {
  int32_t n = c->p->n_moves;
  if (!ALLOC (c->a, c->last_in, n, c->err) || !ALLOC (c->a, c->last_in_steps, n, c->err))
    return false;
  for (int32_t i = 0; i < n; i++)
    c->last_in[i] = i;
  for (int round = 0; round < 2; round++) /* those after the out in the list, then those before */
    for (int32_t r = 0; r < n; r++) {
      int32_t i = c->by_part[r], source = c->source[i];
      if (source >= 0 && source != i && (c->rank[source] > r) == (round == 1))
        c->last_in[source] = i;
    }
  for (int32_t i = 0; i < n; i++) {
    const move *last = &c->p->moves[c->last_in[i]];
    bool later = last->out_after < c->p->moves[i].out_after;
    c->last_in_steps[i] = later + check_wraps (last);
  }
  return true;
}

typedef struct taking {
  checker *c;
  int32_t move;
  bool *taken; /* moves, in this round */
  bool recording;
} taking;

static bool met_copy (void *context, int32_t former) {
  taking *x = context;
  checker *c = x->c;
  if (c->source[former] < 0)
    return check_breaks (c, RULE_host_held, "moves", x->move, "host_offset",
                         "it shares host bytes with move %d, whose bytes exist from the start and "
                         "are never given up",
                         former);
  return !x->recording || check_hand_over (c, &c->host, former, x->move, x->taken[former]);
}

static bool take_bytes (taking *x, line *l, int32_t i) {
  const move *y = &x->c->p->moves[i];
  x->move = i;
  return line_take (l, y->host_offset, y->host_offset + check_part_bytes (x->c, y), i, met_copy, x);
}

static bool take_host (checker *c, line *l) {
  taking x = { .c = c };
  for (int32_t r = 0; r < c->p->n_moves; r++)
    if (c->source[c->by_part[r]] < 0 && c->begins[r] == r && !take_bytes (&x, l, c->by_part[r]))
      return false;
  for (int round = 0; round < 2; round++) {
    x.recording = round == 1;
    if (!(x.taken = NEW (c->a, c->p->n_moves, bool, c->err)))
      return false;
    for (int32_t i = 0; i < c->p->n_outs; i++) {
      if (!take_bytes (&x, l, c->p->out_order[i]))
        return false;
      x.taken[c->p->out_order[i]] = true;
    }
  }
  return true;
}

static bool rests (checker *c, bool *taken, int32_t i) {
  int32_t x = c->p->resting[i], n = c->original->n_tensors;
  if (x < 0 || x >= n)
    return check_breaks (c, RULE_resting, "resting", i, NULL, "tensor %d is not in 0 to %d", x,
                         n - 1);
  const tensor *y = &c->original->tensors[x];
  if (taken[x] || !y->persistent || y->pinned)
    return check_breaks (c, RULE_resting, "resting", i, NULL, "tensor %d %s", x,
                         !y->persistent ? "does not live from step to step"
                         : y->pinned    ? "is pinned"
                                        : "is used by an op, or stands here twice");
  taken[x] = true;
  c->resting_bytes += check_rounded (y->bytes, 512);
  return c->resting_bytes <= c->p->host_bytes ||
         check_breaks (c, RULE_host_arena, "resting", i, NULL,
                       "the first %d take %lld bytes of the host's %lld", i + 1,
                       (long long)c->resting_bytes, (long long)c->p->host_bytes);
}

bool check_resting (checker *c) {
  if (!c->p->n_resting)
    return true;
  bool *taken = check_used (c, c->original);
  if (!taken)
    return false;
  for (int32_t i = 0; i < c->p->n_resting; i++)
    if (!rests (c, taken, i))
      return false;
  return true;
}

bool check_host (checker *c) {
  int32_t n = c->p->n_moves;
  for (int32_t i = 0; i < n; i++)
    if (!in_arena (c, i))
      return false;
  line_bounds bounds = { 0 };
  if (!find_last_ins (c))
    return false;
  for (int32_t i = 0; i < n; i++) {
    const move *x = &c->p->moves[i];
    if (!line_bound (&bounds, c->a, x->host_offset, x->host_offset + check_part_bytes (c, x),
                     c->err))
      return false;
  }
  line *l = line_new (c->a, &bounds, c->err);
  return l && take_host (c, l);
}
