/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/policy_paper.h"

#include <stdio.h>
#include <string.h>

#include "tests/suite.h"
#include "trace/build.h"

/* Peak 12 MiB at op 4; from forward to backward x0 is idle behind op 1 till op 7, x1 2 to 6, x2 3
   to 5. Resident at the ops: 5 8 10 11 12 12 10 7 2. */
const char paper_chain_tensors[] = "w:1! x0:4 x1:3 x2:2 x3:1 g:1 g3:1 g2:1 g1:1";
const char paper_chain_ops[] = "f f0 1 w > x0 |f f1 1 x0 > x1 |f f2 1 x1 > x2 |f f3 1 x2 > x3 |"
                               "f loss 1 x3 > g |b b3 1 g x2 > g3 |b b2 1 g3 x1 > g2 |"
                               "b b1 1 g2 x0 > g1 |u up 1 g1 w > w";
device paper_link_device (void) {
  return (device){ .name = "small",
                   .memory_bytes = (int64_t)1 << 40,
                   .granule_bytes = MIB,
                   .link = { .d2h_bytes_per_s = (int64_t)4000 * MIB,
                             .h2d_bytes_per_s = (int64_t)4000 * MIB,
                             .both_bytes_per_s = (int64_t)8000 * MIB },
                   .host_bytes = (int64_t)1 << 40,
                   .share_ppm = 1000000 };
}

static int32_t tensor_of (const char *tensors, const char *name, size_t length) {
  int32_t index = 0;
  for (const char *at = tensors; *at; index++) {
    size_t word = strcspn (at, " "), letters = strcspn (at, ":");
    if (letters == length && strncmp (at, name, length) == 0)
      return index;
    at += word + (at[word] == ' ');
  }
  ck_abort_msg ("no tensor %.*s", (int)length, name);
  return -1;
}

static void put_operands (trace_builder *b, const char *tensors, const char *text, size_t size) {
  bool writes = false;
  for (const char *at = text, *end = text + size; at < end;) {
    size_t word = strcspn (at, " |");
    if (at + word > end)
      word = (size_t)(end - at);
    if (*at == '>')
      writes = true;
    else if (word > 0 && writes)
      build_write (b, tensor_of (tensors, at, word));
    else if (word > 0)
      build_read (b, tensor_of (tensors, at, word));
    at += word + 1;
  }
}

trace *paper_trace (arena *a, const char *tensors, const char *ops) {
  error err = { 0 };
  trace_builder *b = build_new (a, "small", 1, &err);
  ck_assert (b != NULL);
  for (const char *at = tensors; *at;) {
    size_t word = strcspn (at, " "), letters = strcspn (at, ":");
    int size = 0;
    ck_assert_int_eq (sscanf (at + letters + 1, "%d", &size), 1);
    char name[16];
    snprintf (name, sizeof name, "%.*s", (int)letters, at);
    build_tensor (b, name, (int64_t)size * MIB,
                  at[word - 1] == '!' ? TENSOR_PARAMETER : TENSOR_ACTIVATION);
    at += word + (at[word] == ' ');
  }
  for (const char *at = ops; *at;) {
    size_t length = strcspn (at, "|");
    char phase, name[16];
    int ms, used;
    ck_assert_int_eq (sscanf (at, " %c %15s %d%n", &phase, name, &ms, &used), 3);
    build_op (b, name,
              phase == 'f'   ? OP_FORWARD
              : phase == 'b' ? OP_BACKWARD
                             : OP_UPDATE,
              (int64_t)ms * MS);
    put_operands (b, tensors, at + used + 1, length - (size_t)used - 1);
    at += length + (at[length] == '|');
  }
  trace *t = build_finish (b, &err);
  ck_assert_msg (t != NULL, "%s", err.text);
  return t;
}

/* ---- what was chosen, as text ---- */

