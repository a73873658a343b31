/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry advise`: what a scheduler has to be told of a known job, ready to paste. */
#include "config.h"

#include "cli/remote/remote.h"

#ifdef HAVE_SERVER
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "server/client/client.h"
#include "server/protocol/claims.h"
#include "server/protocol/kinds.h"

#define MIB ((int64_t)1 << 20)

typedef struct advised {
  const char *fingerprint, *trace, *curve;
  int64_t memory_bytes; /* of the plan */
  int64_t card_bytes;   /* with what its process takes beside it */
  int64_t host_bytes, shards, slowdown_ppm;
} advised;

/* Bytes are rounded up: what is asked for must suffice. */
static long long mib (int64_t bytes) {
  return units_div_up (bytes, MIB);
}

static void print_slurm (const advised *a) {
  printf ("#SBATCH --gres=shard:%lld\n", (long long)a->shards);
  printf ("#SBATCH --comment=ferry:%s@%lld\n", a->fingerprint, (long long)a->slowdown_ppm);
  printf ("# add %lld MB to --mem: pinned memory of the host\n", mib (a->host_bytes));
}

static void print_k8s (const advised *a) {
  printf ("metadata:\n  annotations:\n    ferry.dev/fingerprint: \"%s\"\n", a->fingerprint);
  printf ("    ferry.dev/gpu-memory-bytes: \"%lld\"\n", (long long)a->card_bytes);
  printf ("    ferry.dev/max-slowdown-ppm: \"%lld\"\n", (long long)a->slowdown_ppm);
  printf ("    ferry.dev/pinned-host-bytes: \"%lld\"\n", (long long)a->host_bytes);
}

static void print_hami (const advised *a) {
  printf ("resources:\n  limits:\n    nvidia.com/gpu: 1\n    nvidia.com/gpumem: %lld\n",
          mib (a->card_bytes));
}

static void print_kai (const advised *a) {
  printf ("metadata:\n  annotations:\n    gpu-memory: \"%lld\"\n", mib (a->card_bytes));
}

static void print_dra (const advised *a) {
  char name[CLAIM_NAME];
  claim_name (a->fingerprint, name);
  printf ("apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata:\n  name: %s\n"
          "  annotations:\n    ferry.dev/fingerprint: \"%s\"\n    ferry.dev/honoured-by: \"%s\"\n",
          name, a->fingerprint, CLAIM_HONOURED);
  printf ("spec:\n  spec:\n    devices:\n      requests:\n      - name: gpu\n        exactly:\n"
          "          deviceClassName: gpu.nvidia.com\n          capacity:\n            requests:\n"
          "              memory: %lldMi\n",
          mib (a->card_bytes));
}

static const struct {
  const char *name;
  void (*print) (const advised *a);
} forms[] = {
  { "slurm", print_slurm }, { "k8s", print_k8s }, { "hami", print_hami },
  { "kai", print_kai },     { "dra", print_dra },
};

static bool get_int (const json *object, const char *key, int64_t *out, error *err) {
  json j = json_member (object, key);
  return json_get_int (&j, 0, INT64_MAX, out, err);
}

/* Shards of one card: as many as its memory has parts of the size that was said. */
static bool read_advice (call *c, const answer *got, advised *out) {
  bool fits = false;
  const char *reason = NULL, *trace = "", *curve = "";
  int64_t shard = MIB * 1024;
  json_document *d = json_open (got->body.data, got->body.size, &c->err);
  if (!d)
    return false;
  json root = json_root (d), f = json_member (&root, "fits"), r = json_member (&root, "reason");
  json t = json_member (&root, "trace"), u = json_member (&root, "curve");
  bool ok = json_get_bool (&f, &fits, &c->err) && json_get_text (&r, &reason, &c->err) &&
            json_get_text (&t, &trace, &c->err) && json_get_text (&u, &curve, &c->err) &&
            get_int (&root, "memory_bytes", &out->memory_bytes, &c->err) &&
            get_int (&root, "card_bytes", &out->card_bytes, &c->err) &&
            get_int (&root, "pinned_host_bytes", &out->host_bytes, &c->err) &&
            (out->trace = arena_string (c->arena, trace, &c->err)) &&
            (out->curve = arena_string (c->arena, curve, &c->err)) &&
            call_quantity (c, "shard", &shard);
  if (ok && !fits)
    ok = error_set (&c->err, ERR_infeasible, "%s", reason ? reason : "it does not fit");
  out->shards = ok ? units_div_up (out->card_bytes, shard) : 0;
  json_close (d);
  return ok;
}

static bool ask (call *c, client *it, advised *out, answer *got) {
  int64_t memory = 0;
  out->fingerprint = c->operands[0];
  out->slowdown_ppm = 50000;
  const char *slash = strchr (out->fingerprint, '/'); /* OWNER/NAME, for who sees all */
  if (!remote_fingerprint (c, slash ? slash + 1 : out->fingerprint) ||
      !call_quantity (c, "slowdown", &out->slowdown_ppm) ||
      !call_quantity (c, "gpu-memory", &memory))
    return false;
  const char *path =
      arena_format (c->arena, &c->err,
                    "/v1/advice?fingerprint=%s&gpu_memory_bytes=%lld"
                    "&max_slowdown_ppm=%lld",
                    out->fingerprint, (long long)memory, (long long)out->slowdown_ppm);
  if (!path || !client_ask (it, "GET", path, NULL, got, &c->err))
    return false;
  if (got->status == 200)
    return true;
  if (!client_is_problem (got, "unknown-profile"))
    return client_elsewhere (it, &c->err);
  return error_set (&c->err, ERR_infeasible,
                    "nothing is known of %s: `ferry submit FILE --fingerprint %s --kind curves`",
                    out->fingerprint, out->fingerprint);
}

static int run (call *c) {
  static const char *const words[] = { "slurm", "k8s", "hami", "kai", "dra", NULL };
  const char *url = call_text (c, "server");
  advised a = { 0 };
  answer got = { 0 };
  int form = 0;
  if (!call_word (c, "format", words, &form))
    return call_failed (c);
  client *it = client_new (url ? url : SERVICE_URL, getenv ("FERRY_TOKEN"), c->arena, &c->err);
  bool ok = it && ask (c, it, &a, &got) && read_advice (c, &got, &a);
  const char *output = call_text (c, "output");
  if (ok && output)
    ok = remote_plan (c, it, &(remote_point){ a.curve, a.memory_bytes }, output);
  if (ok && c->json)
    ok = call_write (c, NULL, got.body.data, got.body.size) && call_write (c, NULL, "\n", 1);
  else if (ok)
    forms[form].print (&a);
  bytes_free (&got.body);
  client_free (it);
  return ok ? EXIT_YES : call_failed (c);
}

#else

static int run (call *c) {
  error_set (&c->err, ERR_usage, "this ferry was built --without-server");
  return call_failed (c);
}

#endif

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
  OPTION_OUTPUT ("also let the server make the plan of that memory, and write it here"),
  OPTIONS_END,
};

const cli_command command_advise = {
  .name = "advise",
  .says = "what a scheduler has to be told of a known job",
  .operands = "FINGERPRINT",
  .least = 1,
  .most = 1,
  .about =
      "Looks a job up on `ferry serve` by its fingerprint and prints the least memory at which it "
      "is fast enough, in the words of a scheduler: lines of an sbatch script, annotations of a "
      "pod, limits for HAMi, an annotation for KAI, a claim for dynamic resource allocation. Those "
      "of Slurm and Kubernetes carry --slowdown along. Bytes are rounded up. Nothing is solved: "
      "the curve must be there. Only with -o is a plan made, if the server has none yet.\n"
      "The exit status is 1 where nothing is known or the card is too small.\n",
  .options = options,
  .json = true,
  .run = run,
};
