#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Sections and recompute as people meet them: what may be asked for, what is answered where nothing
# fits, what explain says of a plan, and that a plan file alone is enough to rebuild its trace.
. "$(dirname "$0")/rules/common.bash"
scratch

number() { grep -oE "\"$1\": ?-?[0-9]+" "${2:-out}" | head -n 1 | grep -oE -- '-?[0-9]+$'; }
one_line() { [ "$(wc -l <err)" = 1 ] && [ ! -s out ] || { cat out err; return 1; }; }
says() { grep -qE -- "$1" out || { echo "not said: $1"; cat out; return 1; }; }
complains() { grep -qE -- "$1" err || { echo "not said: $1"; cat err; return 1; }; }
# of PLAN KEY: all numbers behind the key in explain's list, added up
told() { sed "/\"$1\"/,/^  ]/!d" explained | grep -oE "\"$2\": ?[0-9]+" | grep -oE '[0-9]+$' | awk '{ sum += $1 } END { printf "%.0f", sum }'; }
# Each way by itself: what a line does not name is not allowed.
run_only() {
  local status=$1 more=()
  shift
  [[ " $* " == *" --sections "* ]] || more+=(--sections off)
  [[ " $* " == *" --recompute "* ]] || more+=(--recompute off)
  [[ " $* " == *" --order "* ]] || more+=(--order as-is)
  run "$status" "$@" "${more[@]}"
}
limit=(--limit 3000 -q)
drops=(--limit 200000 -q) # programs count

"$ferry" zoo vgg16 --batch 16 --width-divisor 8 --device titanx-pascal -q -o vgg.json || exit 1
"$ferry" zoo alexnet --batch 32 --width-divisor 8 --device titanx-pascal -q -o alex.json || exit 1
"$ferry" zoo alexnet --batch 128 --device h200 -q -o fast.json || exit 1
"$ferry" zoo resnet34 --batch 2 --device v100 -q -o res.json || exit 1
"$ferry" zoo googlenet --batch 8 --device v100 -q -o goo.json || exit 1

# ---- what may be asked for ----

parts_asked() { # in numbers that no op can run in, one part, none, words
  local it
  for it in 1 0; do run_only 2 solve vgg.json -b 70% --sections $it && one_line && complains "--sections: $it is not between 2 and" || return 1; done
  for it in on -3 4x 1e3 ''; do run_only 2 solve vgg.json -b 70% --sections "$it" && one_line && complains 'is not auto, off or a number of parts' || return 1; done
  run_only 2 solve vgg.json -b 70% --sections 17 && one_line && complains 'no op can run in 17 parts, 16 are the most \(the batch is 16\)' &&
    run_only 2 solve vgg.json -b 70% --sections 9007199254740993 && one_line && run_only 2 solve vgg.json -b 70% --sections 99999999999999999999 && one_line
}
order_asked() {
  run_only 2 solve vgg.json -b 70% --section-order depth && one_line && complains 'give --sections auto too' &&
    run_only 2 solve vgg.json -b 70% --section-order level --sections off && one_line &&
    run_only 2 solve vgg.json -b 70% --sections auto --section-order dept && one_line && complains 'did you mean depth' &&
    run_only 2 solve vgg.json -b 70% --recompute yes && one_line && complains 'is not one of off\|cheap\|auto\|only'
}
no_parts() { # a trace whose ops cannot be cut, and nothing is known of what they calculate
  sed -E 's/, *"parts": *[0-9]+//; s/"parts": *[0-9]+,? *//; s/, *"compute": *\{[^}]*\}//' alex.json >whole.json
  run 0 info whole.json && ! grep -q 'with sections' out &&
    run_only 2 solve whole.json -b 70% --sections 2 && one_line && complains 'no op can run in 2 parts, 1 are the most' &&
    run_only 0 solve whole.json -b 85% --sections auto --recompute cheap "${limit[@]}" -o p.json && run 0 check whole.json p.json &&
    run_only 1 solve whole.json -b 20MiB --sections auto "${limit[@]}" -v && complains 'which has no parts'
}


# ---- where nothing fits ----

