/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry pack`: what its parts share.  pack.c reads and prints; pack_events.c is about jobs that
   come and go,
   pack_host.c about jobs that have a card of a host each. */
#pragma once

#include "cli/call/call.h"
#include "solver/fleet/cards.h"
#include "solver/fleet/alternatives.h"

typedef struct packing {
  cards_job jobs[CARDS_MOST_JOBS];
  int32_t n_jobs;
  device cards[CARDS_MOST];
  const char *card_names[CARDS_MOST]; /* with a number where several cards are alike */
  cards_options options;
  bool has_rivals;
  alternative rivals[ALTERNATIVES];
} packing;

/* The traces with their names, and what is allowed for each. */
bool pack_read_jobs (call *c, packing *p) MUST_CHECK;
/* With --host NAME; the whole answer of the command then. */
int pack_run_host (call *c);
/* Was --arrive or --leave given? */
bool pack_has_events (const call *c);
/* Plans again at every event and prints what changes; the whole answer of the command then. */
int pack_run_events (call *c, packing *p);

bool pack_print_allowed (call *c, const packing *p) MUST_CHECK;
bool pack_print_places (call *c, const packing *p, const cards_answer *v) MUST_CHECK;
void pack_put_place (json_writer *w, const packing *p, const cards_place *at, int32_t job);
/* The plans of those that have a place, as NAME.json in the folder of --output. */
bool pack_store (call *c, const packing *p, const cards_answer *v) MUST_CHECK;
