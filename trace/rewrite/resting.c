/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/rewrite/resting.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "trace/unit.h"
#include "trace/uses.h"

static bool refuse_resting (int32_t i, error *err, int32_t x, const char *why) {
  char where[32];
  snprintf (where, sizeof where, "/resting/%d", i);
  return error_at (err, ERR_infeasible, where, "tensor %d %s", x, why);
}

bool trace_rest (const trace *t, const int32_t *resting, int32_t n_resting, arena *a,
                 const trace **out, error *err) {
  assert (t && out && (resting || n_resting == 0));
  *out = t;
  if (!n_resting)
    return true;
  trace *made = NEW (a, 1, trace, err);
  tensor *tensors = NEW (a, t->n_tensors, tensor, err);
  uses u;
  if (!made || !tensors || !uses_of (t, a, &u, err))
    return false;
  memcpy (tensors, t->tensors, (size_t)t->n_tensors * sizeof *tensors);
  for (int32_t i = 0; i < n_resting; i++) {
    int32_t x = resting[i];
    if (x < 0 || x >= t->n_tensors)
      return refuse_resting (i, err, x, "is not one of the trace");
    bool used = uses_count (&u, x) > 0;
    if (used || t->tensors[x].pinned)
      return refuse_resting (i, err, x, used ? "is used by an op" : "is pinned to the device");
    if (!tensors[x].persistent)
      return refuse_resting (i, err, x, "does not live from step to step, or rests already");
    tensors[x].persistent = false;
  }
  *made = *t;
  made->tensors = tensors;
  *out = made;
  return true;
}

int64_t resting_bytes (const trace *t, const plan *p) {
  int64_t sum = 0;
  for (int32_t i = 0; i < p->n_resting; i++) {
    int64_t bytes = unit_member_bytes (t->tensors[p->resting[i]].bytes);
    sum = sum > MOST_UNITS_BYTES - bytes ? MOST_UNITS_BYTES : sum + bytes;
  }
  return sum;
}
