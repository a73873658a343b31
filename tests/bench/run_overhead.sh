#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What the library in front of the driver costs a launch where nothing has to leave: instructions by
# callgrind, with it and without. Each is a difference of two lengths, so that start and end do not count.
# Then the mapping calls of a run in which a third has to leave: none in its steady steps.
. "$(dirname "$0")/../run.bash"
command -v valgrind >/dev/null || { echo "valgrind is not here"; exit 77; }

count() { # STEPS COMMAND...: instructions of the program
  "${@:2}" valgrind --tool=callgrind --callgrind-out-file=calls "$programs/habits" "$kernels" "$1" launches 2>&1 >/dev/null |
    sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}
alone() { LD_LIBRARY_PATH=$work/driver "$@"; }
behind() { "$ferry" run -q --driver emulated --budget 64MiB --paranoid 0 -- "$@"; }

a=$(count 2 alone) b=$(count 6 alone) c=$(count 2 behind) d=$(count 6 behind)
plain=$(((b - a) / 4000)) shim=$(((d - c) / 4000))
printf '%-28s %8s\n' "instructions a launch" "" "  the emulator and the program" "$plain" "  with the shim" "$shim" "  the shim alone" "$((shim - plain))"
printf '{"bench": "run_overhead", "plain": %d, "shim": %d, "difference": %d}\n' "$plain" "$shim" "$((shim - plain))"

under mapped --wait --budget 1200KiB -- "$programs/mlp" "$kernels" 40 || { cat mapped.err; exit 1; }
planned=$(figure planned_steps mapped) steady=$(figure planned_map_calls mapped) all=$(figure map_calls mapped)
printf '%-28s\n' "the MLP in 1200 KiB" "  planned steps  $planned" "  mapping calls in the steady ones  $steady" "  mapping calls of the run  $all"
printf '{"bench": "run_maps", "planned_steps": %d, "steady_map_calls": %d, "map_calls": %d}\n' "$planned" "$steady" "$all"
[ "$steady" = 0 ]
