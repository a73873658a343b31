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

# The shim's own instructions in planned steps, without what the driver and its kernels take: each launch; each tensor that leaves and
# comes back; each launch that is made again.
own() { # NAME STEPS OPTIONS...: of a whole run; its report is NAME's
  "$ferry" run -q --driver emulated --report "$1.json" --wait --paranoid 0 --effort quick "${@:3}" -- \
    valgrind --tool=callgrind --callgrind-out-file=calls "$programs/player" "$programs/player_kernels.so" "$2" step.json >/dev/null 2>&1
  awk '/^c?ob=/ { id = $1; sub (/^c?ob=/, "", id); if (NF > 1) name[id] = $2; if (/^ob=/) at = id }
    /^c?fn=/ { f = $1; sub (/^c?fn=/, "", f); if (NF > 1) called[f] = $2; if (/^fn=/) in_f = f }
    /^calls=/ { skip = 1; next }
    /^[0-9+*-]/ { if (skip) skip = 0; else if (name[at] ~ /libferry-shim/ && called[in_f] !~ /^(digest_of|digest_run|copy_run|mixed|word_at)/) sum += $2 }
    END { printf "%d\n", sum }' calls
}
a_step() { # NAME OPTIONS...: of 16 planned steps, one
  local few many
  few=$(own "$1.few" 24 "${@:2}") many=$(own "$1" 40 "${@:2}")
  echo $(((many - few) / 16))
}
more() { echo $((($(figure "$1" "$2") - $(figure "$1" "$2.few")) / 16)); }
awk -v seed=4 -v size=0.5 -f "$srcdir/tests/made_step.awk" >step.json
fits=$(a_step fits --budget 64MiB) ops=$(more launches fits)
room="--host 1GiB --budget $(($(figure live_high_bytes fits) * 55 / 100))B --emulated granule=4096,link=150MB/s"
swaps=$(a_step swaps $room --remake off) remakes=$(a_step remakes $room)
moved=$(((swaps - fits) / $(more evictions swaps)))
again=$(((remakes - fits - $(($(more evictions remakes) - $(more remakes remakes))) * moved) / $(more remakes remakes)))
printf '%-28s %8s\n' "the shim's own in a step" "" "  a launch" "$((fits / ops))" "  a launch of a planned step" "$((swaps / ops))" \
  "  a tensor that leaves" "$moved" "  a launch made again" "$again"
printf '{"bench": "run_planned", "launch": %d, "planned": %d, "moved": %d, "again": %d}\n' $((fits / ops)) $((swaps / ops)) "$moved" "$again"

under mapped --wait --budget 1200KiB -- "$programs/mlp" "$kernels" 40 || { cat mapped.err; exit 1; }
planned=$(figure planned_steps mapped) steady=$(figure planned_map_calls mapped) all=$(figure map_calls mapped)
printf '%-28s\n' "the MLP in 1200 KiB" "  planned steps  $planned" "  mapping calls in the steady ones  $steady" "  mapping calls of the run  $all"
printf '{"bench": "run_maps", "planned_steps": %d, "steady_map_calls": %d, "map_calls": %d}\n' "$planned" "$steady" "$all"
[ "$steady" = 0 ]
