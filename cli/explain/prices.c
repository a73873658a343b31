/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The bound's own duals price memory, the host and the link; beside them stand the bounds with a
   whole GiB or GB/s more, for prices fall as one gets more. */
#include "cli/explain/prices.h"

#include <math.h>
#include <stdio.h>

#include "base/units.h"
#include "solver/solve.h"

#define MORE_BYTES ((int64_t)1 << 30)
#define MORE_RATE ((int64_t)1000000000)

/* A faster link keeps the proportions of its rates. */
static int64_t faster (int64_t rate, const device_link *was) {
  return units_scale (rate, was->d2h_bytes_per_s + MORE_RATE, was->d2h_bytes_per_s);
}

static bool bound_with (call *c, const plan *p, const trace *t, int64_t more_bytes, bool more_rate,
                        bound *out) {
  device d = p->device;
  const device_link *was = &p->device.link;
  if (more_rate) {
    d.link.d2h_bytes_per_s = faster (was->d2h_bytes_per_s, was);
    d.link.h2d_bytes_per_s = faster (was->h2d_bytes_per_s, was);
    d.link.both_bytes_per_s = faster (was->both_bytes_per_s, was);
  }
  arena *scratch = arena_new (0);
  solve_options o = { .device = &d,
                      .budget_bytes = p->budget_bytes + more_bytes,
                      .host_bytes = p->host_bytes };
  bool ok = scratch ? solve_bound (t, &o, scratch, out, &c->err) : error_memory (&c->err);
  arena_free (scratch);
  return ok;
}

/* The most that a link one GB/s faster can take off: the line of that price goes by 1 / rate. */
static int64_t link_price (const plan *p, const bound *b) {
  int64_t rate = p->device.link.d2h_bytes_per_s;
  return llround (b->prices.link_ns * (double)MORE_RATE / (double)(rate + MORE_RATE));
}

bool prices_find (call *c, const plan *p, const trace *rewritten, prices *out) {
  int64_t compute_ns = trace_total_ns (rewritten);
  bound now = { .lower_bound_ns = compute_ns }, memory, link;
  bool waits = p->predicted.step_ns > compute_ns; /* else nothing would buy anything */
  if (waits && !bound_with (c, p, rewritten, 0, false, &now))
    return false;
  memory = link = now;
  if (now.lower_bound_ns > compute_ns &&
      (!bound_with (c, p, rewritten, MORE_BYTES, false, &memory) ||
       !bound_with (c, p, rewritten, 0, true, &link)))
    return false;
  *out = (prices){ .now_ns = now.lower_bound_ns,
                   .memory_ns = memory.lower_bound_ns,
                   .link_ns = link.lower_bound_ns,
                   .gib_ns = llround (now.prices.memory_ns * (double)MORE_BYTES),
                   .gb_per_s_ns = link_price (p, &now),
                   .of_this = p->n_sections || p->n_recomputes };
  /* A bound for more memory holds for less: refined apart, one of them may say more.
   */
  out->now_ns = out->memory_ns > out->now_ns ? out->memory_ns : out->now_ns;
  out->now_ns = out->link_ns > out->now_ns ? out->link_ns : out->now_ns;
  return true;
}

void prices_print (const prices *p) {
  char now[UNITS_TEXT], less[UNITS_TEXT], most[UNITS_TEXT], each[UNITS_TEXT];
  printf ("\nwhat more would buy%s, by the certified program's dual prices and by a second bound\n",
          p->of_this ? " a plan with these cuts and drops" : "");
  printf ("  1 GiB more      %s a MiB, so at most %s less; the bound falls by %s, from %s\n",
          units_time (each, p->gib_ns >> 10), units_time (most, p->gib_ns),
          units_time (less, p->now_ns - p->memory_ns), units_time (now, p->now_ns));
  printf ("  1 GB/s more     at most %s less; the bound falls by %s, each way\n",
          units_time (most, p->gb_per_s_ns), units_time (less, p->now_ns - p->link_ns));
}

void prices_put (json_writer *w, const prices *p) {
  json_add_object (w, "prices");
  json_add_int (w, "gb_per_s_ns", p->gb_per_s_ns);
  json_add_int (w, "gib_ns", p->gib_ns);
  json_close_object (w);
}

void prices_put_bounds (json_writer *w, const prices *p) {
  json_add_object (w, "bounds");
  json_add_int (w, "lower_bound_ns", p->now_ns);
  json_add_int (w, "with_1_gb_per_s_more_ns", p->link_ns);
  json_add_int (w, "with_1_gib_more_ns", p->memory_ns);
  json_close_object (w);
}
