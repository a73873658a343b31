#include "solver/order.h"

#include <stdlib.h>

#include "base/units.h"

typedef struct job {
  int64_t release_ns, due_ns, copy_ns;
  int32_t move;
} job;

static int by_release (const void *a, const void *b) {
  const job *x = a, *y = b;
  if (x->release_ns != y->release_ns)
    return x->release_ns < y->release_ns ? -1 : 1;
  return x->move < y->move ? -1 : x->move > y->move;
}

static bool is_sooner (const job *x, const job *y) {
  return x->due_ns != y->due_ns ? x->due_ns < y->due_ns : x->move < y->move;
}

/* ---- the jobs that could start, the soonest due on top ---- */

typedef struct heap {
  const job **at;
  int32_t count;
} heap;

static void heap_put (heap *h, const job *x) {
  int32_t i = h->count++;
  for (; i > 0 && is_sooner (x, h->at[(i - 1) / 2]); i = (i - 1) / 2)
    h->at[i] = h->at[(i - 1) / 2];
  h->at[i] = x;
}

static const job *heap_take (heap *h) {
  const job *top = h->at[0], *last = h->at[--h->count];
  int32_t i = 0;
  for (;;) {
    int32_t child = 2 * i + 1;
    if (child >= h->count)
      break;
    if (child + 1 < h->count && is_sooner (h->at[child + 1], h->at[child]))
      child++;
    if (!is_sooner (h->at[child], last))
      break;
    h->at[i] = h->at[child];
    i = child;
  }
  h->at[i] = last;
  return top;
}

/* A move's copy in of the step that began at 0: it is due in this step, and its own copy out ended
   in this one or in the one before. */
static job job_of (const lives *l, int32_t move, int64_t period_ns, int64_t start_ns,
                   link_rates r) {
  const wish *w = &l->moves[move];
  const op *ops = l->trace->ops;
  int64_t bytes = unit_part_bytes (&l->units->at[w->unit], l->granule_bytes, w->part, w->of);
  int64_t release_ns = w->clean ? l->start_ns[w->out_after] + ops[w->out_after].ns
                                : (l->at[l->out_life[move]].to.at_ns - start_ns) % period_ns;
  job j = { .release_ns = release_ns,
            .due_ns = l->start_ns[w->in_before],
            .copy_ns = l->device->link.copy_ns + units_scale (bytes, 1000000000, r.in_both) + 1,
            .move = move };
  while (j.release_ns > j.due_ns)
    j.release_ns -= period_ns;
  return j;
}

bool order_by_release (lives *l, moment period, moment start, arena *scratch, error *err) {
  int32_t n = l->n_moves;
  arena_mark mark = arena_here (scratch);
  job *jobs = NEW (scratch, n, job, err);
  heap ready = { .at = NEW (scratch, n, const job *, err) };
  if (!jobs || !ready.at)
    return false;
  link_rates r = device_rates (&l->device->link, l->device->share_ppm);
  for (int32_t i = 0; i < n && period.at_ns > 0; i++)
    jobs[i] = job_of (l, i, period.at_ns, start.at_ns, r);
  qsort (jobs, (size_t)n, sizeof *jobs, by_release);
  int64_t now_ns = INT64_MIN;
  for (int32_t next = 0, placed = 0; placed < n && period.at_ns > 0; placed++) {
    if (!ready.count && jobs[next].release_ns > now_ns)
      now_ns = jobs[next].release_ns;
    while (next < n && jobs[next].release_ns <= now_ns)
      heap_put (&ready, &jobs[next++]);
    const job *j = heap_take (&ready);
    l->in_order[placed] = j->move;
    now_ns += j->copy_ns;
  }
  l->by_need = false;
  arena_back (scratch, mark);
  return true;
}
