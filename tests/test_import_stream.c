/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The pull reader of JSON, and decimal numbers without doubles. */
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "tests/suite.h"
#include "trace/import/common/intern.h"

static int64_t decimal (const char *text, int scale) {
  int64_t value = -1;
  ck_assert_msg (slice_decimal ((slice){ text, (int64_t)strlen (text), false }, scale, &value),
                 "%s", text);
  return value;
}

static bool is_decimal (const char *text, int scale) {
  int64_t value;
  return slice_decimal ((slice){ text, (int64_t)strlen (text), false }, scale, &value);
}

CLAIM (microseconds_since_1970_keep_every_nanosecond) {
  /* as a double this is 256 ns off */
  ck_assert_int_eq (decimal ("1719746639123456.789", 3), 1719746639123456789);
  ck_assert_int_eq (decimal ("1719746639123456.7894", 3), 1719746639123456789);
  ck_assert_int_eq (decimal ("1719746639123456.7895", 3), 1719746639123456790);
  ck_assert_int_eq (decimal ("0.001", 3), 1);
  ck_assert_int_eq (decimal ("12", 3), 12000);
  ck_assert_int_eq (decimal ("-1.5", 3), -1500);
  ck_assert_int_eq (decimal ("1.5e3", 3), 1500000);
  ck_assert_int_eq (decimal ("15E-1", 3), 1500);
  ck_assert_int_eq (decimal ("5e-1", 0), 1);
  ck_assert_int_eq (decimal ("4e-1", 0), 0);
  ck_assert_int_eq (decimal ("0e9999", 3), 0);
}

CLAIM (decimals_that_do_not_fit_or_are_none_are_refused) {
  static const char *const bad[] = { "",     "-",   ".",  "1.2.3", "9223372036854775808",
                                     "1e19", "abc", "1e", "1e+",   "nan",
                                     "1 2",  "--1" };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    ck_assert_msg (!is_decimal (bad[i], 0), "%s", bad[i]);
  ck_assert (!is_decimal ("9223372036854775.808", 3));
  ck_assert (is_decimal ("9223372036854775.807", 3));
}

CLAIM (decimals_agree_with_long_double_where_that_is_exact) {
  random_state r = random_seed (7);
  for (int i = 0; i < 20000; i++) {
    char text[64];
    int64_t whole = random_between (&r, 0, 1000000000), part = random_between (&r, 0, 999999);
    snprintf (text, sizeof text, "%lld.%06lld", (long long)whole, (long long)part);
    int64_t expected = whole * 1000 + (part + 500) / 1000;
    ck_assert_int_eq (decimal (text, 3), expected);
  }
}

static bool skips (const char *text, error *err) {
  memset (err, 0, sizeof *err);
  stream s = stream_open (text, (int64_t)strlen (text), err);
  return stream_skip (&s) && stream_end (&s);
}

CLAIM (documents_are_told_from_what_is_none) {
  static const char *const good[] = { "{}",
                                      "[]",
                                      " [1, -2.5e3, \"a\\\"b\", true, false, null, {\"k\": [[]]}] ",
                                      "1",
                                      "nan",
                                      "[inf, -Infinity, NaN]",
                                      "\xef\xbb\xbf{}" };
  static const char *const bad[] = { "",        "{",     "[1",  "[1,]", "{\"a\":1,}", "{\"a\" 1}",
                                     "{a:1}",   "[1 2]", "tru", "01x",  "[}",         "\"a",
                                     "[1]]",    "-",     "1.",  "[,1]", "\"\\",       "{\"a\"",
                                     "{\"a\":", "nul",   "1e" };
  error err;
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
    ck_assert_msg (skips (good[i], &err), "%s: %s", good[i], err.text);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    ck_assert_msg (!skips (bad[i], &err), "%s", bad[i]);
    ck_assert_int_eq (err.code, ERR_input);
  }
}

CLAIM (mistakes_name_their_line_and_byte) {
  error err;
  ck_assert (!skips ("{\n \"a\": 1,\n \"b\": ?\n}", &err));
  ck_assert_int_eq (err.line, 3);
  ck_assert_str_eq (err.text, "byte 17: a value was expected, not '?'");
  ck_assert (!skips ("[1, 2", &err));
  ck_assert_str_eq (err.text,
                    "byte 5: the text ends in the middle: was the profiler killed, or the "
                    "copy cut?");
}

CLAIM (a_text_cut_anywhere_is_a_mistake) {
  const char *text = "{\"a\": [1, {\"b\": \"x\\\"y\"}, -2.5], \"c\": null}";
  char cut[100];
  error err;
  for (size_t n = 0; n < strlen (text); n++) {
    snprintf (cut, sizeof cut, "%.*s", (int)n, text);
    ck_assert_msg (!skips (cut, &err), "%s", cut);
  }
  ck_assert (skips (text, &err));
}

CLAIM (depth_is_bounded) {
  char text[2 * STREAM_DEPTH + 3];
  error err;
  memset (text, '[', STREAM_DEPTH);
  memset (text + STREAM_DEPTH, ']', STREAM_DEPTH);
  text[2 * STREAM_DEPTH] = 0;
  ck_assert (skips (text, &err));
  memset (text, '[', STREAM_DEPTH + 1);
  memset (text + STREAM_DEPTH + 1, ']', STREAM_DEPTH + 1);
  text[2 * STREAM_DEPTH + 2] = 0;
  ck_assert (!skips (text, &err));
}

CLAIM_IN_ARENA (names_are_made_fit_for_a_trace) {
  static const char *const rows[][2] = { { "plain", "plain" },
                                         { "tab\tnew\nline", "tab?new?line" },
                                         { "caf\xc3\xa9", "caf\xc3\xa9" },
                                         { "cut \xc3", "cut ?" },
                                         { "\xed\xa0\x80", "???" },
                                         { "caf\\u00e9 \\u4E2d\\ud83d\\ude00",
                                           "caf\xc3\xa9 \xe4\xb8\xad\xf0\x9f\x98\x80" },
                                         { "\\ud83d\\u0041\\ude00\\u0007\\u12\\u", "?A???" },
                                         { "q\\\"\\\\\\u0041\\n", "q\"\\A " } };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    slice s = { rows[i][0], (int64_t)strlen (rows[i][0]), true };
    ck_assert_str_eq (slice_name (s, a, &err), rows[i][1]);
  }
}

CLAIM_IN_ARENA (interned_texts_and_ids_come_back) {
  intern names = intern_new (a);
  id_map ids = id_map_new (a);
  for (int round = 0; round < 2; round++)
    for (int i = 0; i < 5000; i++) {
      char text[32];
      snprintf (text, sizeof text, "name %d", i);
      ck_assert_int_eq (
          intern_add (&names, (slice){ text, (int64_t)strlen (text), false }, true, &err), i);
      int32_t *at = id_map_at (&ids, (int64_t)i << 32, &err);
      ck_assert_int_eq (*at, round ? i : -1);
      *at = i;
    }
  ck_assert_int_eq (intern_find (&names, (slice){ "other", 5, false }), -1);
  ck_assert_int_eq (id_map_find (&ids, 5), -1);
}

int main (void) {
  return suite_run ("import_stream", 10);
}
