/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry submit`: a trace, and a question about it, for a server. */
#include "config.h"

#include "cli/remote/remote.h"

#ifdef HAVE_SERVER
#include <stdlib.h>
#include <string.h>

#include "server/client/client.h"
#include "server/protocol/kinds.h"

/* The members of --with, with the trace among it. */
static const char *make_request (call *c, const char *id) {
  const char *with = call_text (c, "with");
  error err = { 0 };
  if (!with)
    return arena_format (c->arena, &c->err, "{\"trace\":\"%s\"}", id);
  json_document *d = json_open (with, (int64_t)strlen (with), &err);
  json root = d ? json_root (d) : (json){ 0 };
  const char *text =
      d && json_is_object (&root) ? json_canonical (&root, true, c->arena, &err) : NULL;
  size_t members = d ? json_count (&root) : 0;
  json_close (d);
  if (!text) {
    error_set (&c->err, ERR_usage, "--with is no JSON object: %s", err.text);
    return NULL;
  }
  return arena_format (c->arena, &c->err, "{\"trace\":\"%s\"%s%s", id, members ? "," : "",
                       text + 1);
}

static int answer_text (call *c, const char *key, const char *text) {
  if (!c->json)
    printf ("%s\n", text);
  return !c->json || call_print_text (c, key, text) ? EXIT_YES : call_failed (c);
}

static int submit (call *c, client *it) {
  char id[65], job[256];
  bytes status = { 0 };
  const char *kind = call_text (c, "kind"), *request;
  if (!client_upload (it, c->operands, c->n_operands, call_text (c, "fingerprint"), id, &c->err))
    return call_failed (c);
  if (!kind) {
    return answer_text (c, "trace", id);
  }
  if (!(request = make_request (c, id)) || !client_submit (it, kind, request, job, &c->err))
    return call_failed (c);
  if (!call_flag (c, "wait")) {
    return answer_text (c, "job", job);
  }
  bool ok = client_follow (it, job, NULL, NULL, &status, &c->err) &&
            call_write (c, NULL, status.data, status.size) && call_write (c, NULL, "\n", 1);
  bool done = status.size && strstr (status.data, "\"state\":\"done\"");
  bytes_free (&status);
  return !ok ? call_failed (c) : done ? EXIT_YES : EXIT_NO;
}

static int run (call *c) {
  const char *url = call_text (c, "server");
  client *it =
      client_new (url ? url : "http://127.0.0.1:8077", getenv ("FERRY_TOKEN"), c->arena, &c->err);
  int status = it ? submit (c, it) : call_failed (c);
  client_free (it);
  return status;
}

#else

static int run (call *c) {
  error_set (&c->err, ERR_usage, "this ferry was built --without-server");
  return call_failed (c);
}

#endif

static const cli_option options[] = {
  OPTION_SERVER,
  { 'k', "kind", "schedules|curves|min-memory|comparisons|what-if",
    "what is asked; without it, the trace is only uploaded" },
  { 0, "with", "JSON", "members of the request, as docs/service.md has them" },
  { 0, "fingerprint", "NAME", "the key under which schedulers find the trace again" },
  { 'w', "wait", NULL, "until the job has ended, and print its status" },
  OPTIONS_END,
};

const cli_command command_submit = {
  .name = "submit",
  .says = "give a server a trace or a profile, and ask it something",
  .operands = "FILE [FILE]",
  .least = 1,
  .most = 2,
  .about =
      "Uploads a trace or a profile to `ferry serve`, compressed, unless it is there already, and "
      "prints its id. Two files are those of one run, such as an execution trace and its Kineto "
      "file. With --kind it also asks for a job and prints its path. Asking twice is asking "
      "once: the same question has the same answer there.\n"
      "The exit status is 69 where no server answers, after some tries.\n",
  .options = options,
  .json = true,
  .run = run,
};
