/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/random.h"
#include "tests/suite.h"

static json_document *opened (const char *text) {
  error err = { 0 };
  json_document *d = json_open (text, (int64_t)strlen (text), &err);
  ck_assert_msg (d != NULL, "%s: %s", text, err.text);
  return d;
}

CLAIM (what_is_not_json_is_refused_with_its_line) {
  static const char *const texts[] = {
    "{",
    "{\"a\":1,}",
    "{\"a\":1}x",
    "[NaN]",
    "[Infinity]",
    "[1e999]",
    "[99999999999999999999]",
    "{\"a\":1,\"a\":2}",
    "[01]",
    "['a']",
    "[\"\\u0000\"]",
    "[\"\xff\"]",
    "nul",
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    error err = { 0 };
    json_document *d = json_open (texts[i], (int64_t)strlen (texts[i]), &err);
    ck_assert_msg (!d, "%s", texts[i]);
    ck_assert_int_eq (err.code, ERR_input);
    ck_assert_int_ge (err.line, 1);
    ck_assert_ptr_nonnull (strstr (err.text, "not JSON: "));
  }
  error err = { 0 };
  const char *third = "{\n \"a\": 1,\n oops }";
  ck_assert_ptr_null (json_open (third, (int64_t)strlen (third), &err));
  ck_assert_int_eq (err.line, 3);
}

CLAIM (a_mark_of_utf8_says_nothing) {
  error err = { 0 };
  const char *good = "\xef\xbb\xbf{}", *bad = "\xef\xbb\xbf\xef\xbb\xbf{}",
             *late = "\xef\xbb\xbf{x";
  json_document *d = json_open (good, 5, &err);
  ck_assert_ptr_nonnull (d);
  json_close (d);
  ck_assert_ptr_null (json_open (bad, 8, &err));
  err = (error){ 0 };
  ck_assert_ptr_null (json_open (late, 5, &err));
  ck_assert_ptr_nonnull (strstr (err.text, "(byte 5)"));
  err = (error){ 0 };
  ck_assert_ptr_null (json_open (NULL, 0, &err)); /* an answer without a body */
  ck_assert_str_eq (err.text, "empty, where JSON is expected");
}

CLAIM (depth_is_bounded) {
  enum { DEEP = 100000 };
  static char text[DEEP];
  error err = { 0 };
  memset (text, '[', DEEP);
  ck_assert_ptr_null (json_open (text, DEEP, &err));
  ck_assert_int_eq (err.code, ERR_input);
}

CLAIM (complaints_name_their_place_as_a_pointer) {
  json_document *d = opened ("{\"ops\":[{},{\"a/b~c\":[1,\"x\"]}]}");
  json root = json_root (d), ops = json_member (&root, "ops"), op = json_element (&ops, 1);
  json odd = json_member (&op, "a/b~c"), x = json_element (&odd, 1);
  int64_t value = 0;
  error err = { 0 };
  ck_assert (!json_get_int (&x, 0, 9, &value, &err));
  ck_says (&err, "/ops/1/a~1b~0c/1: a whole number is needed here, not a text");
  err = (error){ 0 };
  json none;
  ck_assert (!json_need (&op, "ns", &none, &err));
  ck_says (&err, "/ops/1: `ns` is missing");
  err = (error){ 0 };
  ck_assert (!json_error (&root, &err, "whole file"));
  ck_says (&err, "whole file");
  json_close (d);
}

CLAIM (a_pointer_too_long_is_cut_not_overrun) {
  char text[1200], key[1000];
  memset (key, '/', sizeof key - 1);
  key[sizeof key - 1] = 0;
  snprintf (text, sizeof text, "{\"%s\":{\"b\":[true]}}", key);
  json_document *d = opened (text);
  json root = json_root (d), a = json_member (&root, key), b = json_member (&a, "b");
  json leaf = json_element (&b, 0);
  error err = { 0 };
  ck_assert (!json_error (&leaf, &err, "here"));
  ck_assert_uint_lt (strlen (err.where), sizeof err.where);
  ck_assert_str_eq (err.text, "here");
  json_close (d);
}

