/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry advise`: a job's memory in a scheduler's terms, ready to paste. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/figures/columns.h"
#include "cli/inputs/beside.h"
#include "cli/inputs/effort.h"
#include "cli/inputs/executors.h"
#include "cli/inputs/hosts.h"
#include "cli/inputs/inputs.h"
#include "cli/inputs/rewriting.h"
#include "cli/remote/remote.h"
#include "cli/whatif/node.h"
#include "cli/whatif/offline.h"
#include "server/protocol/claims.h"

#define MIB ((int64_t)1 << 20)

typedef struct advised {
  const char *fingerprint; /* NULL: of a trace that no server knows */
  const char *host;        /* NULL: of one card */
  const char *trace, *curve;
  int64_t memory_bytes; /* of the plan */
  int64_t card_bytes;   /* with what its process takes beside it */
  int64_t host_bytes;   /* pinned, by all ranks */
  int64_t ranks, rank_host_bytes;
  int64_t shards, slowdown_ppm;
} advised;

/* Bytes are rounded up, so that the memory requested suffices. */
static long long mib (int64_t bytes) {
  return units_div_up (bytes, MIB);
}

/* ---- forms ---- */

/* The host's memory that all ranks take; without --rank-memory, what they pin alone. */
static long long host_mib (const advised *a) {
  return mib (a->host_bytes + a->ranks * a->rank_host_bytes);
}

static void print_slurm (const advised *a) {
  if (a->host)
    printf ("#SBATCH --nodes=1\n#SBATCH --gres=gpu:%lld\n#SBATCH --ntasks-per-node=%lld\n",
            (long long)a->ranks, (long long)a->ranks);
  else
    printf ("#SBATCH --gres=shard:%lld\n", (long long)a->shards);
  if (a->host && a->rank_host_bytes)
    printf ("#SBATCH --mem=%lldM\n", host_mib (a));
  if (a->fingerprint)
    printf ("#SBATCH --comment=ferry:%s@%lld\n", a->fingerprint, (long long)a->slowdown_ppm);
  if (!a->rank_host_bytes)
    printf ("# add %lld MB to --mem: pinned memory of the host\n", mib (a->host_bytes));
}

static void print_k8s (const advised *a) {
  printf ("metadata:\n  annotations:\n");
  if (a->fingerprint)
    printf ("    ferry.dev/fingerprint: \"%s\"\n", a->fingerprint);
  printf ("    ferry.dev/gpu-memory-bytes: \"%lld\"\n", (long long)a->card_bytes);
  if (a->host)
    printf ("    ferry.dev/host: \"%s\"\n", a->host);
  printf ("    ferry.dev/max-slowdown-ppm: \"%lld\"\n", (long long)a->slowdown_ppm);
  printf ("    ferry.dev/pinned-host-bytes: \"%lld\"\n", (long long)a->host_bytes);
  if (a->host)
    printf ("spec:\n  containers:\n  - resources:\n      limits:\n        memory: %lldMi%s\n"
            "        nvidia.com/gpu: %lld\n",
            host_mib (a), a->rank_host_bytes ? "" : " # pinned; add what the program takes",
            (long long)a->ranks);
}

static void print_hami (const advised *a) {
  printf ("resources:\n  limits:\n    nvidia.com/gpu: %lld\n    nvidia.com/gpumem: %lld\n",
          (long long)a->ranks, mib (a->card_bytes));
}

static void print_kai (const advised *a) {
  printf ("metadata:\n  annotations:\n    gpu-memory: \"%lld\"\n", mib (a->card_bytes));
  if (a->host)
    printf ("    gpu-fraction-num-devices: \"%lld\"\n", (long long)a->ranks);
}

static void print_dra (const advised *a) {
  char name[CLAIM_NAME];
  claim_name (a->fingerprint ? a->fingerprint : a->host, name);
  printf ("apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata:\n  name: %s\n"
          "  annotations:\n",
          name);
  if (a->fingerprint)
    printf ("    ferry.dev/fingerprint: \"%s\"\n", a->fingerprint);
  printf ("    ferry.dev/honoured-by: \"%s\"\n", CLAIM_HONOURED);
  printf ("spec:\n  spec:\n    devices:\n      requests:\n      - name: gpu\n        exactly:\n"
          "          deviceClassName: gpu.nvidia.com\n");
  if (a->host)
    printf ("          count: %lld\n", (long long)a->ranks);
  printf ("          capacity:\n            requests:\n              memory: %lldMi\n",
          mib (a->card_bytes));
}

static const struct {
  const char *name;
  void (*print) (const advised *a);
} forms[] = {
  { "slurm", print_slurm }, { "k8s", print_k8s }, { "hami", print_hami },
  { "kai", print_kai },     { "dra", print_dra },
};

/* ---- the advice ---- */

static bool get_int (const json *object, const char *key, int64_t *out, error *err) {
  return json_read_int (object, key, 0, INT64_MAX, out, err);
}

static bool get_text (call *c, const json *object, const char *key, const char **out) {
  const char *text = NULL;
  json j = json_member (object, key);
  if (json_is_absent (&j))
    return true;
  if (!json_get_text (&j, &text, &c->err))
    return false;
  *out = text ? arena_string (c->arena, text, &c->err) : NULL;
  return !text || *out;
}

static bool read_figures (call *c, const json *root, advised *out) {
  return get_text (c, root, "trace", &out->trace) && get_text (c, root, "curve", &out->curve) &&
         get_int (root, "memory_bytes", &out->memory_bytes, &c->err) &&
         get_int (root, "card_bytes", &out->card_bytes, &c->err) &&
         get_int (root, "pinned_host_bytes", &out->host_bytes, &c->err) &&
         (!out->host || get_int (root, "ranks", &out->ranks, &c->err));
}

/* Shards of one card: as many as its memory has parts of the size that was said. */
static bool read_advice (call *c, const bytes *body, advised *out) {
  bool fits = false;
  const char *reason = "it does not fit";
  int64_t shard = MIB * 1024;
  json_document *d = json_open (body->data, body->size, &c->err);
  if (!d)
    return false;
  json root = json_root (d);
  out->ranks = 1;
  bool ok = json_read_bool (&root, "fits", &fits, &c->err) &&
            get_text (c, &root, "host", &out->host) && get_text (c, &root, "reason", &reason) &&
            call_quantity (c, "shard", &shard);
  if (ok && !fits)
    ok = error_set (&c->err, ERR_infeasible, "%s", reason ? reason : "it does not fit");
  ok = ok && read_figures (c, &root, out);
  out->shards = ok ? units_div_up (out->card_bytes, shard) : 0;
  json_close (d);
  return ok;
}

/* A file is a trace, unless a server is named. */
static bool is_here (const call *c) {
  const char *it = c->operands[0];
  return call_text (c, "host") && !call_given (c, "server") &&
         (access (it, F_OK) == 0 || (data_is_file (it) && !call_text (c, "server")));
}

/* A server has planned already. */
static bool refuse_planning (call *c) {
  static const char *const planning[] = { "budget",  "from",      "scale",    "effort",    "limit",
                                          "seconds", "swap-only", "sections", "recompute", "order",
                                          "for",     "placement", "jobs" };
  for (size_t i = 0; i < sizeof planning / sizeof *planning && !is_here (c); i++)
    if (call_given (c, planning[i]))
      return call_usage (c, "--%s: a server has planned already; give a TRACE and --host NAME",
                         planning[i]);
  return true;
}

/* A host decides on the memory of its cards, and its plans are several. */
static bool refuse_others (call *c) {
  static const char *const others[] = { "gpu-memory", "output", "shard" };
  static const char *const of_hosts[] = { "ranks", "rank-memory" };
  bool host = call_text (c, "host");
  for (size_t i = 0; host && i < sizeof others / sizeof *others; i++)
    if (call_given (c, others[i]))
      return call_usage (c, "--%s is for one card, and --host for ranks: give one of them%s",
                         others[i],
                         i == 1 ? "; `ferry solve --host NAME` makes plans for ranks" : "");
  for (size_t i = 0; !host && i < sizeof of_hosts / sizeof *of_hosts; i++)
    if (call_given (c, of_hosts[i]))
      return call_usage (c,
                         "--%s needs the host whose cards they run on: give --host NAME; `ferry "
                         "hosts` lists the names",
                         of_hosts[i]);
  return refuse_planning (c);
}

