#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Each guard of a run has a fault here that it catches, and that goes through where a library for tests leaves the
# guard out. Where another guard would catch it later, that one is left out both times.
. "$(dirname "$0")/run.bash"
export FERRY_SHIM_LIBRARY=$programs/libferry-shim.so
[ -e "$FERRY_SHIM_LIBRARY" ] || { echo "$FERRY_SHIM_LIBRARY is not made; \`make programs\` makes it"; exit 1; }

digests=net,results,inputs fine=granule=8192,link=300MB/s coarse=granule=262144,link=1200MB/s
# The guard; others that are left out; a step (by its seed, with tensors so many times as large) or a budget for the
# program `habits`; the emulated device; steps; what the program is told.
table="
trial    $digests        4    $fine            13 order=5
net      trial,results,inputs 4 $fine          13 order=5
results  inputs          4    $fine            16 habit=16 habit_step=10
inputs   results         4    $fine            16 habit=16 habit_step=10
given    trial,$digests  4x4  $coarse          13 counter=16
undone   trial,$digests  4x4  $coarse          13 counter=16 counter=20
params   $digests        4    $fine            16 value=6
settled  trial,$digests  4x4  $coarse,races=yes 13 streams=3 $(printf 'counter=%d ' 10 12 14 16 18 20 22 24 26 30 33 36 39)
others   trial,$digests  4    $fine            13 beyond=5
slabs    trial,$digests  4x4  $coarse          13 beyond=16
leaving  none            5    $fine            48 stray=8
waits    trial,$digests  3    $fine,races=yes  13 streams=3
copies   none            3    $fine,races=yes  13 stride=1
tables   none            1000KiB granule=65536 24 pointers
clean    none            1500KiB granule=65536 24 turns
strict   none            1000KiB granule=65536 24 hidden
"

# attempt OFF STEP DEVICE STEPS ARGUMENTS...: it says what it says alone, or is ended with a reason before it says anything else
attempt() {
  local off=$1 step=$2 device=$3 steps=$4 budget=$2 status=0 command
  shift 4
  command=("$programs/habits" "$kernels" "$steps" "$@")
  if [ "$step" = "${step%KiB}" ]; then
    awk -v "seed=${step%x*}" -v "size=$([ "$step" = "${step#*x}" ] || echo "${step#*x}")" -f "$srcdir/tests/made_step.awk" >"$step.json"
    command=("$programs/player" "$programs/player_kernels.so" "$steps" "$step.json" "$@")
    [ -e "whole$step.json" ] || FERRY_UNGUARDED=,none, under "whole$step" --budget 1GiB --host 1GiB -- "${command[@]}" || return 1
    budget=$(($(figure live_high_bytes "whole$step") * 55 / 100))B
  fi
  plain fault "${command[@]}" 2>/dev/null
  FERRY_UNGUARDED=,$off, under fault --wait --host 1GiB --emulated "$device" --budget "$budget" -- "${command[@]}" || status=$?
  [ "$status" = 0 ] && cmp -s fault.plain fault.out && return
  grep -q "$([ "$1" = hidden ] && echo 'illegal address' || echo 'was launched again, and .*--remake off')" fault.err && [ "$status" != 0 ] &&
    head -c "$(stat -c %s fault.out)" fault.plain | cmp -s - fault.out
}
holds() { # GUARD OTHERS STEP...
  attempt "${@:2}" || { echo "$1: wrong though it is there"; cat fault.err; return 1; }
  ! attempt "$1,$2" "${@:3}" || echo "$1: nothing is wrong without it"
}

while read -r row; do
  [ -z "$row" ] || claim "a fault goes through without this guard alone: ${row%% *}" holds $row
done <<<"$table"
for guard in $(sed -n 's/.*GUARD (\([a-z]*\)).*/\1/p' "$srcdir"/executor/shim/*.c | sort -u); do
  claim "guard $guard has a row" grep -q "^$guard " <<<"$table"
done
finish
