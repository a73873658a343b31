/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The program's doings, beat by beat: to recognise its step, and to tell the launcher of it. */
#pragma once

#include "executor/shim/step/period.h"
#include "executor/shim/state/shim.h"

bool record_start (shim *s);
void record_finish (shim *s);
void record_allocate (shim *s, int32_t t);
void record_free (shim *s, int32_t t);
/* All is ready for the op's call; timed: a plan wants those of its step. */
void record_before (shim *s, op *o, bool timed);
void record_begins (shim *s, const op *o); /* its time does, once more */
void record_left (shim *s, op *o);         /* the call has returned, if it was made */
void record_after (shim *s, const op *o);
const char *record_last (const shim *s, int back); /* the name of an op before; "" */
const beats *record_beats (const shim *s);
/* Around an op that is still kept; false: it has no times. */
bool record_events (const shim *s, int64_t beat, CUevent *start, CUevent *end);
/* How many there had been before a beat that is still kept. */
int64_t record_evictions (const shim *s, int64_t beat);
/* The times of what is done, after a call that waited. */
void record_harvest (shim *s);
/* The beat of an op that was made lately; -1: too long ago. */
int64_t record_beat_of (const shim *s, int64_t op);
/* A fact for each tensor of the op; later ones replace them. */
void record_facts (shim *s, int64_t beat, const uint8_t *facts);
shim_fact record_fact (const shim *s, int64_t beat, int32_t ref);
/* These are known as well; the stronger one counts. */
void record_recall (shim *s, int64_t beat, const uint8_t *facts);
/* Those of a step that was written: one for each tensor of each beat; the caller frees them. */
uint8_t *record_step_facts (const shim *s, int64_t first, int64_t end);
/* All of its ops have times. */
bool record_can_step (const shim *s, int64_t first, int64_t end);
/* Writes the beats [first, end), for which that holds, with their times as step `number`. */
bool record_step (shim *s, int64_t first, int64_t end, int32_t number);
