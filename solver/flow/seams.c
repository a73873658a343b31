/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Seams: places inside a run of loose ops at which slots meet.  Where no chain crosses one, all
   before it has run whole and nothing behind it has begun, so what lives on both sides has to fit.
   A chain that crosses it in n parts costs n - 1 times section_ns an op; when the first part
   crosses, what the chain has used last and may be cut is there in part only.  Time, bytes and runs
   that its further parts take or ask for are those of later slots (docs/proof.md). */
#include <assert.h>

#include "solver/flow/builder.h"

/* Grains as a coefficient of a column in 2^SEAM_BITS, rounded up. */
static int64_t up (__int128 grains) {
  return (int64_t)((grains + ((__int128)1 << (SEAM_BITS - COEF_BITS)) - 1) >>
                   (SEAM_BITS - COEF_BITS));
}

static int64_t down (__int128 grains) {
  return (int64_t)(grains >> (SEAM_BITS - COEF_BITS));
}

bool flow_find_seams (flow *f, const flow_options *o, arena *a, error *err) {
  assert (f->slots && f->source);
  flow_seams *s = &f->seams;
  int32_t S = f->n_slots;
  s->at = NEW (a, (int64_t)S + 1, uint8_t, err);
  s->first = NEW (a, S, int32_t, err);
  s->due = NEW (a, S, int64_t, err);
  s->work_due = NEW (a, S, int64_t, err);
  if (!s->at || !s->first || !s->due || !s->work_due)
    return false;
  for (int32_t j = 0; j < S; j++) {
    s->at[j] = loose_follows (f->slots->loose, f->slots->first[j]);
    s->first[j] = s->at[j] ? s->first[j - 1] : j;
    s->any |= s->at[j];
  }
  s->section = flow_time_down (&f->link, o->dev->section_ns, f->link.rates.out_alone);
  return true;
}

/* Half the bytes, as many as the first of two parts leaves. */
static int64_t half_of (const trace *t, int64_t bytes) {
  __int128 x = (__int128)bytes * ((t->batch + 1) / 2);
  return (int64_t)((x + t->batch - 1) / t->batch);
}

static void add_halves (flow *f, int32_t tensor) {
  const units *u = f->source->units;
  const trace *t = u->trace;
  flow_seams *s = &f->seams;
  int64_t half = flow_grains_up (&f->link, half_of (t, t->tensors[tensor].bytes));
  int32_t end = u->use_offset[tensor + 1];
  for (int32_t i = u->use_offset[tensor]; i < end; i++) {
    int32_t from = f->slots->of_op[u->uses[i].op];
    int32_t to = i + 1 < end                     ? u->uses[i + 1].op
                 : t->tensors[tensor].persistent ? t->n_ops - 1
                                                 : u->uses[i].op;
    for (int32_t j = from + 1; s->at[j] && f->slots->first[j] <= to; j++)
      s->half[s->half_from[j] + j - 1 - from] += half;
  }
}

bool flow_sum_seams (flow *f, arena *a, error *err) {
  flow_seams *s = &f->seams;
  int32_t S = f->n_slots;
  s->before_due = NEW (a, (int64_t)S + 1, int64_t, err);
  s->before_work_due = NEW (a, (int64_t)S + 1, int64_t, err);
  s->before_out = NEW (a, (int64_t)S + 1, int64_t, err);
  s->before_in = NEW (a, (int64_t)S + 1, int64_t, err);
  s->half_from = NEW (a, S, int32_t, err);
  if (!s->before_due || !s->before_work_due || !s->before_out || !s->before_in || !s->half_from)
    return false;
  for (int32_t j = 0; j < S; j++) {
    s->half_from[j] = s->n_half;
    if (!s->at[j])
      continue;
    s->before_due[j] = s->before_due[j - 1] + s->due[j - 1];
    s->before_work_due[j] = s->before_work_due[j - 1] + s->work_due[j - 1];
    s->before_out[j] = s->before_out[j - 1] + f->work_out[j - 1];
    s->before_in[j] = s->before_in[j - 1] + f->work_in[j - 1];
    if (j - s->first[j] > INT32_MAX / 4 - s->n_half)
      return error_set (err, ERR_limit, "the flow program of %d slots is too large", S);
    s->n_half += j - s->first[j];
  }
  s->half = NEW (a, (int64_t)s->n_half + 1, int64_t, err);
  if (!s->half)
    return false;
  const trace *t = f->source->units->trace;
  for (int32_t x = 0; s->any && x < t->n_tensors; x++)
    if (t->tensors[x].split)
      add_halves (f, x);
  return true;
}

/* ---- columns ---- */

static const int64_t most = (int64_t)SEAM_PARTS << SEAM_BITS;

