/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdint.h>
#include <string.h>

#include "base/random.h"
#include "base/units.h"
#include "tests/suite.h"

typedef bool parser (const char *text, int64_t *out, error *err);

static void gives (parser *parse, const char *text, int64_t expected) {
  error err = { 0 };
  int64_t value = -1;
  ck_assert_msg (parse (text, &value, &err), "%s: %s", text, err.text);
  ck_assert_msg (value == expected, "%s: %lld", text, (long long)value);
}

static void refuses (parser *parse, const char *text) {
  error err = { 0 };
  int64_t value = -1;
  ck_assert_msg (!parse (text, &value, &err), "%s: %lld", text, (long long)value);
  ck_assert_int_eq (err.code, ERR_usage);
  ck_assert_msg (strstr (err.text, text), "%s does not name %s", err.text, text);
}

CLAIM (sizes_are_read_as_people_write_them) {
  gives (units_parse_bytes, "0", 0);
  gives (units_parse_bytes, "4096", 4096);
  gives (units_parse_bytes, "1b", 1);
  gives (units_parse_bytes, "4GiB", 4294967296);
  gives (units_parse_bytes, "4 gib", 4294967296);
  gives (units_parse_bytes, "25GB", 25000000000);
  gives (units_parse_bytes, "1.5GiB", 1610612736);
  gives (units_parse_bytes, ".5k", 500);
  gives (units_parse_bytes, "0.3333KiB", 341);
  gives (units_parse_bytes, "7PiB", 7881299347898368);
}

CLAIM (what_is_no_size_is_refused) {
  static const char *const texts[] = { "",      "-1",         "+1",    "GiB",    "4 G B",
                                       "4GiBs", "1..5",       "1.5.5", "0x10",   " 4",
                                       "1e9",   "4kibibytes", ".",     "4GiB/s", "NaN" };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    refuses (units_parse_bytes, texts[i]);
}

CLAIM (the_largest_value_is_read_and_one_more_is_refused) {
  gives (units_parse_bytes, "9223372036854775807", INT64_MAX);
  refuses (units_parse_bytes, "9223372036854775808");
  gives (units_parse_bytes, "8191PiB", (int64_t)8191 << 50);
  refuses (units_parse_bytes, "8192PiB");
  refuses (units_parse_bytes, "99999999999999999999999999999999999999999999999999");
  refuses (units_parse_time, "9223372037s");
  gives (units_parse_time, "9223372036s", 9223372036000000000);
}

CLAIM (many_decimals_are_rounded_down_not_wrapped) {
  gives (units_parse_bytes, "1.99999999999999999999999999999999999999999999999k", 1999);
  gives (units_parse_bytes, "0.00000000000000000000000000000000000000000000001k", 0);
}

CLAIM (rates_times_shares_and_counts_have_their_units) {
  gives (units_parse_rate, "25 GB/s", 25000000000);
  gives (units_parse_rate, "25GB", 25000000000);
  gives (units_parse_rate, "1000000", 1000000);
  refuses (units_parse_rate, "25 GB/h");
  gives (units_parse_rate, "25gb/s", 25000000000);
  refuses (units_parse_rate, "200Gb/s");
  refuses (units_parse_rate, "200 Gib/s");
  gives (units_parse_time, "250us", 250000);
  gives (units_parse_time, "1.5 ms", 1500000);
  gives (units_parse_time, "2h", 7200000000000);
  gives (units_parse_time, "17", 17);
  refuses (units_parse_time, "17 days");
  gives (units_parse_share, "5%", 50000);
  gives (units_parse_share, "0.05", 50000);
  gives (units_parse_share, "12.5%", 125000);
  gives (units_parse_share, "20 ppm", 20);
  gives (units_parse_share, "1", 1000000);
}

CLAIM (a_count_is_whole_and_within_its_bounds) {
  error err = { 0 };
  int64_t count = 0;
  ck_assert (units_parse_count ("64", 1, 64, &count, &err));
  ck_assert_int_eq (count, 64);
  ck_assert (!units_parse_count ("65", 1, 64, &count, &err));
  ck_says (&err, "65 is not between 1 and 64");
  err = (error){ 0 };
  ck_assert (!units_parse_count ("1.5", 1, 64, &count, &err));
  ck_says (&err, "`1.5` is not a whole number");
  err = (error){ 0 };
  ck_assert (!units_parse_count ("8k", 1, 64, &count, &err));
}

