/* The sum is taken unit by unit and slot by slot from closed formulas: there is no matrix here.
   Letters as in docs/proof.md: an amount's price is what the duals charge for one grain of it. */
#include "trace/prove.h"

#include <assert.h>
#include <string.h>

#include "base/units.h"
#include "trace/prove_drops.h"
#include "trace/prove_proof.h"
#include "trace/unit.h"

typedef __int128 wide;

#define ONE ((int64_t)1 << PROOF_COEF_BITS)
enum { VALUE_BITS = PROOF_COEF_BITS + PROOF_DUAL_BITS };

typedef struct prover {
  const trace *t;
  const plan *p;
  proof proof;
  const uint8_t *loose; /* per op, or NULL: see trace/loosen.h */
  units u;
  arena *a;
  int64_t granule_bytes, room_bytes;
  int64_t *excess;      /* per op: resident over what there is, if nothing leaves */
  int64_t *slack_bytes; /* per op: of what could leave, what is only rounding */
  int32_t *tight;       /* ops over memory among the first k */
  int32_t *slot_of;
  link_rates rates;
  int64_t ratio, in_in_out, out_in_in;
  bool shared, limited; /* the proof leans on the host's limit */
  int64_t weight_out[PROOF_CLASSES], weight_in[PROOF_CLASSES], weight_host[PROOF_CLASSES];
  int64_t *open, *released, *due_first; /* c * slots + j */
  again again;
  wide value;
  bool overflow;
} prover;

/* One idle time of a unit. */
typedef struct pause {
  int32_t release, due; /* ops */
  bool wraps, linked, matters, tight, dropped;
  bool within; /* released inside a loose run: its slot begins before the use does */
  bool late;   /* with drops: due only at the last op */
  bool again;  /* it can be given up and made again */
  wide price;  /* of that */
} pause;

static void take (prover *v, wide price, int64_t amount) {
  wide x;
  v->overflow |= __builtin_mul_overflow (price, (wide)amount, &x) ||
                 __builtin_add_overflow (v->value, x, &v->value);
}

static int64_t down (const prover *v, int64_t bytes) {
  wide x =
      v->proof.shift < 0 ? bytes >> -v->proof.shift : (wide)bytes * ((wide)1 << v->proof.shift);
  wide most = INT64_MAX / 4;
  return (int64_t)(x > most ? most : x < -most ? -most : x);
}

static int64_t up (const prover *v, int64_t bytes) {
  return -down (v, -bytes);
}

/* Grains that an engine carries in a time, rounded up. */
static int64_t carried (const prover *v, int64_t ns, int64_t rate) {
  unsigned __int128 x = (unsigned __int128)ns * (unsigned __int128)rate, e9 = 1000000000;
  if (v->proof.shift < 0)
    e9 <<= -v->proof.shift;
  else
    x <<= v->proof.shift;
  x = (x + e9 - 1) / e9;
  return x > INT64_MAX / 4 ? INT64_MAX / 4 : (int64_t)x;
}

/* ---- memory ---- */

static int64_t room_of (const prover *v, int32_t unit) {
  return v->u.at[unit].granules * v->granule_bytes;
}

static bool resident (prover *v, error *err) {
  int32_t n = v->t->n_ops;
  int64_t total = 0, pool = units_div_up (v->u.pool_bytes, v->granule_bytes) * v->granule_bytes;
  v->excess = NEW (v->a, (int64_t)n + 1, int64_t, err);
  v->slack_bytes = NEW (v->a, (int64_t)n + 1, int64_t, err);
  v->tight = NEW (v->a, (int64_t)n + 1, int32_t, err);
  if (!v->excess || !v->slack_bytes || !v->tight)
    return false;
  v->room_bytes = v->p->budget_bytes / v->granule_bytes * v->granule_bytes - pool;
  for (int32_t i = 0; i < v->u.count; i++) {
    const unit_info *x = &v->u.at[i];
    if (x->bytes > (INT64_MAX / 8 - total))
      return error_set (err, ERR_input, "the tensors of this trace add up to more than 2^60 bytes");
    total += x->bytes;
    bool untouched = x->first == NO_OP;
    /* a unit that no op touches may be away at any op: it proves nothing, and is left out */
    if (!x->bytes || (untouched && !x->pinned))
      continue;
    int32_t from = x->persistent ? 0 : x->first, to = x->persistent ? n : x->last + 1;
    v->excess[from] += room_of (v, i);
    v->excess[to] -= room_of (v, i);
  }
  for (int32_t k = 1; k < n; k++)
    v->excess[k] += v->excess[k - 1];
  for (int32_t k = 0; k < n; k++) {
    v->excess[k] +=
        units_div_up (v->t->ops[k].workspace_bytes, v->granule_bytes) * v->granule_bytes -
        v->room_bytes;
    if (v->loose && v->loose[k])
      v->excess[k] = 0;
    v->tight[k + 1] = v->tight[k] + (v->excess[k] > 0);
  }
  return true;
}