CLAIM (values_are_read_within_their_bounds) {
  json_document *d =
      opened ("{\"i\":-5,\"big\":9223372036854775807,\"t\":true,\"s\":\"x\",\"r\":1.5,"
              "\"n\":null,\"c\":\"a\\tb\"}");
  json root = json_root (d);
  int64_t i = 0;
  int32_t small = 3;
  bool flag = false;
  double real = 0;
  const char *text = NULL;
  error err = { 0 };
  json at = json_member (&root, "i");
  ck_assert (json_get_int (&at, -5, 0, &i, &err) && i == -5);
  ck_assert (!json_get_int (&at, -4, 0, &i, &err));
  ck_says (&err, "/i: -5 is not between -4 and 0");
  at = json_member (&root, "big");
  err = (error){ 0 };
  ck_assert (json_get_int (&at, 0, INT64_MAX, &i, &err) && i == INT64_MAX);
  ck_assert (!json_get_int32 (&at, INT32_MIN, INT32_MAX, &small, &err) && small == 3);
  err = (error){ 0 };
  at = json_member (&root, "t");
  ck_assert (json_get_bool (&at, &flag, &err) && flag);
  ck_assert (!json_get_int (&at, 0, 9, &i, &err));
  err = (error){ 0 };
  at = json_member (&root, "s");
  ck_assert (json_get_text (&at, &text, &err) && strcmp (text, "x") == 0);
  ck_assert (!json_get_bool (&at, &flag, &err));
  err = (error){ 0 };
  at = json_member (&root, "r");
  ck_assert (json_get_double (&at, &real, &err) && real == 1.5);
  ck_assert (!json_get_int (&at, 0, 9, &i, &err));
  ck_says (&err, "/r: a whole number is needed here, not a fraction");
  err = (error){ 0 };
  at = json_member (&root, "c");
  ck_assert (!json_get_text (&at, &text, &err));
  ck_says (&err, "/c: the text holds a control character");
  json_close (d);
}

CLAIM (absent_and_null_leave_the_default) {
  json_document *d = opened ("{\"n\":null}");
  json root = json_root (d), null = json_member (&root, "n"), none = json_member (&root, "x");
  int64_t i = 7;
  const char *text = "kept";
  int word = 2;
  static const char *const words[] = { "a", "b", "c", NULL };
  error err = { 0 };
  ck_assert (json_is_absent (&null) && json_is_absent (&none));
  ck_assert (json_get_int (&null, 0, 1, &i, &err) && json_get_int (&none, 0, 1, &i, &err) &&
             i == 7);
  ck_assert (json_get_text (&null, &text, &err) && strcmp (text, "kept") == 0);
  ck_assert (json_get_word (&none, words, &word, &err) && word == 2);
  json_close (d);
}

CLAIM (a_word_that_is_not_in_the_list_gets_the_list) {
  json_document *d = opened ("[\"level\",\"deep\"]");
  json root = json_root (d), first = json_element (&root, 0), second = json_element (&root, 1);
  static const char *const words[] = { "level", "depth", NULL };
  int word = -1;
  error err = { 0 };
  ck_assert (json_get_word (&first, words, &word, &err) && word == 0);
  ck_assert (!json_get_word (&second, words, &word, &err));
  ck_says (&err, "/1: `deep` is not one of: level, depth");
  json_close (d);
}

static void count_warning (void *context, log_level level, const char *text) {
  ck_assert_int_eq (level, LOG_WARNING);
  ck_assert_str_eq (text, "/colour: unknown key, ignored");
  ++*(int *)context;
}

