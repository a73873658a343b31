/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "server/ask/together.h"

#include <stdio.h>
#include <string.h>

void asked_add_fault (asked *out, const error *wrong) {
  if (out->n_faults == MOST_FAULTS)
    return;
  fault *f = &out->faults[out->n_faults++];
  snprintf (f->pointer, sizeof f->pointer, "%.95s", wrong->where);
  snprintf (f->detail, sizeof f->detail, "%.159s", wrong->text);
}

static void check_pair (const json *root, const char *one, const char *other, asked *out) {
  error wrong = { 0 };
  json a = json_member (root, one), b = json_member (root, other);
  if (json_is_absent (&a) || json_is_absent (&b))
    return;
  json_error (&b, &wrong, "cannot stand together with %s", one);
  asked_add_fault (out, &wrong);
}

static bool is_word (const json *root, const char *key, const char *word) {
  error ignored = { 0 };
  const char *said = NULL;
  json j = json_member (root, key);
  return !json_is_absent (&j) && json_get_text (&j, &said, &ignored) && strcmp (said, word) == 0;
}

static bool is_false (const json *root, const char *key) {
  error ignored = { 0 };
  bool said = true;
  return json_read_bool (root, key, &said, &ignored) && !said;
}

/* Whoever carries out the plan of an eager program runs the ops as they come. */
static void check_executor (const json *root, asked *out) {
  bool run = is_word (root, "for", "run");
  bool torch = is_word (root, "for", "torch") || is_word (root, "for", "compile");
  if (!run && !torch)
    return;
  if (!is_word (root, "sections", "off"))
    check_pair (root, "for", "sections", out);
  if (!is_word (root, "order", "as-is"))
    check_pair (root, "for", "order", out);
  if (run && !is_word (root, "recompute", "off"))
    check_pair (root, "for", "recompute", out);
  if (run && is_word (root, "placement", "arena"))
    check_pair (root, "for", "placement", out);
  if (torch && !is_false (root, "proof"))
    check_pair (root, "for", "proof", out);
}

/* Options of our own planner: a policy would pass them over. */
static void check_policy (const json *root, asked *out) {
  static const char *const ours[] = { "effort",      "gap_ppm",     "limit_ticks", "noise_percent",
                                      "order",       "placement",   "recompute",   "reserve_bytes",
                                      "reserve_ppm", "same_places", "sections",    "section_order",
                                      "seed",        "swap_only",   "time_limit_s" };
  for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
    if (!is_false (root, ours[i]))
      check_pair (root, "policy", ours[i], out);
}

/* A host with several cards decides on card and links, and on how much may be pinned. */
static void check_ranks (const job_kind *k, const json *root, asked *out) {
  static const char *const others[] = { "batches",    "compare",           "devices",
                                        "host_bytes", "links_bytes_per_s", "noise_percent",
                                        "policy",     "same_places" };
  static const char *const needs[] = { "ranks", "stages" };
  json host = json_member (root, "host");
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    check_pair (root, "host", others[i], out);
  if (k->operand == OPERAND_JOBS)
    check_pair (root, "host", "points", out);
  if (k->output == OUTPUT_PLAN && !is_word (root, "for", "replay"))
    check_pair (root, "host", "for", out);
  for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
    error wrong = { 0 };
    json j = json_member (root, needs[i]);
    if (json_is_absent (&j) || !json_is_absent (&host))
      continue;
    json_error (&j, &wrong, "needs a host");
    asked_add_fault (out, &wrong);
  }
}

/* Effort is a limit of ticks, times are scaled in one way, and swaps alone are one choice of what a
   plan may do. */
void together_check (const job_kind *k, const json *root, asked *out) {
  static const char *const pairs[][2] = { { "budget_bytes", "budget_ppm" },
                                          { "reserve_bytes", "reserve_ppm" },
                                          { "effort", "limit_ticks" },
                                          { "from", "scale_ppm" } };
  static const char *const choices[] = { "order", "recompute", "sections" };
  error ignored = { 0 };
  bool alone = false;
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
    check_pair (root, pairs[i][0], pairs[i][1], out);
  if (json_read_bool (root, "swap_only", &alone, &ignored) && alone)
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
      check_pair (root, "swap_only", choices[i], out);
  check_ranks (k, root, out);
  check_executor (root, out);
  check_policy (root, out);
}