/* The pauses of one unit in the order in which a copy made in one may serve the next: from a write
   on. Returns how many; *circle where no use writes. */
static int32_t pauses_of (const prover *v, int32_t unit, pause *to, bool *circle) {
  const unit_info *x = &v->u.at[unit];
  const use *uses = v->u.uses + v->u.use_offset[unit];
  int32_t m = v->u.use_offset[unit + 1] - v->u.use_offset[unit], n = v->t->n_ops;
  *circle = false;
  if (!x->bytes || x->pinned || m == 0)
    return 0;
  int32_t count = x->persistent ? m : m - 1, start = 0;
  if (x->persistent) {
    while (start < m && !uses[start].writes)
      start++;
    *circle = start == m;
    start = *circle ? 0 : start;
  }
  for (int32_t i = 0; i < count; i++) {
    int32_t from = (start + i) % m, a = uses[from].op, b = uses[(from + 1) % m].op;
    bool begins = !x->persistent && i == 0;
    to[i] = (pause){ .release = (a + 1) % n, .due = b };
    to[i].wraps = b < to[i].release;
    if (v->loose && v->loose[a]) {
      to[i].within = true;
      to[i].release = a;
      to[i].wraps = b <= a;
    }
    to[i].linked = !begins && !uses[from].writes;
    to[i].tight =
        b > a ? v->tight[b] > v->tight[a + 1] : v->tight[n] - v->tight[a + 1] + v->tight[b] > 0;
  }
  bool kept = v->proof.drops && count > 0 && again_ends_life (v->t, &v->u, unit, count - 1);
  if (kept)
    to[count - 1].late = true;
  bool later = false; /* a later pause along the links spans a tight op */
  for (int32_t round = 0; round < (*circle ? 2 : 1); round++)
    for (int32_t i = count - 1; i >= 0; i--) {
      to[i].matters = to[i].tight || later || kept;
      later = to[i].matters && to[i].linked;
    }
  return count;
}

/* Inside one slot no row sees a pause; what its copy could do, the next pause does as well where
   that one is released in the same slot. */
static void drop (const prover *v, pause *q, int32_t count, bool circle) {
  for (int32_t i = 0; i < count; i++) {
    int32_t slot = v->slot_of[q[i].release];
    q[i].dropped = !q[i].matters;
    if (q[i].wraps || q[i].late || slot != v->slot_of[q[i].due])
      continue;
    const pause *next = i + 1 < count ? &q[i + 1] : circle ? &q[0] : NULL;
    bool serves = next && next->linked && next->matters;
    q[i].dropped |= !serves || v->slot_of[next->release] == slot;
  }
}

/* ---- pieces ---- */

typedef struct part {
  int64_t room_bytes, out, in, host; /* weights x 2^24 */
} part;

static int64_t over (int64_t x, int64_t y) {
  return (int64_t)(((wide)x << PROOF_COEF_BITS) / y);
}

/* A unit as one part or as two, the last granule apart: see docs/proof.md. */
static int parts_of (const prover *v, int32_t unit, part to[2]) {
  int64_t room = room_of (v, unit), bytes = v->u.at[unit].bytes, g = v->granule_bytes;
  int64_t rounding = room - bytes;
  int64_t ns = v->shared || v->proof.any_units ? 0 : v->p->device.link.copy_ns;
  int64_t lost_out = (int64_t)((wide)ns * v->rates.out_alone / 1000000000);
  int64_t lost_in = (int64_t)((wide)ns * v->rates.in_alone / 1000000000);
  bool whole = room == g || rounding == 0;
  if (whole || (rounding <= lost_out && rounding <= lost_in)) {
    to[0] = (part){ room, over (bytes + lost_out, room), over (bytes + lost_in, room),
                    whole ? over (bytes, room) : over (g - rounding, g) };
    return 1;
  }
  int64_t full = room - g, last = over (g - rounding, g);
  to[0] = (part){ full, over (full + lost_out, full), over (full + lost_in, full), ONE };
  to[1] = (part){ g, last, last, last };
  return 2;
}

