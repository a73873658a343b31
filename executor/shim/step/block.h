/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the launcher and the shim: a file in the launcher's folder, mapped by both, so that it
   survives the program however it ends.  The launcher fills the first part before it starts the
   program; the shim writes the rest. */
#pragma once

#include "executor/emu/emu.h"

#define SHIM_BLOCK "FERRY_SHIM"        /* names the block's file */
#define SHIM_REAL "FERRY_REAL_LIBCUDA" /* the driver's file */

enum { SHIM_MAGIC = 0x66657279, SHIM_TEXT = 512, SHIM_PATH = 400, SHIM_MESSAGES = 16 };

typedef enum shim_mode { SHIM_PROFILE, SHIM_RUN } shim_mode;
typedef enum shim_strict { SHIM_STRICT_FIRST, SHIM_STRICT_ALWAYS, SHIM_STRICT_SYNC } shim_strict;

/* Tensors that are made again: none; each with its digest compared; in the first planned steps
 * only.
 */
typedef enum shim_remake { REMAKE_OFF, REMAKE_VERIFIED, REMAKE_TRUSTED } shim_remake;

/* Room for pairs of digests, of tensors that are made again: in a part of one granule. */
enum { PAIRS_BYTES = 1 << 15, PAIRS_PART = 4 };
static inline int64_t pairs_bytes (int64_t granule_bytes) {
  return granule_bytes / PAIRS_PART < PAIRS_BYTES ? granule_bytes / PAIRS_PART : PAIRS_BYTES;
}
static inline int32_t pairs_in (int64_t granule_bytes) {
  return (int32_t)(pairs_bytes (granule_bytes) / (2 * (int64_t)sizeof (uint64_t)));
}

typedef struct shim_config {
  shim_mode mode;
  shim_strict strict;
  shim_remake remake;
  int64_t budget_bytes; /* of the device; 0: all that it has */
  int64_t host_bytes;   /* pinned at most */
  int64_t paranoid;     /* every N-th planned step is strict; 0: none */
  int64_t strict_steps; /* planned steps before the first aliased one */
  int64_t time_every;   /* the ops of every N-th planned step are timed; 0: of none */
  int64_t efforts;      /* the number of better plans asked for, each with more effort */
  bool wait;            /* at the boundary, until the plan is made */
  bool shows_last;      /* the times of the last planned step are written */
  bool learns;          /* digests tell which tensors an op writes */
  bool audits;          /* the driver's calls are counted by CUPTI too */
  bool emulated;
  emu_config emu;
  char folder[SHIM_PATH]; /* of the block: the other files lie in it */
  char cupti[SHIM_PATH];  /* whose records give a profile's times; "": event pairs do */
  char share[SHIM_PATH];  /* the roster of the programs that share the budget; "": none do */
  int32_t share_row;      /* the program's in it */
  int32_t ranks; /* processes with a device and a block each, that of N > 0 in rank-N; 0: one */
} shim_config;

/* A group of programs that share a card: a roster (base/roster.h) with these words. Room is raised
   by who serves the group, and lowered by the program that has it. */
enum { SEAT_LAUNCHER, SEAT_PROGRAM };
enum shim_group {
  GROUP_TOTAL, /* bytes of all */
  GROUP_JOINED,
  GROUP_PACKED /* for which members, in a word, MEMBER_PACKED was made */
};
enum shim_member {
  MEMBER_GRANTED, /* bytes that it may take */
  MEMBER_ASKED,   /* bytes that it is to have; less than granted: it gives the rest back */
  MEMBER_NEED,    /* the least that it can run with, as far as it is known */
  MEMBER_WANT,    /* more would be of no use */
  MEMBER_ORDER,   /* older ones have smaller ones */
  MEMBER_STEPS,   /* so many steps of it are known */
  MEMBER_PACKED,  /* its room in a plan for all; 0: none */
  MEMBER_PID
};

