/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names the jobs that are left out, and why. */
#include "base/units.h"
#include "solver/fleet/cards_inner.h"

bool cards_reason (placing *p, int32_t job, error *err) {
  char need[UNITS_TEXT], have[UNITS_TEXT], floors[UNITS_TEXT], host[UNITS_TEXT];
  cards_place *at = &p->out->places[job];
  int32_t best = -1, best_n = 0;
  int64_t most = INT64_MIN, best_floors = 0;
  int64_t least = INT64_MAX, widest = INT64_MIN;
  for (int32_t card = 0; card < p->o->n_cards; card++) {
    int64_t taken = 0;
    int32_t n = 0;
    for (int32_t j = 0; j < p->n_jobs; j++)
      if (p->out->places[j].card == card) {
        taken += p->floor_bytes[j][p->kind_of[card]];
        n++;
      }
    int64_t left = cards_room (p->o, card, n + 1) - taken;
    int64_t mine = p->floor_bytes[job][p->kind_of[card]];
    least = mine < least ? mine : least;
    if (cards_room (p->o, card, 1) > widest)
      widest = cards_room (p->o, card, 1);
    if (left - mine > most) {
      most = left - mine;
      best = card;
      best_n = n;
      best_floors = taken;
    }
  }
  bool may_cut = p->jobs[job].allowed.sections != SECTIONS_OFF;
  const char *name = p->jobs[job].name, *on = p->o->cards[best].name;
  at->floor_bytes = p->floor_bytes[job][p->kind_of[best]];
  at->peak_bytes = p->peak_bytes[job][p->kind_of[best]];
  units_bytes (need, at->floor_bytes);
  if (least > widest)
    at->reason = arena_format (p->a, err,
                               "%s needs at least %s in granules, even alone, and no card gives "
                               "more than %s: %stake a larger card",
                               name, units_bytes (need, least), units_bytes (have, widest),
                               may_cut ? "" : "cut its ops into sections, or ");
  else if (most < 0)
    at->reason = arena_format (p->a, err,
                               "%s needs at least %s, but on %s the %d others need at "
                               "least %s, which leaves %s",
                               name, need, on, best_n, units_bytes (floors, best_floors),
                               units_bytes (have, at->floor_bytes + most));
  else
    at->reason = arena_format (p->a, err,
                               "%s would have the %s that it needs at least on %s, but "
                               "no sampled plans of all of them fit into its memory and %s of host "
                               "memory",
                               name, need, on, units_bytes (host, cards_host_room (p->o, best)));
  return at->reason;
}