static int class_of (const prover *v, const part *x) {
  int c = v->proof.classes - 1;
  while (c >= 0 && v->proof.class_from[c] > x->out)
    c--;
  return c;
}

static int64_t smaller (int64_t a, int64_t b) {
  return a < b ? a : b;
}

static int32_t due_slot (const prover *v, const pause *q) {
  return v->slot_of[q->late ? v->t->n_ops - 1 : q->due];
}

/* Due at the slot's first op, so back before it starts. */
static bool due_first (const prover *v, const pause *q) {
  int32_t op = q->late ? v->t->n_ops - 1 : q->due;
  return v->proof.first[due_slot (v, q)] == op && !(v->loose && v->loose[op]);
}

/* Whether a copy that is made in the i-th pause may serve a later one. */
static bool serves (const pause *q, int32_t count, int32_t i) {
  for (int32_t k = i + 1; k < count && q[k].linked; k++)
    if (!q[k].dropped)
      return true;
  return false;
}

/* away: as what at once; what is made again can be carried besides. */
static void count_pause (prover *v, const pause *q, int class, int64_t room, int away) {
  int32_t S = v->proof.slots, due = due_slot (v, q);
  int64_t *open = v->open + (int64_t) class * S;
  int32_t release = v->slot_of[q->release];
  v->released[(int64_t) class * S + release] += room;
  if (due_first (v, q))
    v->due_first[(int64_t) class * S + due] += room;
  open[release] += away * room;
  open[due] -= away * room;
  if (q->wraps)
    open[0] += room;
}

/* First walk: what is open in each slot, and the least weights of each class. */
static bool count_units (prover *v, pause *q, error *err) {
  int64_t cells = (int64_t)v->proof.slots * v->proof.classes;
  v->open = NEW (v->a, cells, int64_t, err);
  v->released = NEW (v->a, cells, int64_t, err);
  v->due_first = NEW (v->a, cells, int64_t, err);
  if (!v->open || !v->released || !v->due_first)
    return false;
  for (int c = 0; c < PROOF_CLASSES; c++)
    v->weight_out[c] = v->weight_in[c] = v->weight_host[c] = INT64_MAX / 4;
  for (int32_t i = 0; i < v->u.count; i++) {
    bool circle, any = false;
    int32_t count = pauses_of (v, i, q, &circle);
    part x[2];
    for (int32_t k = 0; k < count; k++)
      any |= q[k].matters;
    if (!any)
      continue;
    drop (v, q, count, circle);
    for (int32_t k = 0; v->proof.drops && k < count; k++)
      q[k].again =
          !q[k].dropped && again_count (&v->again, i, k, v->slot_of[q[k].release],
                                        due_slot (v, &q[k]), v->slot_of[q[k].due] + q[k].late);
    for (int n = parts_of (v, i, x), s = 0; s < n; s++) {
      int c = class_of (v, &x[s]);
      if (c < 0)
        return error_set (err, ERR_input, "the proof has no class for unit %d", i);
      v->weight_out[c] = smaller (v->weight_out[c], x[s].out);
      v->weight_in[c] = smaller (v->weight_in[c], x[s].in);
      v->weight_host[c] = smaller (v->weight_host[c], x[s].host);
      for (int32_t k = 0; k < count; k++)
        if (!q[k].dropped && (q[k].again || v->proof.drops != PROOF_DROPS_only))
          count_pause (
              v, &q[k], c, up (v, x[s].room_bytes),
              1 + (v->proof.drops == PROOF_DROPS_allowed && q[k].again && serves (q, count, k)));
    }
  }
  for (int32_t c = 0; c < v->proof.classes; c++)
    for (int32_t j = 1; j < v->proof.slots; j++)
      v->open[(int64_t)c * v->proof.slots + j] += v->open[(int64_t)c * v->proof.slots + j - 1];
  return true;
}

/* ---- prices ---- */

static bool is_run (const prover *v, int32_t j) {
  int32_t first = v->proof.first[j];
  return v->proof.first[j + 1] - first > 1 || (v->loose && v->loose[first]);
}

/* A run has no level between its stall and its compute. */
static int64_t host_first (const prover *v, int c, int32_t j) {
  const int64_t *row = is_run (v, j) ? v->proof.host : v->proof.host_first;
  return row[(int64_t)c * v->proof.slots + j];
}

