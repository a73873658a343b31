/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Advice for schedulers: from what is known, at once. */
#include <string.h>

#include "server/api/advice.h"
#include "server/api/api.h"
#include "server/api/routes.h"

#define MIB ((int64_t)1 << 20)
static double slower (int64_t ns, int64_t baseline_ns) {
  return baseline_ns ? (double)(ns - baseline_ns) / (double)baseline_ns : 0;
}

/* No point is named if no budget of the curve is fast enough. */
static void put_advice (json_writer *w, const advice *a, const char *fingerprint) {
  bool point = a->memory_bytes > 0;
  json_open_object (w);
  json_add_raw (w, "assumptions", "[\"the link is not shared\"]");
  if (point)
    json_add_int (w, "card_bytes", advice_card_bytes (a));
  json_add_text (w, "curve", a->job);
  if (point)
    json_add_int (w, "d2h_bytes", a->d2h_bytes);
  json_add_text (w, "device", a->device);
  if (point)
    json_add_int (w, "device_peak_bytes", a->peak_bytes);
  json_add_text (w, "fingerprint", fingerprint);
  json_add_bool (w, "fits", a->fits);
  json_add_int (w, "floor_bytes", a->floor_bytes);
  if (point) {
    json_add_int (w, "h2d_bytes", a->h2d_bytes);
    json_add_int (w, "memory_bytes", a->memory_bytes);
    json_add_int (w, "memory_mib", (advice_card_bytes (a) + MIB - 1) / MIB);
    json_add_int (w, "pinned_host_bytes", a->host_bytes);
  }
  json_add_text (w, "reason", a->reason[0] ? a->reason : NULL);
  if (point) {
    json_add_int (w, "reserved_bytes", a->reserved_bytes);
    json_add_fixed (w, "slowdown", slower (a->step_ns, a->baseline_ns), 6);
    json_add_fixed (w, "slowdown_bound", slower (a->bound_ns, a->baseline_ns), 6);
    json_add_int (w, "step_ns", a->step_ns);
  }
  json_add_text (w, "trace", a->trace);
  json_close_object (w);
}

static void unknown (request *q, reply *p, const char *next) {
  reply_problem (p, q, PROBLEM_unknown_profile,
                 "record three steps, upload the trace with this fingerprint, ask for its %s",
                 next);
}

static void count (service *s, bool known, bool fits) {
  service_count_of (s, METRIC_advice_total,
                    !known ? "unknown"
                    : fits ? "fits"
                           : "too-large",
                    NULL, NULL);
}

static void reply_advice (reply *p, json_writer *w) {
  reply_json (p, 200, w);
  reply_header (p, "Cache-Control", "no-cache");
}

/* For the ranks of a host. */
static void advise_host (service *s, request *q, reply *p, const char *print, const char *host,
                         node_question *asked) {
  int64_t ranks = 0;
  node_advice a;
  error err = { 0 };
  json_writer w;
  if (!request_number (q, p, "ranks", HOST_MOST_CARDS, &ranks) ||
      !request_number (q, p, "rank_host_bytes", MOST_INT, &asked->rank_host_bytes))
    return;
  if (!name_is_plain (host) || request_query (q, "gpu_memory_bytes")) {
    reply_problem (p, q, PROBLEM_invalid,
                   "host: a name of /v1/devices, and its cards have the memory that they have");
    return;
  }
  asked->ranks = (int32_t)ranks;
  if (!advice_find_host (s, q, print, host, asked, &a, &err)) {
    reply_error (p, q, &err);
    return;
  }
  count (s, a.known, a.known && a.answer.row);
  if (!a.known) {
    unknown (q, p, "what-if with this host");
    return;
  }
  api_saw (s, a.job);
  json_begin (&w, 0);
  node_answer_write (&w, &a.facts, asked, &a.answer,
                     &(node_source){ a.job, print, a.trace, NULL, 0 });
  reply_advice (p, &w);
}

void api_advice (service *s, request *q, reply *p) {
  const char *print = request_query (q, "fingerprint"), *host = request_query (q, "host");
  int64_t gpu = 0, ppm = USUAL_SLOWDOWN_PPM;
  advice a;
  error err = { 0 };
  json_writer w;
  if (!request_number (q, p, "gpu_memory_bytes", MOST_INT, &gpu) ||
      !request_number (q, p, "max_slowdown_ppm", MOST_SLOWDOWN_PPM, &ppm))
    return;
  if (!print || !advice_is_name (q, print)) {
    reply_problem (p, q, PROBLEM_invalid, "fingerprint: letters, digits, . _ -, at most 64");
    return;
  }
  if (host) {
    advise_host (s, q, p, print, host, &(node_question){ .slowdown_ppm = ppm });
    return;
  }
  if (request_query (q, "ranks") || request_query (q, "rank_host_bytes")) {
    reply_problem (p, q, PROBLEM_invalid, "ranks and rank_host_bytes need a host");
    return;
  }
  if (!advice_find (s, q, print, ppm, &a, &err)) {
    reply_error (p, q, &err);
    return;
  }
  if (a.known)
    advice_weigh (&a, gpu);
  count (s, a.known, a.known && a.fits);
  if (!a.known) {
    unknown (q, p, "curve");
    return;
  }
  api_saw (s, a.job);
  json_begin (&w, 0);
  put_advice (&w, &a, print);
  reply_advice (p, &w);
}
