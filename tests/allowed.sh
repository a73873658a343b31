#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What a plan may do beside swapping: all that the trace allows, or less if asked.
. "$(dirname "$0")/rules/common.bash"
scratch

number() { grep -oE "\"$1\": ?-?[0-9]+" out | head -n 1 | grep -oE -- '-?[0-9]+$'; }
says() { grep -qE -- "$1" out || { echo "not said: $1"; cat out; return 1; }; }
complains() { grep -qE -- "$1" err || { echo "not said: $1"; cat err; return 1; }; }
"$ferry" zoo resnet18 --batch 32 --width-divisor 2 --depth-divisor 2 --device titanx-pascal -q -o net.json || exit 1
sed 's/"confidence": *"exact"/"confidence": "touched"/' net.json >touched.json
grep -q '"touched"' touched.json || exit 1
quick=(--budget 60% --limit 2000)

all() {
  run 0 solve net.json "${quick[@]}" --json -o plan.json &&
    says '"allowed": \{"order": ?"any", ?"recompute": ?"auto", ?"sections": ?"auto"\}' &&
    cp out all.said && run 0 check net.json plan.json && run 0 solve net.json "${quick[@]}" --proof -o proved.json &&
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
never_slower() { # with all allowed, as asked above, than with swaps alone
  local swaps all
  run 0 solve net.json "${quick[@]}" --swap-only --json && swaps=$(number step_ns) &&
    cp all.said out && all=$(number step_ns) && [ "$all" -le "$swaps" ]
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
tiny=(--image 64 --width-divisor 8 --classes 100)
"$ferry" zoo alexnet --batch 256 --image 64 --width-divisor 4 --classes 100 --device v100 -q -o tiny.json || exit 1
cat >few.json <<'END' || exit 1
{ "format": "ferry-trace/1", "batch": 4, "source": { "kind": "by hand", "detail": "few ops", "confidence": "exact" },
  "tensors": [ { "bytes": 8388608, "kind": "parameter" }, { "bytes": 16777216, "split": "batch" }, { "bytes": 16777216 } ],
  "ops": [ { "ns": 3000000, "reads": [0], "writes": [1], "parts": 4 }, { "ns": 3000000, "writes": [2] },
    { "ns": 3000000, "reads": [2] }, { "ns": 3000000, "reads": [0, 1] } ] }
END
many=("curve tiny.json -b 60%,80%" "min-memory tiny.json" "whatif tiny.json -b 60%,80%" "pack few.json -b 36MiB --points 3"
  "max-batch alexnet ${tiny[*]} -b 32MiB --fine 64 --most 256" "compare tiny.json -b 70% --policies ferry,ferry-all")
packed() { tr -d ' \n' <out | grep -qF -- "$1" || { echo "not said: $1"; return 1; }; }
seven() { # solve is the seventh: it was asked above
  local how
  for how in "${many[@]}"; do
    run 0 $how -d v100 --limit 100 -q --json && packed '"allowed":{"order":"any","recompute":"auto","sections":"auto"}' &&
      run 0 $how -d v100 --limit 100 -q && says '^allowed: swaps, tensors made again, ops in parts, ops in any order$|\(swaps, tensors made again, ops in parts, ops in any order\)' &&
      run 0 $how -d v100 --limit 100 -q --swap-only --json && packed '"allowed":{"order":"as-is","recompute":"off","sections":"off"}' || { echo "$how"; return 1; }
  done
}
threads() { # as many as are said, and the bytes of one; where plans only swap too
  local how
  for how in "${many[@]}" "curve tiny.json -b 60%,80% --swap-only" "pack tiny.json -b 60MiB --points 3 --swap-only" "whatif tiny.json -b 80% --link 3GB/s,12GB/s"; do
    run 0 $how -d v100 --limit 100 -q --json -j 1 && cp out one && run 0 $how -d v100 --limit 100 -q --json -j 2 && cmp one out || { echo "$how"; return 1; }
  done
  run 0 curve tiny.json --points 7 -d v100 --limit 100 -q --json -j 1 && cp out one && run 0 curve tiny.json --points 7 -d v100 --limit 100 -q --json -j 5 && cmp one out
}
words_of() { grep -oE "\"$1\": ?\"[a-z-]+\"" out | grep -oE '[a-z-]+"$' | tr -d '"' | sort -u | tr '\n' ' '; }
ladder() { # each way is cut down to what is allowed; what is then as an earlier one is left out
  local ask="max-batch alexnet ${tiny[*]} -d v100 -b 32MiB --limit 10 --fine 64 --most 256 -q --json"
  run 0 $ask --svg all.svg && [ "$(words_of way)" = "all recompute sections swapped unswapped " ] &&
    run 0 $ask --swap-only --svg swaps.svg && [ "$(words_of way)" = "swapped unswapped " ] && grep -q '>recompute<' all.svg && ! grep -q '>recompute<' swaps.svg &&
    run 0 $ask --order as-is --recompute off && [ "$(words_of way)" = "sections swapped unswapped " ] &&
    run 0 $ask --sections off --order as-is --recompute cheap && [ "$(words_of way)" = "recompute swapped unswapped " ] &&
    run 0 $ask --sections off --recompute only && [ "$(words_of way)" = "all recompute unswapped " ] && run 2 $ask --swap-only --order any
}
rows() {
  local ask="compare tiny.json -d v100 -b 70% --limit 10 -q --json"
  run 0 $ask --policies ferry-all,ferry-sections,ferry-recompute,ferry && [ "$(words_of label)" = "ferry ferry-all ferry-recompute ferry-sections " ] &&
    run 0 $ask --policies ferry,ferry-all,lru --swap-only && [ "$(words_of label)" = "ferry lru " ] && ! grep -q '"drops": *[1-9]' out &&
    run 0 $ask --policies ferry-all --swap-only && [ "$(words_of label)" = "ferry-all " ] &&
    run 0 $ask --policies ferry,ferry-sections,ferry-recompute,ferry-all,lru --recompute only && [ "$(words_of label)" = "ferry-all ferry-recompute lru " ] &&
    run 2 $ask --policies ferry --recompute only && complains 'nothing that is allowed'
}
proved() { # under a bound of plans like it; it was made above
  run 0 prove net.json proved.json && says '^proved by'
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

cat >two.json <<'END'
{"format": "ferry-trace/1", "name": "two ops", "batch": 32,
 "tensors": [{"name": "weight", "bytes": 37748736, "kind": "parameter"},
  {"name": "picture", "bytes": 19267584, "kind": "input", "split": "batch", "born_before": 0},
  {"name": "out", "bytes": 411041792, "kind": "activation", "split": "batch"}],
 "ops": [{"name": "conv", "ns": 5200000, "reads": [0, 1], "writes": [2], "phase": "forward", "parts": 32, "workspace_bytes": 8388608},
  {"name": "loss", "ns": 90000, "gap_ns": 4000, "reads": [2], "phase": "forward"}]}
END
cat >kept.json <<'END'
{"format": "ferry-trace/1", "name": "kept", "batch": 1,
 "tensors": [{"bytes": 7493727, "kind": "optimizer"}, {"bytes": 6578794, "kind": "optimizer"}],
 "ops": [{"ns": 3822590, "reads": [], "writes": [1], "phase": "backward"},
  {"ns": 640, "reads": [], "writes": [1, 0], "phase": "backward"}, {"ns": 6353157, "reads": [], "writes": [1], "phase": "update"},
  {"ns": 1862563, "reads": [0], "writes": [1]},
  {"ns": 778, "reads": [0], "writes": [1], "phase": "backward", "workspace_bytes": 5841435},
  {"ns": 9, "reads": [1], "writes": [1, 0]}]}
END
orders_alone() { # no cuts and no drops, but any order, also where no budget fits
  local off=(--recompute off --sections off)
  run 0 min-memory two.json -d v100 "${off[@]}" && run 0 curve two.json -d v100 -b 10%,100% "${off[@]}" &&
    run 1 whatif two.json -d v100 -b 50% "${off[@]}" && says 'no plan fits; whole ops need 456 MiB'
}
in_parts() { # jobs share a card in as little as each of them alone
  run 0 solve two.json -d a100-40 -b 450MiB && run 0 pack two.json -d a100-40 -b 450MiB && says '^1 of 1 jobs' &&
    run 0 pack two.json two.json -d a100-40 -b 900MiB && says '^2 of 2 jobs' && run 2 pack two.json -d a100-40 -b 0 && complains 'nothing is too little'
}
stays_in() { # the budget that is named for nothing but drops was tried with nothing but drops
  run 1 solve kept.json -d v100 -b 60% --recompute only && complains '; ask for 22.0 MiB' &&
    run 0 solve kept.json -d v100 -b '22.0 MiB' --recompute only
}
whole_reserve() { run 2 solve two.json -d a100-40 --reserve 100% && complains 'leaves nothing of the budget'; }
below_a_granule() { # less than the least granule holds nothing, however small the ops
  printf '{"format": "ferry-trace/1", "batch": 1, "tensors": [{"bytes": 4096}, {"bytes": 400000}], "ops": [{"ns": 5000, "writes": [0, 1]}, {"ns": 5000, "reads": [0, 1]}]}\n' >small.json
  run 1 solve small.json -d h100-pcie -b 1800KiB && complains 'in 1.75 MiB; ask for 2.00 MiB'
}
no_time() { # with all that the step needs there is a plan without a search
  "$ferry" zoo -q densenet121 --batch 13 -d a100-80 -o long.json && run 0 min-memory long.json --swap-only --seconds 1 && says '^with .* a plan takes'
}
claim "all that a trace allows is the default, and the answer says so" all
claim "a trace that only knows touches is swapped only" touched
claim "less is an option" less
claim "more that is allowed gives no slower plan" never_slower
claim "executors are asked for nothing that they cannot follow" executors
claim "commands that plan at many points take the same options" fleet
claim "seven commands allow all by default, and their answers say so" seven
claim "any number of threads gives the same answer" threads
claim "max-batch asks for what is left of each way" ladder
claim "compare shows what is left of each of ours" rows
claim "a plan by default carries a proof" proved
claim "the effort is one of three words" effort
claim "stays lie in granules or an arena, whichever is faster, the same with any number of threads" places
claim "orders alone have a bound where nothing fits" orders_alone
claim "jobs may run in parts on a card that they share" in_parts
claim "nothing but drops is named what was tried" stays_in
claim "a reserve that leaves nothing is refused" whole_reserve
claim "a budget below one granule is a certain no" below_a_granule
claim "min-memory that is stopped at once has the plan that needs no search" no_time
finish