static wide price_back (const prover *v, const pause *q, int c) {
  int32_t due = due_slot (v, q);
  int64_t at = (int64_t)c * v->proof.slots + due;
  wide price = due_first (v, q) ? v->proof.early_first[at] : v->proof.early[at];
  return q->wraps ? price + v->proof.cycle[c] : price;
}

static wide price_by_copy (const prover *v, const pause *q, int c) {
  int64_t at = (int64_t)c * v->proof.slots + v->slot_of[q->release];
  return (price_back (v, q, c) - v->proof.pending[at]) * ONE;
}

static wide price_clean (const prover *v, const pause *q, int c) {
  int32_t S = v->proof.slots, slot = v->slot_of[q->release];
  wide price = (price_back (v, q, c) - host_first (v, c, slot)) * ONE;
  if (v->limited && v->proof.first[slot] == q->release && !q->within)
    price -= (wide)v->proof.host_limit[slot ? slot - 1 : S - 1] * v->weight_host[c];
  return price;
}

/* Given up at its release, there again when it is due: as on the host, but nothing is carried. */
static void price_drops (prover *v, int32_t unit, pause *q, int32_t count) {
  part x[2];
  int c = parts_of (v, unit, x) == 1 ? class_of (v, &x[0]) : -1;
  int64_t room = up (v, room_of (v, unit));
  for (int32_t i = 0; i < count; i++) {
    int32_t release = v->slot_of[q[i].release], due = due_slot (v, &q[i]);
    if (!q[i].again || c < 0)
      continue;
    wide back = due_first (v, &q[i]) ? host_first (v, c, due)
                                     : v->proof.host[(int64_t)c * v->proof.slots + due];
    q[i].price = (back - host_first (v, c, release)) * ONE +
                 again_price (&v->again, unit, i, release, due, room);
  }
}

/* What one grain of a unit costs at least over the step: it stays, leaves by a copy, or leaves
   clean where the host holds what it held. */
static wide least_price (const prover *v, const pause *q, int32_t count, bool circle, int c) {
  wide total = 0, bare = 0, kept = 0;
  bool can_keep = false;
  for (int32_t i = 0; v->proof.drops == PROOF_DROPS_only && i < count; i++)
    total += q[i].again && q[i].price < 0 ? q[i].price : 0;
  if (v->proof.drops == PROOF_DROPS_only)
    return total;
  for (int32_t i = 0; i <= count; i++) {
    if (i == count || (!q[i].linked && !circle)) { /* behind a write the host's copy is stale */
      total += can_keep && kept < bare ? kept : bare;
      bare = kept = 0;
      can_keep = false;
    }
    if (i == count || q[i].dropped)
      continue;
    if (circle) {
      wide best = price_clean (v, &q[i], c), copy = v->limited ? price_by_copy (v, &q[i], c) : best;
      best = copy < best ? copy : best;
      bare += best < 0 ? best : 0;
      continue;
    }
    wide copy = price_by_copy (v, &q[i], c), again = q[i].again && q[i].price < 0 ? q[i].price : 0;
    if (serves (q, count, i)) /* what was made again may be carried besides, for a later one */
      total += again;
    else if (again < copy)
      copy = again;
    wide best = bare + copy;
    if (can_keep) {
      wide clean = kept + price_clean (v, &q[i], c);
      best = clean < best ? clean : best;
      best = kept < best ? kept : best;
      best = kept + copy < best ? kept + copy : best;
    }
    kept = best;
    can_keep = true;
  }
  return total;
}

static void sum_units (prover *v, pause *q) {
  for (int32_t i = 0; i < v->u.count; i++) {
    bool circle;
    int32_t count = pauses_of (v, i, q, &circle);
    part x[2];
    if (!count)
      continue;
    drop (v, q, count, circle);
    for (int32_t k = 0; v->proof.drops && k < count; k++)
      q[k].again = !q[k].dropped && again_can (&v->again, i, k);
    price_drops (v, i, q, count);
    for (int n = parts_of (v, i, x), s = 0; s < n; s++) {
      int c = class_of (v, &x[s]);
      if (c >= 0)
        take (v, least_price (v, q, count, circle, c), up (v, x[s].room_bytes));
    }
  }
}

