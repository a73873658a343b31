/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/golden_machine.h"

#include <stdio.h>
#include <stdlib.h>

const char *const golden_names[GOLDEN_NAMES] = { "wrapping", "shared-rate", "clean-chain",
                                                 "depth-section", "recompute" };

static bool figure (const json *j, const char *key, int64_t *out, error *err) {
  json value;
  return json_need (j, key, &value, err) && json_get_int (&value, INT64_MIN, INT64_MAX, out, err);
}

static bool spans (const json *root, const char *key, arena *a, span **out, int32_t *count,
                   error *err) {
  json list;
  if (!json_need (root, key, &list, err))
    return false;
  *count = (int32_t)json_count (&list);
  if (!(*out = NEW (a, *count, span, err)))
    return false;
  for (int32_t i = 0; i < *count; i++) {
    json row = json_element (&list, i), start = json_element (&row, 0), end;
    (*out)[i] = (span){ -1, -1 };
    if (json_is_absent (&row))
      continue;
    end = json_element (&row, 1);
    if (!json_get_int (&start, INT64_MIN, INT64_MAX, &(*out)[i].start_ns, err) ||
        !json_get_int (&end, INT64_MIN, INT64_MAX, &(*out)[i].end_ns, err))
      return false;
  }
  return true;
}

static bool figures (const json *root, predicted *p, error *err) {
  json j, settled;
  return json_need (root, "predicted", &j, err) && figure (&j, "step_ns", &p->step_ns, err) &&
         figure (&j, "compute_ns", &p->compute_ns, err) &&
         figure (&j, "baseline_ns", &p->baseline_ns, err) &&
         figure (&j, "stall_ns", &p->stall_ns, err) &&
         figure (&j, "peak_bytes", &p->peak_bytes, err) &&
         figure (&j, "host_peak_bytes", &p->host_peak_bytes, err) &&
         figure (&j, "d2h_bytes", &p->d2h_bytes, err) &&
         figure (&j, "h2d_bytes", &p->h2d_bytes, err) && json_need (&j, "settled", &settled, err) &&
         json_get_bool (&settled, &p->settled, err);
}

bool golden_load (const char *name, arena *a, golden *out, error *err) {
  const char *root = getenv ("srcdir");
  const char *at = arena_format (a, err, "%s/tests/cases/machine/%s", root ? root : ".", name);
  const char *t = at ? arena_format (a, err, "%s/trace.json", at) : NULL;
  const char *p = at ? arena_format (a, err, "%s/plan.json", at) : NULL;
  const char *e = at ? arena_format (a, err, "%s/expected.json", at) : NULL;
  read_options strict = { .strict = true };
  bytes text = { 0 };
  *out = (golden){ 0 };
  if (!t || !p || !e || !(out->trace = trace_load (t, &strict, a, err)) ||
      !(out->plan = plan_load (p, &strict, a, err)) || !file_read (e, 0, &text, err))
    return false;
  out->expected = json_open (text.data, text.size, err);
  bytes_free (&text);
  if (!out->expected)
    return false;
  json j = json_root (out->expected);
  int32_t n_outs = 0, n_ins = 0;
  bool ok = figures (&j, &out->predicted, err) &&
            spans (&j, "ops", a, &out->ops, &out->n_ops, err) &&
            spans (&j, "outs", a, &out->outs, &n_outs, err) &&
            spans (&j, "ins", a, &out->ins, &n_ins, err);
  if (ok && (n_outs != out->plan->n_moves || n_ins != out->plan->n_moves))
    ok = error_set (err, ERR_input, "%s: not one row a move", name);
  if (!ok)
    json_close (out->expected);
  return ok;
}

static bool same (const char *what, int64_t expected, int64_t seen, error *err) {
  return expected == seen || error_set (err, ERR_internal, "%s is %lld, by hand it was %lld", what,
                                        (long long)seen, (long long)expected);
}

bool golden_same_predicted (const golden *g, const predicted *p, error *err) {
  const predicted *e = &g->predicted;
  return same ("step_ns", e->step_ns, p->step_ns, err) &&
         same ("compute_ns", e->compute_ns, p->compute_ns, err) &&
         same ("baseline_ns", e->baseline_ns, p->baseline_ns, err) &&
         same ("stall_ns", e->stall_ns, p->stall_ns, err) &&
         same ("peak_bytes", e->peak_bytes, p->peak_bytes, err) &&
         same ("host_peak_bytes", e->host_peak_bytes, p->host_peak_bytes, err) &&
         same ("d2h_bytes", e->d2h_bytes, p->d2h_bytes, err) &&
         same ("h2d_bytes", e->h2d_bytes, p->h2d_bytes, err) &&
         same ("settled", e->settled, p->settled, err);
}

