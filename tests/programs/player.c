/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plays a trace as a program of the driver's interface: it allocates and frees where the trace
   does, and launches a kernel for each op.  Of a trace that knows only what is touched, an op
   writes what it is the first of the step to touch; where there is no such tensor, those that last,
   or the first.  What it prints is the same whatever memory it runs in. */
#include "tests/programs/player.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/programs/gpu.h"
#include "trace/trace.h"

enum { STREAMS_AT_MOST = 8, MOST_NAME = 400, TURN = 10, PARTS = 8 };

typedef struct held { /* a tensor */
  CUdeviceptr at;
  int64_t words;
  int32_t first, last; /* op; persistent: none */
  uint32_t users;      /* streams that have it since it came, or since a stream is behind all */
} held;

typedef struct playing {
  gpu g;
  const trace *trace;
  played *ops;
  held *tensors;
  CUfunction *functions;
  CUdeviceptr *extra; /* of each op, where it is impure */
  CUdeviceptr counter, scratch;
  CUstream streams[STREAMS_AT_MOST];
  CUevent event;
  int64_t n_streams, scale, random, n_random;
  int64_t attribute; /* launches have one of that number */
  int64_t stray;  /* from that step on it does something else before an op, in every second one */
  int64_t resets; /* behind that step another thread sets the counter, while the next one runs */
  int64_t turns;  /* the kinds of step that take turns, TURN steps each: a later one ends earlier */
  int64_t halts;  /* behind that many steps, and as many more, it waits for a line to read */
} playing;

player_table player = { .stride = 1, .habit_step = 8 };

static const char *const impurity_names[IMPURITIES] = { "pure",    "accumulate", "statistics",
                                                        "value",   "counter",    "order",
                                                        "scratch", "table",      "habit",
                                                        "beyond" };

static void *room (int64_t count, size_t size) {
  void *at = calloc ((size_t)(count > 0 ? count : 1), size);
  if (at == NULL) {
    fprintf (stderr, "player: no memory\n");
    exit (5);
  }
  return at;
}

static void wrong (const char *what) {
  fprintf (stderr,
           "player: `%s`: usage: player MODULE STEPS TRACE [scale=N] [stride=WORDS] [streams=N] "
           "[KIND=OP]... [habit_step=N] [random=SEED] [impure=N] "
           "[stray=STEP] [turns=N] [attribute=N] [resets=STEP] [behind=N] [halts=N]\n",
           what);
  exit (2);
}

