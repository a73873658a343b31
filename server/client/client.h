/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The client of the service; the only door to libcurl.  What the server cannot take now is tried
   again, later each time; a server that is away is one clear line. */
#pragma once

#include "base/arena.h"
#include "base/file.h"

typedef struct client client;

/* url: "http://127.0.0.1:8077" or "unix:/path"; token may be NULL. */
bool client_takes (const char *url, error *err) MUST_CHECK; /* false: it is neither */
client *client_new (const char *url, const char *token, arena *a, error *err) MUST_CHECK;
void client_free (client *c);

typedef struct answer {
  int status;
  bytes body;
  char location[256]; /* the header, or "" */
  char next[256];     /* the path of a list's next page, or "" */
} answer;

/* One request; `body` NULL: none. A status of 400 or more is an error that says the problem's
   detail, except 404, which the caller looks at. An error leaves no body. */
bool client_ask (client *c, const char *method, const char *path, const bytes *body, answer *out,
                 error *err) MUST_CHECK;
/* True: the answer is that problem, without "/problems/". */
bool client_is_problem (const answer *a, const char *name);
/* *err: a path of the service is not there, so it is another that answers. */
bool client_elsewhere (const client *c, error *err);
/* Sends the file, or the files of one run, compressed, unless the server has them; id: of the
   trace that they make. */
bool client_upload (client *c, const char *const *paths, int n, const char *fingerprint,
                    char id[65], error *err) MUST_CHECK;
/* The same with the text of a trace. */
bool client_upload_text (client *c, const bytes *text, char id[65], error *err) MUST_CHECK;
/* Asks for a job; job: "/v1/KIND/ID". */
bool client_submit (client *c, const char *kind, const char *request, char job[256],
                    error *err) MUST_CHECK;
/* Waits until the job has ended; calls back for each incumbent (JSON). `status` is its last state,
   as JSON. */
typedef void client_told (void *context, const char *data);
bool client_follow (client *c, const char *job, client_told *told, void *context, bytes *status,
                    error *err) MUST_CHECK;
