/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/import/common/calls.h"

bool slice_holds (slice text, const char *word) {
  return memmem (text.at, (size_t)text.size, word, strlen (word)) != NULL;
}

static bool holds_any (slice name, const char *const *words) {
  for (; *words; words++)
    if (slice_holds (name, *words))
      return true;
  return false;
}

bool call_is_backward (slice name) {
  return slice_starts (name, "autograd::engine::") || slice_starts (name, "torch::autograd::") ||
         slice_starts (name, "struct torch::autograd::") ||
         (slice_holds (name, "Backward") && !slice_starts (name, "aten::"));
}

bool call_is_factory (slice name) {
  static const char *const words[] = {
    "::zero",   "::ones",          "::empty",         "::full", "::new_",   "::fill",
    "::clone",  "::copy_",         "::_to_copy",      "::rand", "::resize", "::_foreach_zero",
    "::detach", "::scalar_tensor", "::_foreach_copy", NULL
  };
  return slice_is (name, "aten::to") || holds_any (name, words);
}

bool call_is_collective (slice name) {
  static const char *const words[] = { "nccl",
                                       "NCCL",
                                       "rccl",
                                       "RCCL",
                                       "allreduce",
                                       "all_reduce",
                                       "allgather",
                                       "all_gather",
                                       "AllReduce",
                                       "AllGather",
                                       "ReduceScatter",
                                       "reduce_scatter",
                                       "alltoall",
                                       "all_to_all",
                                       "broadcast_coalesced",
                                       "c10d::",
                                       NULL };
  return holds_any (name, words);
}

bool call_is_partial (slice name) {
  static const char *const words[] = { "embedding", "index",   "gather",    "scatter", "select",
                                       "take",      "sparse",  "lookup",    "slice",   "as_strided",
                                       "cache",     "narrow",  "Embedding", "Lookup",  "Index",
                                       "optimizer", "adagrad", "masked",    "nonzero", "where",
                                       "put",       "segment", "unique",    "topk",    "sort",
                                       "attention", "paged",   NULL };
  return holds_any (name, words);
}

int64_t name_rank (const char *name) {
  for (const char *at = strstr (name, "rank"); at; at = strstr (at + 1, "rank")) {
    const char *digit = at + 4;
    digit += *digit == '_' || *digit == '-' || *digit == '.';
    int64_t rank = 0;
    int n = 0;
    for (; *digit >= '0' && *digit <= '9' && n < 9; digit++, n++)
      rank = rank * 10 + (*digit - '0');
    if (n)
      return rank;
  }
  return -1;
}
