#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Tensors that a run makes again by launching their kernels again: the same bytes whatever the kernels do and
# wherever the program leaves the plan, in a step's time. FERRY_PROGRAMS: how many at random, 30
# without it, from seed FERRY_SEED on.
. "$(dirname "$0")/run.bash"

count=${FERRY_PROGRAMS:-30} poor=$((${FERRY_PROGRAMS:-30} / 4)) first=${FERRY_SEED:-1}
device=granule=8192,link=300MB/s

# remade NAME SEED PERCENT OPTIONS... -- [KEY=VALUE...]: the step of that seed, played alone and under a budget;
# moves=1: with fills and copies; deep=N: of that many layers
remade() {
  local name=$1 seed=$2${moves:+m}${deep:+x} percent=$3 options=() command
  shift 3
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  [ -e "step$seed.json" ] || awk -v seed="${seed%%[mx]*}" -v moves="${moves:-0}" -v layers="${deep:-0}" -f "$srcdir/tests/made_step.awk" >"step$seed.json"
  command=("$programs/player" "$programs/player_kernels.so" "${steps:-16}" "step$seed.json" "$@")
  plain "$name" "${command[@]}" 2>/dev/null
  [ -e "whole$seed.json" ] || under "whole$seed" --budget 1GiB --host 1GiB -- "${command[@]}" || return 1
  status=0
  under "$name" --wait --host 1GiB --budget $(($(figure live_high_bytes "whole$seed") * percent / 100))B --emulated "$device" "${options[@]}" -- "${command[@]}" || status=$?
}
# right NAME: what it says is what it says alone; a program that was ended has said a part of that, and nothing else
right() {
  if [ "$status" = 0 ]; then
    cmp "$1.plain" "$1.out" && [ "$(figure driver_high_bytes "$1")" -le "$(figure budget_bytes "$1")" ] && return
  elif [ "$status" = 70 ] && grep -q 'was launched again, and .*--remake off' "$1.err"; then
    head -c "$(stat -c %s "$1.out")" "$1.plain" | cmp - "$1.out" && return
  fi
  echo "$1: status $status"
  cat "$1.err"
  return 1
}
# foreseen NAME [PERCENT]: its planned steps took what was predicted, within PERCENT, two unless it is given
foreseen() {
  local took predicted
  took=$(figure planned_step_ns "$1") predicted=$(figure predicted_step_ns "$1")
  [ $((took * 100)) -le $((predicted * (100 + ${2:-2}))) ] && [ $((took * 100)) -ge $((predicted * (100 - ${2:-2}))) ] ||
    { echo "$1: took $took, predicted $predicted"; return 1; }
}
faster() { # with tensors made again a step takes less, and what was predicted
  local seed swapped
  for seed in 3 4; do
    remade off $seed 55 --remake off -- && right off && [ "$(figure remakes off)" = 0 ] || return 1
    remade on $seed 55 -- && right on || return 1
    swapped=$(figure planned_step_ns off)
    grep -q '"made_again": \[{"launches": [1-9]' on.json || { echo "nobody tells what was made again"; return 1; }
    [ "$(figure dropped_bytes on)" -gt 0 ] && [ $(($(figure planned_step_ns on) * 100)) -lt $((swapped * 95)) ] && foreseen on &&
      [ "$(figure unfit_ops on)" = 0 ] && [ "$(figure planned_map_calls on)" = 0 ] || { echo "swapped $swapped"; cat on.err; return 1; }
  done
}
predicted() { # whether its tensors are swapped or made again, on as many streams as there are
  local it
  for it in "4 50 off 1" "9 50 off 2" "4 50 verified 1" "3 50 verified 2" "1 50 verified 1" "2 70 verified 2" "4 35 verified 3"; do
    set -- $it
    moves=1 remade predicted "$1" "$2" --remake "$3" -- streams="$4" && right predicted && [ "$status" = 0 ] && foreseen predicted 1 ||
      { echo "$it"; return 1; }
  done
}
refused() { # a plan without a refused kernel knows the times of the program's launches, not of the test
  remade refused 14 68 -- random=14 impure=4 habit_step=5 streams=3 && right refused && [ "$status" = 0 ] && foreseen refused &&
    [ "$(figure unfit_ops refused)" = 1 ] && [ "$(figure plans refused)" = 2 ]
}
many() { # so are those of which there is no room for a digest, which are copied
  local steps=14 deep=110
  remade many 5 30 --limit 60000 --emulated granule=8192,link=100MB/s --keep-plan many.plan --keep-trace many.trace -- && right many && [ "$status" = 0 ] && foreseen many && [ "$(figure planned_map_calls many)" = 0 ] &&
    ops_again many >names && [ "$(wc -l <names)" -gt 128 ] && [ "$(figure unfit_ops many)" = 0 ] || { wc -l names; return 1; }
}
better() { # a longer search finds a faster plan, which is told with what it saves, and saves it
  local steps=40 deep=20 first last saves
  remade first 5 40 -- && right first && first=$(figure predicted_step_ns first) &&
    remade better 5 40 --effort normal --keep-plan better.plan -- && right better &&
    saves=$(figure better_ns better) &&
    remade last 5 40 --plan better.plan -- && right last && last=$(figure predicted_step_ns last) || return 1
  [ "$(figure better_plans first)" = 0 ] && [ "$(figure better_plans better)" -ge 1 ] && [ "$saves" -gt 0 ] && [ "$saves" = $((first - last)) ] &&
    [ "$(figure predicted_step_ns better)" -lt "$first" ] && foreseen better || { echo "first $first, last $last, saves $saves"; return 1; }
}
modes() { # however it is run
  local it
  for it in "--remake trusted" "--strict always" "--strict-steps 0" "--paranoid 3" "--emulated $device,races=yes" "--emulated $device,fuzz=200us,seed=2" "--emulated $device,clock=real"; do
    remade modes 3 60 $it -- streams=3 && right modes || { echo "$it"; return 1; }
    case $it in
    *clock=real*) ;; # what ops take on a busy machine decides whether making again pays
    *) [ "$(figure dropped_bytes modes)" -gt 0 ] || { echo "$it: nothing was dropped"; return 1; } ;;
    esac
  done
}
left() { # the plan is left before each op of a step, whatever is dropped then
  local steps=100
  remade left 5 55 -- stray=10 && right left && [ "$status" = 0 ] && [ "$(figure leaves left)" -ge 40 ] && [ "$(figure remade_on_leaving left)" -gt 20 ] ||
    { echo "$(figure leaves left) times left, $(figure remade_on_leaving left) ops made again"; return 1; }
}
# impure KIND: ops of the way there have it, one at a time
impure() {
  local op bad=0 unfit=0 why=0
  for op in 2 4 6; do
    remade "$1" 4 55 -- "$1=$op" habit_step=9 && right "$1" || return 1
    bad=$((bad + (status == 70)))
    unfit=$((unfit + $(figure unfit_ops "$1")))
    why=$((why + $(grep -c '"why": "result"' "$1.json")))
  done
  case $1 in
  order) [ "$why" -gt 0 ] && [ "$bad" = 0 ] ;;
  habit | beyond) [ "$bad" -gt 0 ] ;;
  value | statistics | counter | scratch) [ "$bad" = 0 ] ;;
  esac || { echo "$1: $unfit unfit, $why by their results, $bad ended"; return 1; }
}
moved() { # fills and copies within the device, with the values of this step
  moves=1 remade moved 4 50 --keep-plan moved.plan --keep-trace moved.trace -- && right moved && [ "$status" = 0 ] && [ "$(figure unfit_ops moved)" = 0 ] && ops_again moved >names || return 1
  for it in fill 'copy within the device'; do
    grep -qx "$it" names || { echo "no $it was made again"; cat names; return 1; }
  done
  steps=24 moves=1 remade moved 4 50 -- stray=10 && right moved && [ "$status" = 0 ] && [ "$(figure remade_on_leaving moved)" -gt 0 ]
}
ops_again() { # NAME: the names of the ops that its plan makes again
  python3 - "$1.trace" "$1.plan" <<'END'
import json, sys
ops, plan = (json.load(open(p)) for p in sys.argv[1:])
print(*(ops["ops"][k]["name"] for r in plan["recompute"] for k in r["ops"]), sep="\n")
END
}
turns() { # steps of three kinds take turns: each has a plan of its own, and none leaves a wrong byte to another
  local steps=70
  moves=1 remade turns 4 70 -- turns=3 && right turns && [ "$status" = 0 ] && [ "$(figure planned_steps turns)" -ge 45 ] && [ "$(figure plans turns)" -le 6 ] && [ "$(figure remakes turns)" -gt 150 ] ||
    { grep 'plan\|remake\|entries' turns.json; return 1; }
}
# kinds N PLANNED: N kinds of step take turns, twice and a half; PLANNED steps are planned, and tensors made again in them
kinds() {
  local steps=$(($1 * 27))
  moves=1 remade kinds 4 80 --limit 40000 -- turns="$1" && right kinds && [ "$status" = 0 ] && foreseen kinds && [ "$(figure planned_map_calls kinds)" = 0 ] && [ "$(figure planned_steps kinds)" -ge "$2" ] &&
    [ "$(figure remakes kinds)" -ge 150 ] && [ "$(figure leaves kinds)" -le $(($1 * 8)) ] && ! grep -q 'no plan' kinds.err || { grep '"plans\|leaves\|planned_\|remakes' kinds.json; cat kinds.err; return 1; }
}
eight() { # each gets one, which is found again when its turn comes
  kinds 8 125 && [ "$(figure plans kinds)" -ge 8 ] && [ "$(figure plans kinds)" -le 16 ] && ! grep -q 'kinds of step' kinds.err || { cat kinds.err; return 1; }
}
nine() { # which is one too many, and is said
  kinds 9 125 && [ "$(grep -c 'more than 8 kinds of step repeat' kinds.err)" = 1 ]
}
served() { # a server is told which ops can be made again: its plans are those that are made here
  "$ferry" serve --help >/dev/null 2>&1 || return 77
  "$ferry" serve --state state --listen unix:served >serve.out 2>serve.err &
  local server=$! i good=0
  for ((i = 0; i < 600; i++)); do [ -S served ] && break; kill -0 "$server" 2>/dev/null || return 77; sleep 0.05; done
  remade here 3 55 --keep-plan here.plan -- && right here &&
    remade there 3 55 --server unix:served --keep-plan there.plan -- && right there && [ "$status" = 0 ] &&
    [ "$(figure dropped_bytes there)" -gt 0 ] && [ "$(figure served_plans there)" -ge 1 ] &&
    diff <(grep -v '"made_by"\|"host_bytes"' here.plan) <(grep -v '"made_by"\|"host_bytes"' there.plan) ||
    { good=1; cat there.err serve.err; "$ferry" jobs --server unix:served; }
  kill "$server"
  wait "$server"
  return $good
}
trusting() { # without digests nobody would know: the habit is not found out, which is what the digests are for
  local op found=0
  for op in 2 4 6; do
    remade trusted 4 55 --remake trusted -- habit=$op habit_step=9 && { [ "$status" != 0 ] || cmp -s trusted.plain trusted.out || found=1; }
  done
  [ $found = 1 ]
}
# any SEED MOVES OPTIONS...: all about the program is of its seed; its steady steps take what was predicted, and map nothing
any() {
  local seed=$1 moves=$2
  shift 2
  steps=13 remade any "$seed" $((50 + seed * 7 % 40)) "$@" -- "random=$seed" impure=$((seed % 5)) habit_step=$((5 + seed % 7)) streams=$((1 + seed % 3)) && right any &&
    { [ "$status" != 0 ] || { foreseen any && [ "$(figure planned_map_calls any)" = 0 ]; }; } || { echo "seed $seed${moves:+m} $*: $(figure planned_map_calls any) mapping calls"; return 1; }
}
random() {
  local seed made=0 moving=("" 1)
  for ((seed = first; seed < first + count; seed++)); do
    any "$seed" "${moving[seed % 2]}" --limit 60000 || return 1
    made=$((made + $(figure remakes any)))
  done
  [ $made -gt $((count * 10)) ] || echo "$made launches again"
}
poor() { # plans of searches that end too soon keep the same promises
  local seed limits=(300 5000 40000) moving=("" 1)
  for ((seed = first; seed < first + poor; seed++)); do
    any "$seed" "${moving[seed / 3 % 2]}" --limit "${limits[seed % 3]}" || return 1
  done
}
limited() { # a search that ends sooner finds no faster plan here
  remade little 3 40 --limit 300 -- && right little && remade full 3 40 -- && right full || return 1
  [ "$(figure predicted_step_ns little)" -gt "$(figure predicted_step_ns full)" ] || { echo "both take $(figure predicted_step_ns full)"; return 1; }
}
odd() { # SEED: with a plan that no search finds today
  any "$1" 1 --plan "$srcdir/tests/corpus/run/$1m.plan.json" && [ "$status" = 0 ] && [ "$(figure planned_steps any)" -ge 9 ]
}

claim "a step with tensors made again takes less, and what was predicted" faster
claim "a step takes what was predicted, within one in a hundred" predicted
claim "so it does where a kernel was refused" refused
claim "and where more is made again than there is room for digests" many
claim "a better plan is taken, and saves what is told" better
claim "it says the same in every mode and order" modes
claim "a plan is left before any op, and what was dropped is made again first" left
for kind in accumulate statistics value counter order scratch table habit beyond; do
  claim "a kernel of a dropped tensor with this impurity: $kind" impure $kind
done
claim "fills and copies within the device are made again too" moved
claim "steps of several kinds that take turns have tensors made again" turns
claim "eight kinds of step have eight plans" eight
claim "of nine the one that was followed longest ago goes" nine
claim "plans of a server make tensors again too" served
claim "digests find what nobody else would" trusting
claim "$count random steps with random impurities, every other with fills and copies, under random budgets say what they say alone, and take what was predicted" random
claim "so do $poor under plans that were sought too briefly" poor
claim "--limit ends the search for a plan" limited
claim "what stays on the device leaves when it is freed, and no op that runs again needs it any more" odd 143
claim "what an op makes again, though the host has it, is copied once more, which is predicted" odd 29
finish
