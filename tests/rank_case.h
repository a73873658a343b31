/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random ranks on random hosts. */
#pragma once

#include "base/random.h"
#include "tests/random_case.h"
#include "trace/simulate/simulate.h"

enum { RANK_CASE_MOST = 4 };

/* Of some of n_cards, slower than their links together and faster than one of them alone is in. */
host_group rank_case_group (random_state *r, int32_t n_cards, const device_link *link);
bool rank_case_host (random_state *r, const device *d, int32_t ranks, arena *a, gpu_host *h,
                     error *err) MUST_CHECK;
/* Legal plans of random traces; equal ones now and then, as ranks mostly are. False: this seed
   makes none. factor: of all sizes, see case_options; streams: some have several, and collectives. */
bool rank_case_jobs (random_state *r, int32_t ranks, int64_t factor, bool streams,
                     random_case *cases, sim_job *jobs, arena *a) MUST_CHECK;
