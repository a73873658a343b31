/* What a kernel of an op is given, by value: the same for every kind.  C and CUDA C++. */
#ifndef FERRY_EXECUTOR_KERNEL_WORK_H
#define FERRY_EXECUTOR_KERNEL_WORK_H

#ifdef __CUDACC__

#include <stdint.h>

/* As trace/compute.h makes them; a test of the host side would see a difference in size. */
enum { COMPUTE_MOST_OPERANDS = 136, COMPUTE_MOST_LIST = 128 };
#define FIELD(name) int64_t name;
#define LIST(name) int64_t name##_count, name[COMPUTE_MOST_LIST];
#define SHAPE(name, fields)       \
  typedef struct compute_##name { \
    fields                        \
  } compute_##name;
#include "trace/compute.def"
typedef struct compute {
  int kind, dtype;
  union {
#define SHAPE(name, fields) compute_##name name;
#include "trace/compute.def"
    int64_t at[4 + COMPUTE_MOST_LIST];
  };
} compute;
#undef FIELD
#undef LIST

#else

#include "executor/ops.h"

#endif

/* A stretch of items that lie side by side in every operand. Of kinds that need the whole batch:
   all items, and an operand that has items is a table of where each is. */
typedef struct kernel_work {
  compute c;
  void *at[COMPUTE_MOST_OPERANDS]; /* NULL: absent */
  int64_t first_item, items, step;
  int32_t *failed; /* set where a token or class is out of range */
} kernel_work;

#ifndef __CUDACC__

/* The tables of a kind that needs the whole batch; 0 for others. */
int64_t kernel_work_table_bytes (const ops_call *call);
/* The stretch from item `from` of the call on, as far as it reaches; returns its items. `table`,
   where there is to be one, may be NULL: then it is not written. `failed` and `step` stay to be
   set. */
int64_t kernel_work_fill (const ops_call *call, int64_t from, void **table, kernel_work *out);
/* Is the operand to be 0 before the call's first stretch? */
bool kernel_work_zeroes (const ops_call *call, int index, const operand *o);

#endif

#endif
