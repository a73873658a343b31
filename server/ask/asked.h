/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The question in a request for a job: read from its body, kept as canonical text, and turned into
   the command line of a worker.  Equal questions have equal texts, and so the same id. */
#pragma once

#include "server/protocol/kinds.h"
#include "server/protocol/message.h"

enum { MOST_FAULTS = 20, MOST_PACK_JOBS = 10, MOST_ARGUMENTS = 128 };

typedef struct asked {
  const char *text;                   /* canonical JSON */
  char id[65];                        /* its digest, with the kind and the version of ferry */
  const char *traces[MOST_PACK_JOBS]; /* digests */
  int n_traces;
  bool only_validate;
  int64_t length_s; /* a guess at how long it takes, by what it asks for */
  fault faults[MOST_FAULTS];
  int n_faults;
} asked;

/* False: a fault, or *err.  devices: the names that there are; NULL: it is not known. */
bool asked_read (const job_kind *k, const bytes *body, const char *const *devices, arena *a,
                 asked *out, error *err) MUST_CHECK;
/* For an upload: no body but the digest of what was sent; name: of its file, or NULL. */
bool asked_import (const char *digest, const char *fingerprint, const char *name, arena *a,
                   asked *out, error *err) MUST_CHECK;
/* A whole number of a request, or `without`. */
int64_t asked_int (const json *root, const char *key, int64_t without);
/* A guess at how long the job of a request takes: shorter jobs of its owner go first if they came
   at most that much later. */
int64_t asked_length_s (const json *root);
void asked_id (const char *kind, const char *text, char id[65]);

/* A trace of a job, and the file name that the worker sees. */
typedef struct job_file {
  const char *name, *digest;
  const char *job; /* its name in a pack, or NULL */
} job_file;

typedef struct job_call {
  const char *arguments[MOST_ARGUMENTS]; /* of ferry, without its name; NULL ends them */
  int n;
  job_file files[MOST_PACK_JOBS];
  int n_files;
  const char *device, *host; /* texts of device.json and host.json, or NULL */
  const char *host_name;     /* of ranks: for --host, or NULL */
  int64_t time_limit_s;
  const char *fingerprint, *name; /* of an import, or NULL */
} job_call;

/* most_s: no time limit is longer. */
bool asked_call (const job_kind *k, const char *text, int64_t most_s, arena *a, job_call *out,
                 error *err) MUST_CHECK;