floors() { # info, and every refusal, names what whole ops need and what their parts do
  run 1 info vgg.json --budget 40MiB && says '^floor +[0-9.]+ MiB  op [0-9]+ \(pool1.maxpool_bwd\) alone' &&
    says '^ +18.4 MiB  with sections: op 135 ' && says 'a plan may fit: no op needs more than 18.4 MiB at once, if it runs in sections' &&
    run 1 info vgg.json --budget 10MiB && says 'no plan fits: op 135 .* alone needs 18.4 MiB, even in its most sections' || return 1
  local how parts='^ferry: below 62.0 MiB nothing fits in whole ops, because of op 101 \(pool1.maxpool_bwd\): .*; in the most parts at least 18.4 MiB \(op 135\)$' found='; ask for 70.0 MiB'
  for how in "" "--recompute auto"; do
    run_only 1 solve vgg.json -b 40MiB $how "${limit[@]}" && one_line && complains "^ferry: no plan of whole ops fits in 40.0 MiB$found, or allow ops in parts with --sections auto$" || return 1
    run_only 1 solve vgg.json -b 40MiB $how "${limit[@]}" -v && complains "$parts" || return 1
  done
  for how in "--sections auto" "--sections 2" "--sections 16 --section-order level" "--sections auto --recompute auto"; do
    run_only 1 solve vgg.json -b 10MiB $how "${limit[@]}" && one_line && complains "^ferry: no plan fits in 10.0 MiB$found$" || return 1
  done
}
without_swaps() { # the budget that is named was tried so, and works when it is pasted back
  run_only 1 solve vgg.json -b 40MiB --recompute only "${limit[@]}" && one_line && complains '; ask for [0-9.]+ MiB' &&
    run 0 solve vgg.json -b "$(grep -oE 'ask for [0-9.]+ MiB' err | cut -c9-)" --recompute only
}
hosts() { # too little of the host's memory, with any options: the answer is no only where it is proved
  local how
  run_only 1 solve vgg.json -b 72MiB --host 4MiB "${limit[@]}" && one_line && complains "with 4.00 MiB of the host's memory.*; ask for [0-9.]+ MiB, or for more of the host's memory" || return 1
  for how in "--sections auto" "--recompute auto"; do
    run_only 1 solve vgg.json -b 72MiB --host 4MiB --placement granules $how "${limit[@]}" && one_line && complains "no plan was found in 72.0 MiB with 4.00 MiB of the host's memory, and none is ruled out; ask for [0-9.]+ MiB, or for more of the host's memory" || return 1
  done
}
stays() { # nothing may be swapped
  "$ferry" solve vgg.json -b 75MiB --recompute only --sections off --order as-is "${limit[@]}" >out 2>err
  case $? in
    1) one_line && complains 'no plan that swaps nothing was found in 75.0 MiB, and none is ruled out; ask for 1[0-9.]+ MiB, or allow swapping with --recompute auto$' ;;
    *) cat err; return 1 ;;
  esac
}
limited() { # comparing cuts takes its ticks whatever the limit is, but not once more for each share of an arena
  local granules
  run_only 0 solve vgg.json -b 60MiB --sections auto --placement granules "${limit[@]}" --json && granules=$(number ticks) &&
    run_only 0 solve vgg.json -b 60MiB --sections auto --placement arena "${limit[@]}" --json && [ "$(number ticks)" -le $((2 * granules)) ] || { echo "$granules $(number ticks)"; return 1; }
}
compared() { # where no plan of ours was found, the others' rows stand all the same
  run 1 compare vgg.json -b 72MiB --host 4MiB --placement granules --limit 3000 && says '^ferry-recompute +no plan' && says "^lru "
}
easy_proof() { # where compute alone is reached, that is what is proved
  run_only 0 solve fast.json -b 98% --recompute auto --proof -q -o easy.json && run 0 prove fast.json easy.json && says '^proved by compute'
}
no_program() { run_only 2 solve fast.json -b 98% --recompute auto "${limit[@]}" --dump x.lp && complains 'nothing has to wait in .*, so there is no program' && [ ! -e x.lp ]; }

# ---- what explain says ----