#ifdef HAVE_SERVER

static const char *path_for_card (call *c, const advised *a) {
  int64_t memory = 0;
  if (!call_quantity (c, "gpu-memory", &memory))
    return NULL;
  return arena_format (c->arena, &c->err,
                       "/v1/advice?fingerprint=%s&gpu_memory_bytes=%lld&max_slowdown_ppm=%lld",
                       a->fingerprint, (long long)memory, (long long)a->slowdown_ppm);
}

/* A server knows its hosts by their names. */
static const char *path_for_host (call *c, advised *a) {
  const char *name = call_text (c, "host"), *ranks = "";
  node_question q;
  gpu_host h;
  if (!node_asked (c, &q) || (data_is_file (name) && !host_named (c, name, &h)))
    return NULL;
  if (q.ranks && !(ranks = arena_format (c->arena, &c->err, "&ranks=%d", q.ranks)))
    return NULL;
  a->rank_host_bytes = q.rank_host_bytes;
  return arena_format (c->arena, &c->err,
                       "/v1/advice?fingerprint=%s&host=%s&rank_host_bytes=%lld%s"
                       "&max_slowdown_ppm=%lld",
                       a->fingerprint, data_is_file (name) ? h.name : name,
                       (long long)q.rank_host_bytes, ranks, (long long)a->slowdown_ppm);
}