CLAIM (an_unknown_key_is_a_warning_or_an_error) {
  json_document *d = opened ("{\"name\":1,\"colour\":2}");
  json root = json_root (d);
  static const char *const keys[] = { "name", NULL };
  int warnings = 0;
  logger log = { count_warning, &warnings };
  error err = { 0 };
  ck_assert (json_known (&root, keys, false, &log, &err));
  ck_assert_int_eq (warnings, 1);
  ck_assert (!json_known (&root, keys, true, &log, &err));
  ck_says (&err, "/colour: unknown key");
  json_close (d);
}

CLAIM (many_numbers_are_read_at_once) {
  json_document *d = opened ("[1,null,3]");
  json root = json_root (d);
  int64_t out[3];
  error err = { 0 };
  ck_assert (json_get_ints (&root, 0, 3, -1, out, 3, &err));
  ck_assert (out[0] == 1 && out[1] == -1 && out[2] == 3);
  ck_assert (!json_get_ints (&root, 0, 2, -1, out, 3, &err));
  ck_says (&err, "/2: 3 is not between 0 and 2");
  json_close (d);
}

CLAIM_IN_ARENA (canonical_text_is_sorted_compact_and_unescaped) {
  json_document *d =
      opened ("{ \"b\" : [ 1 , {\"\\u00e9\":\"\\u20ac\", \"Z\":null} ], \"a\":true,\n"
              "\"B\":\"q\\\"\\\\\\/\" }");
  json root = json_root (d);
  ck_assert_str_eq (
      json_canonical (&root, false, a, &err),
      "{\"B\":\"q\\\"\\\\/\",\"a\":true,\"b\":[1,{\"Z\":null,\"\xc3\xa9\":\"\xe2\x82\xac\"}]}");
  json_close (d);
}

CLAIM (canonical_text_has_no_fractions_and_no_control_characters) {
  static const char *const refused[][2] = {
    { "{\"a\":[0,1.5]}", "/a/1: numbers are whole here" },
    { "{\"a\":\"x\\ny\"}", "/a: the text holds a control character" },
    { "{\"a\":{\"x\\ny\":1}}", "/a: a key holds a control character" },
  };
  arena *a = arena_new (0);
  for (int i = 0; i < 3; i++) {
    json_document *d = opened (refused[i][0]);
    json root = json_root (d);
    error err = { 0 };
    ck_assert_ptr_null (json_canonical (&root, false, a, &err));
    ck_says (&err, refused[i][1]);
    json_close (d);
  }
  arena_free (a);
}

static const char *finished (json_writer *w, arena *a) {
  bytes out = { 0 };
  error err = { 0 };
  ck_assert (json_finish (w, &out, &err));
  const char *text = arena_string (a, out.data, &err);
  ck_assert_int_eq ((int64_t)strlen (text), out.size);
  bytes_free (&out);
  return text;
}

CLAIM_IN_ARENA (the_writer_escapes_and_nests) {
  json_writer w;
  json_begin (&w, 0);
  json_open_object (&w);
  json_add_fixed (&w, "f", 2.0 / 3, 3);
  json_add_array (&w, "list");
  json_put_int (&w, INT64_MIN);
  json_put_int (&w, INT64_MAX);
  json_put_null (&w);
  json_open_object (&w);
  json_close_object (&w);
  json_open_array (&w);
  json_close_array (&w);
  json_close_array (&w);
  json_add_raw (&w, "raw", "{\"x\":1}");
  json_add_text (&w, "text", "q\" b\\ t\t \xe2\x82\xac \x01");
  json_add_text (&w, "text2", NULL);
  json_add_bool (&w, "yes", true);
  json_close_object (&w);
  ck_assert_str_eq (finished (&w, a),
                    "{\"f\":0.667,\"list\":[-9223372036854775808,9223372036854775807,null,{},[]],"
                    "\"raw\":{\"x\":1},\"text\":\"q\\\" b\\\\ t\\u0009 \xe2\x82\xac \\u0001\","
                    "\"text2\":null,\"yes\":true}");
}

