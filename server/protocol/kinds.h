/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The kinds of jobs, and what a request for one may say: one table for the reader of requests, the
   command line of the worker, and the client. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define MOST_INT ((int64_t)1 << 53)

typedef enum kind_operand {
  OPERAND_TRACE,
  OPERAND_NETWORK,
  OPERAND_JOBS,
  OPERAND_BODY
} kind_operand;
typedef enum kind_output {
  OUTPUT_NONE,
  OUTPUT_PICTURE,
  OUTPUT_PLAN,
  OUTPUT_PLANS,
  OUTPUT_TRACE
} kind_output;

typedef struct job_kind {
  char letter;
  const char *name, *command;
  kind_operand operand;
  kind_output output;
  int most_list; /* elements */
} job_kind;

typedef enum member_type {
  TYPE_INT,
  TYPE_SHARE,   /* millionths */
  TYPE_PERCENT, /* the same, of an option that also takes bytes */
  TYPE_FLAG,
  TYPE_WORD,
  TYPE_WORD_OR_INT,
  TYPE_NAME,     /* letters, digits, dots, dashes: never a path */
  TYPE_POLICY,   /* one of a published policy */
  TYPE_POLICIES, /* a list of those, and of our own ways */
  TYPE_DEVICES,  /* a list of names of cards */
  TYPE_PAIRS,    /* key=value,... */
  TYPE_DEVICE,   /* a name, or an object as in docs/formats.md */
  TYPE_HOST,     /* a name, or an object as in docs/hosts.md */
  TYPE_SIZES,    /* a list of bytes, or of texts such as "50%" */
  TYPE_RATES,    /* a list of bytes a second */
  TYPE_TIMES,    /* a list of factors */
  TYPE_COUNTS,   /* a list of numbers */
  TYPE_TRACE,    /* the id of one */
  TYPE_TRACES,   /* a list of those */
  TYPE_NETWORK,  /* a name of the zoo */
  TYPE_JOBS,     /* names with ids of traces */
} member_type;

typedef struct member {
  const char *name, *option;
  member_type type;
  int64_t least, most;
  const char *words; /* with blanks between, or NULL */
  const char *kinds;
} member;

enum { JOB_KINDS = 8 };
extern const job_kind job_kinds[JOB_KINDS];
extern const member members[]; /* a row without name ends it */

const job_kind *kind_named (const char *name); /* or NULL */
bool member_is_of (const member *m, const job_kind *k);
/* Letters, digits and ._-, not led by a dot, at most 64. */
bool name_is_plain (const char *text);
bool digest_is_valid (const char *text); /* 64 lower case hexadecimal digits */
