/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Answers kept in memory: the newest stay, all together within their limit, and none is leaked. */
#include <stdlib.h>
#include <string.h>

#include "server/http/answers.h"
#include "tests/suite.h"

enum { LIMIT = 16 << 20 };

static int64_t made_bytes, freed_bytes;

static void give_back (void *of) {
  freed_bytes += *(int64_t *)of;
  free (of);
}

static void keep (answers *a, const char *key, int64_t bytes) {
  int64_t *body = malloc (sizeof *body);
  ck_assert_ptr_nonnull (body);
  *body = bytes;
  made_bytes += bytes;
  struct MHD_Response *r =
      MHD_create_response_from_buffer_with_free_callback (sizeof *body, body, give_back);
  ck_assert_ptr_nonnull (r);
  answers_keep (a, key, r, bytes, 1000);
}

static bool has_at (answers *a, const char *key, int64_t now_s) {
  enum MHD_Result none;
  int64_t bytes;
  return answers_queue (a, key, NULL, now_s, &bytes, &none);
}

static bool has (answers *a, const char *key) {
  return has_at (a, key, 1000);
}

static answers *fresh (void) {
  error err = { 0 };
  answers *a = answers_new (&err);
  ck_assert_ptr_nonnull (a);
  made_bytes = freed_bytes = 0;
  return a;
}

CLAIM_EACH (they_are_never_more_bytes_than_their_limit, 0, 3) {
  answers *a = fresh ();
  uint64_t z = (uint64_t)_i + 1;
  char key[32];
  for (int i = 0; i < 2000; i++) {
    z = z * 6364136223846793005u + 1442695040888963407u;
    snprintf (key, sizeof key, "owner /v1/schedules/%d", i);
    keep (a, key, (int64_t)(z >> 40) % (1 << 20));
    ck_assert (has (a, key));
    ck_assert_int_le (made_bytes - freed_bytes, LIMIT);
  }
  ck_assert_int_gt (made_bytes - freed_bytes, LIMIT / 2); /* and they use it */
  answers_free (a);
  ck_assert_int_eq (freed_bytes, made_bytes);
}

CLAIM (one_that_alone_is_too_large_is_not_kept) {
  answers *a = fresh ();
  keep (a, "small", 10);
  keep (a, "large", LIMIT + 1);
  ck_assert (has (a, "small"));
  ck_assert (!has (a, "large"));
  ck_assert_int_eq (freed_bytes, LIMIT + 1);
  keep (a, "whole", LIMIT);
  ck_assert (has (a, "whole"));
  ck_assert (!has (a, "small"));
  keep (a, NULL, 5);
  answers_free (a);
  ck_assert_int_eq (freed_bytes, made_bytes);
}

/* The store learns then that somebody looks at it still. */
CLAIM (one_of_an_hour_ago_is_asked_for_again) {
  answers *a = fresh ();
  keep (a, "key", 10);
  ck_assert (has_at (a, "key", 1000 + 3599));
  ck_assert (!has_at (a, "key", 1000 + 3600));
  answers_free (a);
}

CLAIM (the_same_key_again_takes_the_place_of_the_first) {
  answers *a = fresh ();
  for (int i = 0; i < 100; i++)
    keep (a, "same", 1 << 20);
  ck_assert_int_eq (made_bytes - freed_bytes, 1 << 20);
  answers_forget (a);
  ck_assert (!has (a, "same"));
  ck_assert_int_eq (freed_bytes, made_bytes);
  answers_free (a);
}

int main (void) {
  return suite_run ("answers", 60);
}
