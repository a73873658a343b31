/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry submit`: a trace, and a question about it, for a server. */
#include "config.h"

#include "base/order.h"
#include "cli/remote/remote.h"

#ifdef HAVE_SERVER
#include <stdlib.h>
#include <string.h>

#include "server/client/client.h"
#include "server/protocol/kinds.h"

/* In the order of the option's words: whatever may be asked. */
static const char *const kinds[] = { "schedules", "curves",      "min-memory", "max-batch",
                                     "packs",     "comparisons", "what-if",    NULL };
enum { MOST_JOBS = 10, MOST_FILES = 2 };

/* The question, read before anything is sent. */
typedef struct wanted {
  const job_kind *kind; /* or NULL */
  const char *members;  /* of --with, with the brace that ends them */
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
    return call_usage (c, "--with: no JSON object%s%s", *err.text ? ": " : "", err.text);
  return (*out = arena_format (c->arena, &c->err, "%s%s", before, text + 1));
}

static bool has_files (call *c, const job_kind *k) {
  if (k && k->operand == OPERAND_NETWORK)
    return c->n_operands == 0 ||
           call_usage (c, "%s asks about a network, which --with names: no FILE", k->name);
  int most = k && k->operand == OPERAND_JOBS ? MOST_JOBS : MOST_FILES;
  return (c->n_operands > 0 && c->n_operands <= most) ||
         call_usage (c, "1 to %d files are needed", most);
}

static bool read_wanted (call *c, wanted *out) {
  const char *with = call_text (c, "with"), *fingerprint = call_text (c, "fingerprint");
  int which = 0;
  *out = (wanted){ NULL, "}" };
  if (!call_word (c, "kind", kinds, &which) || (with && !read_with (c, with, &out->members)) ||
      (fingerprint && !remote_fingerprint (c, fingerprint)))
    return false;
  if (call_text (c, "kind"))
    out->kind = kind_named (kinds[which]);
  return (out->kind || !with ||
          call_usage (c, "--with says more of a question: give its --kind too")) &&
         has_files (c, out->kind);
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

static const char *file_of (const char *path) {
  const char *slash = strrchr (path, '/');
  return slash ? slash + 1 : path;
}

static bool same_name (const char *a, const char *b) {
  return strcspn (a, ".") == strcspn (b, ".") && strncmp (a, b, strcspn (a, ".")) == 0;
}

/* The name of a job of a pack: that of its file, without folders and endings; a second one of the
   same name has its number too. */
static const char *job_name (call *c, int i) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
  const char *from = file_of (c->operands[i]);
  bool again = false;
  for (int k = 0; k < i; k++)
    again |= same_name (from, file_of (c->operands[k]));
  int n = (int)min_of (56, (int64_t)strcspn (from, "."));
  char *name = again ? arena_format (c->arena, &c->err, "%.*s.%d", n, from, i + 1)
                     : arena_format (c->arena, &c->err, "%.*s", n, from);
  for (char *at = name; at && *at; at++)
    if (!strchr (plain, *at) || (at == name && (*at == '.' || *at == '-')))
      *at = '_';
  return name && *name ? name : name ? "job" : NULL;
}

/* Jobs that share cards: a file each. */
static const char *ask_pack (call *c, client *it, const wanted *w) {
  const char *all = "";
  for (int i = 0; all && i < c->n_operands; i++) {
    char id[65];
    const char *name = job_name (c, i);
    if (!name || !client_upload (it, c->operands + i, 1, call_text (c, "fingerprint"), id, &c->err))
      return NULL;
    all = arena_format (c->arena, &c->err, "%s%s{\"name\":\"%s\",\"trace\":\"%s\"}", all,
                        i ? "," : "", name, id);
  }
  return all ? arena_format (c->arena, &c->err, "{\"jobs\":[%s]%s", all, w->members) : NULL;
}

/* Uploads what the question is about; NULL: *err. */
static const char *ask (call *c, client *it, const wanted *w, char id[65]) {
  if (w->kind && w->kind->operand == OPERAND_JOBS)
    return ask_pack (c, it, w);
  if (w->kind && w->kind->operand == OPERAND_NETWORK)
    return arena_format (c->arena, &c->err, "{%s", w->members + (*w->members == ','));
  if (!client_upload (it, c->operands, c->n_operands, call_text (c, "fingerprint"), id, &c->err))
    return NULL;
  return arena_format (c->arena, &c->err, "{\"trace\":\"%s\"%s", id, w->members);
}

static int submit (call *c, client *it, const wanted *w) {
  char id[65] = "", job[256];
  const char *request = ask (c, it, w, id);
  if (!request)
    return call_failed (c);
  if (!w->kind)
    return answer_text (c, "trace", id);
  if (!client_submit (it, w->kind->name, request, job, &c->err))
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
  call_usage (c, "this ferry was built --without-server");
  return call_failed (c);
}

#endif

static const cli_option options[] = {
  OPTION_SERVICE,
  { 'k', "kind", "schedules|curves|min-memory|max-batch|packs|comparisons|what-if",
    "the question; default: only upload the trace" },
  { 0, "with", "JSON", "members of the request, as docs/service.md has them" },
  { 0, "fingerprint", "NAME", "the key under which schedulers find the trace again" },
  { 'w', "wait", NULL, "wait until the job has ended, and print its status" },
  OPTIONS_END,
};

const cli_command command_submit = {
  .name = "submit",
  .says = "upload a trace or a profile to a server, and request a job",
  .operands = "[FILE]...",
  .least = 0,
  .most = 10,
  .about =
      "Uploads a trace or a profile to `ferry serve`, compressed, unless it is there already, and "
      "prints its id. Two files are of one run, such as an execution trace and its Kineto file. "
      "For packs each file is a job; max-batch takes none, since --with names its network. With "
      "--kind it also requests a job and prints its path. The same question is answered once.\n"
      "With --wait the exit status is that of the job's command: 1 where nothing fits. It is also "
      "1 if the job failed, with the reason on standard error, and 69 if no server answers after "
      "some tries.\n",
  .options = options,
  .json = true,
  .run = run,
};
