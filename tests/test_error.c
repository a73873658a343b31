/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <string.h>

#include "base/error.h"
#include "tests/suite.h"

CLAIM (the_first_report_wins) {
  error err = { 0 };
  ck_assert (!error_set (&err, ERR_input, "first %d", 1));
  ck_assert (!error_at (&err, ERR_memory, "/ops/3", "second"));
  ck_assert_int_eq (err.code, ERR_input);
  ck_says (&err, "first 1");
}

CLAIM (path_line_and_place_lead_the_text) {
  error err = { 0 };
  error_at (&err, ERR_input, "/ops/3/ns", "-5 is not between 0 and 9");
  err.line = 12;
  error_in_file (&err, "a.json");
  error_in_file (&err, "outer.json");
  ck_says (&err, "a.json:12: /ops/3/ns: -5 is not between 0 and 9");
}

CLAIM (nothing_happened_names_no_file) {
  error err = { 0 };
  error_in_file (&err, "a.json");
  ck_assert_str_eq (err.path, "");
}

CLAIM (a_message_is_one_line_whatever_the_input_holds) {
  error err = { 0 };
  error_at (&err, ERR_input, "/a\nb", "`%s`", "x\r\n\x1b[31m\x7f");
  error_in_file (&err, "evil\nname");
  char line[sizeof (error)];
  error_line (&err, line, sizeof line);
  for (const char *at = line; *at; at++)
    ck_assert_int_ge ((unsigned char)*at, 0x20);
  ck_assert_ptr_null (strchr (line, 0x7f));
}

CLAIM (a_long_message_is_cut_not_overrun) {
  char long_text[4000];
  memset (long_text, 'x', sizeof long_text - 1);
  long_text[sizeof long_text - 1] = 0;
  error err = { 0 };
  error_at (&err, ERR_input, long_text, "%s", long_text);
  error_in_file (&err, long_text);
  ck_assert_uint_eq (strlen (err.text), sizeof err.text - 1);
  char line[40];
  error_line (&err, line, sizeof line);
  ck_assert_uint_eq (strlen (line), sizeof line - 1);
}

CLAIM (no_error_struct_is_allowed) {
  ck_assert (!error_set (NULL, ERR_input, "lost"));
}

CLAIM (every_code_has_the_statuses_of_its_row) {
  static const struct {
    const char *name;
    int exit;
  } rows[] = {
#define ERROR(name, exit, when) { #name, exit },
#include "base/error.def"
#undef ERROR
  };
  for (int code = 0; code < ERROR_CODES; code++) {
    ck_assert_str_eq (error_name (code), rows[code].name);
    ck_assert_int_eq (error_exit_status (code), rows[code].exit);
  }
}

CLAIM (exit_statuses_are_those_that_scripts_rely_on) {
  ck_assert_int_eq (error_exit_status (ERR_none), 0);
  ck_assert_int_eq (error_exit_status (ERR_infeasible), 1);
  ck_assert_int_eq (error_exit_status (ERR_usage), 2);
  ck_assert_int_eq (error_exit_status (ERR_input), 3);
  ck_assert_int_eq (error_exit_status (ERR_file), 3);
  ck_assert_int_eq (error_exit_status (ERR_limit), 4);
  ck_assert_int_eq (error_exit_status (ERR_unreachable), 69);
  ck_assert_int_eq (error_exit_status (ERR_internal), 70);
  ck_assert_int_eq (error_exit_status (ERR_interrupted), 130);
}

int main (void) {
  return suite_run ("error", 20);
}
