/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/check/check.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "trace/check/inner.h"

static const struct {
  const char *name, *says;
} rules[CHECK_RULES + 1] = {
#define RULE(name, says) { #name, says },
#include "trace/check/check.def"
#undef RULE
  { NULL, NULL },
};

const char *check_rule_name (check_rule rule) {
  assert (rule < CHECK_RULES);
  return rules[rule].name;
}

const char *check_rule_says (check_rule rule) {
  assert (rule < CHECK_RULES);
  return rules[rule].says;
}

bool check_breaks (checker *c, check_rule rule, const char *list, int32_t index, const char *field,
                   const char *format, ...) {
  char where[128], number[16] = "", text[400];
  va_list args;
  if (index >= 0)
    snprintf (number, sizeof number, "/%d", index);
  snprintf (where, sizeof where, "/%s%s%s%s", list, number, field ? "/" : "", field ? field : "");
  va_start (args, format);
  vsnprintf (text, sizeof text, format, args);
  va_end (args);
  *c->broken = rule;
  return error_at (c->err, ERR_infeasible, where, "rule %s: %s", rules[rule].name, text);
}

bool check_trace (const trace *t, const plan *p, error *err) {
  assert (t && p);
  char digest[TRACE_DIGEST];
  return trace_digest (t, digest, err) &&
         (strcmp (digest, p->trace_digest) == 0 ||
          error_at (err, ERR_infeasible, "/trace",
                    "the plan is for the trace %.80s, this one is %s; solve it again",
                    p->trace_digest, digest));
}

bool check_streams (const trace *t, arena *scratch, error *err) {
  check_rule broken = CHECK_RULES;
  error why = { 0 };
  checker c = { .t = t, .n_ops = t->n_ops, .a = scratch, .err = &why, .broken = &broken };
  arena_mark mark = arena_here (scratch);
  bool ok = check_race (&c);
  arena_back (scratch, mark);
  if (!ok && broken == RULE_race)
    return error_set (err, ERR_input, "no plan of this trace can be legal, by %s", why.text);
  return ok || error_set (err, why.code, "%s", why.text);
}

/* The rule's name stands before the same words. */
static bool digest_matches (checker *c) {
  error refused = { 0 };
  if (check_trace (c->original, c->p, &refused))
    return true;
  if (refused.code != ERR_infeasible)
    return error_set (c->err, refused.code, "%s", refused.text);
  return check_breaks (c, RULE_digest, "trace", -1, NULL, "%s", refused.text);
}

static bool device_in_range (checker *c) {
  enum { LEAST_RATE = 1000000 };
  const device *d = &c->p->device;
  const struct {
    const char *key;
    int64_t value, low, high;
  } figures[] = {
    { "memory_bytes", d->memory_bytes, 0, MOST_BYTES },
    { "reserved_bytes", d->reserved_bytes, 0, d->memory_bytes },
    { "granule_bytes", d->granule_bytes, 512, MOST_BYTES },
    { "host_bytes", d->host_bytes, 0, MOST_BYTES },
    { "section_ns", d->section_ns, 0, MOST_NS },
    { "share_ppm", d->share_ppm, 1, 1000000 },
    { "link/d2h_bytes_per_s", d->link.d2h_bytes_per_s, LEAST_RATE, INT64_MAX },
    { "link/h2d_bytes_per_s", d->link.h2d_bytes_per_s, LEAST_RATE, INT64_MAX },
    { "link/both_bytes_per_s", d->link.both_bytes_per_s, LEAST_RATE, INT64_MAX },
    { "link/copy_ns", d->link.copy_ns, 0, MOST_NS },
  };
  for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
    if (figures[i].value < figures[i].low || figures[i].value > figures[i].high)
      return check_breaks (c, RULE_device, "device", -1, figures[i].key,
                           "%lld is not in %lld to %lld", (long long)figures[i].value,
                           (long long)figures[i].low, (long long)figures[i].high);
  if (d->granule_bytes % 512)
    return check_breaks (c, RULE_device, "device", -1, "granule_bytes",
                         "%lld is not a multiple of 512", (long long)d->granule_bytes);
  return true;
}

static bool within_device (checker *c) {
  const plan *p = c->p;
  int64_t free_bytes = p->device.memory_bytes - p->device.reserved_bytes;
  if (p->budget_bytes < 0 || p->budget_bytes > free_bytes)
    return check_breaks (c, RULE_budget, "budget_bytes", -1, NULL,
                         "%lld is not in 0 to %lld, the device's memory less what is reserved",
                         (long long)p->budget_bytes, (long long)free_bytes);
  if (p->host_bytes < 0 || p->host_bytes > p->device.host_bytes)
    return check_breaks (c, RULE_host_budget, "host_bytes", -1, NULL,
                         "%lld is not in 0 to %lld, the device's host_bytes",
                         (long long)p->host_bytes, (long long)p->device.host_bytes);
  return true;
}

/* A refusal of the rewriter is a broken rule of the plan; that memory ran out is not. */
static bool rewrites (checker *c) {
  rewritten out;
  error refused = { 0 };
  if (plan_rewrite (c->original, c->p, c->a, &out, &refused)) {
    c->t = out.trace;
    c->n_ops = out.trace->n_ops;
    return true;
  }
  if (refused.code == ERR_memory)
    return error_set (c->err, ERR_memory, "%s", refused.text);
  return check_breaks (c, RULE_rewrite, refused.where[0] ? refused.where + 1 : "sections", -1, NULL,
                       "%s", refused.text);
}

static bool run (checker *c) {
  return digest_matches (c) && device_in_range (c) && within_device (c) && check_resting (c) &&
         check_order (c) && rewrites (c) && check_race (c) && check_units (c) && check_moves (c) &&
         check_clean (c) && check_orders (c) && check_rows (c) && check_places (c) &&
         check_arena (c) && check_host (c) && check_safe (c);
}

bool check_plan (const trace *t, const plan *p, arena *scratch, check_rule *broken, error *err) {
  assert (t && p && scratch);
  check_rule ignored;
  checker c = {
    .original = t, .p = p, .a = scratch, .err = err, .broken = broken ? broken : &ignored
  };
  *c.broken = CHECK_RULES;
  arena_mark mark = arena_here (scratch);
  bool ok = run (&c);
  arena_back (scratch, mark);
  return ok;
}
