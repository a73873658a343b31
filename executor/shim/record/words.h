/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The file of records: each is its kind, its length, and words of that number. */
#pragma once

#include "executor/shim/state/shim.h"

typedef struct words {
  int64_t *at; /* not yet written */
  int64_t n;
  int file; /* -1: none is open, and nothing is kept */
  int32_t told_names;
  bool failed;
} words;

bool words_new (words *w);
/* In the launcher's folder; number: behind its name, or -1. */
void words_open (words *w, const shim *s, const char *name, int32_t number);
bool words_close (words *w); /* all was written */
void words_put (words *w, int64_t kind, const int64_t *values, int64_t count);
/* Names of ops that were not told yet. */
void words_put_names (words *w, const shim *s);