/* A column between low and high. */
static void column (prover *v, wide price, int64_t low, int64_t high) {
  if (high > 0)
    take (v, price, price < 0 ? high : low);
}

static int64_t fits (int64_t time, int64_t weight, int64_t room) {
  wide most = weight > 0 ? (((wide)time << PROOF_COEF_BITS) + weight - 1) / weight : room;
  return most < room ? (int64_t)most : room;
}

static int64_t scaled (int64_t x, int64_t y) {
  return (int64_t)(((wide)x * y) >> PROOF_COEF_BITS);
}

typedef struct slot_times {
  int64_t idle_out, idle_in, work_out, work_in;
} slot_times;

static void sum_class (prover *v, int32_t j, int c, int64_t need, const slot_times *time) {
  const proof *p = &v->proof;
  int32_t S = p->slots, last = j ? j - 1 : S - 1, next = j + 1 < S ? j + 1 : 0;
  int64_t at = (int64_t)c * S + j, then = (int64_t)c * S + next;
  int64_t open = v->open[at], room = v->open[(int64_t)c * S + last] + v->released[at];
  wide end = j + 1 == S ? p->cycle[c] : 0;
  wide P = p->pending[at], H1 = host_first (v, c, j), H = p->host[at], E1 = p->early_first[at],
       E = p->early[at], so = p->stall_out[j], si = p->stall_in[j], wo = p->work_out[j],
       wi = p->work_in[j];
  int64_t out = v->weight_out[c], in = v->weight_in[c], low = p->classes == 1 ? need : 0;
  bool swaps = p->drops != PROOF_DROPS_only;
  column (v, (P - p->pending[then] - end) * ONE, 0, swaps ? open : 0);
  column (v,
          (H - host_first (v, c, next) - end - p->need[j]) * ONE -
              (wide)p->host_limit[j] * v->weight_host[c],
          low, open);
  column (v, (E - p->early_first[then] - end) * ONE, 0, swaps ? open : 0);
  if (!is_run (v, j))
    column (v, (H1 - H - p->need_first[j]) * ONE, low, open);
  column (v, (E1 - E) * ONE, 0, swaps ? room - v->due_first[at] : 0);
  if (room <= 0 || !swaps)
    return;
  int64_t cross_out = scaled (v->out_in_in, out), cross_in = scaled (v->in_in_out, in);
  column (v, (P - H1) * ONE - so * out - si * cross_out, 0, room);
  column (v, (H1 - E1) * ONE - si * in - so * cross_in, 0, room);
  column (v, (P - H) * ONE - wo * out - wi * cross_out, 0, fits (time->work_out, out, room));
  column (v, (H - E) * ONE - wi * in - wo * cross_in, 0, fits (time->work_in, in, room));
  if (v->limited)
    column (v, (E - P) * ONE, 0, room);
}

static bool sum_slots (prover *v, error *err) {
  const proof *p = &v->proof;
  for (int32_t j = 0; j < p->slots; j++) {
    int32_t first = p->first[j];
    const op *o = &v->t->ops[first];
    int64_t work_ns = o->ns;
    for (int32_t k = first + 1; k < p->first[j + 1]; k++)
      work_ns += v->t->ops[k].ns + v->t->ops[k].gap_ns;
    slot_times time = { carried (v, o->gap_ns, v->rates.out_alone),
                        carried (v, o->gap_ns, v->rates.in_alone),
                        carried (v, work_ns, v->rates.out_alone),
                        carried (v, work_ns, v->rates.in_alone) };
    int64_t over = v->excess[first] - (p->drops ? v->again.free_bytes[j] : 0);
    int64_t need = is_run (v, j) || over < 0 ? 0 : down (v, over);
    wide paid =
        (wide)p->stall_out[j] * ONE + (wide)p->stall_in[j] * v->ratio + (wide)p->remake[j] * ONE;
    if (-paid > (wide)1 << VALUE_BITS)
      return error_set (err, ERR_infeasible, "the proof pays more than 1 for a stall before op %d",
                        first);
    take (v, (wide)p->stall_out[j] * ONE, time.idle_out);
    take (v, (wide)p->stall_in[j] * ONE, time.idle_in);
    take (v, (wide)p->work_out[j] * ONE, time.work_out);
    take (v, (wide)p->work_in[j] * ONE, time.work_in);
    take (v, ((wide)p->need_first[j] + p->need[j]) * ONE, need);
    take (v, (wide)p->host_limit[j] * ONE, up (v, v->p->host_bytes));
    for (int c = 0; c < p->classes; c++)
      sum_class (v, j, c, need, &time);
  }
  return true;
}