cuts_told() { # which stretch, in how many parts, why, at what cost; the cost is what compute is longer by
  run_only 0 solve vgg.json -b 60MiB --sections auto "${limit[@]}" -o cut.json && run 0 explain vgg.json cut.json &&
    says '^cut into sections, which costs [0-9.]+ [mu]s: in whole ops the step needs 70.0 MiB \(op 101\), the budget is 60.0 MiB$' &&
    says '^  ops [0-9]+ to [0-9]+ (depth first|level by level) in [0-9]+ parts, for [0-9.]+ [mu]s: op [0-9]+ \(.*\) touches [0-9.]+ MiB whole, [0-9.]+ MiB in a part' &&
    ! grep -q '^dropped' out && run 0 explain vgg.json cut.json --json && cp out explained || return 1
  local cost=$(told sections ns)
  [ "$cost" -gt 0 ] && [ "$cost" = $(($(number compute_ns explained) - $(number baseline_ns explained))) ] || { echo "sections: $cost"; return 1; }
  # each stretch as the plan has it, its end excluded
  [ "$(tr -d '\n ' <cut.json | grep -oE '"ops":\[[0-9]+,[0-9]+\],"order":"[a-z]+","parts":[0-9]+')" = \
    "$(sed '/"sections"/,/^  ]/!d' explained | sed -nE 's/.*"end": ([0-9]+).*"first": ([0-9]+).*"order": "([a-z]+)","parts": ([0-9]+).*/"ops":[\2,\1],"order":"\3","parts":\4/p')" ] || { echo "other stretches"; return 1; }
  # where it would fit whole, the reason is the link
  run_only 0 solve vgg.json -b 80MiB --sections 4 --section-order depth "${limit[@]}" -o four.json && run 0 explain vgg.json four.json &&
    { ! grep -q '^cut into' out || says 'in whole ops the step fits \(70.0 MiB of 80.0 MiB\), but more would cross the link'; }
}
drops_told() { # what, before which op, at what cost, beside the same bytes on the link
  run_only 0 solve fast.json -b 60% --recompute auto "${drops[@]}" --proof -o drop.json && run 0 explain fast.json drop.json &&
    says '^dropped and made again: [0-9.]+ [KMG]iB, by ops that take [0-9.]+ [mu]s; as copies both ways [0-9.]+ [mu]s; the most$' &&
    says '^ +[0-9.]+ [KM]iB  of .* before op [0-9]+ \(.*\): [0-9.]+ [mun]+s of ops for [0-9.]+ [mu]s of copies$' && ! grep -q '^cut into' out &&
    run 0 explain fast.json drop.json --json && cp out explained || return 1
  local bytes=$(told drops bytes) link=$(told drops link_ns) cost=$(told drops ns) out_rate in_rate
  [ "$cost" = $(($(number compute_ns explained) - $(number baseline_ns explained))) ] || { echo "drops: $cost"; return 1; }
  out_rate=$(number d2h_bytes_per_s drop.json) in_rate=$(number h2d_bytes_per_s drop.json)
  awk -v b="$bytes" -v ns="$link" -v o="$out_rate" -v i="$in_rate" 'BEGIN { want = b * 1e9 / o + b * 1e9 / i; d = ns - want; exit !(b > 0 && d < 1000 && d > -1000) }' ||
    { echo "$bytes bytes in $link ns"; return 1; }
}
drops_proved() {
  run 0 prove fast.json drop.json && says '^proved by flow' && run 0 prove fast.json drop.json --json || return 1
  local worth=$(number lower_bound_ns)
  sed "s/\"lower_bound_ns\": *[0-9]*/\"lower_bound_ns\": $((worth + 1))/" drop.json >more.json
  run 1 prove fast.json more.json && complains 'is claimed, the proof shows' && run 1 prove fast.json more.json --json &&
    says '"holds": false' && says '"where": "/certificate/lower_bound_ns"' || return 1
  sed "s/\"budget_bytes\": *[0-9]*/\"budget_bytes\": 1/" drop.json >more.json # figures are those of a legal plan
  run 1 prove fast.json more.json --json && says '"holds": false' && says '"where"' && ! grep -q '"kind"' out
}
passing_told() { # what is made on the way and given up again is what the entries make besides
  run_only 0 solve fast.json -b 47% --recompute auto "${drops[@]}" -o passing.json &&
    run 0 explain fast.json passing.json --json && cp out explained || return 1
  [ "$(grep -oE '"passing_bytes": ?[0-9]+' explained | grep -oE '[0-9]+$' | awk '{ n += $1 } END { print n + 0 }')" -gt 0 ] &&
    run 0 explain fast.json passing.json && says 'of copies; [0-9.]+ [KMG]iB on the way, given up again$'
}
both_told() { run_only 0 solve alex.json -b 45% --sections auto --recompute auto --limit 100000 -q -o both.json && run 0 explain alex.json both.json && says '^cut into sections' && says '^dropped and made again' && tail -n 1 out | grep -q 'above what any plan'; }
asked() { # the plan says what was allowed
  tr -d '\n ' <both.json | grep -q '"recompute":"auto".*"section_order":"auto","sections":"auto"' && ! tr -d '\n ' <drop.json | grep -q '"sections":"auto"' &&
    tr -d '\n ' <four.json | grep -q '"section_order":"depth","sections":4'
}

# ---- from the file alone ----

rebuilt() { # sections and entries are enough: all else of the plan may be another's
  local it digest
  for it in "alex both" "fast drop" "vgg cut"; do
    set -- $it
    run 0 rewrite $1.json $2.json -o whole.json || return 1
    python3 - $2.json bare.json <<'END' || return 1
import json, sys
p = json.load (open (sys.argv[1]))
for key in ("moves", "out_order", "in_order", "op_waits", "groups"): p[key] = []
p["budget_bytes"] += 1
p.pop ("certificate", None)
p.pop ("made_by", None)
json.dump (p, open (sys.argv[2], "w"))
END
    run 0 rewrite $1.json bare.json -o bare.out.json && cmp whole.json bare.out.json && run 0 check $1.json $2.json || return 1
  done
}

