/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "server/api/routes.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"

const route routes[] = {
#define ROUTE(method, path, role, body, query, function) \
  { #method, path, ROLE_##role, body, query, function },
#include "server/api/routes.def"
#undef ROUTE
};

const int n_routes = sizeof routes / sizeof *routes;

/* ---- the table ---- */

/* A part of the path where the pattern has a name; {kind} matches only kinds of jobs, so that an
   unknown word is not found. */
static bool part_matches (const char *pattern, const char *part, size_t length) {
  char name[64];
  if (strncmp (pattern, "{kind}", 6) != 0)
    return length;
  if (length >= sizeof name)
    return false;
  snprintf (name, sizeof name, "%.*s", (int)length, part);
  return kind_named (name);
}

static bool path_matches (const route *r, const char *path) {
  const char *a = r->path, *b = path;
  while (*a && *b) {
    if (*a != '{') {
      if (*a++ != *b++)
        return false;
      continue;
    }
    size_t length = strcspn (b, "/");
    if (!part_matches (a, b, length))
      return false;
    a = strchr (a, '}') + 1;
    b += length;
  }
  return !*a && !*b;
}

/* The parts of the path that have a name; most are short. */
static bool take_parts (const route *r, request *q, error *err) {
  const char *a = r->path, *b = q->path;
  size_t used = 0;
  for (int n = 0; *a && n < REQUEST_PARTS; a++, b++)
    if (*a == '{') {
      size_t length = strcspn (b, "/");
      bool fits = used + length < sizeof q->parts;
      char *part = fits ? q->parts + used : NEW (q->arena, (int64_t)length + 1, char, err);
      if (!part)
        return false;
      memcpy (part, b, length);
      part[length] = 0;
      q->part[n++] = part;
      used += fits ? length + 1 : 0;
      a = strchr (a, '}');
      b += length - 1;
    }
  return true;
}

static bool method_matches (const route *r, const request *q) {
  return strcmp (r->method, q->method) == 0 ||
         (strcmp (q->method, "HEAD") == 0 && strcmp (r->method, "GET") == 0);
}

static const route *find_route (request *q, reply *p) {
  error ignored = { 0 };
  char allow[64] = "";
  for (int i = 0; i < n_routes; i++) {
    if (!path_matches (&routes[i], q->path))
      continue;
    if (method_matches (&routes[i], q) && take_parts (&routes[i], q, &ignored))
      return &routes[i];
    size_t used = strlen (allow);
    bool get = strcmp (routes[i].method, "GET") == 0;
    snprintf (allow + used, sizeof allow - used, "%s%s%s", used ? ", " : "", routes[i].method,
              get ? ", HEAD" : "");
  }
  if (allow[0]) {
    reply_problem (p, q, PROBLEM_wrong_method, "%s is not a method of this path", q->method);
    reply_header (p, "Allow", arena_string (q->arena, allow, &ignored));
  } else
    reply_problem (p, q, PROBLEM_not_found, "there is no such path; /openapi.json has them all");
  return NULL;
}

/* ---- the asking user ---- */

/* The host without its port; [::1] keeps its brackets. */
static size_t host_length (const char *host) {
  return host[0] == '[' ? strcspn (host, "]") + (strchr (host, ']') != NULL) : strcspn (host, ":");
}

/* A page of another site that got its name to point here must not speak to us. */
static bool host_is_ours (const char *host) {
  static const char *const ours[] = { "localhost", "127.0.0.1", "[::1]", "unix" };
  size_t n = host_length (host);
  for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
    if (strlen (ours[i]) == n && strncasecmp (host, ours[i], n) == 0)
      return true;
  return false;
}

static bool is_foreign (const request *q) {
  const char *origin = request_header (q, "Origin"), *host = request_header (q, "Host");
  if (!origin || strcmp (q->method, "GET") == 0 || strcmp (q->method, "HEAD") == 0)
    return false;
  const char *at = strstr (origin, "://");
  return !at || !host || strcasecmp (at + 3, host) != 0;
}

/* Asked by whoever watches over the service, which may say no Host. */
static bool is_probe (const route *r) {
  return r->run == api_health || r->run == api_ready;
}

/* A scheduler's extender sends no header of its own: its token is part of the path. */
static const char *token_of (const request *q) {
  const char *sent = request_header (q, "Authorization");
  if (sent)
    return strncasecmp (sent, "Bearer ", 7) == 0 ? sent + 7 : NULL;
  return strncmp (q->path, "/k8s/", 5) == 0 ? q->part[0] : NULL;
}

static bool may_ask (service *s, const route *r, request *q, reply *p) {
  const char *host = request_header (q, "Host");
  token t = { .role = ROLE_none };
  error err = { 0 };
  if (!s->tokens) {
    q->owner = "local";
    q->role = ROLE_admin;
    if (host ? !host_is_ours (host) : !is_probe (r)) {
      reply_problem (p, q, PROBLEM_wrong_host, "without tokens only local names are served");
      return false;
    }
  } else {
    const char *name =
        tokens_find (s->tokens, token_of (q), &t) ? arena_string (q->arena, t.owner, &err) : NULL;
    q->owner = name ? name : "";
    q->role = name ? t.role : ROLE_none;
    snprintf (q->token, sizeof q->token, "%s", t.digest);
  }
  if (q->role < r->role) {
    bool sent = request_header (q, "Authorization") || token_of (q);
    reply_problem (p, q, q->role == ROLE_none ? PROBLEM_unauthorized : PROBLEM_forbidden, "%s",
                   q->role != ROLE_none ? "the token's role is too low for this"
                   : sent               ? "the token is not one of --tokens"
                                        : "send Authorization: Bearer TOKEN");
    return false;
  }
  if (is_foreign (q)) {
    reply_problem (p, q, PROBLEM_forbidden, "a page of another origin may not do this");
    return false;
  }
  return true;
}

/* ---- bodies ---- */

int64_t routes_most_bytes (const service *s, const route *r) {
  return r->body == BODY_UPLOAD     ? s->options.most_body_bytes
         : r->body == BODY_EXTENDER ? 16 * s->options.most_control_bytes
         : r->body == BODY_CONTROL  ? s->options.most_control_bytes
                                    : 0;
}

static bool body_is_welcome (service *s, const route *r, request *q, reply *p) {
  const char *length = request_header (q, "Content-Length");
  const char *coding = request_header (q, "Content-Encoding");
  const char *type = request_header (q, "Content-Type");
  if (length && strtoll (length, NULL, 10) > routes_most_bytes (s, r) && r->body != BODY_NONE) {
    reply_problem (p, q, PROBLEM_too_large, "%s bytes, but %lld are the most (%s)", length,
                   (long long)routes_most_bytes (s, r),
                   r->body == BODY_UPLOAD ? "--max-body" : "of a request");
    return false;
  }
  if (coding && strcasecmp (coding, "gzip") != 0 && strcasecmp (coding, "zstd") != 0 &&
      strcasecmp (coding, "identity") != 0) {
    reply_problem (p, q, PROBLEM_wrong_type, "Content-Encoding must be gzip or zstd");
    reply_header (p, "Accept-Encoding", "gzip, zstd");
    return false;
  }
  bool control = r->body == BODY_CONTROL || r->body == BODY_EXTENDER;
  if (control && type && strncasecmp (type, "application/json", 16) != 0) {
    reply_problem (p, q, PROBLEM_wrong_type, "Content-Type must be application/json");
    return false;
  }
  return true;
}

/* ---- the query ---- */

/* A member that is misspelt would be an answer to another question. */
static bool query_is_known (const route *r, request *q, reply *p) {
  for (int i = 0; r->query && i < q->n_query; i++) {
    const char *name = q->query[i].name;
    if (!text_is_word (name, r->query)) {
      reply_problem (p, q, PROBLEM_malformed, "the query has no member \"%s\" here%s%s", name,
                     r->query[0] ? "; it may have: " : "", r->query);
      return false;
    }
    if (request_query (q, name) != q->query[i].value) {
      reply_problem (p, q, PROBLEM_malformed, "the query has \"%s\" twice", name);
      return false;
    }
  }
  return true;
}

const route *routes_begin (service *s, request *q, reply *p) {
  const route *r = find_route (q, p);
  if (!r || !may_ask (s, r, q, p) || !query_is_known (r, q, p) || !body_is_welcome (s, r, q, p))
    return NULL;
  if (atomic_load (&s->stopping) && r->body != BODY_NONE) {
    reply_problem (p, q, PROBLEM_unavailable, "the service is stopping");
    reply_header (p, "Retry-After", "10");
    return NULL;
  }
  return r;
}

static bool decode_body (service *s, const route *r, request *q, reply *p) {
  const char *coding = request_header (q, "Content-Encoding");
  bytes plain = { 0 };
  error err = { 0 };
  if (!q->body.size || !coding || strcasecmp (coding, "identity") == 0)
    return true;
  if (!file_decode (q->body.data, q->body.size, routes_most_bytes (s, r), &plain, &err)) {
    reply_problem (p, q, err.code == ERR_too_large ? PROBLEM_too_large : PROBLEM_malformed, "%s",
                   err.text);
    return false;
  }
  bytes_free (&q->body);
  q->body = plain;
  return true;
}

void routes_answer (service *s, const route *r, request *q, reply *p) {
  if ((r->body == BODY_CONTROL || r->body == BODY_EXTENDER) && !decode_body (s, r, q, p))
    return;
  r->run (s, q, p);
}