CLAIM (a_quantity_lies_within_its_range) {
  const units_range rate = { UNITS_RATE, 1000000, (int64_t)1 << 53 };
  const units_range amount = { UNITS_AMOUNT, 0, (int64_t)1 << 53 };
  error err = { 0 };
  int64_t got = 7;
  ck_assert (!units_parse_within ("0", &rate, 0, &got, &err));
  ck_says (&err, "0 is not between 1000000 B/s and 9007199254740992 B/s");
  ck_assert_int_eq (got, 7);
  err = (error){ 0 };
  ck_assert (!units_parse_within ("4611686018427387904", &rate, 0, &got, &err));
  err = (error){ 0 };
  ck_assert (units_parse_within ("25 GB/s", &rate, 0, &got, &err));
  ck_assert (got == 25000000000);
  ck_assert (units_parse_within ("50%", &amount, (int64_t)1 << 53, &got, &err));
  ck_assert (got == (int64_t)1 << 52);
  ck_assert (!units_parse_within ("101%", &amount, (int64_t)1 << 53, &got, &err));
  err = (error){ 0 };
  ck_assert (!units_parse_within ("9223372036854%", &amount, (int64_t)1 << 60, &got, &err));
}

CLAIM (values_are_shown_with_three_digits) {
  char text[UNITS_TEXT];
  ck_assert_str_eq (units_bytes (text, 0), "0 B");
  ck_assert_str_eq (units_bytes (text, 1023), "1023 B");
  ck_assert_str_eq (units_bytes (text, 1024), "1.00 KiB");
  ck_assert_str_eq (units_bytes_down (text, 6291455), "5.99 MiB");
  ck_assert_str_eq (units_bytes_up (text, 6291455), "6.00 MiB");
  ck_assert_str_eq (units_bytes_up (text, 6291456), "6.00 MiB");
  ck_assert_str_eq (units_bytes_up (text, 6291457), "6.01 MiB");
  ck_assert_str_eq (units_bytes_up (text, INT64_MAX), "8192 PiB");
  ck_assert_str_eq (units_bytes_down (text, 1023), "1023 B");
  ck_assert_str_eq (units_bytes (text, 12884901888), "12.0 GiB");
  ck_assert_str_eq (units_bytes (text, 158913789952), "148 GiB");
  ck_assert_str_eq (units_bytes (text, -1536), "-1.50 KiB");
  ck_assert_str_eq (units_rate (text, 12000000000), "12.0 GB/s");
  ck_assert_str_eq (units_time (text, 41250000), "41.2 ms");
  ck_assert_str_eq (units_time (text, 999), "999 ns");
}

/* 999.96 KB would print as "1000 KB" with no decimals: it is 1.00 MB. */
CLAIM (nothing_is_shown_as_a_whole_next_unit) {
  char text[UNITS_TEXT];
  ck_assert_str_eq (units_time (text, 999499), "999 us");
  ck_assert_str_eq (units_time (text, 999500), "1.00 ms");
  ck_assert_str_eq (units_rate (text, 999700000), "1.00 GB/s");
  ck_assert_str_eq (units_bytes (text, 1024 * 1024 - 1), "1.00 MiB");
  ck_assert_str_eq (units_bytes (text, 1024 * 1023), "1023 KiB");
}

CLAIM (what_is_shown_is_near_what_it_shows) {
  random_state r = random_seed (5);
  for (int i = 0; i < 2000; i++) {
    int64_t value = random_between (&r, 1, INT64_MAX >> random_between (&r, 0, 62)), back = 0;
    char text[UNITS_TEXT];
    error err = { 0 };
    ck_assert_msg (units_parse_bytes (units_bytes (text, value), &back, &err), "%s", err.text);
    int64_t off = back > value ? back - value : value - back;
    ck_assert_msg (off <= value / 180, "%lld shown as %s", (long long)value, text);
    value >>= 1; /* rounded up it still has to be a number */
    ck_assert (units_parse_bytes (units_bytes_up (text, value), &back, &err) && back >= value);
    ck_assert (units_parse_bytes (units_bytes_down (text, value), &back, &err) && back <= value);
  }
}

CLAIM (products_do_not_overflow_on_the_way) {
  ck_assert_int_eq (units_scale (INT64_MAX, 7, 7), INT64_MAX);
  ck_assert_int_eq (units_scale (10, 10, 3), 33);
  ck_assert_int_eq (units_scale ((int64_t)1 << 53, (int64_t)1 << 53, 1000000000), INT64_MAX);
  ck_assert_int_eq (units_div_up (0, 5), 0);
  ck_assert_int_eq (units_div_up (1, 5), 1);
  ck_assert_int_eq (units_div_up (INT64_MAX, INT64_MAX), 1);
  ck_assert_int_eq (units_div_up (INT64_MAX, 2), (int64_t)1 << 62);
}

int main (void) {
  return suite_run ("units", 20);
}
