/* How fast convolution and linear layers are beside the matrix product that they are made of: the
   same number of multiplications by one call of sgemm an item, of the same shape, whose operands
   are there already; and how long a language model of characters takes to learn a text.  What is
   shown is the best of some turns, each side in its turn. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/random.h"
#include "executor/blas.h"
#include "executor/interpret.h"
#include "trace/zoo/zoo.h"

enum { TURNS = 5 };

/* Of this process: others may be at work beside. */
static double seconds (void) {
  struct timespec t;
  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must (bool ok, const error *err) {
  if (ok)
    return;
  fprintf (stderr, "%s\n", err->text);
  exit (1);
}

static float *numbers (int64_t count) {
  float *x = malloc ((size_t)count * sizeof *x);
  random_state r = random_seed (3);
  for (int64_t i = 0; x != NULL && i < count; i++)
    x[i] = (float)random_between (&r, -1000, 1000) / 1000;
  return x;
}

/* ---- ops beside their products ---- */

typedef struct shape {
  const char *name;
  compute c;
  blas_product p; /* of one item, or of all rows */
  int64_t items;  /* so many products */
} shape;

static void run_op (ops *o, const compute *c, float *const *data) {
  operand x[COMPUTE_MOST_OPERANDS];
  ops_piece pieces[8];
  ops_operand operands[8];
  error err = { 0 };
  int n = compute_operands (c, x);
  for (int i = 0; i < n; i++) {
    pieces[i] = (ops_piece){ data[i], x[i].item ? compute_batch (c) : 1 };
    operands[i] = (ops_operand){ &pieces[i], x[i].use != ABSENT };
  }
  ops_call call = { c, 0, compute_batch (c), 0, false, operands, n };
  must (ops_run (o, &call, &err), &err);
}

static void compare (ops *o, const shape *s) {
  operand x[COMPUTE_MOST_OPERANDS];
  float *data[8] = { NULL };
  int n = compute_operands (&s->c, x);
  for (int i = 0; i < n; i++)
    data[i] = numbers (x[i].elements);
  const blas_product *p = &s->p;
  float *a = numbers (p->m * p->k), *b = numbers (p->k * p->n), *c = numbers (p->m * p->n);
  double best_op = INFINITY, best_product = INFINITY;
  for (int turn = 0; turn < TURNS; turn++) {
    double start = seconds ();
    run_op (o, &s->c, data);
    double middle = seconds ();
    for (int64_t i = 0; i < s->items; i++)
      blas_sgemm (p, a, b, c);
    double end = seconds ();
    best_op = fmin (best_op, middle - start);
    best_product = fmin (best_product, end - middle);
  }
  double giga = (double)compute_flops (&s->c) * 1e-9;
  printf ("%-34s %-20s %8.1f %8.1f %6.0f %%\n", s->name, compute_kind_names[s->c.kind],
          giga / best_op, giga / best_product, 100 * best_product / best_op);
  for (int i = 0; i < n; i++)
    free (data[i]);
  free (a);
  free (b);
  free (c);
}

static void compare_conv (ops *o, const char *name, int64_t batch, int64_t in, int64_t out,
                          int64_t depth, int64_t edge, int64_t kernel, int64_t stride) {
  int64_t pad = kernel / 2, deep = depth > 1, small = (edge + 2 * pad - kernel) / stride + 1;
  compute_conv v = { .batch = batch,
                     .in_channels = in,
                     .out_channels = out,
                     .groups = 1,
                     .in_d = depth,
                     .in_h = edge,
                     .in_w = edge,
                     .out_d = depth,
                     .out_h = small,
                     .out_w = small,
                     .kernel_d = deep ? kernel : 1,
                     .kernel_h = kernel,
                     .kernel_w = kernel,
                     .stride_d = 1,
                     .stride_h = stride,
                     .stride_w = stride,
                     .pad_d = deep ? pad : 0,
                     .pad_h = pad,
                     .pad_w = pad };
  int64_t rows = in * v.kernel_d * kernel * kernel, columns = depth * small * small;
  shape s = { name,
              { .kind = COMPUTE_conv_fwd, .conv = v },
              { out, columns, rows, false, false, rows, columns, columns, 1, 0 },
              batch };
  compare (o, &s);
  s.c.kind = COMPUTE_conv_bwd_data;
  s.p = (blas_product){ rows, columns, out, true, false, rows, columns, columns, 1, 0 };
  compare (o, &s);
  s.c.kind = COMPUTE_conv_bwd_weights;
  s.p = (blas_product){ out, rows, columns, false, true, columns, columns, rows, 1, 0 };
  compare (o, &s);
}

static void compare_linear (ops *o, const char *name, int64_t rows, int64_t in, int64_t out) {
  compute_linear v = { .batch = rows, .rows = 1, .in = in, .out = out };
  shape s = { name,
              { .kind = COMPUTE_linear_fwd, .linear = v },
              { rows, out, in, false, true, in, in, out, 1, 0 },
              1 };
  compare (o, &s);
  s.c.kind = COMPUTE_linear_bwd_data;
  s.p = (blas_product){ rows, in, out, false, false, out, in, in, 1, 0 };
  compare (o, &s);
  s.c.kind = COMPUTE_linear_bwd_weights;
  s.p = (blas_product){ out, in, rows, true, false, out, in, in, 1, 0 };
  compare (o, &s);
}

/* ---- a language model ---- */

enum { TEXT_BYTES = 300 << 10 };

/* A text while it is made, and what its choices amount to: no model can be surer than that. */
typedef struct writer {
  random_state random;
  char *text;
  int64_t at;
  double nats;
} writer;

static void say (writer *w, const char *words) {
  for (; *words != '\0' && w->at < TEXT_BYTES; words++)
    w->text[w->at++] = *words;
}

static int choose (writer *w, int count) {
  w->nats += log (count);
  return (int)random_between (&w->random, 0, count - 1);
}

/* Sentences from a small grammar: words, agreement of number, clauses within clauses. */
static void sentence (writer *w, int depth) {
  static const char *const nouns[] = { "ship", "gull", "sailor", "lantern", "harbour", "captain" };
  static const char *const verbs[] = { "follow", "watch", "remember", "greet", "pass", "leave" };
  static const char *const ways[] = { "slowly", "at night", "in the rain", "before dawn" };
  bool many = choose (w, 2);
  say (w, "the ");
  say (w, nouns[choose (w, 6)]);
  say (w, many ? "s " : " ");
  bool clause = depth < 2 && random_between (&w->random, 0, 3) == 0;
  if (depth < 2)
    w->nats -= clause ? log (0.25) : log (0.75);
  if (clause) {
    say (w, "that ");
    sentence (w, depth + 1);
    say (w, " ");
  }
  say (w, verbs[choose (w, 6)]);
  say (w, many ? " the " : "s the ");
  say (w, nouns[choose (w, 6)]);
  say (w, choose (w, 2) ? "s" : "");
  if (depth > 0)
    return;
  say (w, " ");
  say (w, ways[choose (w, 4)]);
  say (w, ".\n");
}

/* What the best model of single letters, and of pairs, would reach: the text's own entropies. */
static void print_entropies (const char *text) {
  static int64_t pairs[128][128];
  double one = 0, two = 0, total = TEXT_BYTES - 1;
  for (int64_t i = 0; i + 1 < TEXT_BYTES; i++)
    pairs[text[i] & 127][text[i + 1] & 127]++;
  for (int a = 0; a < 128; a++) {
    double count = 0;
    for (int b = 0; b < 128; b++)
      count += (double)pairs[a][b];
    for (int b = 0; b < 128; b++)
      if (pairs[a][b] > 0)
        two -= (double)pairs[a][b] / total * log ((double)pairs[a][b] / count);
    if (count > 0)
      one -= count / total * log (count / total);
  }
  printf ("the text's entropy: %.3f nats a letter, %.3f knowing the one before\n", one, two);
}

static void learn_text (double limit_s) {
  error err = { 0 };
  arena *a = arena_new (0);
  char *text = malloc (TEXT_BYTES);
  writer maker = { random_seed (11), text, 0, 0 };
  if (text == NULL)
    exit (1);
  while (maker.at < TEXT_BYTES)
    sentence (&maker, 0);
  print_entropies (text);
  printf ("its grammar's entropy: %.3f nats a letter\n", maker.nats / TEXT_BYTES);
  device d = { .name = "a",
               .has_roofline = true,
               .roofline = { .fp32_flops = 1000000000000, .memory_bytes_per_s = 100000000000 } };
  zoo_request q = { .name = "charrnn",
                    .batch = 32,
                    .seq = 50,
                    .width_divisor = 4,
                    .classes = 128,
                    .optimizer = ZOO_ADAM,
                    .device = &d };
  const trace *t = zoo_trace (&q, a, &err);
  must (t != NULL, &err);
  rewritten whole;
  must (trace_rewrite (t, NULL, 0, NULL, 0, 0, a, &whole, &err), &err);
  interpret_options o = { .feed = { .text = text, .text_bytes = TEXT_BYTES } };
  interpreter *p = interpret_new (t, &whole, &o, a, &err);
  must (p != NULL, &err);
  double start = seconds (), loss = 0, sum = 0;
  int64_t step = 0;
  for (; seconds () - start < limit_s; step++) {
    must (interpret_step (p, step, &loss, &err), &err);
    sum += loss;
    if (step % 50 == 49) {
      printf ("charrnn 2 x 128: step %4lld, %6.1f s, loss %.3f nats a letter\n",
              (long long)step + 1, seconds () - start, sum / 50);
      sum = 0;
    }
  }
  printf ("{\"bench\":\"charrnn\",\"steps\":%lld,\"letters_per_s\":%.0f,\"loss\":%.3f}\n",
          (long long)step, (double)(step * 32 * 50) / (seconds () - start), loss);
  interpret_free (p);
  free (text);
  arena_free (a);
}

int main (int argc, char **argv) {
  error err = { 0 };
  ops *o = ops_new (&err);
  must (o != NULL, &err);
  printf ("%s\n%-34s %-20s %8s %8s %8s\n", blas_name (), "", "", "GFLOP/s", "sgemm", "share");
  compare_conv (o, "VGG conv1_2, 64 to 64 of 224", 1, 64, 64, 1, 224, 3, 1);
  compare_conv (o, "VGG conv3_2, 256 to 256 of 56", 2, 256, 256, 1, 56, 3, 1);
  compare_conv (o, "VGG conv5_1, 512 to 512 of 14", 4, 512, 512, 1, 14, 3, 1);
  compare_conv (o, "ResNet conv1, 3 to 64 of 224, / 2", 4, 3, 64, 1, 224, 7, 2);
  compare_conv (o, "ResNet, 256 to 64 of 56, 1 x 1", 4, 256, 64, 1, 56, 1, 1);
  compare_conv (o, "ResNet, 512 to 512 of 7", 8, 512, 512, 1, 7, 3, 1);
  compare_conv (o, "U-Net, 64 to 64 of 32 x 32 x 32", 1, 64, 64, 32, 32, 3, 1);
  compare_linear (o, "VGG fc7, 64 rows, 4096 to 4096", 64, 4096, 4096);
  compare_linear (o, "GPT-2, 1024 rows, 768 to 3072", 1024, 768, 3072);
  compare_linear (o, "LSTM gates, 32 rows, 512 to 2048", 32, 512, 2048);
  ops_free (o);
  learn_text (argc > 1 ? strtod (argv[1], NULL) : 60);
  return 0;
}
