/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Measuring finds what was put in. */
#include <stdlib.h>

#include "executor/link/link.h"
#include "tests/emu_case.h"
#include "tests/suite.h"

static void expect_near (int64_t seen, int64_t put_in, int64_t ppm) {
  ck_assert_msg (llabs (seen - put_in) <= put_in / 1000000.0 * ppm, "%lld instead of %lld",
                 (long long)seen, (long long)put_in);
}

CLAIM (an_emulated_link_is_measured_as_it_was_made) {
  static const device_link links[] = { { 12000000000, 12000000000, 22000000000, 10000 },
                                       { 25000000000, 20000000000, 45000000000, 5000 },
                                       { 3000000000, 6000000000, 6500000000, 50000 } };
  for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
    device dev = { .name = "made",
                   .memory_bytes = (int64_t)1 << 32,
                   .granule_bytes = 2 << 20,
                   .link = links[i],
                   .host_bytes = 1,
                   .share_ppm = 1000000 };
    driver d;
    error err = { 0 };
    link_result r;
    arena *a = arena_new (0);
    ck_assert_msg (driver_open (&d, emu_case_path (), &err) &&
                       link_emulate (&d, &dev, NULL, &err) && driver_start (&d, 0, &err) &&
                       link_measure (&d, true, 0, 1 << 30, a, &r, &err),
                   "%s", err.text);
    driver_stop (&d);
    expect_near (r.device.link.d2h_bytes_per_s, links[i].d2h_bytes_per_s, 100);
    expect_near (r.device.link.h2d_bytes_per_s, links[i].h2d_bytes_per_s, 100);
    expect_near (r.device.link.both_bytes_per_s, links[i].both_bytes_per_s, 5000);
    expect_near (r.device.link.copy_ns, links[i].copy_ns, 10000);
    ck_assert_int_eq (r.device.memory_bytes, dev.memory_bytes);
    ck_assert_int_eq (r.device.granule_bytes, dev.granule_bytes);
    /* Copies do not slow down beside compute here. */
    for (int32_t k = 0; k < r.n_rows; k++)
      ck_assert_int_eq (r.rows[k].out_ns, r.rows[k].busy_out_ns);
    ck_assert (device_validate (&r.device, &err));
    arena_free (a);
  }
}

CLAIM_IN_ARENA (a_range_of_sizes_that_tells_no_rate_is_refused) {
  driver d;
  link_result r;
  ck_assert (driver_open (&d, emu_case_path (), &err) && driver_start (&d, 0, &err));
  ck_assert (!link_measure (&d, true, 65536, 1 << 30, a, &r, &err));
  ck_assert_int_eq (err.code, ERR_usage);
  driver_stop (&d);
}

/* What is planted is found again: the groups, and what they carry. */
static void expect_host (const gpu_host *h, int32_t n_groups) {
  device dev = { .name = "made",
                 .memory_bytes = (int64_t)1 << 36,
                 .granule_bytes = 2 << 20,
                 .link = h->link,
                 .host_bytes = 1,
                 .share_ppm = 1000000 };
  gpu_host seen = { .link = h->link };
  driver d;
  error err = { 0 };
  arena *a = arena_new (0);
  ck_assert_msg (driver_open (&d, emu_case_path (), &err) && link_emulate (&d, &dev, h, &err) &&
                     link_measure_host (&d, true, 0, a, &seen, &err),
                 "%s", err.text);
  ck_assert_int_eq (seen.n_cards, h->n_cards);
  ck_assert_int_eq (seen.n_groups, n_groups);
  for (int32_t g = 0; g < n_groups; g++) {
    ck_assert_uint_eq (seen.groups[g].cards, h->groups[g].cards);
    for (int way = 0; way < COPY_WAYS; way++) {
      expect_near (seen.groups[g].one_way[way], h->groups[g].one_way[way], 2000);
      expect_near (seen.groups[g].both[way], h->groups[g].both[way], 5000);
    }
  }
  arena_free (a);
}

CLAIM (links_that_cards_share_are_found_with_what_they_carry) {
  enum { G = 1000000000 };
  host_group cpus[] = {
    { .cards = 0x0f, .one_way = { 180LL * G, 190LL * G }, .both = { 90LL * G, 136LL * G } },
    { .cards = 0xf0, .one_way = { 180LL * G, 170LL * G }, .both = { 80LL * G, 130LL * G } }
  };
  gpu_host h = { .name = "made", .n_cards = 8, .n_groups = 2, .groups = cpus };
  h.link = (device_link){ 53LL * G, 55LL * G, 95LL * G, 5000 };
  h.pinned_bytes = (int64_t)1 << 40;
  expect_host (&h, 2);
  /* Four cards in a row, two a switch, all behind one link that is wider than a switch's. */
  host_group levels[] = {
    { .cards = 0xf, .one_way = { 90LL * G, 80LL * G }, .both = { 50LL * G, 45LL * G } },
    { .cards = 0x3, .one_way = { 60LL * G, 60LL * G }, .both = { 40LL * G, 35LL * G } },
    { .cards = 0xc, .one_way = { 60LL * G, 60LL * G }, .both = { 40LL * G, 35LL * G } }
  };
  gpu_host two = { .name = "made", .n_cards = 4, .n_groups = 3, .groups = levels };
  two.link = (device_link){ 53LL * G, 55LL * G, 95LL * G, 5000 };
  two.pinned_bytes = (int64_t)1 << 40;
  expect_host (&two, 3);
  two.n_groups = 0;
  expect_host (&two, 0);
}

int main (void) {
  return suite_run ("link", 20);
}