static bool nothing_known (call *c, const char *print) {
  const char *host = call_text (c, "host");
  if (!host)
    return error_set (&c->err, ERR_infeasible,
                      "nothing is known of %s: `ferry submit FILE --fingerprint %s --kind curves`",
                      print, print);
  return error_set (&c->err, ERR_infeasible,
                    "nothing is known of %s on %s: `ferry submit FILE --fingerprint %s --kind "
                    "what-if --with '{\"host\":\"%s\",...}'`, or `ferry advise TRACE --host %s`",
                    print, host, print, host, host);
}

static bool ask (call *c, client *it, advised *out, answer *got) {
  out->fingerprint = c->operands[0];
  const char *slash = strchr (out->fingerprint, '/'); /* OWNER/NAME, for who sees all */
  if (!remote_fingerprint (c, slash ? slash + 1 : out->fingerprint))
    return false;
  const char *path = call_text (c, "host") ? path_for_host (c, out) : path_for_card (c, out);
  if (!path || !client_ask (it, "GET", path, NULL, got, &c->err))
    return false;
  if (got->status == 200)
    return true;
  if (!client_is_problem (got, "unknown-profile"))
    return client_elsewhere (it, &c->err);
  return nothing_known (c, out->fingerprint);
}

static bool ask_server (call *c, advised *a, bytes *body) {
  const char *url = call_text (c, "server"), *output = call_text (c, "output");
  answer got = { 0 };
  client *it = client_new (url ? url : SERVICE_URL, getenv ("FERRY_TOKEN"), c->arena, &c->err);
  bool ok = it && ask (c, it, a, &got) && read_advice (c, &got.body, a);
  if (ok && output)
    ok = remote_plan (c, it, &(remote_point){ a->curve, a->memory_bytes }, output);
  client_free (it);
  *body = got.body;
  return ok;
}

#else

static bool ask_server (call *c, advised *a, bytes *body) {
  (void)a;
  (void)body;
  return call_usage (
      c, "this ferry was built --without-server: only `advise TRACE --host NAME` works");
}

#endif