/* A row of the file names what it wants compared; what it leaves out has its default. */
static bool same_number (const json *row, const char *key, int64_t absent, int64_t seen,
                         error *err) {
  json value = json_member (row, key);
  int64_t expected = absent;
  bool flag = absent;
  if (!json_is_absent (&value) && !json_is_int (&value)) {
    if (!json_get_bool (&value, &flag, err))
      return false;
    expected = flag;
  } else if (!json_get_int (&value, INT64_MIN, INT64_MAX, &expected, err))
    return false;
  return expected == seen || json_error (row, err, "%s is %lld, by hand it was %lld", key,
                                         (long long)seen, (long long)expected);
}

static bool same_list (const json *row, const char *key, index_list seen, error *err) {
  json list = json_member (row, key);
  if ((int64_t)json_count (&list) != seen.count)
    return json_error (row, err, "%s has %d rows, by hand it was %zu", key, seen.count,
                       json_count (&list));
  for (int32_t i = 0; i < seen.count; i++) {
    json at = json_element (&list, i);
    int64_t expected = -1;
    if (!json_get_int (&at, 0, INT32_MAX, &expected, err))
      return false;
    if (expected != seen.at[i])
      return json_error (&at, err, "%s is %d, by hand it was %lld", key, seen.at[i],
                         (long long)expected);
  }
  return true;
}

static bool same_origin (const json *row, const origin *seen, int64_t batch, error *err) {
  json items = json_member (row, "items"), first = json_element (&items, 0),
       end = json_element (&items, 1);
  int64_t expected[2] = { 0, batch };
  if (!json_is_absent (&items) && (!json_get_int (&first, 0, INT64_MAX, &expected[0], err) ||
                                   !json_get_int (&end, 0, INT64_MAX, &expected[1], err)))
    return false;
  if (seen->first_item != expected[0] || seen->end_item != expected[1])
    return json_error (row, err, "the items are other ones");
  return same_number (row, "of", -1, seen->index, err) &&
         same_number (row, "copy", false, seen->copy, err);
}

static bool same_op (const json *row, const op *o, const origin *from, int64_t batch, error *err) {
  return same_origin (row, from, batch, err) && same_number (row, "ns", 0, o->ns, err) &&
         same_number (row, "gap_ns", 0, o->gap_ns, err) &&
         same_number (row, "workspace_bytes", 0, o->workspace_bytes, err) &&
         same_list (row, "reads", o->reads, err) && same_list (row, "writes", o->writes, err) &&
         same_list (row, "side", o->side, err);
}

static bool same_tensor (const json *row, const tensor *t, const origin *from, int64_t batch,
                         error *err) {
  return same_origin (row, from, batch, err) && same_number (row, "bytes", 0, t->bytes, err) &&
         same_number (row, "persistent", false, t->persistent, err) &&
         same_number (row, "born_before", NO_OP, t->born_before, err) &&
         same_number (row, "dies_after", NO_OP, t->dies_after, err);
}

bool golden_same_rewritten (const golden *g, const rewritten *r, error *err) {
  json root = json_root (g->expected), want = json_member (&root, "rewritten");
  if (json_is_absent (&want))
    return true;
  json ops = json_member (&want, "ops"), tensors = json_member (&want, "tensors");
  const trace *t = r->trace;
  if (!same ("the count of ops", json_count (&ops), t->n_ops, err) ||
      !same ("the count of tensors", json_count (&tensors), t->n_tensors, err))
    return false;
  for (int32_t i = 0; i < t->n_ops; i++) {
    json row = json_element (&ops, i);
    if (!same_op (&row, &t->ops[i], &r->ops[i], t->batch, err))
      return false;
  }
  for (int32_t i = 0; i < t->n_tensors; i++) {
    json row = json_element (&tensors, i);
    if (!same_tensor (&row, &t->tensors[i], &r->tensors[i], t->batch, err))
      return false;
  }
  return true;
}
