/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/run/share_rooms.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/order.h"
#include "solver/fleet/cards.h"
#include "trace/trace.h"

enum { PACK_TICKS = 4000 };

static int by_order (const void *x, const void *y) {
  const member *a = x, *b = y;
  return ORDER (a->order, b->order);
}

int share_members (const share *g, member *out) {
  int n = 0;
  for (int i = 0; i < ROSTER_ROWS; i++)
    if (share_get (g, i, MEMBER_ORDER) != 0 && roster_taken (&g->group, i))
      out[n++] = (member){ i, share_get (g, i, MEMBER_ORDER), 0 };
  qsort (out, (size_t)n, sizeof *out, by_order);
  return n;
}

int64_t share_up (const share *g, int64_t bytes) {
  return (bytes + g->granule_bytes - 1) / g->granule_bytes * g->granule_bytes;
}

/* The members and what is known of them, in a word. */
static int64_t key_of (const share *g, const member *m, int n) {
  uint64_t h = 1469598103934665603u;
  for (int i = 0; i < n; i++) {
    h = (h ^ (uint64_t)m[i].order) * 1099511628211u;
    int times = 0; /* doubled: not after each new step of a program that has many */
    for (int64_t steps = share_get (g, m[i].row, MEMBER_STEPS); steps > 0; steps /= 2)
      times++;
    h = (h ^ (uint64_t)times) * 1099511628211u;
  }
  return (int64_t)(h >> 1);
}

/* First what each needs, in the order in which they came: nobody overtakes who waits. Then what the
   plan for all gives them, and the rest in equal parts to who has a use for it. */
void share_divide (const share *g, member *m, int n) {
  int64_t left = g->group.at->word[GROUP_TOTAL];
  bool packed = g->group.at->word[GROUP_PACKED] == key_of (g, m, n);
  int in = 0;
  for (; in < n && share_up (g, share_get (g, m[in].row, MEMBER_NEED)) <= left; in++) {
    m[in].target = share_up (g, share_get (g, m[in].row, MEMBER_NEED));
    left -= m[in].target;
  }
  for (int i = 0; packed && i < in; i++) {
    int64_t more = share_up (g, share_get (g, m[i].row, MEMBER_PACKED)) - m[i].target;
    if (more > 0 && more <= left) {
      m[i].target += more;
      left -= more;
    }
  }
  for (int takers = in; takers > 0 && left >= g->granule_bytes;) {
    int64_t part = left / takers / g->granule_bytes * g->granule_bytes;
    part = part > 0 ? part : g->granule_bytes;
    takers = 0;
    for (int i = 0; i < in && left >= g->granule_bytes; i++) {
      int64_t more = share_up (g, share_get (g, m[i].row, MEMBER_WANT)) - m[i].target;
      more = more < part ? more : part;
      more = more < left ? more : left / g->granule_bytes * g->granule_bytes;
      if (more > 0) {
        m[i].target += more;
        left -= more;
        takers++;
      }
    }
  }
}

/* Room is raised where it is there, with the table to itself: also if two should serve at once,
   never more is granted than there is. */
void share_grant (share *g, const member *m, int n) {
  roster_enter (&g->group);
  int64_t left = g->group.at->word[GROUP_TOTAL];
  for (int i = 0; i < ROSTER_ROWS; i++)
    if (share_get (g, i, MEMBER_GRANTED) > 0) {
      if (roster_taken (&g->group, i))
        left -= share_get (g, i, MEMBER_GRANTED);
      else
        share_set (g, i, MEMBER_GRANTED, 0);
    }
  for (int i = 0; i < n; i++) {
    int row = m[i].row;
    int64_t has = share_get (g, row, MEMBER_GRANTED), asked = share_get (g, row, MEMBER_ASKED);
    int64_t more = asked - has, need = share_up (g, share_get (g, row, MEMBER_NEED)) - has;
    if (asked < has && !roster_seat_taken (&g->group, row, SEAT_PROGRAM)) {
      share_set (g, row, MEMBER_GRANTED, asked); /* its program has not begun */
      left += has - asked;
    }
    if (more > left && need > 0 && need <= left)
      more = left / g->granule_bytes * g->granule_bytes;
    if (more <= 0 || more > left)
      continue;
    if (__atomic_compare_exchange_n (&g->group.at->row[row].word[MEMBER_GRANTED], &has, has + more,
                                     false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
      left -= more;
  }
  roster_leave (&g->group);
}

/* ---- a plan for all, in a process of its own ---- */

bool share_tell_step (call *c, const share *g, const trace *t) {
  char path[SHIM_PATH];
  snprintf (path, sizeof path, "%s/step-%d", g->folder, g->group.own);
  return trace_store (t, path, TRACE_PLAIN, &c->err);
}

static bool pack_all (call *c, const share *g, const member *m, int n) {
  cards_job jobs[CARDS_MOST_JOBS] = { 0 };
  cards_answer found;
  device card = *g->device;
  int64_t total = g->group.at->word[GROUP_TOTAL];
  for (int i = 0; i < n; i++) {
    const char *path = arena_format (c->arena, &c->err, "%s/step-%d", g->folder, m[i].row);
    jobs[i].name = path;
    jobs[i].trace = path ? trace_load (path, NULL, c->arena, &c->err) : NULL;
    if (!jobs[i].trace)
      return false;
  }
  card.memory_bytes = total;
  card.reserved_bytes = 0; /* the budget is of tensors */
  card.granule_bytes = g->granule_bytes;
  cards_options o = { .cards = &card,
                      .n_cards = 1,
                      .memory_bytes = total,
                      .points = 6,
                      .sampling = { .device = &card, .limit_ticks = PACK_TICKS },
                      .limit_ticks = PACK_TICKS };
  if (!cards_place_jobs (jobs, n, &o, c->arena, &found, &c->err))
    return false;
  for (int i = 0; i < n; i++)
    if (found.places[i].card < 0)
      return error_set (&c->err, ERR_infeasible, "%s", found.places[i].reason);
  for (int i = 0; i < n; i++)
    __atomic_store_n (&g->group.at->row[m[i].row].word[MEMBER_PACKED], found.places[i].budget_bytes,
                      __ATOMIC_RELEASE);
  return true;
}

void share_pack (call *c, share *g, const member *m, int n) {
  int64_t key = key_of (g, m, n);
  bool known = n > 1 && n <= CARDS_MOST_JOBS;
  if (g->packer > 0 && waitpid (g->packer, NULL, WNOHANG) != g->packer)
    return;
  g->packer = -1;
  for (int i = 0; i < n; i++)
    known = known && share_get (g, m[i].row, MEMBER_STEPS) > 0;
  if (!known || g->packing == key)
    return;
  g->packing = key;
  fflush (NULL);
  pid_t launcher = getpid ();
  g->packer = fork ();
  if (g->packer != 0)
    return;
  if (!child_ends_with (launcher))
    _exit (1);
  c->err = (error){ 0 };
  if (pack_all (c, g, m, n))
    __atomic_store_n (&g->group.at->word[GROUP_PACKED], key, __ATOMIC_RELEASE);
  else
    fprintf (stderr, "ferry: no plan for all who share: %s; they have equal parts\n", c->err.text);
  _exit (0);
}
