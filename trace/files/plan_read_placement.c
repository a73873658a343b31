/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A plan's placement from JSON. */
#include "trace/files/plan_read_inner.h"

static const char *const placement_keys[] = { "granule_bytes", "granules",
                                              "kind",          "pool_below_bytes",
                                              "pool_bytes",    "same_places",
                                              "stays",         NULL };
static const char *const stay_keys[] = { "tensor",    "group", "part", "move",
                                         "workspace", "runs",  NULL };
static const char *const stay_lists[] = { "runs", NULL };

static bool read_runs (reading *r, const table *t, size_t row, stay *s, int64_t *room) {
  placement *pl = &r->plan->placement;
  table_place place;
  table_slice runs;
  if (!table_list (t, "runs", row, &place, &runs, r->err))
    return false;
  if (runs.count % 2)
    return json_error (&runs.array, r->err, "runs are pairs of a first granule and a count");
  s->first_run = pl->n_runs;
  s->n_runs = (int32_t)(runs.count / 2);
  if (runs.count / 2 > (size_t)(MOST_INDEX - pl->n_runs))
    return json_error (&runs.array, r->err, "too many runs");
  if (!GROW (r->arena, pl->runs, room, (int64_t)pl->n_runs + s->n_runs + 1, r->err))
    return false;
  for (int32_t i = 0; i < s->n_runs; i++) {
    granule_run *run = &pl->runs[pl->n_runs++];
    json first = json_element (&runs.array, runs.first + 2 * (size_t)i),
         count = json_element (&runs.array, runs.first + 2 * (size_t)i + 1);
    if (!json_is_int (&first) || !json_is_int (&count))
      return json_error (&first, r->err, "runs are pairs of a first granule and a count");
    if (!json_get_int32 (&first, 0, MOST_INDEX, &run->first, r->err) ||
        !json_get_int32 (&count, 1, MOST_INDEX, &run->count, r->err))
      return false;
  }
  return true;
}

static bool read_stay (reading *r, const table *t, size_t row, int64_t *room) {
  static const struct {
    const char *key;
    stay_kind kind;
  } kinds[] = { { "tensor", STAY_TENSOR },
                { "group", STAY_GROUP },
                { "move", STAY_MOVE },
                { "workspace", STAY_WORKSPACE } };
  stay *s = &r->plan->placement.stays[row];
  int found = 0;
  for (int i = 0; i < 4; i++) {
    table_place place;
    json at = table_cell (t, kinds[i].key, row, &place);
    if (json_is_absent (&at))
      continue;
    s->kind = kinds[i].kind;
    if (++found > 1 || !json_get_int32 (&at, 0, MOST_INDEX, &s->index, r->err))
      break;
  }
  if (found != 1)
    return table_error (t, "tensor", row, r->err,
                        "a stay is of one of: tensor, group, move, workspace");
  return !r->err->code && plan_read_cell (r, t, "part", row, 0, &s->part) &&
         read_runs (r, t, row, s, room);
}

static bool read_kind (reading *r, const json *at) {
  json kind = json_member (at, "kind");
  int found = PLACEMENT_GRANULES;
  if (!json_is_absent (&kind) && !json_get_word (&kind, placement_names, &found, r->err))
    return false;
  r->plan->placement.kind = (placement_kind)found;
  return true;
}

bool plan_read_placement (reading *r, const json *root) {
  placement *pl = &r->plan->placement;
  json at, list, same;
  int64_t granules = 0, room = 0;
  if (!json_need (root, "placement", &at, r->err) || !plan_read_known (r, &at, placement_keys) ||
      !read_kind (r, &at) ||
      !plan_read_int (r, &at, "granule_bytes", 512, MOST_GRANULE_BYTES, &pl->granule_bytes) ||
      !plan_read_int (r, &at, "granules", 0, MOST_INDEX, &granules) ||
      !plan_read_int (r, &at, "pool_below_bytes", 0, MOST_BYTES, &pl->pool_below_bytes) ||
      !plan_read_int (r, &at, "pool_bytes", 0, MOST_BYTES, &pl->pool_bytes))
    return false;
  pl->granules = (int32_t)granules;
  same = json_member (&at, "same_places");
  if (!json_get_bool (&same, &pl->same_places, r->err))
    return false;
  table t;
  list = json_member (&at, "stays");
  if (!plan_read_table (r, &list, stay_keys, stay_lists, &t))
    return false;
  pl->n_stays = (int32_t)t.rows;
  if (!ALLOC (r->arena, pl->stays, pl->n_stays, r->err))
    return false;
  for (size_t i = 0; i < t.rows; i++)
    if (!read_stay (r, &t, i, &room))
      return false;
  return true;
}