# ---- questions of many budgets ----

curve_rows() { awk -F'\t' 'NR > 1 { print $1, $2, $3 }' out; }
monotone() { # more memory is never slower; what is allowed beside swapping never slower, nor its bound higher, and pays here
  local budgets=60%,80%,100% it
  for it in "fast --recompute 200000 --sections" "vgg --sections 300 --recompute"; do
    set -- $it
    run 0 curve $1.json --budget $budgets --limit $3 --tsv - --swap-only && curve_rows >swaps &&
      run 0 curve $1.json --budget $budgets --limit $3 --tsv - $2 auto $4 off --order as-is && curve_rows >rows || return 1
    awk 'NR == FNR { step[$1] = $2; bound[$1] = $3; next } # step -1: none was found
      { if (step[$1] >= 0 && ($2 < 0 || $2 > step[$1] * 1.005 || $3 > bound[$1])) bad = 1
        if (last > 0 && ($2 < 0 || $2 > last)) bad = 1
        if ($2 >= 0 && $3 > $2) bad = 1
        if ($2 >= 0 && $2 < step[$1] * 0.95) gained = 1
        last = $2 } END { exit bad || !gained }' swaps rows || { echo "curve $it"; cat swaps rows; return 1; }
  done
}
anew() { # of a step of small tensors granules lose much: an arena gets drops of its own
  local few=(solve res.json -b 50% --sections off --order as-is --limit 400000 -q --json) with without
  run 0 "${few[@]}" --tune anew=0 && without=$(number step_ns) &&
    run 0 "${few[@]}" -o anew.json && with=$(number step_ns) && says '"placement": ?"arena"' && run 0 check res.json anew.json || return 1
  [ "$with" -lt "$without" ] || { echo "$with with, $without without"; return 1; }
}
anew_bound() { # such a plan may make again what the bound of the one before says nothing of, or more of it
  run 0 solve goo.json -b 45% --sections off --order as-is --limit 100000 -q --proof -o goo.plan --json &&
    says '"placement": ?"arena"' && run 0 check goo.json goo.plan && run 0 prove goo.json goo.plan
}
other_trace() { run 1 rewrite res.json goo.plan -o no.json && complains 'for the trace' && [ ! -e no.json ]; }
curve_floor() { # what it says no plan fits below is true
  run 0 curve vgg.json --swap-only --points 2 --limit 100 && says 'below 62.0 MiB no plan fits' && run 1 solve vgg.json --swap-only -b 50MiB -v && complains 'below 62.0 MiB' &&
    run 0 curve vgg.json --recompute off --order as-is --points 2 --limit 100 && says 'below 18.4 MiB no plan fits' &&
    run 0 curve fast.json --recompute only --sections off --order as-is --budget 434MiB,100% --limit 100 && says 'no plan (found|fits)' && run 2 curve fast.json --sections yes && one_line && complains 'is not auto, off or a number'
}

claim "a number of parts that cannot be is refused with the most there can be" parts_asked
claim "an order of parts without parts is refused, as is a word that is none" order_asked
claim "a trace that cannot be cut says so" no_parts
claim "where nothing is swapped, what is named was tried so" without_swaps
claim "info and every refusal name the floor of whole ops and of parts" floors
claim "too small a host is said beside both floors" hosts
claim "where nothing may be swapped, that is said" stays
claim "a low limit holds in an arena as it does in granules" limited
claim "where no plan was found, compare says so and goes on" compared
claim "where nothing has to wait there is a proof" easy_proof
claim "where nothing has to wait there is no program" no_program
claim "explain says which stretch is cut, why, and at what cost" cuts_told
claim "explain says what is dropped, at what cost, and what is saved" drops_told
claim "a bound of drops is proved by its file, one nanosecond more is not" drops_proved
claim "explain says what is made on the way and given up again" passing_told
claim "explain says both of a plan that does both" both_told
claim "a plan says what it was allowed" asked
if command -v python3 >/dev/null; then claim "sections and entries alone rebuild the trace" rebuilt; fi
claim "with more memory, or more allowed, no answer is worse" monotone
claim "where granules lose much, drops are chosen anew for an arena" anew
claim "so is the bound that it has, which prove reads again" anew_bound
claim "rewrite takes no plan of another trace" other_trace
claim "the least memory of a curve is true" curve_floor
finish
