#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The steps recorded on an H200, played as programs under `ferry run` on the emulated device, with the measured
# link and costs of calls: alone, the bound, the plan, what was predicted for it, and what was seen.
#   FERRY_ROWS="resnet50-b96:70 gpt2-b8:50": these rows only; FERRY_STEPS: of each run, 16 without it;
#   FERRY_RUN_OPTIONS: more options of `ferry run`
#   FERRY_SCALE: tensors, granules and the link are so many times smaller, and have bytes, so that digests tell
#   what kernels write and tensors are made again; 64, and 0: as large as they were, without bytes, swaps alone
. "$(dirname "$0")/../run.bash"

data=$FERRY_DATADIR/gpu steps=${FERRY_STEPS:-16}
rows=${FERRY_ROWS:-$(echo {resnet50-b96,gpt2-b8}:{90,70,50,35})}
scale=${FERRY_SCALE:-64}
smaller() { # the link of a file, and its granules
  awk -v by="$scale" '/granule_bytes|bytes_per_s/ { split ($0, part, ": "); printf "%s: %d%s\n", part[1], part[2] / by, /,$/ ? "," : ""; next } { print }' "$1"
}
if [ "$scale" = 0 ]; then
  device="device=$data/h200-link.json,costs=h200,bytes=none,memory=64GiB" learn="--learn no" options=()
else
  smaller "$data/h200-link.json" >link.json
  device="device=link.json,costs=h200,memory=4GiB" learn="" options=("scale=$scale")
fi

ms() { awk -v ns="$1" 'BEGIN { printf "%.1f", ns / 1e6 }'; }
number() { # KEY FILE: the first number of that name, at any depth
  sed -n "s/^ *\"$1\": \([0-9]*\),\{0,1\}$/\1/p" "$2" | head -n 1
}
play() { # NAME BUDGET OPTIONS...
  local name=$1 budget=$2
  shift 2
  "$ferry" run -q $learn --driver emulated --emulated "$device" --budget "$budget" --host 16GiB --report "$name.json" "$@" -- \
    "$programs/player" "$programs/player_kernels.so" "$steps" "$data/h200-$net.trace.json.zst" "${options[@]}" >"$name.out" 2>"$name.err" ||
    { cat "$name.err"; return 1; }
}
seen() { # NAME
  sed -n 's/player: \([0-9]*\) ns a step.*/\1/p' "$1.err"
}

printf '%-14s %7s %9s %9s %9s %9s %9s %7s %7s\n' "ms a step" memory alone bound planned predicted seen slower missed
of=
for row in $rows; do
  net=${row%:*} percent=${row#*:}
  if [ "$net" != "$of" ]; then
    of=$net
    play whole $((scale == 0 ? 64 : 4))GiB || exit 1
    held=$(figure live_high_bytes whole) alone=$(seen whole)
  fi
  play "$net" $((held * percent / 100))B --wait --keep-plan plan.json --keep-trace kept.json ${FERRY_RUN_OPTIONS:-} || continue
  cmp whole.out "$net.out" || exit 1
  planned=$(number step_ns plan.json) bound=$(number lower_bound_ns plan.json)
  predicted=$(figure predicted_step_ns "$net") step=$(figure planned_step_ns "$net") maps=$(figure planned_map_calls "$net")
  printf '%-14s %5s %% %9s %9s %9s %9s %9s %7s %6s%%\n' "$net" "$percent" "$(ms "$alone")" "$(ms "$bound")" "$(ms "$planned")" "$(ms "$predicted")" \
    "$(ms "$step")" "$(awk -v a="$step" -v b="$alone" 'BEGIN { printf "%.3f", a / b }')" \
    "$(awk -v a="$step" -v b="$predicted" 'BEGIN { printf "%.2f", 100 * (a - b) / b }')"
  printf '{"bench": "run_recorded", "net": "%s", "percent": %d, "alone_ns": %d, "bound_ns": %d, "planned_ns": %d, "predicted_ns": %d, "seen_ns": %d, "planned_steps": %d, "steady_map_calls": %d, "remakes": %d, "unfit_ops": %d}\n' \
    "$net" "$percent" "$alone" "$bound" "$planned" "$predicted" "$step" "$(figure planned_steps "$net")" "$maps" "$(figure remakes "$net")" "$(figure unfit_ops "$net")"
done
