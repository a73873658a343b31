/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/zoo_case.h"

const device card = { .name = "card",
                      .memory_bytes = (int64_t)80 << 30,
                      .granule_bytes = 2 << 20,
                      .link = { 25000000000, 25000000000, 50000000000, 10000 },
                      .host_bytes = (int64_t)512 << 30,
                      .share_ppm = 1000000,
                      .has_roofline = true,
                      .roofline = { .fp32_flops = 20000000000000,
                                    .tf32_flops = 156000000000000,
                                    .bf16_flops = 312000000000000,
                                    .memory_bytes_per_s = 1555000000000,
                                    .efficiency_ppm = 1000000 } };

arena *room;
error err;

void zoo_set_up (void) {
  err = (error){ 0 };
  room = arena_new (0);
  ck_assert_ptr_nonnull (room);
}

void zoo_tear_down (void) {
  arena_free (room);
}

const char *told (void) {
  static char line[1100];
  return error_line (&err, line, sizeof line);
}

trace *made (const zoo_request *r) {
  trace *t = zoo_trace (r, room, &err);
  ck_assert_msg (t != NULL, "%s: %s", r->name, told ());
  return t;
}

compute read_compute (const trace *t, int32_t i) {
  compute c;
  ck_assert_msg (t->ops[i].compute != NULL, "op %d (%s) has no compute", i, t->ops[i].name);
  ck_assert_msg (compute_parse (t->ops[i].compute, &c, &err), "op %s: %s", t->ops[i].name, told ());
  return c;
}