static void write_choice (const trace *t, const policy_choice *c, char *text, size_t size) {
  size_t n = 0;
  text[0] = 0;
  for (int64_t i = 0; i < c->n_moves; i++) {
    const policy_move *m = &c->moves[i];
    n += (size_t)snprintf (text + n, size - n, "%s%s %d>%d @%d%s", n ? "; " : "",
                           t->tensors[m->tensor].name, m->out_after, m->in_before, m->in_not_before,
                           m->wait_out ? " w" : "");
    if (m->wait_at != NO_OP)
      n += (size_t)snprintf (text + n, size - n, " w%d", m->wait_at);
  }
  for (int64_t i = 0; i < c->n_drops; i++) {
    const policy_drop *d = &c->drops[i];
    n += (size_t)snprintf (text + n, size - n, "%sdrop %s %d>%d", n ? "; " : "",
                           t->tensors[d->tensor].name, d->after, d->before);
    if (d->segment >= 0)
      n += (size_t)snprintf (text + n, size - n, " s%d", d->segment);
    else
      n += (size_t)snprintf (text + n, size - n, d->stays ? " +" : " -");
  }
}

/* "again f0 f1 @7 = x0": before op 7 both run, and x0 is theirs from then on. */
static void write_entries (const trace *t, const policy_choice *c, char *text, size_t size) {
  size_t n = strlen (text);
  for (int32_t i = 0; i < c->n_entries; i++) {
    const recompute *r = &c->entries[i];
    n += (size_t)snprintf (text + n, size - n, "%sagain", n ? "; " : "");
    for (int32_t j = 0; j < r->ops.count; j++)
      n += (size_t)snprintf (text + n, size - n, " %s", t->ops[r->ops.at[j]].name);
    n += (size_t)snprintf (text + n, size - n, " @%d =", r->before);
    for (int32_t j = 0; j < r->replaces.count; j++)
      n += (size_t)snprintf (text + n, size - n, " %s", t->tensors[r->replaces.at[j]].name);
  }
}

static void read_request (const paper *p, arena *a, device *d, policy_values *values,
                          policy_request *r) {
  error err = { 0 };
  policy_id id = policy_named (p->policy);
  ck_assert_int_ne (id, POLICIES);
  *d = paper_link_device ();
  *values = policy_standard ();
  int host_mib = (int)(d->host_bytes / MIB);
  for (const char *at = p->options; at && *at;) {
    char one[64];
    size_t length = strcspn (at, ",");
    snprintf (one, sizeof one, "%.*s", (int)length, at);
    if (sscanf (one, "host=%d", &host_mib) != 1)
      ck_assert_msg (policy_set (id, one, values, &err), "%s", err.text);
    at += length + (at[length] == ',');
  }
  *r = (policy_request){ .trace = paper_trace (a, p->tensors ? p->tensors : paper_chain_tensors,
                                               p->ops ? p->ops : paper_chain_ops),
                         .device = d,
                         .budget_bytes = (int64_t)p->budget_mib * MIB,
                         .host_bytes = (int64_t)host_mib * MIB,
                         .values = values };
}

void paper_ask (const paper *p, arena *a, policy_answer *out) {
  error err = { 0 };
  policy_values values;
  policy_request r;
  device d;
  read_request (p, a, &d, &values, &r);
  ck_assert_msg (policy_run (policy_named (p->policy), &r, a, out, &err), "%s: %s", p->policy,
                 err.text);
}

void paper_holds (const paper *p) {
  char text[1000];
  error err = { 0 };
  arena *a = arena_new (0);
  policy_values values;
  policy_request r;
  policy_view v;
  policy_choice c;
  policy_answer answer;
  device d;
  read_request (p, a, &d, &values, &r);
  ck_assert_msg (policy_choose (policy_named (p->policy), &r, a, &v, &c, &err), "%s: %s", p->policy,
                 err.text);
  write_choice (r.trace, &c, text, sizeof text);
  write_entries (r.trace, &c, text, sizeof text);
  ck_assert_msg (strcmp (text, p->chosen) == 0, "%s %s at %d MiB: %s\nexpected: %s", p->policy,
                 p->options ? p->options : "", p->budget_mib, text, p->chosen);
  paper_ask (p, a, &answer);
  arena_free (a);
}
