/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The emulated driver's offers beyond the driver API: its configuration, its kernels, its clock,
   what its race checker found.  A program finds these entries with dlsym; a real driver has none.
   All return CUresult. */
#pragma once

#include <stdbool.h>

#include "executor/driver/types.h"

typedef enum emu_clock { EMU_REAL, EMU_VIRTUAL } emu_clock;
typedef enum emu_bytes { EMU_ALL, EMU_NONE } emu_bytes;

enum { EMU_PATH = 400, EMU_CARDS = 64, EMU_GROUPS = 64 };

/* Devices that share a link: bytes a second of all of them together, out and in, while they copy
   that way only and while they copy both ways. */
typedef struct emu_group {
  uint64_t cards; /* a bit a device */
  int64_t one_way[2], both[2];
} emu_group;

typedef struct emu_config {
  int32_t cards;         /* devices, all alike, each with a link of its own; 0: one */
  int32_t n_groups;      /* of what they share */
  int64_t memory_bytes;  /* of a device */
  int64_t missing_bytes; /* reported and missing (a planted fault) */
  int64_t granule_bytes; /* of virtual memory management; a multiple of 4096, or without
                            bytes of 512 */
  int64_t pinned_bytes;  /* the most that may be pinned at once; 0: no limit */
  int64_t d2h_bytes_per_s, h2d_bytes_per_s;
  int64_t both_bytes_per_s; /* of the sum while both carry; 0: the sum of the two */
  int64_t copy_ns;          /* a copy first carries nothing for so long */
  int64_t share_ppm;        /* of every rate; 0: 10^6 */
  /* Costs of the host's calls, on the virtual clock; 0: none. */
  int64_t launch_ns;          /* a launch, a copy or a fill */
  int64_t event_ns;           /* a record and a wait together */
  int64_t map_ns;             /* access to one granule */
  int64_t memory_bytes_per_s; /* of its own memory, read and written */
  emu_clock clock;
  emu_bytes bytes;     /* none: addresses and handles, and nothing behind them */
  bool lenient;        /* let pass what only some drivers reject */
  bool races;          /* look for unordered accesses */
  bool owners;         /* and for bytes that two use at a time, see EMU_BEGINS */
  int64_t fuzz_ns;     /* each operation is delayed by up to this; 0: not at all */
  uint64_t fuzz_seed;  /* decides the delays and which stream moves first */
  int64_t failed_copy; /* the n-th copy since the start fails, and the error stays; 0: none does */
  char shared[EMU_PATH]; /* a file that counts the memory of all processes together; "": none */
  emu_group groups[EMU_GROUPS];
} emu_config;

/* The words of that file (base/roster.h). */
enum { EMU_SHARED_HIGH /* of all: the most that was taken at once */ };
enum { EMU_SHARED_USED /* of a process */ };

/* A launch as its kernel sees it: a copy of the parameters, made at the call. */
typedef struct emu_launch {
  const void *params;
  unsigned int grid[3], block[3];
  bool bytes;                 /* false: device addresses have nothing behind them */
  int64_t start_ns;           /* on the device's clock */
  int64_t memory_bytes_per_s; /* of the device; 0: it takes no time */
} emu_launch;

/* With `owners`, bytes of the device belong to the address by which they are used, pinned ones to
   the tag under which they are (EMU_TAG). They change hands only with a copy, a memset, or a kernel
   that says so: from then on who had them before must leave them alone until it begins again. */
enum { EMU_WRITES = 1, EMU_BEGINS = 2 };

/* Told by a kernel of each range of device or pinned memory that it reads or writes. */
typedef void (*emu_touch) (void *context, CUdeviceptr at, int64_t bytes, unsigned int how);

typedef struct emu_param {
  size_t offset, bytes;
} emu_param;

typedef struct emu_kernel {
  const char *name;
  const emu_param *params;
  int32_t n_params;
  void (*run) (const emu_launch *l);                                    /* may be NULL */
  int64_t (*ns) (const emu_launch *l);                                  /* NULL: takes no time */
  void (*touches) (const emu_launch *l, emu_touch tell, void *context); /* NULL: not declared */
} emu_kernel;

enum { EMU_RACE_TEXT = 400 };

typedef struct emu_race {
  char text[EMU_RACE_TEXT]; /* both accesses, on one line */
} emu_race;

typedef CUresult (*emu_configure) (const emu_config *c); /* before cuInit; again: a new machine */
typedef CUresult (*emu_register) (const emu_kernel *k);  /* copied, but for the name's characters */
typedef CUresult (*emu_now) (int64_t *ns);
typedef CUresult (*emu_event_time) (CUevent event, int64_t *ns);
/* Virtual clock: all that can happen without the host happens. */
typedef CUresult (*emu_advance) (void);
/* A held stream starts nothing. */
typedef CUresult (*emu_hold) (CUstream stream, int on);
/* The first `capacity` races; *count is how many there were. */
typedef CUresult (*emu_races) (emu_race *out, int capacity, int *count);
/* With `races`: is all that was before the record of `first` over, whatever the timing, when that
   of `then` is? */
typedef CUresult (*emu_ordered) (CUevent first, CUevent then, int *yes);
/* How many copies a stream was ever given. */
typedef CUresult (*emu_stream_copies) (CUstream stream, int64_t *count);
/* The host itself reads or writes pinned memory, for the race checker. */
typedef CUresult (*emu_host_touches) (const void *at, size_t bytes, int writes);
/* The owner of the pinned bytes that the next calls name; 0, as at the start: none. */
typedef CUresult (*emu_tag) (uint64_t owner);

/* The most memory that was taken at once, of the device that the calling thread is on. */
typedef CUresult (*emu_high_bytes) (int64_t *bytes);

/* cuModuleLoad reads a shared object with this symbol: kernels, up to one without a name. */
#define EMU_MODULE "emu_module"

#define EMU_CONFIGURE "emuConfigure"
#define EMU_REGISTER "emuRegisterKernel"
#define EMU_NOW "emuNow"
#define EMU_EVENT_TIME "emuEventTime"
#define EMU_ADVANCE "emuAdvance"
#define EMU_HOLD "emuHold"
#define EMU_RACES "emuRaces"
#define EMU_ORDERED "emuOrdered"
#define EMU_STREAM_COPIES "emuStreamCopies"
#define EMU_HOST_TOUCHES "emuHostTouches"
#define EMU_TAG "emuTag"
#define EMU_HIGH_BYTES "emuHighBytes"
