/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pods that hold memory of a node's cards: expected when a scheduler asks where one fits, placed
   when it is bound, and gone when it ends. */
#include <assert.h>

#include "server/store/inner.h"

bool store_expect (store *s, const char *pod, int64_t bytes, error *err) {
  assert (bytes >= 0);
  number_text now = store_number (store_now_ms ()), size = store_number (bytes);
  return STORE_RUN (s,
                    "insert into placed (pod, node, bytes, at_ms) values ($1, '', $2, $3)"
                    " on conflict (pod) do update set bytes = excluded.bytes",
                    NULL, NULL, err, pod, size.text, now.text);
}

bool store_place (store *s, const char *pod, const char *node, error *err) {
  number_text now = store_number (store_now_ms ());
  return STORE_RUN (s, "update placed set node = $2, at_ms = $3 where pod = $1", NULL, NULL, err,
                    pod, node, now.text);
}

bool store_release (store *s, const char *pod, error *err) {
  return STORE_RUN (s, "delete from placed where pod = $1", NULL, NULL, err, pod);
}

bool store_list_placed (store *s, const char *but, arena *a, placed_row **out, int *count,
                        error *err) {
  sql_rows rows;
  if (!STORE_READ (s,
                   "select node, bytes from placed where node <> '' and pod <> $1"
                   " order by node, at_ms, pod",
                   a, &rows, err, but) ||
      !(*out = NEW (a, rows.rows + 1, placed_row, err)))
    return false;
  for (*count = 0; *count < rows.rows; (*count)++)
    (*out)[*count] = (placed_row){ sql_cell (&rows, *count, 0), store_int (&rows, *count, 1) };
  return true;
}
