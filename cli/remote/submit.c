/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry submit`: a trace, and a question about it, for a server. */
#include "config.h"

#include "cli/remote/remote.h"

#ifdef HAVE_SERVER
#include <stdlib.h>
#include <string.h>

#include "server/client/client.h"

/* In the order of the option's words: whatever is asked of a trace. */
static const char *const kinds[] = { "schedules",   "curves",  "min-memory",
                                     "comparisons", "what-if", NULL };

/* The question, read before anything is sent. */
typedef struct wanted {
  const char *kind;    /* or NULL */
  const char *members; /* of --with, with the brace that ends them */
} wanted;

static bool read_with (call *c, const char *with, const char **out) {
  error err = { 0 };
  json_document *d = json_open (with, (int64_t)strlen (with), &err);
  json root = d ? json_root (d) : (json){ 0 };
  const char *text =
      d && json_is_object (&root) ? json_canonical (&root, true, c->arena, &err) : NULL;
  const char *before = d && json_count (&root) ? "," : "";
  json_close (d);
  if (!text)
    return error_set (&c->err, ERR_usage, "--with: no JSON object%s%s", *err.text ? ": " : "",
                      err.text);
  return (*out = arena_format (c->arena, &c->err, "%s%s", before, text + 1));
}

static bool read_wanted (call *c, wanted *out) {
  const char *with = call_text (c, "with"), *fingerprint = call_text (c, "fingerprint");
  int which = 0;
  *out = (wanted){ NULL, "}" };
  if (!call_word (c, "kind", kinds, &which) || (with && !read_with (c, with, &out->members)) ||
      (fingerprint && !remote_fingerprint (c, fingerprint)))
    return false;
  if (call_text (c, "kind"))
    out->kind = kinds[which];
  return out->kind || !with ||
         error_set (&c->err, ERR_usage, "--with says more of a question: give its --kind too");
}

static int answer_text (call *c, const char *key, const char *text) {
  if (!c->json)
    printf ("%s\n", text);
  return !c->json || call_print_text (c, key, text) ? EXIT_YES : call_failed (c);
}

/* The reason why an answer is no, where it has one. */
static bool read_why (call *c, const bytes *status, const char **out) {
  json_document *d = json_open (status->data, status->size, &c->err);
  json root = d ? json_root (d) : (json){ 0 };
  json result = d ? json_member (&root, "result") : (json){ 0 };
  json why = d ? json_member (&result, "why") : (json){ 0 };
  bool ok = d && json_get_text (&why, out, &c->err) &&
            (!*out || (*out = arena_string (c->arena, *out, &c->err)));
  json_close (d);
  return ok;
}

/* The job's exit status is the command's; a failure is a no. */
static int wait_for (call *c, client *it, const char *job) {
  bytes status = { 0 };
  const char *why = NULL;
  int exit_status = EXIT_YES;
  if (!client_follow (it, job, NULL, NULL, &status, &c->err))
    return call_failed (c);
  bool told = call_write (c, NULL, status.data, status.size) && call_write (c, NULL, "\n", 1);
  if (told && !remote_ended (c, &status, &exit_status))
    c->err.code = ERR_infeasible;
  else if (told && read_why (c, &status, &why) && why)
    error_set (&c->err, exit_status == EXIT_NO ? ERR_infeasible : ERR_limit, "%s", why);
  bytes_free (&status);
  return c->err.code ? call_failed (c) : exit_status;
}

static int submit (call *c, client *it, const wanted *w) {
  char id[65], job[256];
  if (!client_upload (it, c->operands, c->n_operands, call_text (c, "fingerprint"), id, &c->err))
    return call_failed (c);
  if (!w->kind)
    return answer_text (c, "trace", id);
  const char *request = arena_format (c->arena, &c->err, "{\"trace\":\"%s\"%s", id, w->members);
  if (!request || !client_submit (it, w->kind, request, job, &c->err))
    return call_failed (c);
  return call_flag (c, "wait") ? wait_for (c, it, job) : answer_text (c, "job", job);
}

static int run (call *c) {
  const char *url = call_text (c, "server");
  wanted w;
  client *it = read_wanted (c, &w)
                   ? client_new (url ? url : SERVICE_URL, getenv ("FERRY_TOKEN"), c->arena, &c->err)
                   : NULL;
  int status = it ? submit (c, it, &w) : call_failed (c);
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
  OPTION_SERVICE,
  { 'k', "kind", "schedules|curves|min-memory|comparisons|what-if",
    "what is asked; default: the trace is only uploaded" },
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
      "With --wait the exit status is that of the command that was asked for: 1 where nothing "
      "fits. It is 1 too where the job failed; the reason is on standard error. It is 69 where no "
      "server answers, after some tries.\n",
  .options = options,
  .json = true,
  .run = run,
};
