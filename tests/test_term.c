/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <string.h>

#include "plot/term.h"
#include "tests/suite.h"

static const term_style ascii = { .utf8 = false, .color = false, .columns = 32 };
static const term_style braille = { .utf8 = true, .color = false, .columns = 22 };

static void draws (bytes *out, const char *expected) {
  ck_assert_ptr_nonnull (out->data);
  ck_assert_str_eq (out->data, expected);
  bytes_free (out);
}

CLAIM (an_area_is_filled_up_to_its_amount_with_the_limit_as_a_line) {
  static const term_point points[] = { { 0, 1024 }, { 25, 2048 }, { 50, 4096 }, { 75, 0 } };
  bytes out = { 0 };
  error err = { 0 };
  ck_assert (term_area (&(term_amount){ points, 4, 100, 3072, "budget" }, 4, &ascii, &out, &err));
  draws (&out, "  4.00 KiB |----------#####-----\n"
               "           |          #####\n"
               "           |     ##########\n"
               "         0 |###############\n"
               "            0             100 ns\n");
}

CLAIM (braille_has_two_by_four_dots_a_cell) {
  static const term_point points[] = { { 0, 100 }, { 5, 50 }, { 10, 0 } };
  bytes out = { 0 };
  error err = { 0 };
  ck_assert (term_area (&(term_amount){ points, 3, 20, 0, "" }, 1, &braille, &out, &err));
  draws (&out,
         "     100 B \xe2\x94\x82\xe2\xa3\xbf\xe2\xa3\xbf\xe2\xa3\xa7\xe2\xa3\xa4\xe2\xa3\xa4\n"
         "            0    20 ns\n");
}

CLAIM (a_short_spike_is_seen) {
  static const term_point points[] = { { 0, 1 }, { 500000, 1000 }, { 500001, 1 } };
  bytes out = { 0 };
  error err = { 0 };
  ck_assert (term_area (&(term_amount){ points, 3, 1000000, 0, "" }, 4, &ascii, &out, &err));
  char *top = strtok_r (out.data, "\n", &(char *){ NULL });
  ck_assert_ptr_nonnull (strchr (top, '#'));
  ck_assert_ptr_eq (strchr (top, '#'), strrchr (top, '#'));
  bytes_free (&out);
}

CLAIM (lanes_are_darker_where_they_are_busier_and_wrap_around) {
  static const term_span spans[] = { { 0, 250 }, { 500, 625 }, { -250, 0 } };
  term_lane lane = { "out", spans, 3 };
  bytes out = { 0 };
  error err = { 0 };
  term_style style = { .columns = 26 };
  ck_assert (term_lanes (&lane, 1, 1000, &style, &out, &err));
  draws (&out, "       out |##  # ##|  62%\n");
}

CLAIM (a_piece_that_is_half_busy_is_half_dark) {
  static const term_span spans[] = { { 0, 25 }, { 125, 175 }, { 200, 275 } };
  term_lane lane = { "in", spans, 3 };
  bytes out = { 0 };
  error err = { 0 };
  term_style style = { .columns = 26 };
  ck_assert (term_lanes (&lane, 1, 800, &style, &out, &err));
  draws (&out, "        in |.:=     |  18%\n");
}

CLAIM (nothing_is_no_picture) {
  bytes out = { 0 };
  error err = { 0 };
  static const term_point zero[] = { { 0, 0 } };
  ck_assert (term_area (&(term_amount){ zero, 0, 10, 0, "" }, 4, &ascii, &out, &err));
  ck_assert (term_area (&(term_amount){ zero, 1, 10, 0, "" }, 4, &ascii, &out, &err));
  ck_assert (term_area (&(term_amount){ zero, 1, 0, 0, "" }, 4, &ascii, &out, &err));
  ck_assert_ptr_null (out.data);
}

CLAIM (huge_amounts_and_times_do_not_overflow) {
  static const term_point points[] = { { 0, INT64_MAX }, { INT64_MAX / 2, 1 } };
  static const term_span spans[] = { { 0, INT64_MAX / 2 } };
  term_lane lane = { "x", spans, 1 };
  bytes out = { 0 };
  error err = { 0 };
  ck_assert (term_area (&(term_amount){ points, 2, INT64_MAX, INT64_MAX / 2, "x" }, 4, &ascii, &out,
                        &err));
  ck_assert (term_lanes (&lane, 1, INT64_MAX, &braille, &out, &err));
  bytes_free (&out);
}

int main (void) {
  return suite_run ("term", 20);
}