/* A chain over seam j: an op on either side of it is cut at least. */
static void crossed (flow_builder *b, int32_t j) {
  flow *f = b->f;
  const flow_seams *s = &f->seams;
  flow_begin_column (b);
  flow_put (b, flow_cuts_row (f, j), -down (2 * (__int128)s->section));
  flow_put (b, f->row[ROW_inner_first][j], -COEF_ONE);
  flow_put (b, f->row[ROW_inner_end][j - 1], -COEF_ONE);
  flow_put (b, f->row[ROW_need][j - 1], up (s->half[s->half_from[j]]));
  flow_put (b, f->row[ROW_carry_out][j], -up (f->work_out[j - 1]));
  flow_put (b, f->row[ROW_carry_in][j], -up (f->work_in[j - 1]));
  flow_put (b, f->row[ROW_owed][j], -up (s->due[j - 1]));
  flow_put (b, f->row[ROW_owed_work][j], -up (s->work_due[j - 1]));
  flow_end_column (b, COLUMN_crossed, j, 0, most, 0);
}

/* A chain over all of slot i: the others of its ops are cut too. */
static void inner (flow_builder *b, int32_t i) {
  flow *f = b->f;
  const flow_seams *s = &f->seams;
  __int128 ops = f->slots->first[i + 1] - f->slots->first[i];
  flow_begin_column (b);
  flow_put (b, flow_cuts_row (f, i), -down ((ops - 2) * s->section));
  flow_put (b, f->row[ROW_inner_first][i], COEF_ONE);
  flow_put (b, f->row[ROW_inner_end][i], COEF_ONE);
  flow_put (b, f->row[ROW_carry_out][i + 1], -up (s->before_out[i]));
  flow_put (b, f->row[ROW_carry_in][i + 1], -up (s->before_in[i]));
  flow_put (b, f->row[ROW_owed][i + 1], -up (s->before_due[i]));
  flow_put (b, f->row[ROW_owed_work][i + 1], -up (s->before_work_due[i]));
  for (int32_t j = i + 1; s->at[j]; j++)
    flow_put (b, f->row[ROW_reach_inner][s->half_from[j] + j - i], -COEF_ONE);
  flow_end_column (b, COLUMN_inner, i, 0, most, 0);
}

/* A chain over seam j and back to slot i, which is not the one before the seam. */
static void reach (flow_builder *b, int32_t j, int32_t i) {
  flow *f = b->f;
  int32_t at = f->seams.half_from[j] + j - 1 - i;
  if (f->row[ROW_reach_inner][at] < 0)
    return;
  flow_begin_column (b);
  flow_put (b, f->row[ROW_need][j - 1], up (f->seams.half[at]));
  flow_put (b, f->row[ROW_reach_inner][at], COEF_ONE);
  flow_put (b, f->row[ROW_reach_next][at], COEF_ONE);
  if (i > f->seams.first[j])
    flow_put (b, f->row[ROW_reach_next][at + 1], -COEF_ONE);
  flow_end_column (b, COLUMN_reach, at, 0, most, 0);
}

/* A chain leaves time, bytes and runs to its further parts, which run in later slots. */
static void left (flow_builder *b, int32_t j) {
  flow *f = b->f;
  const flow_seams *s = &f->seams;
  static const flow_row_kind time[] = { ROW_work_out, ROW_work_in };
  static const flow_row_kind limit[] = { ROW_carry_out, ROW_carry_in };
  static const flow_column_kind carry[] = { COLUMN_carry_out, COLUMN_carry_in };
  const int64_t before[] = { s->before_out[j], s->before_in[j] };
  for (int e = 0; e < 2 && flow_swaps (f); e++) {
    if (f->row[limit[e]][j] < 0)
      continue;
    flow_begin_column (b);
    flow_put (b, f->row[time[e]][j - 1], COEF_ONE);
    flow_put (b, f->row[time[e]][j], -COEF_ONE);
    flow_put (b, f->row[limit[e]][j], COEF_ONE);
    flow_end_column (b, carry[e], j, 0, before[e], 0);
  }
  if (flow_swaps (f)) {
    flow_begin_column (b);
    flow_put (b, flow_row (f, ROW_early, j - 1, 0), COEF_ONE);
    flow_put (b, flow_row (f, ROW_early_first, j, 0), -COEF_ONE);
    flow_put (b, f->row[ROW_owed][j], COEF_ONE);
    flow_end_column (b, COLUMN_owed, j, 0, s->before_due[j], 0);
  }
  if (!f->drops)
    return;
  flow_begin_column (b);
  flow_put (b, f->row[ROW_made][j - 1], COEF_ONE);
  flow_put (b, f->row[ROW_made][j], -COEF_ONE);
  flow_put (b, f->row[ROW_owed_work][j], COEF_ONE);
  flow_end_column (b, COLUMN_owed_work, j, 0, s->before_work_due[j], 0);
}

void flow_add_seam_columns (flow_builder *b) {
  flow *f = b->f;
  const flow_seams *s = &f->seams;
  for (int32_t j = 0; j < f->n_slots; j++) {
    if (!s->at[j])
      continue;
    crossed (b, j);
    left (b, j);
    if (s->at[j + 1])
      inner (b, j);
    for (int32_t i = s->first[j]; i + 1 < j; i++)
      reach (b, j, i);
  }
}
