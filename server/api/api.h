/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the files of the API. */
#pragma once

#include "server/ask/asked.h"
#include "server/service/service.h"

/* 304 where the client has it already. */
void api_match_tag (const request *q, reply *p, const char *tag);
/* False: If-Match asks for another state of it, and the reply says so. */
bool api_is_as_asked (const request *q, reply *p, const char *tag) MUST_CHECK;
/* A file that never changes, by its digest. */
void api_reply_path (request *q, reply *p, const char *path, const char *digest, const char *type);
/* The status object; `whole`: with its result, or its place in the queue. */
void api_put_status (json_writer *w, service *s, request *q, const job_row *j, bool whole);
static inline bool api_is_over (const job_row *j) {
  return j->state >= JOB_done;
}
/* Into the queue, or joined; false: the reply says why not. */
bool api_put_job (service *s, request *q, reply *p, const char *kind, const asked *a,
                  job_row *out) MUST_CHECK;
/* The reply is the job's status, after a wait. */
void api_follow (service *s, request *q, reply *p, const job_row *j, int64_t seconds);
/* A path of the job: its own, with `rest` behind it. */
const char *api_job_link (request *q, const job_row *j, const char *rest, error *err);
/* The path of a file of a finished job by its name there; NULL: it has none, or *err. */
const char *api_job_file (service *s, request *q, const job_row *j, const char *name,
                          const char **digest, error *err);
/* Somebody has looked at a job that has ended. */
void api_saw (service *s, const char *job);
bool api_find_job (service *s, request *q, reply *p, job_row *j) MUST_CHECK;
/* False: the reply says that the quota of the disk is used up. */
bool api_has_room (service *s, request *q, reply *p) MUST_CHECK;
