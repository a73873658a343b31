#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Programs that capture their step, or build it, and launch it again: the same bytes under a budget, each graph an op,
# and one that is larger than the budget refused by name.
. "$(dirname "$0")/run.bash"

graphs=("$programs/graphs" "$kernels")

# all HOW BUDGET... : the same under each, with the order of events disturbed, on both clocks
all() {
  local how=$1 steps=16
  shift
  plain "$how" "${graphs[@]}" $steps "$how"
  for budget; do
    for emulated in races=yes,fuzz=200us,seed=3 clock=real,fuzz=100us,seed=7; do
      same "$how" --wait --strict-steps 1 --budget "$budget" --emulated $emulated -- "${graphs[@]}" $steps "$how" || return 1
    done
  done
}
captured() { # as without a graph
  all eager 4MiB && all captured 4MiB 1600KiB && all forked 1600KiB && all changed 1600KiB &&
    cmp eager.plain captured.plain && cmp eager.plain forked.plain && cmp eager.plain changed.plain
}
beside() { all beside 2400KiB 1600KiB && [ "$(figure planned_steps beside)" -ge 8 ] && [ "$(figure evictions beside)" -gt 50 ]; }
two() { all two 2400KiB 1600KiB && [ "$(figure planned_steps two)" -ge 6 ] && [ "$(figure evictions two)" -gt 50 ]; }
built() { all built 2400KiB 900KiB && [ "$(figure evictions built)" -gt 50 ]; }
pooled() { # a tensor that the capture has freed is the next one's memory
  plain captured "${graphs[@]}" 6 captured && same captured --budget 8MiB -- "${graphs[@]}" 6 captured &&
    [ "$(figure device_high_bytes captured)" -lt $((2 * 1024 * 1024)) ]
}
wide() { # refused in one line, with a budget that is enough
  plain wide "${graphs[@]}" 2 wide
  local status=0 least
  under wide --budget 2MiB -- "${graphs[@]}" 2 wide || status=$?
  [ "$status" = 3 ] && [ "$(grep -c 'op [0-9]* `a cuda graph of 23 nodes, first relu` needs 3145728 bytes resident at once' wide.err)" = 1 ] || { cat wide.err; return 1; }
  least=$(sed -n 's/.*raise --budget, to \([0-9]*\) bytes at least$/\1/p' wide.err)
  [ "$least" -lt $((4 * 1024 * 1024)) ] && same wide --budget "${least}B" -- "${graphs[@]}" 2 wide
}
profiled() {
  "$ferry" profile -q --driver emulated -o step.json -- "${graphs[@]}" 12 beside >out 2>err && grep -q 'a cuda graph of [0-9]* nodes, first matmul' step.json || { cat err; return 1; }
}

claim "a captured step says what the program says without a graph" captured
claim "graphs and launches beside them follow one plan" beside
claim "two graphs make room for each other" two
claim "a graph built of nodes, which get other parameters each time" built
claim "memory of a capture is used again within it" pooled
claim "a graph larger than the budget is refused by name" wide
claim "a profile has a graph as an op" profiled
finish
