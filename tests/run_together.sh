#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Tensors made again of launches with attributes, and where other programs share the card and take its room.
. "$(dirname "$0")/run.bash"
export TMPDIR=$work/folders
unset XDG_RUNTIME_DIR
mkdir "$TMPDIR"
device=granule=8192,link=300MB/s
player=("$programs/player" "$programs/player_kernels.so")

# made SEED STEPS [KEY=VALUE...]: step SEED.json, what it says alone in made.plain, and the bytes that it holds
made() {
  awk -v seed="$1" -f "$srcdir/tests/made_step.awk" >"step$1.json"
  plain made "${player[@]}" "$2" "step$1.json" "${@:3}" 2>/dev/null
  under whole --budget 1GiB --host 1GiB -- "${player[@]}" 4 "step$1.json" && holds=$(figure live_high_bytes whole)
}
again() { # NAME: some were
  [ "$(figure remakes "$1")" -gt 0 ] && [ "$(figure dropped_bytes "$1")" -gt 0 ] && [ "$(figure unfit_ops "$1")" = 0 ] || { cat "$1.err"; return 1; }
}
shared() { # with a group's room, which is all of it
  made 3 16 && same made --wait --share g --least 64KiB --host 1GiB --budget $((holds * 55 / 100))B --emulated $device -- "${player[@]}" 16 step3.json && again made
}
# rests NAME PERCENT SEED STEPS HALTS OPTIONS... -- [KEY=VALUE...]: in the background, in a group of that part of what it holds; it waits
# for a line behind as many steps as HALTS says
rests() {
  local name=$1 percent=$2 seed=$3 steps=$4 halts=$5 options=()
  shift 5
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  made "$seed" "$steps" "$@" || return 1
  budget=$((holds * percent / 100))B
  rm -f line "$name".* && mkfifo line
  "$ferry" run -q --driver emulated --wait --share r --least 64KiB --host 1GiB --budget $budget --emulated $device --limit 40000 --report "$name.json" --keep-plan "$name.plan" --keep-trace "$name.trace" \
    --chrome "$name.chrome" "${options[@]}" -- "${player[@]}" "$steps" "step$seed.json" halts="$halts" "$@" <line >"$name.out" 2>"$name.err" &
  first=$!
  exec 9>line
}
# beside NAME: another program of the group has half of its room until `leaves`
beside() {
  "$ferry" run -q --driver emulated --share r --least 64KiB --host 1GiB --budget $budget --emulated $device -- bash -c "echo \$\$ >pid; exec '$programs/habits' '$kernels' 10000000 accumulate" >/dev/null 2>second.err 9>&- &
  second=$!
  until_asked "$1" 2
}
leaves() {
  kill "$(cat pid)"
  wait $second 2>/dev/null
  true
}
# until_asked NAME N: of N programs; its room is to be its part, and it is told so as soon as it goes on
until_asked() {
  local i asked
  for ((i = 0; i < 1200; i++)); do
    asked=($("$ferry" run --share r | grep -o '"asked_bytes": *[0-9]*' | tr -dc '0-9\n'))
    [ ${#asked[@]} = "$2" ] && [ $((asked[0] * 4 * $2)) -gt $((${budget%B} * 3)) ] && [ $((asked[0] * 4 * $2)) -lt $((${budget%B} * 5)) ] && return
    sleep 0.05
  done
  "$ferry" run --share r
  cat "$1.err" second.err
  return 1
}
# halted NAME N: it has said N steps
halted() {
  local i
  for ((i = 0; i < 2400; i++)); do
    [ "$(grep -c ^step "$1.out" 2>/dev/null)" = "$2" ] && return
    kill -0 $first 2>/dev/null || break
    sleep 0.05
  done
  echo "$(grep -c ^step "$1.out") steps"
  cat "$1.err"
  return 1
}
onward() { echo >&9; }
gone() { # where something went wrong
  kill $first ${second:-} 2>/dev/null
  wait $first ${second:-}
}
# planned NAME: how often an op is launched again by its newest plan
planned() {
  python3 -c 'import json, sys; print(sum(len(r["ops"]) for r in json.load(open(sys.argv[1])).get("recompute") or []))' "$1.plan"
}
# over NAME RESIZES: it ends well, has said what it says alone, and its steps took what was predicted
over() {
  local status=0 took predicted
  exec 9>&- # the end of what it reads: it does not wait any more
  wait $first || status=$?
  took=$(figure planned_step_ns "$1") predicted=$(figure predicted_step_ns "$1")
  [ $status = 0 ] && cmp made.plain "$1.out" && [ "$(figure resizes "$1")" = "$2" ] && [ "$(figure planned_map_calls "$1")" = 0 ] && [ "$(figure driver_high_bytes "$1")" -le "$(figure budget_bytes "$1")" ] &&
    [ $((took * 100)) -le $((predicted * 102)) ] && [ $((took * 100)) -ge $((predicted * 98)) ] ||
    { echo "status $status, $(figure resizes "$1") resizes, $(figure planned_map_calls "$1") mapping calls, took $took, predicted $predicted"; cat "$1.err"; return 1; }
}
resized() { # another program comes and goes: each plan, for less and for more, makes tensors again
  local again=() rooms=()
  rests first 82 3 90 30 -- && halted first 30 && again+=("$(planned first)") && beside first && onward && halted first 60 && again+=("$(planned first)") &&
    cp first.plan less.plan && leaves && until_asked first 1 && onward && halted first 90 && again+=("$(planned first)") && onward && over first 2 || { gone; return 1; }
  rooms=("$(grep -o '"budget_bytes": *[0-9]*' less.plan | tr -dc 0-9)" "$(grep -o '"budget_bytes": *[0-9]*' first.plan | tr -dc 0-9)")
  [ "${rooms[0]}" -lt "${rooms[1]}" ] && [ "${again[0]}" -gt 0 ] && [ "${again[1]}" -gt "${again[0]}" ] && [ "${again[2]}" -gt 0 ] && grep -q ', again"' first.chrome &&
    [ "$(figure remakes first)" -ge $((20 * (again[0] + again[1] + again[2]))) ] || { echo "again ${again[*]}, rooms ${rooms[*]}, $(figure remakes first) remakes"; return 1; }
}
fitted() { # a program that fits until another comes is watched then, and its plan makes tensors again
  rests first 125 3 60 30 -- && halted first 30 && [ ! -e first.plan ] && beside first && onward && halted first 60 && onward && over first 1 && leaves || { gone; return 1; }
  [ "$(planned first)" -gt 0 ] && [ "$(figure remakes first)" -ge $((20 * $(planned first))) ] && [ "$(figure learned_ops first)" -gt 0 ] && grep -q '"confidence": *"learned"' first.trace ||
    { echo "$(planned first) again, $(figure remakes first) remakes, $(figure learned_ops first) ops learned"; return 1; }
}

kinds() { # each of three kinds of step has one before, and one behind it
  local alone more
  rests alone 100 4 60 60 -- turns=3 && halted alone 60 && onward && over alone 0 && alone=$(figure remakes alone) &&
    rests first 100 4 120 60 -- turns=3 && halted first 60 && beside first && onward && halted first 120 && onward && over first 1 && leaves || { gone; return 1; }
  more=$(($(figure remakes first) - alone))
  [ "$(figure plans alone)" -ge 3 ] && [ "$(figure plans first)" -ge $(($(figure plans alone) + 3)) ] && [ "$(planned first)" -gt 0 ] && [ $more -gt $((20 * $(planned first))) ] ||
    { cat first.err; echo "$(planned first) again, $more behind it, plans $(figure plans alone) and $(figure plans first)"; return 1; }
}
served() { # a server is asked for those of each room
  "$ferry" serve --help >/dev/null 2>&1 || return 77
  "$ferry" serve --state state --listen unix:served >serve.out 2>serve.err &
  local server=$! i good=0
  for ((i = 0; i < 600; i++)); do [ -S served ] && break; kill -0 "$server" 2>/dev/null || return 77; sleep 0.05; done
  rests first 82 3 60 30 --server unix:served -- && halted first 30 && beside first && onward && halted first 60 && onward && over first 1 && leaves || { gone; good=1; }
  [ $good = 0 ] && [ "$(figure served_plans first)" = "$(figure plans first)" ] && [ "$(figure plans first)" -ge 2 ] && [ "$(planned first)" -gt 0 ] && [ "$(figure remakes first)" -ge $((20 * $(planned first))) ] ||
    { good=1; cat first.err; echo "$(figure remakes first) remakes, $(figure plans first) plans, $(figure served_plans first) served, $(planned first) again"; }
  kill $server
  wait $server
  return $good
}

attributed() { # in clusters, and beside the launch before; one that records an event is not launched again
  local it
  made 3 16
  for it in 4 6 7; do
    same made --wait --host 1GiB --budget $((holds * 55 / 100))B --emulated $device -- "${player[@]}" 16 step3.json attribute=$it || return 1
    if [ $it = 7 ]; then [ "$(figure remakes made)" = 0 ] || return 1; else again made || return 1; fi
  done
}

claim "kernels with attributes are launched again, but for those that do something else besides" attributed
claim "a plan in a group's room makes tensors again" shared
claim "so do plans that are made for less and more room" resized
claim "so does the plan of a program that fitted at first" fitted
claim "so do those of each of several kinds of step" kinds
claim "so do those of a server" served
finish
