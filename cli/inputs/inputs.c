#include "cli/inputs/inputs.h"

#include <stdio.h>
#include <string.h>

static bool is_strict (const call *c) {
  for (const cli_option *o = c->command->options; o && o->name; o++)
    if (strcmp (o->name, "strict") == 0)
      return call_flag (c, "strict");
  return false;
}

read_options call_read_options (call *c) {
  return (read_options){ .log = &c->log, .strict = is_strict (c) };
}

trace *call_trace (call *c, const char *path) {
  read_options o = call_read_options (c);
  trace *t = trace_load (path, &o, c->arena, &c->err);
  if (t && t->source.confidence && *t->source.confidence &&
      strcmp (t->source.confidence, "exact") != 0)
    call_note (c, "%s: the trace is %s", path, t->source.confidence);
  return t;
}

plan *call_plan (call *c, const char *path) {
  read_options o = call_read_options (c);
  return plan_load (path, &o, c->arena, &c->err);
}

void call_tell_doubt (FILE *to, call *c, const trace *t) {
  const char *doubt = trace_doubt (t, c->arena, &c->err);
  if (doubt)
    fprintf (to, "%s\n", doubt);
}
