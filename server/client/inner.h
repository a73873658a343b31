/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One exchange, for those who ask and those who listen. */
#pragma once

#include <curl/curl.h>

#include "server/client/client.h"

enum { ANSWER_S = 90, TRIES = 5, FIRST_WAIT_MS = 200, MOST_WAIT_MS = 10000 };
enum { MOST_URL = 512, MOST_PATH = 256 };

struct client {
  CURL *curl;
  char url[MOST_URL], socket[MOST_PATH], authorization[256];
  long retry_s; /* of the last answer's Retry-After; -1: none */
};

void client_set_up (client *c, const char *method, const char *url, const bytes *body);
struct curl_slist *client_headers (const client *c, const bytes *body, const char *more);
void client_pause (int64_t ms);
/* Both: *err, and false. */
bool client_away (const client *c, CURLcode code, error *err);
bool client_complain (const answer *a, const char *path, error *err);