/* Ops run again: the levels of work that is ready and that is made, and the work itself. */
static void sum_work (prover *v) {
  const proof *p = &v->proof;
  const again *g = &v->again;
  int64_t open = 0;
  for (int32_t j = 0; j < p->slots; j++) {
    int64_t room = open + g->released[j];
    open += g->open[j];
    wide ready = j + 1 < p->slots ? p->ready[j + 1] : 0;
    wide made = j + 1 < p->slots ? p->made[j + 1] : 0;
    column (v, ((wide)p->ready[j] - p->made[j] - p->remake[j]) * ONE, 0, room);
    column (v, (p->ready[j] - ready) * ONE, 0, open);
    column (v, (p->made[j] - made) * ONE, 0, open);
  }
  for (int32_t k = 0; k < 2 * v->t->n_ops; k++) {
    const again_op *o = &g->ops[k];
    if (o->tensors < 2)
      continue;
    wide price = (wide)p->made[o->end_slot] - p->ready[o->first_slot];
    for (int32_t i = 0; i < o->tensors; i++)
      price -= p->shares[o->first_row + i];
    column (v, price * ONE, 0, o->grains * o->most);
  }
}

/* ---- the whole ---- */

static void set_link (prover *v) {
  link_rates r = v->rates = device_rates (&v->p->device.link, v->p->device.share_ppm);
  v->ratio = (int64_t)((((wide)r.in_alone << PROOF_COEF_BITS) + r.out_alone - 1) / r.out_alone);
  v->shared = r.out_both < r.out_alone || r.in_both < r.in_alone;
  if (!v->shared)
    return;
  wide corner = (wide)r.out_both * r.in_alone + (wide)r.in_both * r.out_alone;
  if (corner <= (wide)r.out_alone * r.in_alone) {
    v->in_in_out = over (r.out_alone, r.in_alone);
    return;
  }
  v->in_in_out = over (r.out_alone - r.out_both, r.in_both);
  v->out_in_in = over (r.in_alone - r.in_both, r.out_both);
}

static bool prove_flow (prover *v, int64_t *stall_ns, error *err) {
  int32_t n = v->t->n_ops;
  pause *q = NEW (v->a, (int64_t)n + 1, pause, err);
  v->slot_of = NEW (v->a, n, int32_t, err);
  if (!q || !v->slot_of)
    return false;
  for (int32_t j = 0; j < v->proof.slots; j++) {
    if (loose_follows (v->loose, v->proof.first[j]))
      return error_set (err, ERR_input, "slot %d begins between ops that may change their order",
                        j);
    v->limited |= v->proof.host_limit[j] != 0;
    for (int32_t k = v->proof.first[j]; k < v->proof.first[j + 1]; k++)
      v->slot_of[k] = j;
  }
  again *g = &v->again;
  *g = (again){ .t = v->t, .u = &v->u, .p = &v->proof, .loose = v->loose };
  g->section_ns = v->p->device.section_ns;
  g->peak = v->proof.peak == NO_OP ? -1 : v->slot_of[v->proof.peak];
  if (g->peak >= 0 && is_run (v, g->peak))
    return error_set (err, ERR_input, "the peak has no slot of its own");
  if (v->proof.drops && !again_begin (g, v->rates, v->a, err))
    return false;
  if (!count_units (v, q, err) || (v->proof.drops && !again_number (&v->again, err)) ||
      !sum_slots (v, err))
    return false;
  sum_units (v, q);
  if (v->proof.drops)
    sum_work (v);
  if (v->overflow)
    return error_set (err, ERR_input, "the proof's figures do not fit in 128 bits");
  *stall_ns = 0;
  if (v->value <= 0)
    return true;
  unsigned __int128 ns;
  if (__builtin_mul_overflow ((unsigned __int128)(v->value >> 34), (unsigned __int128)1000000000,
                              &ns))
    return error_set (err, ERR_input, "the proof's figures do not fit in 128 bits");
  ns /= (unsigned __int128)v->rates.out_alone << (VALUE_BITS - 34 + v->proof.shift);
  *stall_ns = ns > INT64_MAX / 4 ? INT64_MAX / 4 : (int64_t)ns;
  *stall_ns = *stall_ns > g->saved_ns ? *stall_ns - g->saved_ns : 0;
  return true;
}