/* Planned here; `shows`: what was tried is the answer. */
static bool plan_here (call *c, bool shows, advised *a, bytes *body) {
  node_question q;
  if (!node_asked (c, &q))
    return false;
  a->rank_host_bytes = q.rank_host_bytes;
  return node_advise (c, shows, body) && read_advice (c, body, a);
}

static int run (call *c) {
  static const char *const words[] = { "slurm", "k8s", "hami", "kai", "dra", NULL };
  advised a = { .slowdown_ppm = 50000 };
  bytes body = { 0 };
  int form = 0;
  bool here = is_here (c), shows = here && !c->json && !call_text (c, "format");
  if (!call_word (c, "format", words, &form) || !refuse_others (c) ||
      !call_quantity (c, "slowdown", &a.slowdown_ppm))
    return call_failed (c);
  bool ok = here ? plan_here (c, shows, &a, &body) : ask_server (c, &a, &body);
  if (c->json && body.size && (ok || (here && c->err.code == ERR_infeasible)))
    ok =
        call_write (c, NULL, body.data, body.size) && (here || call_write (c, NULL, "\n", 1)) && ok;
  else if (ok && !shows)
    forms[form].print (&a);
  bytes_free (&body);
  return ok ? EXIT_YES : call_failed (c);
}

static const cli_option options[] = {
  OPTION_SERVICE,
  { 'f', "format", "slurm|k8s|hami|kai|dra", "the scheduler to print for; default: slurm" },
  { 0, "gpu-memory", "SIZE", "memory of the card; default: any", RANGE_SIZE },
  { 's', "slowdown", "SHARE", "how much longer a step may take; default: 5%", RANGE_SHARE },
  { 0,
    "shard",
    "SIZE",
    "memory that one shard of Slurm stands for; default: 1GiB",
    { UNITS_BYTES, 1, MOST_BYTES } },
  { 0, "host", "NAME|FILE",
    "advice for ranks on the cards of this host: a name of `ferry hosts` or a host file" },
  { 0,
    "ranks",
    "N",
    "with --host: this number of ranks; default: as many as fit",
    { UNITS_COUNT, 1, HOST_MOST_CARDS } },
  { 0, "rank-memory", "SIZE",
    "with --host: memory of the host that each process takes beside what it pins; default: none",
    RANGE_SIZE },
  { 'b', "budget", "SIZE|%,...",
    "with --host and a TRACE: budgets to try; default: eight, up to what the step needs",
    RANGE_AMOUNT },
  OPTION_OUTPUT ("also let the server make the plan of that memory, and write it here"),
  { 0, "from", "NAME|FILE", "the card that the trace was measured on, if it does not say" },
  { 0, "scale", "SHARE", "multiply all times instead of scaling by rooflines", RANGE_SCALE },
  OPTIONS_OF_EFFORT ("quick"),
  OPTIONS_OF_REWRITING,
  OPTION_FOR,
  OPTION_PLACEMENT,
  OPTION_THREADS,
  OPTION_WIDE,
  OPTIONS_END,
};

const cli_command command_advise = {
  .name = "advise",
    .says = "print a job's memory in a scheduler's terms",
  .operands = "FINGERPRINT|TRACE",
  .least = 1,
  .most = 1,
  .about =
      "Looks a job up on `ferry serve` by its fingerprint and prints the least memory at which it "
      "is fast enough, in a scheduler's terms: lines of an sbatch script, annotations of a pod, "
      "limits for HAMi, an annotation for KAI, a claim for dynamic resource allocation. Those of "
      "Slurm and Kubernetes include --slowdown. Bytes are rounded up. Nothing is solved: the "
      "curve must exist. Only with -o is a plan made, if the server has none yet.\n"
      "With --host the answer is for ranks that share a host's links: how many fit, one on each "
      "card, in which budget, and how much they pin together, from a what-if of that host. For a "
      "TRACE, which is a file, the same is planned here: all cards first, and fewer if they do "
      "not fit; then the least budget. Times are of all ranks together.\n"
      "The exit status is 1 where nothing is known or it does not fit.\n",
  .options = options,
  .json = true,
  .run = run,
};
