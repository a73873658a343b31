/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Answers that never change, kept in memory as libmicrohttpd sends them: a second one needs neither
   the store nor a thread of ours. */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct answers answers;

answers *answers_new (error *err) MUST_CHECK;
void answers_free (answers *a);
/* Takes the response over. A key of NULL keeps nothing; another's place may be taken, and where all
   would be more than 16 MiB those of others.  After an hour it is asked for again, so that the
   store knows of those who look.  now_s: of any clock that goes on. */
void answers_keep (answers *a, const char *key, struct MHD_Response *response, int64_t bytes,
                   int64_t now_s);
/* True: the connection has the answer of that key, of *bytes, and *result is the library's
   word on it. */
bool answers_queue (answers *a, const char *key, struct MHD_Connection *to, int64_t now_s,
                    int64_t *bytes, enum MHD_Result *result) MUST_CHECK;
void answers_forget (answers *a);
