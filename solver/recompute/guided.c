/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The set that the program drops, rounded.  At the edge of the budget copies have no time to spare,
   so programs for a little less memory are asked as well: what they drop beyond it buys that time,
   mostly for less than waiting for the link costs. */
#include <assert.h>

#include "solver/recompute/find.h"

bool recompute_guided (const trace *t, const variant *cut, const solve_options *o,
                       const recompute_program *guide, arena *a, variant *out, variant_value *value,
                       error *err) {
  assert (guide->fits && out && value);
  static const variant nothing = { .name = "swap" };
  finding f = { .t = t, .cut = cut ? cut : &nothing, .o = o, .guide = guide };
  f.arena = f.scratch = arena_made (err);
  double least = (double)find_number (&f, TUNE_drops_least_ppm) / 1e6;
  bool ok = f.arena && find_begin (&f, err);
  for (int32_t i = 0; ok && i < f.n_drops; i++)
    f.now.chosen[i] = f.dropped[i] >= least;
  ok = ok && find_variant (&f, &f.now, a, out, err) &&
       variant_look (t, out, o, f.scratch, value, err);
  arena_free (f.arena);
  return ok;
}
