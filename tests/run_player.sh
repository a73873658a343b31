#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A trace that is played as a program says the same in less memory, on several streams, and whatever its
# kernels do that keeps them from being launched again. The emulated host takes the time that its calls cost.
. "$(dirname "$0")/run.bash"

trace=$FERRY_DATADIR/traces/torch-cnn.json.gz
# play NAME STEPS [KEY=VALUE...]: alone, and on a plan in 60 % of what it holds
play() {
  local name=$1 whole steps=$2
  shift 2
  local command=("$programs/player" "$programs/player_kernels.so" "$steps" "$trace" scale=256 "$@")
  plain "$name" "${command[@]}" 2>/dev/null
  under "$name" --budget 1GiB --host 1GiB -- "${command[@]}" || { cat "$name.err"; return 1; }
  whole=$(figure live_high_bytes "$name")
  same "$name" --wait --host 1GiB --budget $((whole * 6 / 10))B -- "${command[@]}" &&
    [ "$(figure planned_steps "$name")" -ge 4 ] && [ "$(figure evictions "$name")" -gt 0 ] ||
    { echo "$name: $(figure planned_steps "$name") planned steps"; cat "$name.err"; return 1; }
}
differ() { # an impurity changes what a run alone says, so that a test can see it
  local kind
  for kind in accumulate value counter table habit; do
    plain impure "$programs/player" "$programs/player_kernels.so" 4 "$trace" scale=256 habit_step=2 $kind=20 2>/dev/null
    plain pure "$programs/player" "$programs/player_kernels.so" 4 "$trace" scale=256 2>/dev/null
    [ $kind = table ] || ! cmp -s impure.plain pure.plain || { echo "$kind changes nothing"; return 1; }
  done
}
costs() { # 200 ops of 100 ns: on this host, 4.2 us each
  local it free dear
  { printf '{"format": "ferry-trace/1", "name": "short", "source": {"kind": "test"}, "tensors": [{"name": "x", "bytes": 65536, "kind": "parameter"}], "ops": ['
    for i in {1..199}; do printf '{"name": "op", "ns": 100, "reads": [0], "writes": [0]}, '; done
    printf '{"name": "op", "ns": 100, "reads": [0], "writes": [0]}]}'; } >short.json
  for it in none h200; do
    "$ferry" run -q --driver emulated --budget 1MiB --emulated costs=$it -- "$programs/player" "$programs/player_kernels.so" 8 short.json >/dev/null 2>$it.err || return 1
  done
  free=$(sed -n 's/player: \([0-9]*\) ns.*/\1/p' none.err) dear=$(sed -n 's/player: \([0-9]*\) ns.*/\1/p' h200.err)
  [ "$free" -ge 19990 ] && [ "$free" -le 20010 ] && [ "$dear" -ge $((200 * 4222)) ] && [ "$dear" -le $((200 * 8000)) ] || { echo "free $free, dear $dear"; return 1; }
}

keeps_to_plan() { # a recorded step takes what was planned, so nobody waits for more than the copies that concern it
  local net=resnet50-b96 planned seen
  under recorded --wait --learn no --budget 5800MiB --host 64GiB --keep-plan plan.json \
    --emulated "device=$FERRY_DATADIR/gpu/h200-link.json,bytes=none,costs=h200" -- \
    "$programs/player" "$programs/player_kernels.so" 16 "$FERRY_DATADIR/gpu/h200-$net.trace.json.zst" || { cat recorded.err; return 1; }
  planned=$(sed -n 's/^ *"step_ns": \([0-9]*\),\{0,1\}$/\1/p' plan.json | head -n 1) seen=$(figure planned_step_ns recorded)
  [ $((seen * 100)) -le $((planned * 102)) ] && [ $((seen * 100)) -ge $((planned * 98)) ] && [ "$(figure planned_map_calls recorded)" = 0 ] ||
    { echo "planned $planned, seen $seen"; return 1; }
}
remakes() { # a recorded step in half of its memory, with tensors made again
  local alone predicted seen
  FERRY_ROWS=gpt2-b8:50 FERRY_STEPS=14 FERRY_RUN_OPTIONS="--limit 50000" bash "$srcdir/tests/bench/run_recorded.sh" >table && read -r alone predicted seen < <(
    sed -n 's/.*"alone_ns": \([0-9]*\).*"predicted_ns": \([0-9]*\), "seen_ns": \([0-9]*\).*/\1 \2 \3/p' table
  ) && [ $((seen * 100)) -le $((alone * 107)) ] && [ $((seen * 100)) -le $((predicted * 102)) ] && [ $((seen * 100)) -ge $((predicted * 98)) ] || cat table
}
live() { # what mode it is in, and what a step takes and carries
  under live --progress --wait --budget 1200KiB -- "$programs/mlp" "$kernels" 1500
  tr '\r' '\n' <live.err | grep -q '^ferry: planned, [0-9]* ops, a step .* of alone), .* out, .* in' || { cat live.err; return 1; }
}

claim "a recorded step takes what its plan says" keeps_to_plan
claim "a recorded step in half of its memory takes 1.07 times as long as alone, and what was predicted" remakes
claim "one line says how a run goes" live
claim "a played trace says the same under a budget" play pure 12
claim "so it does on three streams" play streams 12 streams=3
claim "impure kernels change what is said" differ
for kind in accumulate statistics value counter order scratch table habit; do
  claim "a kernel with this impurity: $kind" play $kind 12 $kind=20 $kind=31
done
claim "a host's calls take their time" costs
finish