/* Bytes that must be away at one op come back in every step. */
static bool prove_crossing (prover *v, int64_t *ns, error *err) {
  int64_t slack = 0;
  int32_t k = v->proof.op, n = v->t->n_ops;
  pause *q = NEW (v->a, (int64_t)n + 1, pause, err);
  if (!q)
    return false;
  for (int32_t i = 0; i < v->u.count; i++) {
    bool circle;
    int32_t count = pauses_of (v, i, q, &circle);
    for (int32_t s = 0; s < count; s++)
      if (q[s].wraps ? k >= q[s].release || k < q[s].due : k >= q[s].release && k < q[s].due)
        slack += room_of (v, i) - v->u.at[i].bytes;
  }
  wide bytes = (wide)v->excess[k] - slack;
  wide x = bytes > 0 ? bytes * 1000000000 / v->rates.in_alone : 0;
  *ns = x > INT64_MAX / 4 ? INT64_MAX / 4 : (int64_t)x;
  return true;
}

/* Which trace the proof speaks of, and whether the plan is one of those that it covers. Without
   sections and drops it is about plans with this very cut and these very recompute entries. */
static bool choose_trace (prover *v, const trace *t, error *err) {
  const plan *p = v->p;
  rewritten r, cut;
  loosened every[LOOSE_ORDERS];
  proof_ops n = { 0 };
  if (!plan_rewrite (t, p, v->a, &r, err) || !trace_rewrite (t, p->sections, p->n_sections, NULL, 0,
                                                             p->device.section_ns, v->a, &cut, err))
    return false;
  n.rewritten = r.trace->n_ops;
  n.cut = cut.trace->n_ops;
  for (int i = 0; i < LOOSE_ORDERS; i++) {
    if (!trace_loosen (t, (loose_orders)i, v->a, &every[i], err))
      return false;
    n.loosened[i] = every[i].trace->n_ops;
  }
  if (!proof_read (p->certificate.proof, &n, v->a, &v->proof, err))
    return false;
  if (v->proof.drops == PROOF_DROPS_only && p->n_moves)
    return error_set (err, ERR_infeasible, "the proof is about plans that move nothing");
  v->t = v->proof.drops ? cut.trace : r.trace;
  if (!v->proof.sections)
    return true;
  if (!v->proof.drops && p->n_recomputes)
    return error_set (err, ERR_infeasible, "the proof is about plans that make nothing again");
  for (int32_t i = 0; v->proof.orders == LOOSE_LEVEL && i < p->n_sections; i++)
    if (p->sections[i].order != SECTION_LEVEL)
      return error_set (err, ERR_infeasible, "the proof is about cuts level by level");
  v->t = every[v->proof.orders].trace;
  v->loose = every[v->proof.orders].loose;
  return true;
}

bool prove_plan (const trace *t, const plan *p, arena *scratch, proved *out, error *err) {
  static const char *const kinds[] = { "compute", "crossing", "flow" };
  prover v = { .p = p, .a = scratch };
  if (!p->has_certificate || !p->certificate.proof)
    return error_set (err, ERR_input, "the plan carries no proof; solve with one stored");
  if (!choose_trace (&v, t, err))
    return false;
  v.granule_bytes = v.proof.any_units ? 1 : p->placement.granule_bytes;
  if (!units_of (v.t, p->groups, v.proof.any_units ? 0 : p->n_groups, v.granule_bytes,
                 v.proof.any_units ? 0 : p->placement.pool_below_bytes, scratch, &v.u, err))
    return false;
  set_link (&v);
  int64_t compute_ns = trace_total_ns (v.t), ns = 0;
  if (!resident (&v, err) || (v.proof.kind == PROOF_flow && !prove_flow (&v, &ns, err)) ||
      (v.proof.kind == PROOF_crossing && !prove_crossing (&v, &ns, err)))
    return false;
  *out = (proved){ .lower_bound_ns = v.proof.kind == PROOF_crossing ? ns : compute_ns + ns,
                   .claimed_ns = p->certificate.lower_bound_ns,
                   .kind = kinds[v.proof.kind] };
  if (out->claimed_ns > out->lower_bound_ns)
    return error_at (err, ERR_infeasible, "/certificate/lower_bound_ns",
                     "%lld ns is claimed, the proof shows %lld ns", (long long)out->claimed_ns,
                     (long long)out->lower_bound_ns);
  return true;
}
