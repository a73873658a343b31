/* SPDX-License-Identifier: GPL-3.0-or-later */
/* By how much a block may be larger than the tensor in it.  By itself PyTorch's allocator leaves up
   to 1 MiB over; `roundup_power2_divisions` and `max_split_size_mb` leave more, and no file says
   that they were set.  But then there are inputs of ops that no block would hold: the least slack
   is taken that gives each a place. */
#include <assert.h>
#include <stdlib.h>

#include "base/order.h"
#include "trace/import/kineto/kineto.h"

enum { FINEST = 64 };
static const int64_t large = (int64_t)1 << 20, unsplit = (int64_t)20 << 20;

/* PyTorch's allocator splits a block of more than 1 MiB only where more than 1 MiB is left over,
   and memory events say the size of the block. */
int64_t kineto_least_held (int64_t block_bytes) {
  const int64_t least = block_bytes - large;
  return block_bytes <= large ? block_bytes : least > large ? least : large + 1;
}

/* The largest size below `bytes` that is not rounded up: a power of two, or one of the
   equal steps to the next. */
static int64_t below (int64_t bytes, int64_t divisions) {
  int64_t power = 1;
  while (2 * power < bytes)
    power *= 2;
  int64_t step = power / divisions;
  return step ? power + (bytes - 1 - power) / step * step : bytes - 1;
}

int64_t kineto_least_slack (kineto_slack s, int64_t block_bytes) {
  assert (block_bytes >= 0);
  int64_t least = kineto_least_held (block_bytes);
  if (s.divisions && block_bytes > 512 * s.divisions) {
    int64_t rounded = below (block_bytes + 1, s.divisions);
    if (rounded >= least)
      least = below (rounded, s.divisions) + 1;
  }
  if (s.unsplit && block_bytes > unsplit && least > block_bytes - unsplit)
    least = block_bytes - unsplit;
  return least;
}

static int by_value (const void *a, const void *b) {
  const int64_t *x = a, *y = b;
  return ORDER (*x, *y);
}

/* The smallest block of at least `bytes`; 0: none. */
static int64_t block_of (const int64_t *blocks, int32_t n, int64_t bytes) {
  int32_t low = FIRST_WHERE (i, 0, n, blocks[i] >= bytes);
  return low < n ? blocks[low] : 0;
}

/* Inputs without a place, though there is a block that might be theirs. Others are of tensors that
   the file does not know. */
static int32_t homeless (kineto_slack s, const int64_t *inputs, int32_t n_inputs,
                         const int64_t *blocks, int32_t n_blocks) {
  int32_t count = 0;
  for (int32_t i = 0; i < n_inputs; i++) {
    int64_t bytes = inputs[i], block = block_of (blocks, n_blocks, bytes);
    bool near = block && bytes > large && (block < 2 * bytes || block - bytes <= unsplit);
    count += near && kineto_least_slack (s, block) > bytes;
  }
  return count;
}

kineto_slack kineto_slack_of (const int64_t *inputs, int32_t n_inputs, int64_t *blocks,
                              int32_t n_blocks) {
  assert (n_inputs >= 0 && n_blocks >= 0);
  kineto_slack best = { 0 };
  if (n_blocks)
    qsort (blocks, (size_t)n_blocks, sizeof *blocks, by_value);
  int32_t least = homeless (best, inputs, n_inputs, blocks, n_blocks);
  for (int64_t divisions = FINEST; least && divisions; divisions /= 2) { /* the last is none */
    kineto_slack s = { divisions > 1 ? divisions : 0, divisions == 1 };
    int32_t count = homeless (s, inputs, n_inputs, blocks, n_blocks);
    if (count < least) {
      best = s;
      least = count;
    }
  }
  return best;
}