CLAIM (the_writer_writes_utf8_whatever_it_is_given) {
  static const char *const texts[][2] = {
    { "\xc3", "?" }, /* cut off in the middle of a character */
    { "a\xff\x80z", "a??z" },
    { "\xc0\xaf \xed\xa0\x80 \xf4\x90\x80\x80", "?? ??? ????" },
    { "\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80\x7f", "\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80\x7f" },
  };
  arena *a = arena_new (0);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    json_writer w;
    error err = { 0 };
    const char *got = NULL;
    json_begin (&w, 0);
    json_put_text (&w, texts[i][0]);
    const char *text = finished (&w, a);
    json_document *d = json_open (text, (int64_t)strlen (text), &err);
    ck_assert_msg (d, "%s: %s", text, err.text);
    json root = json_root (d);
    ck_assert (json_get_text (&root, &got, &err));
    ck_assert_str_eq (got, texts[i][1]);
    json_close (d);
  }
  arena_free (a);
}

CLAIM_IN_ARENA (pretty_text_has_one_member_a_line_down_to_its_depth) {
  json_writer w;
  json_begin (&w, 1);
  json_open_object (&w);
  json_add_int (&w, "a", 1);
  json_add_array (&w, "b");
  json_put_int (&w, 2);
  json_put_int (&w, 3);
  json_close_array (&w);
  json_close_object (&w);
  ck_assert_str_eq (finished (&w, a), "{\n  \"a\": 1,\n  \"b\": [2,3]\n}\n");
}

CLAIM_IN_ARENA (what_has_no_number_is_written_as_null) {
  json_writer w;
  json_begin (&w, 0);
  json_open_array (&w);
  json_put_fixed (&w, NAN, 2);
  json_put_fixed (&w, INFINITY, 2);
  json_put_fixed (&w, -0.001, 2);
  json_close_array (&w);
  ck_assert_str_eq (finished (&w, a), "[null,null,-0.00]");
}

/* Random documents: the writer's text, read and made canonical, is the same text. */
static void put_random (json_writer *w, random_state *r, int depth) {
  static const char *const texts[] = { "", "a", "\"\\/", "\xc3\xa9", "long long long text", "~" };
  switch (random_between (r, 0, depth > 4 ? 3 : 5)) {
  case 0:
    json_put_int (w, (int64_t)random_next (r) >> random_between (r, 0, 60));
    break;
  case 1:
    json_put_bool (w, random_chance (r, 500000));
    break;
  case 2:
    json_put_null (w);
    break;
  case 3:
    json_put_text (w, texts[random_between (r, 0, 5)]);
    break;
  case 4:
    json_open_array (w);
    for (int64_t n = random_between (r, 0, 4); n > 0; n--)
      put_random (w, r, depth + 1);
    json_close_array (w);
    break;
  default:
    json_open_object (w);
    for (char key[2] = "a"; key[0] < 'f'; key[0]++)
      if (random_chance (r, 500000)) {
        json_put_key (w, key);
        put_random (w, r, depth + 1);
      }
    json_close_object (w);
  }
}

CLAIM_IN_ARENA (written_read_and_canonical_again_is_the_same_text) {
  random_state r = random_seed (13);
  for (int round = 0; round < 500; round++) {
    json_writer w;
    error err = { 0 };
    json_begin (&w, 0);
    put_random (&w, &r, 0);
    const char *text = finished (&w, a);
    json_document *d = opened (text);
    json root = json_root (d);
    ck_assert_str_eq (json_canonical (&root, false, a, &err), text);
    json_close (d);
  }
}

CLAIM (a_canonical_text_that_does_not_fit_fails_cleanly) {
  json_document *d = opened ("{\"a\":[1,2,3]}");
  json root = json_root (d);
  arena *a = arena_new (0);
  error err = { 0 };
  arena_fuse (a, 1);
  ck_assert_ptr_null (json_canonical (&root, false, a, &err));
  ck_assert_int_eq (err.code, ERR_memory);
  json_close (d);
  arena_free (a);
}

int main (void) {
  return suite_run ("json", 20);
}