static uint64_t draw (uint64_t x) { /* splitmix64 */
  uint64_t z = (x + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

/* ---- the trace ---- */

static void set_lives (playing *p) {
  const trace *t = p->trace;
  for (int32_t x = 0; x < t->n_tensors; x++) {
    const tensor *from = &t->tensors[x];
    held *to = &p->tensors[x];
    to->words = (from->bytes + 8 * p->scale - 1) / (8 * p->scale);
    to->first = to->last = NO_OP;
    for (int32_t k = 0; k < t->n_ops; k++)
      if (op_touches (&t->ops[k], x)) {
        to->first = to->first == NO_OP ? k : to->first;
        to->last = k;
      }
    if (from->born_before != NO_OP && to->first != NO_OP)
      to->first = from->born_before < to->first ? from->born_before : to->first;
    if (from->dies_after != NO_OP && to->first != NO_OP)
      to->last = from->dies_after > to->last ? from->dies_after : to->last;
  }
}

/* It holds nobody's result yet.  Where only touches are known, one that an op of its own has filled
   is the next op's result: so does PyTorch where it has to be deterministic. */
static bool is_fresh (const playing *p, int32_t x, int32_t k) {
  bool filled = false;
  if (p->trace->tensors[x].persistent)
    return false;
  for (int32_t i = 0; i < k; i++) {
    const op *o = &p->trace->ops[i];
    if (!op_touches (o, x))
      continue;
    if (filled || !trace_knows_only_touches (p->trace) || o->reads.count != 1)
      return false;
    filled = true;
  }
  return true;
}

static void guess_directions (const playing *p, played *o) {
  bool any = false;
  for (int32_t i = 0; i < o->n_touches; i++)
    any |= o->touches[i].writes = !o->touches[i].reads;
  for (int32_t i = 0; !any && i < o->n_touches; i++)
    o->touches[i].writes = p->trace->tensors[o->touches[i].tensor].persistent;
  for (int32_t i = 0; !any && i < o->n_touches; i++)
    any |= o->touches[i].writes;
  if (!any && o->n_touches > 0)
    o->touches[0].writes = true;
}

/* Fresh tensors are written before they can be read. */
static void set_touches (const playing *p, int32_t k) {
  const op *from = &p->trace->ops[k];
  played *o = &p->ops[k];
  o->touches = room (from->reads.count + from->writes.count, sizeof *o->touches);
  for (int32_t x = 0; x < p->trace->n_tensors; x++) {
    if (!op_touches (from, x))
      continue;
    bool fresh = is_fresh (p, x, k);
    o->touches[o->n_touches++] = (played_touch){ .tensor = x,
                                                 .words = p->tensors[x].words,
                                                 .reads = !fresh && list_has (&from->reads, x),
                                                 .writes = fresh || list_has (&from->writes, x) };
  }
  if (trace_knows_only_touches (p->trace))
    guess_directions (p, o);
}

/* Kernels of one name and different numbers of tensors are different ones. */
static void set_name (const playing *p, int32_t k) {
  played *o = &p->ops[k];
  char *name = room (MOST_NAME, 1);
  snprintf (name, MOST_NAME, "%.380s.%d", p->trace->ops[k].name, (int)o->n_touches);
  o->name = name;
  o->ns = p->trace->ops[k].ns + p->trace->ops[k].gap_ns;
}

static void read_trace (playing *p, const char *path) {
  error err = { 0 };
  arena *a = arena_made (&err);
  p->trace = a == NULL ? NULL : trace_load (path, NULL, a, &err);
  if (p->trace == NULL) {
    fprintf (stderr, "player: %s: %s\n", path, err.text);
    exit (2);
  }
  const trace *t = p->trace;
  p->ops = room (t->n_ops, sizeof *p->ops);
  p->tensors = room (t->n_tensors, sizeof *p->tensors);
  p->functions = room (t->n_ops, sizeof *p->functions);
  p->extra = room (t->n_ops, sizeof *p->extra);
}

/* ---- the options ---- */

static bool number (const char *text, const char *key, int64_t *out) {
  size_t n = strlen (key);
  char *end;
  if (strncmp (text, key, n) != 0 || text[n] != '=')
    return false;
  *out = strtoll (text + n + 1, &end, 10);
  if (*end != 0 || end == text + n + 1)
    wrong (text);
  return true;
}

static bool read_impurity (playing *p, const char *text) {
  int64_t op = -1;
  for (int kind = 1; kind < IMPURITIES; kind++)
    if (number (text, impurity_names[kind], &op)) {
      if (op < 0 || op >= p->trace->n_ops)
        wrong (text);
      p->ops[op].how = (impurity)kind;
      return true;
    }
  return false;
}

static void read_arguments (playing *p, int argc, char **argv) {
  int64_t habit_step = player.habit_step;
  p->scale = p->n_streams = 1;
  for (int i = 4; i < argc; i++)
    if (!number (argv[i], "scale", &p->scale) && !number (argv[i], "stride", &player.stride) &&
        !number (argv[i], "streams", &p->n_streams) && !number (argv[i], "random", &p->random) &&
        !number (argv[i], "impure", &p->n_random) && !number (argv[i], "stray", &p->stray) &&
        !number (argv[i], "attribute", &p->attribute) && !number (argv[i], "turns", &p->turns) &&
        !number (argv[i], "resets", &p->resets) && !number (argv[i], "behind", &player.behind) &&
        !number (argv[i], "halts", &p->halts) && !number (argv[i], "habit_step", &habit_step) &&
        !read_impurity (p, argv[i]))
      wrong (argv[i]);
  if (p->scale < 1 || player.stride < 1 || p->n_streams < 1 || p->n_streams > STREAMS_AT_MOST)
    wrong ("scale, stride, streams");
  player.habit_step = (int32_t)habit_step;
  for (int64_t i = 0; i < p->n_random; i++) {
    uint64_t z = draw ((uint64_t)p->random * 1000003 + (uint64_t)i);
    p->ops[z % (uint64_t)p->trace->n_ops].how = (impurity)(1 + (z >> 40) % (IMPURITIES - 1));
  }
}

/* ---- on the device ---- */

static void launch (playing *p, CUfunction f, CUstream s, player_head *head, CUdeviceptr *at,
                    int32_t n) {
  void *all[3 + 512] = { &head->op, &head->step, &head->drawn };
  for (int32_t i = 0; i < n; i++)
    all[3 + i] = &at[i];
  CUlaunchAttribute own = { .id = (unsigned int)p->attribute, .value = { 1 } };
  CUlaunchConfig l = { 1, 1, 1, 32, 1, 1, 0, s, &own, 1 };
  gpu_must (&p->g,
            p->attribute > 0 ? p->g.launch_ex (&l, f, all, NULL)
                             : p->g.launch (f, 1, 1, 1, 32, 1, 1, 0, s, all, NULL),
            "cuLaunchKernel");
}

static CUdeviceptr filled_at (playing *p, CUdeviceptr at, int64_t words, int64_t seed) {
  CUfunction f;
  gpu_must (&p->g, p->g.module_get_function (&f, p->g.module, "player_fill"), "player_fill");
  launch (p, f, p->streams[0], &(player_head){ -1, words, seed }, &at, 1);
  return at;
}

static CUdeviceptr filled (playing *p, int64_t words, int64_t seed) {
  return filled_at (p, gpu_alloc (&p->g, 2 * words, p->streams[0]), words, seed);
}

static void start (playing *p) {
  const trace *t = p->trace;
  p->event = gpu_event (&p->g, CU_EVENT_DISABLE_TIMING);
  for (int64_t i = 0; i < p->n_streams; i++)
    p->streams[i] = gpu_stream (&p->g);
  for (int32_t x = 0; x < t->n_tensors; x++)
    if (t->tensors[x].persistent && p->tensors[x].first != NO_OP)
      p->tensors[x].at = filled (p, p->tensors[x].words, x);
  p->counter = filled (p, EXTRA_WORDS, -1);
  p->scratch = filled (p, EXTRA_WORDS, -2);
  for (int32_t k = 0; k < t->n_ops; k++) {
    impurity how = p->ops[k].how;
    gpu_must (&p->g, p->g.module_get_function (&p->functions[k], p->g.module, p->ops[k].name),
              p->ops[k].name);
    p->extra[k] = how == IMPURE_COUNTER   ? p->counter
                  : how == IMPURE_SCRATCH ? p->scratch
                  : how == IMPURE_STATISTICS || how == IMPURE_TABLE || how == IMPURE_BEYOND
                      ? filled (p, EXTRA_WORDS, -3 - k)
                      : 0;
  }
  gpu_must (&p->g, p->g.ctx_synchronize (), "cuCtxSynchronize");
  for (int32_t k = 0; k < t->n_ops; k++)
    if (p->ops[k].how == IMPURE_BEYOND)
      gpu_must (&p->g, p->g.copy_in (p->extra[k], &p->counter, sizeof p->counter), "cuMemcpyHtoD");
  gpu_must (&p->g, p->g.ctx_synchronize (), "cuCtxSynchronize"); /* they may only be staged */
}

/* Streams take turns at random; who uses a tensor waits for those that had it. */
static int32_t stream_of (const playing *p, int32_t k) {
  return (int32_t)(draw ((uint64_t)k) % (uint64_t)p->n_streams);
}

static void wait_for (playing *p, uint32_t users, int32_t own) {
  for (int32_t i = 0; i < p->n_streams; i++)
    if ((users >> i & 1) != 0 && i != own) {
      gpu_must (&p->g, p->g.event_record (p->event, p->streams[i]), "cuEventRecord");
      gpu_must (&p->g, p->g.stream_wait_event (p->streams[own], p->event, 0), "cuStreamWaitEvent");
    }
}

/* The program's own bytes, so that the table is another one in every step. */
static void send_table (playing *p, int32_t k, CUstream s) {
  const played *o = &p->ops[k];
  CUdeviceptr table[512];
  for (int32_t i = 0; i < o->n_touches; i++)
    table[i] = p->tensors[o->touches[i].tensor].at;
  if (o->n_touches > 0)
    gpu_must (&p->g,
              p->g.copy_in_async (p->extra[k], table, (size_t)o->n_touches * sizeof *table, s),
              "cuMemcpyHtoDAsync");
}

/* Ops whose names begin so are the driver's own fills and copies, of tensors of one size. */
static bool moves (playing *p, int32_t k, int64_t drawn, CUstream s) {
  const played *o = &p->ops[k];
  const played_touch *t = o->touches;
  if (strncmp (o->name, "memset", 6) == 0)
    gpu_must (&p->g,
              p->g.set_words_async (p->tensors[t->tensor].at, (unsigned int)drawn,
                                    2 * (size_t)t->words, s),
              "cuMemsetD32Async");
  else if (strncmp (o->name, "memcpy", 6) == 0)
    gpu_must (&p->g,
              p->g.copy_within_async (p->tensors[t[t[1].writes].tensor].at,
                                      p->tensors[t[t[0].writes].tensor].at, 8 * (size_t)t->words,
                                      s),
              "cuMemcpyDtoDAsync");
  else
    return false;
  return true;
}

static void play_op (playing *p, int32_t k, int32_t step) {
  const played *o = &p->ops[k];
  int32_t on = stream_of (p, k);
  uint32_t users = 0, impure = o->how != PURE ? ((uint32_t)1 << p->n_streams) - 1 : 0;
  CUdeviceptr at[512];
  for (int32_t i = 0; i < o->n_touches; i++)
    users |= p->tensors[o->touches[i].tensor].users;
  wait_for (p, users, on);
  for (int32_t i = 0; i < o->n_touches; i++) {
    held *x = &p->tensors[o->touches[i].tensor];
    bool listed = o->how == IMPURE_TABLE && o->touches[i].reads && !o->touches[i].writes;
    at[i] = listed ? 0 : x->at;
    x->users = (uint32_t)1 << on;
  }
  at[o->n_touches] = p->extra[k];
  if (o->how == IMPURE_TABLE)
    send_table (p, k, p->streams[on]);
  player_head head = { k, step, (int64_t)(draw ((uint64_t)step * 65537 + (uint64_t)k) >> 40) };
  if (!moves (p, k, head.drawn, p->streams[on]))
    launch (p, p->functions[k], p->streams[on], &head, at, o->n_touches + 1);
  if (impure != 0) /* what it shares with others is theirs behind it */
    for (int32_t i = 0; i < p->n_streams; i++)
      wait_for (p, (uint32_t)1 << on, i);
}

/* Each op's turn comes, one behind the other: it is behind a launch that no other step has. */
static bool strays (const playing *p, int32_t step, int32_t k) {
  int64_t since = step - p->stray;
  return p->stray > 0 && since >= 0 && since % 2 == 0 && since / 2 % p->trace->n_ops == k;
}

/* Behind the last op of a step. */
static int32_t end_of (const playing *p, int32_t step) {
  int64_t kind = p->turns > 1 ? step / TURN % p->turns : 0;
  int64_t parts = p->turns > PARTS ? p->turns : PARTS;
  return (int32_t)(p->trace->n_ops - kind * p->trace->n_ops / parts);
}

static void play_step (playing *p, int32_t step) {
  const trace *t = p->trace;
  int32_t end = end_of (p, step);
  for (int32_t k = 0; k < end; k++) {
    if (strays (p, step, k))
      (void)filled_at (p, p->scratch, EXTRA_WORDS, step);
    for (int32_t x = 0; x < t->n_tensors; x++)
      if (!t->tensors[x].persistent && p->tensors[x].first == k) {
        p->tensors[x].at = gpu_alloc (&p->g, 2 * p->tensors[x].words, p->streams[stream_of (p, k)]);
        p->tensors[x].users = (uint32_t)1 << stream_of (p, k);
      }
    play_op (p, k, step);
    for (int32_t x = 0; x < t->n_tensors; x++)
      if (!t->tensors[x].persistent && p->tensors[x].first <= k && p->tensors[x].first >= 0 &&
          (p->tensors[x].last == k || (k == end - 1 && p->tensors[x].last > k))) {
        wait_for (p, p->tensors[x].users, stream_of (p, k));
        gpu_free (&p->g, p->tensors[x].at, p->streams[stream_of (p, k)]);
      }
  }
  for (int32_t i = 1; i < p->n_streams; i++)
    wait_for (p, (uint32_t)1 << i, 0);
}

/* From memory that is not pinned. */
static void *set_counter (void *context) {
  playing *p = context;
  static uint64_t words[EXTRA_WORDS];
  for (int32_t i = 0; i < EXTRA_WORDS; i++)
    words[i] = draw ((uint64_t)i);
  gpu_must (&p->g, p->g.ctx_set_current (p->g.context), "cuCtxSetCurrent");
  gpu_must (&p->g, p->g.copy_in (p->counter, words, sizeof words), "cuMemcpyHtoD");
  __atomic_store_n (&player.entered, true, __ATOMIC_RELEASE);
  return NULL;
}

static pthread_t begin_reset (playing *p) {
  pthread_t other;
  if (pthread_create (&other, NULL, set_counter, p) != 0)
    exit (5);
  while (!__atomic_load_n (&player.entered, __ATOMIC_ACQUIRE))
    sched_yield ();
  return other;
}

static void halt (void) {
  fflush (stdout); /* whoever writes the line has seen what it did */
  for (int c = 0; c != '\n' && c != EOF;)
    c = getchar ();
}

/* ---- what it says ---- */

static void say_step (int32_t step) {
  uint64_t h = 0;
  for (int32_t k = 0; k < player.n_ops; k++)
    h = draw (h ^ player.seen[(int64_t)step * player.n_ops + k]);
  printf ("step %d %016llx\n", (int)step, (unsigned long long)h);
}

static void say_tensors (playing *p) {
  const trace *t = p->trace;
  char name[MOST_NAME];
  for (int32_t x = 0; x < t->n_tensors; x++)
    if (t->tensors[x].persistent && p->tensors[x].first != NO_OP)
      gpu_say_digest (&p->g, t->tensors[x].name, p->tensors[x].at, 2 * p->tensors[x].words);
  for (int32_t k = 0; k < t->n_ops; k++) {
    snprintf (name, sizeof name, "statistics.%d", (int)k);
    if (p->ops[k].how == IMPURE_STATISTICS)
      gpu_say_digest (&p->g, name, p->extra[k], 2 * EXTRA_WORDS);
  }
  gpu_say_digest (&p->g, "counter", p->counter, 2 * EXTRA_WORDS);
}

/* The later half of the steps: by then whatever learns has learned. */
static void say_time (playing *p, CUevent begin, CUevent end, int32_t steps) {
  float ms = 0;
  gpu_must (&p->g, p->g.event_elapsed (&ms, begin, end), "cuEventElapsedTime");
  fprintf (stderr, "player: %lld ns a step, %d launches more than alone\n",
           (long long)((double)ms * 1e6 / steps), (int)player.relaunched);
}

int main (int argc, char **argv) {
  playing p = { 0 };
  if (argc < 4)
    wrong ("");
  read_trace (&p, argv[3]);
  read_arguments (&p, argc, argv);
  set_lives (&p);
  for (int32_t k = 0; k < p.trace->n_ops; k++) {
    set_touches (&p, k);
    set_name (&p, k);
  }
  int32_t steps = (int32_t)strtol (argv[2], NULL, 10);
  player.ops = p.ops;
  player.n_ops = p.trace->n_ops;
  player.n_steps = steps > 2 ? steps : 2;
  player.seen = room ((int64_t)player.n_steps * player.n_ops, sizeof *player.seen);
  player.launches = room ((int64_t)player.n_steps * player.n_ops, sizeof *player.launches);
  gpu_open (&p.g, argc, argv);
  start (&p);
  pthread_t other = 0;
  CUevent begin = gpu_event (&p.g, 0), end = gpu_event (&p.g, 0);
  for (int32_t i = 0; i < player.n_steps; i++) {
    if (i == player.n_steps / 2)
      gpu_must (&p.g, p.g.event_record (begin, p.streams[0]), "cuEventRecord");
    play_step (&p, i);
    if (i == player.n_steps - 1)
      gpu_must (&p.g, p.g.event_record (end, p.streams[0]), "cuEventRecord");
    gpu_must (&p.g, p.g.stream_synchronize (p.streams[0]), "cuStreamSynchronize");
    if (p.resets > 0 && i == p.resets)
      other = begin_reset (&p);
    else if (p.resets > 0 && i == p.resets + 1)
      pthread_join (other, NULL);
    say_step (i);
    if (p.halts > 0 && (i + 1) % p.halts == 0)
      halt ();
  }
  say_tensors (&p);
  say_time (&p, begin, end, player.n_steps - player.n_steps / 2);
  gpu_close (&p.g);
  return 0;
}
