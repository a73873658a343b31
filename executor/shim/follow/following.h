/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The plan that is followed, and those that are asked for: the state of follow.c and asking.c. */
#pragma once

#include "executor/shim/follow/plans.h"
#include "executor/shim/state/shim.h"

enum { MARKS = 64, STEPS_TOLD = 32, FIRST_TIMED = 8 };

/* On the stream of a step's first op, at its beginning. */
typedef struct mark {
  CUevent event;
  int64_t predicted_ns; /* of the step that ends here, and began at the mark before; -1: none did */
} mark;

/* Facts about a step's ops, which outlive its plans. */
typedef struct known_step {
  step_beat *beats;
  uint8_t *facts;
  int32_t n_beats;
} known_step;

struct follow {
  step *asked; /* told to the launcher, not answered yet */
  step *plan;  /* the one that is followed */
  plans plans; /* all that are kept */
  bool on;
  bool fresh;       /* a step has ended and the next has not begun */
  int32_t at;       /* the next beat of the step */
  int32_t action;   /* the next of its actions */
  int64_t due;      /* actions behind beats up to this one are to be done */
  int64_t in_a_row; /* planned steps since it was entered, or since strict mode ended */
  int64_t strict_left;
  int64_t maps_before;
  bool look;           /* a plan was left: perhaps its step is a part of a longer one */
  int32_t told;        /* steps, since there was another room */
  int64_t asked_room;  /* the room when one was told last */
  int32_t failures;    /* answers in a row without a plan */
  int64_t next_ask;    /* no step is told before this beat */
  bool wraps;          /* the repetition has no moment at which a step could begin */
  mark mark[MARKS];    /* the newest */
  int64_t marks, read; /* marks made; those whose times are read: the host may be ahead */
  bool counts;         /* the step at hand began at the last mark */
  bool names_writer;   /* the step at hand has digests, for a tensor that was not only read */
  bool named;          /* that was tried once */
  int64_t effort;      /* of the plan that was asked for last */
  bool asks_again;     /* ops of the plan are unfit to run again */
  bool crowded;        /* a plan had to go for another */
  known_step known[PLANS_KEPT]; /* of plans that went, or were made for another room */
  int64_t n_known;
  int64_t learned_beats; /* the length of the step that was to be learned last */
  int64_t to_learn;      /* so often a step is not told yet, because it is being learned */
};
