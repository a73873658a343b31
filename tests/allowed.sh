#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What a plan may do beside swapping: all that the trace allows, or less if asked.
. "$(dirname "$0")/rules/common.bash"
scratch

number() { grep -oE "\"$1\": ?-?[0-9]+" out | head -n 1 | grep -oE -- '-?[0-9]+$'; }
says() { grep -qE -- "$1" out || { echo "not said: $1"; cat out; return 1; }; }
complains() { grep -qE -- "$1" err || { echo "not said: $1"; cat err; return 1; }; }
"$ferry" zoo resnet18 --batch 32 --width-divisor 2 --device titanx-pascal -q -o net.json || exit 1
sed 's/"confidence": *"exact"/"confidence": "touched"/' net.json >touched.json
grep -q '"touched"' touched.json || exit 1
quick=(--budget 60% --limit 2000)

all() {
  run 0 solve net.json "${quick[@]}" --json -o plan.json &&
    says '"allowed": \{"order": ?"any", ?"recompute": ?"auto", ?"sections": ?"auto"\}' &&
    run 0 check net.json plan.json && run 0 solve net.json "${quick[@]}" &&
    says '^allowed +swaps, tensors made again, ops in parts, ops in any order$'
}
touched() { # rewriting needs to know what is read and what is written
  run 0 solve touched.json "${quick[@]}" --json &&
    says '"allowed": \{"order": ?"as-is", ?"recompute": ?"off", ?"sections": ?"off"\}' &&
    run 0 solve touched.json "${quick[@]}" && says '^allowed +swaps$' && ! grep -q 'may do better' out
}
less() {
  run 0 solve net.json "${quick[@]}" --swap-only --json &&
    says '"allowed": \{"order": ?"as-is", ?"recompute": ?"off", ?"sections": ?"off"\}' &&
    run 0 solve net.json "${quick[@]}" --recompute off --sections 2 --order updates --json &&
    says '"allowed": \{"order": ?"updates", ?"recompute": ?"off", ?"sections": ?2\}' &&
    run 2 solve net.json "${quick[@]}" --swap-only --order any && complains 'swap-only or --order, not both'
}
never_slower() { # with all allowed, than with swaps alone
  local swaps all
  run 0 solve net.json "${quick[@]}" --swap-only --json && swaps=$(number step_ns) &&
    run 0 solve net.json "${quick[@]}" --json && all=$(number step_ns) && [ "$all" -le "$swaps" ]
}
executors() { # what an executor cannot follow is not allowed, unless it is asked for and refused
  run 0 solve net.json "${quick[@]}" --for run --json && says '"recompute": ?"off", ?"sections": ?"off"' &&
    run 2 solve net.json "${quick[@]}" --for run --order any && complains 'cannot be followed'
}
fleet() { # the others that plan take the same words, and all do better by default, or as well
  local command
  for command in curve min-memory whatif pack; do
    run 2 $command net.json --device titanx-pascal --swap-only --recompute auto && complains 'not both' || return 1
  done
  run 0 curve net.json -b 60% --limit 2000 --swap-only --tsv - && local swaps=$(awk 'NR == 2 { print $2 }' out) &&
    run 0 curve net.json -b 60% --limit 2000 --tsv - && local all=$(awk 'NR == 2 { print $2 }' out) && [ "$all" -le "$swaps" ]
}
proved() { # under a bound of plans like it
  run 0 solve net.json "${quick[@]}" --proof -o plan.json && run 0 prove net.json plan.json && says '^proved by'
}
effort() { # the same words for the same part of the ticks, and what was asked for is in the plan
  run 0 solve net.json --budget 60% --effort quick --json && says '"effort": ?"quick"' && run 2 solve net.json --effort low &&
    complains 'quick' && run 2 solve net.json --effort quick --limit 5 && complains '--effort or --limit, not both'
}
places() { # by default granules or an arena, whichever is faster, with any number of threads
  local allowed granules any
  "$ferry" zoo resnet18 --batch 1 --device v100 -q -o one.json || return 1
  for allowed in "--swap-only" "--sections off --order any"; do
    run 0 solve one.json -b 60% --limit 200000 $allowed --placement granules --json && granules=$(number step_ns) && says '"placement": ?"granules"' &&
      run 0 solve one.json -b 60% --limit 200000 $allowed -j 1 --json -o one.plan && any=$(number step_ns) && says '"placement": ?"arena"' &&
      run 0 check one.json one.plan && run 0 solve one.json -b 60% --limit 200000 $allowed -j 2 -o two.plan && cmp one.plan two.plan &&
      [ "$any" -lt "$granules" ] || { echo "$allowed: $any, in granules $granules"; return 1; }
  done
  run 0 solve one.json -b 60% --limit 200000 --for run --json && says '"placement": ?"granules"' &&
    run 2 solve one.json -b 60% --for run --placement arena || return 1
  for allowed in granules auto; do
    run 0 curve one.json -b 60% --limit 20000 --swap-only --placement $allowed --tsv - && awk 'NR == 2 { print $2 }' out >$allowed.step || return 1
  done
  [ "$(cat auto.step)" -lt "$(cat granules.step)" ] && run 2 compare one.json --placement 5 && complains 'granules, arena or auto|granules'
}

claim "all that a trace allows is the default, and the answer says so" all
claim "a trace that only knows touches is swapped only" touched
claim "less is an option" less
claim "more that is allowed gives no slower plan" never_slower
claim "executors are asked for nothing that they cannot follow" executors
claim "commands that plan at many points take the same options" fleet
claim "a plan by default carries a proof" proved
claim "the effort is one of three words" effort
claim "stays lie in granules or an arena, whichever is faster, the same with any number of threads" places
finish
