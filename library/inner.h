/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the files of the library: the objects behind the opaque types, and how errors, sizes
   and memory cross the border. */
#pragma once

#include "ferry.h"
#include "solver/ask/ask.h"
#include "solver/options/allowed.h"

struct ferry_trace {
  arena *arena;
  trace *trace;
  int64_t peak_bytes;
};

struct ferry_plan {
  arena *arena;
  plan *plan;
};

struct ferry_device {
  arena *arena;
  device device;
};

/* Tells the caller, who may not want to know; returns whether all is well. */
bool library_told (ferry_error *out, const error *err);
/* ERR_usage, with the parameter's name. */
bool library_given (const void *pointer, const char *name, error *err) MUST_CHECK;
/* A struct of the caller's is at least as large as its first version was. */
bool library_sized (const void *pointer, size_t least, const char *name, error *err) MUST_CHECK;
/* Copies as much as the caller has room for; its size stays. */
void library_out (void *to, const void *from, size_t size);
/* Copies the fields that the caller has set, over zeros. */
void library_in (void *to, const void *from, size_t size);
arena *library_arena (error *err) MUST_CHECK;
/* The bytes, with a NUL behind, as the caller will free them; NULL: out of memory. */
char *library_text (bytes *text, size_t *size, error *err) MUST_CHECK;

/* Takes the arena, with the trace in it; NULL: it is freed. */
ferry_trace *library_trace (arena *a, trace *t, error *err) MUST_CHECK;
/* A copy, by its text. */
ferry_plan *library_plan (const plan *p, error *err) MUST_CHECK;

enum { LIBRARY_STARTS = 16 };

/* The caller's options, and the logger that speaks to their `progress`. */
typedef struct library_speaker {
  ferry_options options;
  logger log;
  const plan *starts[LIBRARY_STARTS]; /* those of the options */
} library_speaker;

/* The options over zeros; ERR_usage where they cannot be meant. */
/* An error if no op of the trace can run in that many parts. */
bool library_parts (const ferry_options *x, const trace *t, error *err) MUST_CHECK;
places_mode library_places (const ferry_options *x);
bool library_options (const ferry_options *o, library_speaker *speaker, error *err) MUST_CHECK;
/* All that is left at 0 is as the trace allows. */
allowed library_allowed (const ferry_options *x, const trace *t);
/* The request as given; the logger is `speaker`, which must outlive the ask. */
bool library_ask (const ferry_trace *t, const ferry_options *o, library_speaker *speaker, ask *out,
                  error *err) MUST_CHECK;