/* Sums over the steps that were followed, in planned steps' order. */
typedef struct shim_seen {
  int64_t calls;         /* of any wrapped entry: 0: the driver was never called */
  int64_t ops, launches; /* with tensors or without */
  int64_t tensors, allocated_bytes, largest_bytes;
  int64_t live_high_bytes;   /* of what the program held at once */
  int64_t device_high_bytes; /* of what ferry took of the device */
  int64_t driver_high_bytes; /* the same by the emulator's own count; 0: not known */
  int64_t host_high_bytes;
  int64_t out_bytes, in_bytes; /* over the link */
  int64_t clean_bytes;         /* left without a copy: the host still had the same bytes */
  int64_t evictions, unplanned;
  int64_t map_calls, planned_map_calls; /* the second: in planned steps but for the first */
  int64_t planned_steps, strict_steps, entries, leaves, plans;
  int64_t served_plans;              /* made by a server */
  int64_t planned_ns, planned_timed; /* the sum over `planned_timed` planned steps */
  int64_t predicted_ns;              /* the prediction of the same */
  int64_t crossing_bytes; /* of the plan that came last: each step frees them of the one before */
  int64_t floor_bytes;    /* the most that one op needed at once */
  int64_t resizes, room_waits;     /* of a program that shares a card */
  int64_t learned_ops;             /* whose tensors had digests before and after them */
  int64_t own_launches;            /* of ferry's kernels */
  int64_t checks, changed;         /* tensors that left by their digest; had changed all the same */
  int64_t better_plans, better_ns; /* taken between two steps; the last one's gain a step */
  int64_t dropped_bytes;           /* left without a copy, to be made again */
  int64_t remakes;                 /* launches of the program's kernels again */
  int64_t remade_on_leaving;     /* of these, because a plan was left while tensors were dropped */
  int64_t tested_ops, unfit_ops; /* put to the test before they may run again; failed it */
} shim_seen;

/* Why a kernel is not launched again. */
typedef enum shim_unfit {
  UNFIT_NOT, /* it is */
  UNFIT_RESULT,
  UNFIT_INPUT,
  UNFIT_OTHERS, /* it writes what its parameters do not name */
  UNFIT_SMALL,  /* there is no room to put its small tensors aside */
  UNFIT_LATER,  /* it was well where it ran first, and its results were others later */
  UNFITS
} shim_unfit;
enum { SHIM_UNFIT_OPS = 8, SHIM_AGAIN_OPS = 32 };
typedef struct shim_unfit_op {
  char name[128];
  int32_t why; /* a shim_unfit */
} shim_unfit_op;

typedef struct shim_again_op { /* of one name */
  char name[128];
  int64_t launches;
} shim_again_op;

/* The driver's calls, as CUPTI saw them. */
typedef struct shim_audit {
  bool begun;
  int64_t launches;
  int64_t escapes; /* calls that did not come through the shim */
  char first[64];  /* of these */
} shim_audit;

typedef struct shim_block {
  int32_t magic, bytes;
  shim_config config;

  bool is_held;        /* the launcher has a lock on the file for as long as it lives */
  int32_t loader_pid;  /* the first to load it */
  int32_t owner;       /* of the budget: a process, less than 0 once it has asked for memory */
  int32_t ended;       /* the owner put everything away */
  int32_t step_wanted; /* so many steps were written, to be planned */
  int64_t step_granule, step_granules; /* chunks that the plan may use */
  int64_t step_effort;                 /* 0: its first plan; else a faster one is asked for */
  int64_t step_plan_ns;                /* the time of the plan that there is */
  int32_t step_checks; /* runs of pages that can have digests beside those that do */
  int32_t plan_ready;  /* so many were answered */
  int32_t plan_good;   /* the last answer has a plan */
  int64_t step_ops_ns; /* of the step that was planned last: all its ops */
  int32_t refused;     /* a feature was refused */
  int32_t faults, races;
  emu_race race; /* the first of them, where the emulated device looked for any */
  int32_t messages;
  char message[SHIM_MESSAGES][SHIM_TEXT];
  char floor_op[128], fault_op[128];
  char left_at[256];    /* the beat where a plan was left last, and why */
  char changed_op[128]; /* wrote one of these, as digests told; before, the last that used the first
                         */
  shim_unfit_op unfit_op[SHIM_UNFIT_OPS]; /* the first of seen.unfit_ops */
  shim_again_op again_op[SHIM_AGAIN_OPS]; /* the first that were launched again */
  int32_t again_ops;                      /* rows in use */
  char remade_op[128]; /* launched again, with other results that could not be mended: the end */
  bool by_cupti;       /* a profile's times are of CUPTI's records */
  int64_t cupti_ops;   /* so many ops have one */
  shim_audit audit;
  shim_seen seen;
} shim_block;

