/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "base/parts.h"
#include "base/random.h"
#include "tests/suite.h"

enum { MOST = 4 };

static arena *a;

static int read_copy (const char *data, int64_t size, part out[MOST], error *err) {
  int n = 0;
  return parts_read (data, size, a, out, MOST, &n, err) ? n : -1;
}

CLAIM (files_come_out_as_they_went_in_whatever_they_hold) {
  random_state r = random_seed (7);
  for (int round = 0; round < 300; round++) {
    char data[MOST][400], boundary[PARTS_LINE];
    part in[MOST], out[MOST];
    bytes text = { 0 };
    error err = { 0 };
    int n = 1 + (int)random_between (&r, 0, MOST - 1);
    for (int i = 0; i < n; i++) {
      int64_t size = random_between (&r, 0, 399);
      for (int64_t k = 0; k < size; k++)
        data[i][k] = "\r\n-ab"[random_between (&r, 0, 4)];
      in[i] = (part){ "folder/a \"name\".json", data[i], size };
    }
    ck_assert (parts_write (in, n, &text, boundary, &err));
    ck_assert (parts_are (text.data, text.size));
    ck_assert_int_eq (read_copy (text.data, text.size, out, &err), n);
    for (int i = 0; i < n; i++) {
      ck_assert_str_eq (out[i].name, "a _name_.json");
      ck_assert_int_eq (out[i].size, in[i].size);
      ck_assert (memcmp (out[i].data, in[i].data, (size_t)in[i].size) == 0);
    }
    bytes_free (&text);
  }
}

CLAIM (every_truncation_is_noticed) {
  const part in[] = { { "x", "one", 3 }, { "y", "", 0 } };
  char boundary[PARTS_LINE];
  bytes text = { 0 };
  part out[MOST];
  error err = { 0 };
  ck_assert (parts_write (in, 2, &text, boundary, &err));
  for (int64_t size = 0; size < text.size - 2; size++) {
    error cut = { 0 };
    char *copy = malloc ((size_t)size + 1); /* so that a sanitizer sees a step beyond */
    ck_assert_ptr_nonnull (copy);
    memcpy (copy, text.data, (size_t)size);
    ck_assert_int_eq (read_copy (copy, size, out, &cut), -1);
    ck_assert_int_eq (cut.code, ERR_input);
    free (copy);
  }
  bytes_free (&text);
}

CLAIM (names_lose_their_folders_and_too_many_files_are_refused) {
  static const char text[] = "--b\r\ncontent-disposition: form-data; name=\"f\"; "
                             "filename=\"C:\\runs\\k.json\"\r\n\r\n1\r\n--b\r\n"
                             "Content-Type: text/plain\r\n\r\n2\r\n--b--";
  part out[MOST];
  error err = { 0 };
  int n = 0;
  ck_assert_int_eq (read_copy (text, sizeof text - 1, out, &err), 2);
  ck_assert_str_eq (out[0].name, "k.json");
  ck_assert_str_eq (out[1].name, "part");
  ck_assert_int_eq (out[1].size, 1);
  ck_assert (!parts_read (text, sizeof text - 1, a, out, 1, &n, &err));
  ck_assert_ptr_nonnull (strstr (err.text, "more than 1 files"));
}

CLAIM (what_ferry_imports_is_not_taken_for_parts) {
  static const char *const texts[] = { "",
                                       "-",
                                       "--",
                                       "--\r\n",
                                       "{\"traceEvents\": []}",
                                       "\r\nContent-",
                                       "--b\r\nother",
                                       "ferry-text/1\n",
                                       "id,lower,upper,size\n" };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    ck_assert (!parts_are (texts[i], (int64_t)strlen (texts[i])));
}

static void set_up (void) {
  a = arena_new (0);
}

static void tear_down (void) {
  arena_free (a);
}

int main (void) {
  return suite_run_with ("parts", set_up, tear_down, 30);
}
