/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A request and its reply, without sockets: what the routes take and give. */
#pragma once

#include "base/arena.h"
#include "base/json.h"

enum { MOST_FIELDS = 64, MOST_REPLY_FIELDS = 12, ID_TEXT = 33 };

/* Each may what the ones before may; site and admin also see every owner's advice. */
typedef enum role { ROLE_none, ROLE_read, ROLE_site, ROLE_submit, ROLE_admin, ROLES } role;

typedef struct field {
  const char *name, *value;
} field;

enum { REQUEST_PARTS = 4 };

typedef struct request {
  arena *arena; /* of all texts here, and for the route */
  const char *method, *path;
  field headers[MOST_FIELDS], query[MOST_FIELDS];
  int n_headers, n_query;
  bool crowded;                    /* there were more than are kept */
  bytes body;                      /* of a control request, decoded */
  const char *spool;               /* or of an upload: a file, as it was sent */
  char digest[65];                 /* of that file */
  int64_t body_bytes;              /* as sent */
  const char *owner;               /* the one who asks */
  role role;                       /* and what they may */
  char token[65];                  /* the digest of theirs; "": none is needed */
  char id[ID_TEXT];                /* of the request */
  char trace[56];                  /* the traceparent that was sent, or made */
  const char *part[REQUEST_PARTS]; /* of the path, where the template has {names} */
  char parts[120];                 /* their bytes, if they are short */
  int64_t began_ns;
  int64_t wait_until_ns; /* set by the first answer that waits */
  bool last;             /* it must not wait again */
} request;

typedef struct reply {
  int status;
  const char *type; /* of the body; a literal */
  bytes body;       /* malloc'ed */
  int file;         /* or an open file of file_bytes; -1: none */
  int64_t file_bytes;
  field headers[MOST_REPLY_FIELDS]; /* texts in the request's arena */
  int n_headers;
  bool keep;          /* the same bytes for ever: may be kept in memory */
  const char *wait;   /* ask again when this job changes, or at wait_until_ns */
  const char *stream; /* a stream of this job's events behind stream_after */
  int64_t stream_after;
} reply;

/* NULL where there is none; names of headers in any case. */
const char *request_header (const request *q, const char *name);
/* A field that is a list may come in several lines: all of them, with commas between. */
const char *request_list (const request *q, const char *name);
const char *request_query (const request *q, const char *name);
/* A text of JSON, in the request's arena; NULL: it is none. */
const char *request_text (request *q, const json *j);

bool text_is_printable (const char *text);
/* Texts of a request may hold anything; JSON takes no broken UTF-8: what is not ASCII is a `?`. */
void text_make_plain (char *text);
/* One of the words, which blanks divide. */
bool text_is_word (const char *text, const char *words);
/* Digits and nothing else, at most `most`. */
bool text_to_int (const char *text, int64_t most, int64_t *out);
/* No blanks, control characters or bytes beyond ASCII in path and query. */
bool request_is_printable (const request *q);
/* A fault of its head, by which a proxy in front could read another request; or NULL. */
const char *request_fault (const request *q, bool needs_host);
/* Takes the host off a target that names it, as proxies are sent it; or the fault of such a one. */
const char *request_target (request *q);
/* Its id, and the W3C trace context that was sent, or a new one. */
void request_name (request *q, uint64_t salt, uint64_t number);

void reply_start (reply *p);
void reply_free (reply *p);
void reply_header (reply *p, const char *name, const char *value);
/* The writer's text is the body. */
void reply_json (reply *p, int status, json_writer *w);
void reply_text (reply *p, int status, const char *type, const char *text);

/* A fault of a request's body. */
typedef struct fault {
  char pointer[96], detail[160];
} fault;

typedef enum problem {
#define PROBLEM(name, status, title) PROBLEM_##name,
#include "server/protocol/problems.def"
#undef PROBLEM
  PROBLEMS
} problem;

/* The digits of a status that replies have: a text that stays. */
const char *status_text (int status);
/* The reply becomes application/problem+json (RFC 9457). */
void reply_problem (reply *p, const request *q, problem kind, const char *format, ...)
    PRINTF_LIKE (4, 5);
void reply_faults (reply *p, const request *q, const fault *faults, int n);
/* A whole number of the query, where there is one; false: the reply says what is wrong. */
bool request_number (const request *q, reply *p, const char *name, int64_t most, int64_t *out);
/* The error that a function below reported. */
void reply_error (reply *p, const request *q, const error *err);