/* The names of files in the block's folder. */
#define SHIM_BLOCK_FILE "block"
#define SHIM_RANK "rank"     /* -N behind it: the folder of that rank's block and files */
#define SHIM_RECORD "record" /* a profile's beats */
#define SHIM_STEP "step"     /* a step to be planned, in the same form; -N behind it */
#define SHIM_LAST "last"     /* the last planned step, with --chrome */
#define SHIM_PLAN "plan"     /* the answer; -N behind it */

/* A record is 64-bit words: what it is, how many words follow, and those. */
enum shim_record {
  RECORD_NAME = 1, /* its number, its length, its bytes */
  RECORD_ALLOC,    /* number, bytes */
  RECORD_FREE,     /* number */
  RECORD_OP,       /* token, name, stream, then the numbers of the allocations it touches */
  RECORD_TIME,     /* number of the op, ns, gap_ns or -1 */
  RECORD_CUT,      /* of a step: here it begins, and where it ends */
  RECORD_PIN,      /* number of an allocation that must stay */
  RECORD_ORDER,    /* of a step's beats, from its first: one, what it waits for (less than 0: of the
                      step before), 1 if the host waits too, 2: for the shim's copies as well */
  RECORD_LINK,     /* of a step's beats: a copy of the program's, its bytes, less than 0: out */
  RECORD_CROSSING, /* numbers: an allocation that the step frees, and the one that replaces it */
  RECORD_FACTS,    /* number of the op, then a shim_fact for each of its allocations */
  RECORD_AGAIN     /* number of an op that may be launched again */
};

/* A use of a tensor by an op, and how it is known. */
typedef enum shim_fact {
  FACT_NONE,    /* nothing is known */
  FACT_SAME,    /* the digests before and after it were equal */
  FACT_CHANGED, /* they were not */
  FACT_READ,    /* by the call: the tensor is what a copy reads */
  FACT_PART,    /* by the call: a copy or a fill writes a part of it */
  FACT_WHOLE    /* all of it */
} shim_fact;

/* The answer, words as well: magic, predicted ns, granules, and how many rows of each sort follow.
   A home: number, pages, a granule a page. Away at the boundary: number, first page, pages. An
   action: the beat behind which it is done (-1: before the first), a plan_action, number, first
   page, pages; in order of the beats. */
enum plan_action {
  ACTION_OUT,
  ACTION_IN,
  ACTION_LEAVE, /* the host has the bytes, if the digest allows that */
  ACTION_DROP,  /* it is made again, or was made for others alone */
  ACTION_GIVE,  /* the program may have freed it: it was kept to make others again */
  ACTION_AGAIN  /* an op: its beat, the entry of the plan, and an again_use for each of its tensors
                 */
};
typedef enum again_use { USE_READS, USE_WRITES, USE_CHANGES } again_use; /* in two bits each */
enum { AGAIN_REFS = 31 };
enum { PLAN_MAGIC = 0x706c616e, PLAN_PREDICTED = 1, PLAN_GRANULES = 2, PLAN_HEAD = 6 };
