#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# solve, prove, explain and compare as people and scripts meet them.
. "$(dirname "$0")/rules/common.bash"
scratch

share() { awk -v key="\"$1\":" '{ at = index ($0, key); if (at) { printf "%d\n", substr ($0, at + length (key)) * 1000000 + 0.5; exit } }' out; } # in millionths
number() { grep -oE "\"$1\": ?-?[0-9]+" "${2:-out}" | head -n 1 | grep -oE -- '-?[0-9]+$'; }
says() { grep -qE -- "$1" out || { echo "not said: $1"; cat out; return 1; }; }
complains() { grep -qE -- "$1" err || { echo "not said: $1"; cat err; return 1; }; }
total() { awk '{ sum += $1 } END { printf "%.0f", sum }'; }
# spoil FILE KEY ADD: the first number behind the key, changed
spoil() { # FILE KEY ADD TO
  local old
  old=$(number "$2" "$1")
  sed "0,/\"$2\": *$old/s//\"$2\": $((old + $3))/" "$1" >"$4"
  ! cmp -s "$1" "$4"
}

"$ferry" zoo vgg16 --batch 64 --device titanx-pascal -o vgg.json >/dev/null 2>&1 || exit 1
limit=(--limit 20000)

rounds_again() { # small groups and batches of weights that leave twice in a step: bytes suffice, places do not
  local times step=
  "$ferry" zoo vit-l --batch 1 --depth-divisor 4 -d p100 -q -o circle.json || return
  for times in 0 3; do
    run 0 solve circle.json -d p100 -b 45% --swap-only --placement granules --limit 300000 --json \
      --tune "rounding_again=$times,layout_state=0,latency_again_least=1" || return
    step="$step $(number step_ns)"
  done
  set -- $step
  ((10 * $2 < 8 * $1)) || echo "steps of $step ns"
}

ring() { # KEY: six ops, each from one of six tensors of 50 MiB to the next
  python3 - "$1" <<'END'
import json, sys
json.dump ({"format": "ferry-trace/1", "name": "ring", "tensors": [{"bytes": 50 << 20, "persistent": True} for _ in range (6)],
            "ops": [{sys.argv[1]: 20000000, "reads": [i], "writes": [(i + 1) % 6]} for i in range (6)]}, sys.stdout)
END
}
rings() {
  local at
  ring ns >ring.json && ring gap_ns >idle.json || return
  for at in 150MiB 180MiB 250MiB 290MiB; do
    run 0 solve ring.json -d v100 -b $at --placement arena --json && [ "$(number step_ns)" = 120000000 ] || { echo "$at: $(cat err)"; return 1; }
  done
  run 0 min-memory ring.json -d v100 --placement arena -s 0% --json && [ "$(number plan_bytes)" -le $((160 << 20)) ] || { cat out; return 1; }
  run 0 solve idle.json -d v100 -b 60% --gap 1% -o idle.plan && grep -q '"limit_met": *null' idle.plan
}
solves() {
  run 0 solve vgg.json --swap-only --budget 3GiB --gap 30% --proof -o plan.json && [ ! -s err ] &&
    tail -n 1 out | grep -qE '^[0-9.]+ m?s in .*GiB, (at most [0-9.]+ % above|and no plan is faster)' &&
    says '^bound .* certified by (flow-lp|compute|crossing)' && says '^device .* host ' && run 0 check vgg.json plan.json
}
json() {
  run 4 solve vgg.json --budget 3GiB --gap 0 "${limit[@]}" --json && says '"limit_met": ?"ticks"' &&
    [ "$(number step_ns)" -ge "$(number lower_bound_ns)" ] && [ "$(number budget_bytes)" = $((3 << 30)) ] &&
    [ "$(number peak_bytes)" -le $((3 << 30)) ] && says '"found_by"'
}
again() { # two runs, one plan
  run 4 solve vgg.json --budget 3GiB --gap 0 "${limit[@]}" -o a.json && run 4 solve vgg.json --budget 3GiB --gap 0 "${limit[@]}" -o b.json &&
    cmp a.json b.json
}
made_by() { grep -q '"made_by".*"ferry":"[0-9.]*".*"options":.*"seed":' <(tr -d '\n ' <plan.json); }
host_counts() { # too little of the host is an answer that says so
  run 1 solve vgg.json --swap-only --budget 3GiB --host 1MiB --json && [ "$(number host_bytes)" = $((1 << 20)) ] && says '"why": ?"no plan fits .* of the host' && says '"reasons": "at op [0-9]+ .* 2.* GiB have to be on the host' && complains "with 1.00 MiB of the host's memory; ask for [0-9.]+ GiB, or for more of the host's memory$"
}
floor() {
  run 1 solve vgg.json --swap-only --placement granules --budget 1GiB --json && complains '^ferry: no plan of whole ops fits in 1.00 GiB; ask for [0-9.]+ GiB, or allow ops in parts with --sections auto$' && says 'nothing fits in whole ops, because of op [0-9]+ \(' || return 1
  local bytes found parts=0 part
  bytes=$(number floor_bytes) found=$(number found_bytes)
  for part in granule pinned pool touched workspace; do parts=$((parts + $(number ${part}_bytes))); done
  [ "$bytes" = "$parts" ] &&
    run 1 solve vgg.json --recompute off --order as-is --budget 1GiB --sections 2 -v && complains '^ferry: no plan fits in 1.00 GiB; ask for [0-9.]+ GiB$' && complains '^ferry: below [0-9.]+ GiB nothing fits in whole ops, because of op' && run 1 solve vgg.json --swap-only --placement granules --budget $((bytes - 1))B &&
    run 0 solve vgg.json --swap-only --placement granules --budget "${found}B" --gap 1000% && [ "$bytes" -le "$found" ] || return 1
  run 0 curve vgg.json --swap-only --placement granules --budget 1GiB,50% --limit 1000 && says "^no plan of whole ops fits in 1.00 GiB; it takes at least [0-9.]+ GiB, or allow ops in parts"
}
in_arena() { # less fits granules than an arena; what is called least has been tried, with whatever groups its granules are filled
  local least
  "$ferry" zoo resnet18 --batch 13 --device rtx4090 -q -o small.json && run 1 solve small.json --swap-only --budget 98MiB --json && complains 'in 98.0 MiB; ask for 100 MiB, or allow' && [ "$(number found_bytes)" = 104857600 ] && says '480 KiB of rounding' &&
    run 1 solve small.json --swap-only --budget 101MiB --placement granules && complains 'no plan was found in 101 MiB, and none is ruled out; ask for 102 MiB' &&
    run 0 solve small.json --swap-only --budget 101MiB "${limit[@]}" -o least.json && run 0 check small.json least.json && grep -q '"kind": *"arena"' least.json || return 1
  "$ferry" zoo alexnet --batch 64 --image 64 --width-divisor 2 --classes 100 --device v100 -q -o alex.json && run 1 solve alex.json --swap-only --budget 50MiB --placement granules --json || return 1
  least=$(number found_bytes)
  run 1 solve alex.json --swap-only --budget $((least - (4 << 20)))B --placement granules && run 0 solve alex.json --swap-only --budget "${least}B" --placement granules "${limit[@]}"
}
noisy() { # an arena is looked at with noise too; what is said of noise is said of that plan
  "$ferry" zoo alexnet --batch 16 --image 64 --width-divisor 4 --classes 100 --device v100 -q -o tiny.json && run 0 solve tiny.json -b 80% --limit 3000 --json || return 1
  local step
  step=$(number step_ns) && run 0 solve tiny.json -b 80% --limit 3000 --noise 10% --json -o noisy.json && [ "$(number step_ns)" -le $((step + step / 1000)) ] || return 1
  run 0 solve tiny.json -b 100% --noise 10% --limit 1000 -o noisy.json && says '^noise  *\+0.00 %' && run 0 simulate tiny.json noisy.json --noise 10% && says '\+0.00 % in 95 of 100'
}
low_limit() { # offsets are tried over and over where they do not fit, whatever the limit
  local ask="solve alex.json --budget 127018695B --limit 1 --json" ticks
  "$ferry" zoo alexnet --batch 64 --image 64 --width-divisor 2 --classes 100 --device v100 -q -o alex.json && run 0 $ask --placement granules || return 1
  ticks=$(number ticks) && run 0 $ask && [ "$(number ticks)" -lt $((4 * ticks)) ]
}
small_ones() { # the pool of small tensors alone is over the budget
  "$ferry" zoo charrnn --batch 32 --width-divisor 4 --seq 4 --classes 50 --device titanx-pascal -q -o tiny.json || return 1
  run 1 solve tiny.json --swap-only --placement granules --budget 60% --json && complains 'was found in .*, and none is ruled out; ask for ' && says 'too small to move' && says '"refusal": *"none_found"'
}
reserve() {
  sed 's/"confidence": *"exact"/"confidence": "approximate: sizes"/' vgg.json >guess.json
  run 0 solve guess.json --budget 4000MB --gap 1000% --json && [ "$(number reserve_bytes)" = 120000000 ] &&
    [ "$(number budget_bytes)" = 3880000000 ] && run 0 solve vgg.json --budget 4000MB --gap 1000% --json &&
    [ "$(number reserve_bytes)" = 0 ] && run 0 solve vgg.json --budget 4000MB --reserve 1% --gap 1000% --json &&
    [ "$(number reserve_bytes)" = 40000000 ] && run 0 solve vgg.json --budget 4000MB --reserve 64MiB --gap 1000% --json &&
    [ "$(number reserve_bytes)" = 67108864 ] && run 2 solve vgg.json --budget 1GiB --reserve 2GiB && complains 'more than the budget' &&
    run 0 solve guess.json --budget 4000MB --policy lru && [ "$(tail -n 1 out)" = "the trace is approximate: sizes" ] &&
    run 0 solve guess.json --budget 4000MB --policy lru --json && says '"doubt": "sizes"' &&
    run 1 solve guess.json --budget 1MB --policy lru --json && says '"doubt": "sizes"'
}
short=(--limit 20000)
same_places() { # legal, promised, as good as its own word, and beside it what places of their own cost
  "$ferry" zoo alexnet --batch 64 --device titanx-pascal -o small.json >/dev/null 2>&1 || return 1
  run 4 solve small.json --swap-only --budget 55% --gap 0 "${short[@]}" --same-places --json -o places.json || return 1
  local step free bound
  step=$(number step_ns) free=$(number free_places_step_ns) bound=$(number lower_bound_ns)
  grep -q '"same_places": *true' places.json && run 0 check small.json places.json && [ "$bound" -gt 0 ] &&
    [ "$step" -ge "$bound" ] && [ "$free" -ge "$bound" ] || return 1
  run 4 solve small.json --swap-only --budget 55% --gap 0 "${short[@]}" --same-places && says '^places .* since every stay keeps its granules' &&
    run 4 solve small.json --swap-only --budget 55% --gap 0 "${short[@]}" -o free.json && ! grep -q same_places free.json || return 1
  sed 's/"pool_bytes": *[0-9]*/&, "same_places": true/' free.json >liar.json
  run 1 check small.json liar.json && complains 'stay_same' || return 1
  # what that costs is seen in the waits: for granules, although others are free
  run 0 explain small.json places.json --json && [ "$(number wait_ns <(sed '/"places"/,$!d' out))" -gt 0 ] &&
    run 0 explain small.json places.json && says 'ops wait .* for granules while as many others are free'
}
noise() { # what solve says of the noisy days is what simulate says, and nothing is lost by the choice
  run 4 solve vgg.json --budget 3GiB --gap 0 "${short[@]}" --json && local fastest=$(number step_ns) &&
    run 4 solve vgg.json --budget 3GiB --gap 0 "${short[@]}" --noise 20% --json -o steady.json && [ "$(number plans)" -ge 1 ] &&
    [ "$(number step_ns)" -le $((fastest + fastest / 2000)) ] && [ "$(share p95)" -le "$(share fastest_p95)" ] &&
    run 0 check vgg.json steady.json && grep -q '"noise_percent": *20' steady.json || return 1
  run 0 solve vgg.json --budget 3GiB --gap 30% --noise 20% && says '^noise .* 95 of 100 runs' || return 1
  run 0 simulate vgg.json steady.json --json && local step=$(number step_ns) && run 0 simulate vgg.json steady.json --noise 20% --json &&
    [ "$(number step_ns)" = "$step" ] && [ "$(share least)" -le "$(share median)" ] && [ "$(share median)" -le "$(share p95)" ] &&
    [ "$(share p95)" -le "$(share most)" ] && [ "$(share least)" -lt "$(share most)" ] || return 1
  run 0 simulate vgg.json steady.json --noise 20% && says '^noise .* median of 100 runs' && run 2 simulate vgg.json steady.json --noise 101% &&
    run 2 simulate vgg.json steady.json --seed 2 && complains '--seed needs --noise' && run 2 simulate vgg.json steady.json vgg.json steady.json --noise 5% &&
    complains 'one TRACE' && run 2 solve vgg.json --policy g10 --noise 5% && complains 'of our own planner'
}
mistakes() {
  run 2 solve vgg.json --budget 1TiB && complains 'leaves .* free' && run 2 solve vgg.json --host 1PiB && complains 'of the host are asked for' &&
    run 2 solve vgg.json --gap x && complains '--gap' && run 2 solve vgg.json --policy-opt a=b && complains 'needs --policy' &&
    run 2 solve && complains 'needs a TRACE'
}
targets() { # a place that takes no plan is told before the work: this budget would be refused with 1
  mkdir -p folder && run 3 solve vgg.json --budget 1GiB -o nowhere/x.json && complains 'nowhere/x.json: cannot be created' &&
    run 3 solve vgg.json --budget 1GiB -o folder && complains 'Is a directory' && run 3 solve vgg.json --budget 1GiB --dump nowhere/x.lp &&
    run 2 solve vgg.json --budget 1GiB -o - --json && complains 'only one of' && run 2 solve vgg.json --budget 1GiB -o - --dump -
}
to_standard_output() { # then the answer is beside it
  run 0 solve vgg.json --swap-only --budget 3GiB --gap 30% -o - && complains '^bound .* certified' && cp out piped.json && run 0 check vgg.json piped.json &&
    run 0 solve vgg.json --swap-only --budget 3GiB --gap 30% --dump - && complains '^bound .* certified' && tail -n 1 out | grep -q '^End$'
}
nowhere_to_say() { # a full disk, a closed output
  local status=0
  "$ferry" solve vgg.json --budget 3GiB --gap 30% 2>err >/dev/full || status=$?
  [ $status = 3 ] && complains 'standard output cannot be written' || return 1
  status=0; "$ferry" explain vgg.json plan.json 2>err >&- || status=$?
  [ $status = 3 ] && complains 'standard output cannot be written' || return 1
  run 3 solve vgg.json --budget 3GiB --gap 30% -o /dev/full && complains '/dev/full: cannot be written: No space left'
}
progress() { # on a terminal or when asked for, never in a file
  run 0 solve vgg.json --swap-only --budget 3GiB --gap 30% -v && complains 'plan .* bound .* gap [0-9.]+ %' &&
    run 0 solve vgg.json --swap-only --budget 3GiB --gap 30% && [ ! -s err ]
}
stops() { # an interrupt keeps what was found
  "$ferry" solve vgg.json --budget 3GiB --gap 0 --seconds 60 -v --json -o kept.json >out 2>err &
  local pid=$! status=0 i
  for i in $(seq 100); do grep -q 'ferry: plan ' err && break; sleep 0.1; done
  kill -TERM $pid
  wait $pid || status=$?
  [ $status = 130 ] && says '"limit_met": ?"interrupted"' && run 0 check vgg.json kept.json
}
large() { [ -e gpt.json ] || "$ferry" zoo gpt2-xl --batch 4 --device a100-40 -o gpt.json >/dev/null 2>&1; }
inside() { # the linear solver is left at once: no program is solved, and there is a plan all the same
  large || return 1
  "$ferry" solve gpt.json --budget 50% -v --json -o inside.json >out 2>err &
  local pid=$! status=0 i
  for i in $(seq 600); do grep -q 'interior: 1:' err && break; sleep 0.05; done
  kill -TERM $pid
  wait $pid || status=$?
  [ $status = 130 ] && says '"limit_met": ?"interrupted"' && complains '^ferry: bound: .*, stopped, ' || { echo "status $status"; return 1; }
  ! grep '^ferry: bound: .*, optimal, ' err && run 0 check gpt.json inside.json
}
seconds() { SECONDS=0; run 4 solve vgg.json --budget 3GiB --gap 0 --seconds 1 --json && says '"limit_met": ?"seconds"' && [ $SECONDS -lt 10 ]; }
aborts() { # the second ends the program
  large || return 1
  "$ferry" solve gpt.json --budget 50% -v -o none.json >out 2>err &
  local pid=$! status=0 i
  for i in $(seq 600); do grep -q 'interior' err && break; sleep 0.05; done
  for i in $(seq 1000); do kill -TERM $pid 2>/dev/null || break; sleep 0.01; done
  wait $pid 2>/dev/null || status=$?
  [ $status = 143 ] && [ ! -e none.json ] || { echo "status $status"; return 1; }
}

dumps() { # the program in a file, which others solve to what is certified here
  run 0 solve vgg.json --swap-only --budget 3GiB --gap 30% --dump model.lp --json || return 1
  local bound value stall unit rate theirs
  bound=$(number lower_bound_ns) value=$(number value_ns) stall=$((value - $(number compute_ns)))
  [ "$stall" -gt 0 ] && [ "$bound" -le $((value + 1)) ] && [ $((value - bound)) -lt 1000 ] || { echo "$bound and $value"; return 1; }
  [ "$(number rows)" = "$(sed '/^Subject To/,/^Bounds/!d' model.lp | grep -c ':')" ] || { echo "rows"; return 1; }
  unit=$(sed -nE '1s/.*; 1 is ([0-9.e+]+) bytes.*/\1/p' model.lp) rate=$(number d2h_bytes_per_s vgg.json)
  [ -n "$rate" ] || rate=$(number d2h_bytes_per_s "$FERRY_DATADIR/devices/titanx-pascal.json")
  command -v glpsol >/dev/null || { echo "glpsol is not installed, so nobody else solves the program"; return 77; }
  glpsol --lp model.lp -o glpsol.out >/dev/null && grep -q '^Status: *OPTIMAL' glpsol.out || return 1
  theirs=$(awk -v unit="$unit" -v rate="$rate" '/^Objective:/ { printf "%.0f", $4 * unit * 1e9 / rate }' glpsol.out)
  [ $((theirs - stall)) -ge -1000 ] && [ $((theirs - stall)) -le 1000 ] || { echo "glpsol: $theirs, here: $stall"; return 1; }
}
dump_mistakes() { # no file where there is no program
  run 2 solve vgg.json --budget 11GiB --dump none.lp && complains 'everything fits' && [ ! -e none.lp ] &&
    run 2 solve vgg.json --budget 3GiB --policy g10 --dump none.lp && complains 'a policy solves no program' &&
    run 1 solve vgg.json --swap-only --budget 1GiB --dump none.lp && [ ! -e none.lp ]
}

proves() { run 0 prove vgg.json plan.json && says '^proved by (flow|compute|crossing): no plan takes less' && run 0 prove vgg.json plan.json --json && says '"holds": ?true'; }
one_more() { # what the proof is worth may be claimed, one unit more may not
  run 0 prove vgg.json plan.json --json
  local worth=$(($(number lower_bound_ns) - $(number claimed_ns)))
  spoil plan.json lower_bound_ns $worth same.json; spoil plan.json lower_bound_ns $((worth + 1)) more.json || return 1
  run 0 prove vgg.json "$([ $worth = 0 ] && echo plan.json || echo same.json)" && run 1 prove vgg.json more.json && complains 'is claimed, the proof shows'
}
other_step() { spoil plan.json step_ns -1 step.json && run 1 prove vgg.json step.json && complains 'claims a step of'; }
changed_duals() { # some figures of the proof: still worth the claim, or refused
  local i spoiled=0
  for i in 1 2 3 4 5 6; do
    awk -v seed=$i 'BEGIN { srand (seed) } { at = index ($0, "\"early\""); if (!at) { print; next }
      head = substr ($0, 1, at - 1); rest = substr ($0, at); n = length (rest); out = ""
      for (j = 1; j <= n; j++) { ch = substr (rest, j, 1); out = out (ch ~ /[1-9]/ && rand () < 0.02 ? int (rand () * 9) + 1 : ch) }
      print head out }' plan.json >duals.json
    "$ferry" prove vgg.json duals.json --json >out 2>err
    case $? in
      0) [ "$(number lower_bound_ns)" -ge "$(number claimed_ns)" ] || return 1 ;;
      1 | 3) spoiled=$((spoiled + 1)) ;;
      *) cat err; return 1 ;;
    esac
  done
  [ $spoiled -gt 0 ]
}
no_proof() { run 3 prove vgg.json a.json && complains 'carries no proof'; }

explains() { # its figures are those of simulate
  run 0 simulate vgg.json plan.json --json && cp out simulated && run 0 explain vgg.json plan.json --json && cp out explained || return 1
  local name sum
  for name in step_ns stall_ns peak_bytes host_peak_bytes d2h_bytes h2d_bytes; do
    [ "$(number $name <(sed '/"predicted"/,$!d' explained))" = "$(number $name simulated)" ] || { echo "$name"; return 1; }
  done
  sum=$(sed '/"waits"/,$!d' explained | grep -oE '"ns": ?[0-9]+' | grep -oE '[0-9]+$' | total)
  [ "${sum:-0}" = "$(number stall_ns simulated)" ] && [ "${sum:-0}" = "$(number waited_ns explained)" ] || { echo "waits: $sum"; return 1; }
  for name in d2h_bytes h2d_bytes; do
    sum=$(sed '/"crossings"/,/^  ]/!d' explained | grep -oE "\"$name\": ?[0-9]+" | grep -oE '[0-9]+$' | total)
    [ "$sum" = "$(number $name simulated)" ] || { echo "$name: $sum"; return 1; }
  done
  [ "$(number bytes explained)" -le "$(number peak_bytes simulated)" ]
}
places() { # 3 MiB in granules of 2 MiB lose 1 MiB; of the waits for room no more is due to places than there is
  printf '%s' '{"format":"ferry-trace/1","name":"one","source":{"kind":"x","detail":"","confidence":"exact"},
    "tensors":[{"name":"x","bytes":3145728,"kind":"activation"}],"ops":[{"name":"a","ns":1000,"writes":[0]},{"name":"b","ns":1000,"reads":[0]}]}' >one.json
  run 0 solve one.json --device titanx-pascal -o one.plan && run 0 explain one.json one.plan --json && [ "$(number rounding_bytes)" = 1048576 ] || { cat out err; return 1; }
  run 0 explain one.json one.plan && says '^places: granules of 2.00 MiB lose 1.00 MiB to rounding' &&
    run 0 explain vgg.json plan.json --json && [ "$(number wait_ns <(sed '/"places"/,$!d' out))" -le "$(number stall_ns)" ] &&
    [ "$(number rounding_bytes)" -lt "$(number bytes)" ]
}
explains_words() {
  run 0 explain vgg.json plan.json && [ ! -s err ] && says '^it takes .* held by' && says '^waits .* in all' && says 'across the link' &&
    says '1 GiB more .* less' && says '1 GB/s more' && tail -n 1 out | grep -q 'above what any plan that only swaps can reach'
}
explain_prices() { # more never makes the bound worse, nor better than its dual price says
  run 0 explain vgg.json plan.json --json || return 1
  local bound gib link
  bound=$(number lower_bound_ns) gib=$(number with_1_gib_more_ns) link=$(number with_1_gb_per_s_more_ns)
  [ "$gib" -lt "$bound" ] && [ "$link" -lt "$bound" ] || return 1
  [ $((bound - gib)) -le $(($(number gib_ns) + bound / 10000)) ] && [ $((bound - link)) -le $(($(number gb_per_s_ns) + bound / 10000)) ]
}
explain_refuses() { sed 's/"budget_bytes": *[0-9]*/"budget_bytes": 1048576/' plan.json >small.json; run 1 explain vgg.json small.json && complains 'budget'; }

compares() {
  run 0 compare vgg.json --budget 75%,90% "${limit[@]}" --tsv - || return 1
  awk -F '\t' 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { b = $at["budget_bytes"]; ns = $at["step_ns"] }
    $at["policy"] == "ferry" { ours++; swaps[b] = ns }
    $at["policy"] == "ferry-recompute" { ours++; drops[b] = ns; if (ns > swaps[b]) beaten++ }
    $at["policy"] == "ferry-sections" { ours++; cuts[b] = ns; if (ns > swaps[b]) beaten++ }
    $at["policy"] == "ferry-all" { ours++; if (ns > drops[b] || ns > cuts[b]) beaten++ }
    $at["policy"] ~ /^ferry/ { next }
    $at["fits"] == 1 && $at["lower_bound_ns"] > 0 { rows++; if (ns < $at["lower_bound_ns"]) bad++ }
    $at["fits"] == 1 && (ns < drops[b] || ($at["drops"] == 0 && ns < swaps[b])) { beaten++ }
    END { exit !(ours == 8 && rows > 4 && !bad && !beaten) }' out || { cat out; return 1; }
  # budgets planned at the same time give the same rows
  cut -f 1-15 out >one && run 0 compare vgg.json --budget 75%,90% "${limit[@]}" --tsv - -j 1 && cut -f 1-15 out | cmp - one
}
known() { # a plan from elsewhere is a start: kept where nothing faster is found, and else its order, cuts and drops are tried
  local ask="solve vgg.json --swap-only --gap 0 --limit" step
  run 4 $ask 200000 --budget 3GiB --json -o known.json && step=$(number step_ns) || return 1
  run 4 $ask 1 --budget 3100MiB --json && [ "$(number step_ns)" -gt "$step" ] || { echo "nothing to gain by a start"; return 1; }
  run 4 $ask 1 --budget 3100MiB --from known.json --proof --json -o here.json && [ "$(number step_ns)" -le "$step" ] && says '"from": ?"known.json"' &&
    run 0 check vgg.json here.json && run 0 prove vgg.json here.json || return 1
  run 4 $ask 1 --budget 2900MiB --from known.json -o here.json && complains 'known.json: no plan here, so only its order, cuts and drops are tried: rule peak' &&
    run 0 check vgg.json here.json || return 1
  run 4 solve vgg.json --gap 0 --limit 20000 --budget 3GiB -o cut.json && grep -q '"parts"' cut.json && run 4 $ask 1 --budget 3GiB --from cut.json,known.json --json &&
    complains 'cut.json: no plan here, and of no use: it runs ops in parts that are not allowed' && [ "$(number step_ns)" -le "$step" ] || return 1
  run 0 solve tiny.json --budget 98% --gap 1000% --from known.json && complains 'of no use: the plan is for the trace' &&
    run 3 $ask 1 --from nowhere && run 2 solve vgg.json --policy g10 --from known.json && complains 'of our own planner'
}
compare_some() { run 0 compare vgg.json --budget 3GiB --policies g10 --json && says '"gap":' && says '"lower_bound_ns":' && ! grep -q '"label": ?"ferry"' out; }

claim "solve writes a legal plan and answers in its last line" solves
claim "the JSON has the plan's own names, and a gap that was asked for in vain is status 4" json
claim "the same ticks give the same plan, byte for byte" again
claim "the plan says by what it was made" made_by
claim "too small a host is said" host_counts
claim "an infeasible answer names the smallest budget and its parts, and that budget is feasible" floor
claim "where granules have no plan, an arena may" in_arena
claim "noise is looked at in arenas too, and is that of the plan that is chosen" noisy
claim "a low limit leaves little effort for arenas too" low_limit
claim "where the pool is over the budget, that is the answer" small_ones
claim "the reserve follows the trace's confidence, or the option" reserve
same_places_limit() { # all of its tries together stop where one search does
  local ticks
  run 4 solve small.json --swap-only --budget 60% --gap 0 --limit 1 --json && ticks=$(number ticks) && [ "$ticks" -gt 0 ] || return 1
  run 4 solve small.json --swap-only --budget 60% --gap 0 --limit 1 --same-places --json && [ "$(number ticks)" -gt 0 ] && [ "$(number ticks)" -le $((ticks * 2)) ]
}
claim "every stay on the same granules, if asked for; the cost is said" same_places
claim "the tries for the same granules share the limit of ticks" same_places_limit
claim "of plans as good the steadier, if asked for; simulate says what noise does" noise
claim "mistakes are told in one line" mistakes
claim "a place where nothing can be written is told before the work" targets
claim "a plan or program on standard output stands there alone" to_standard_output
claim "a full disk and a closed output are one line each" nowhere_to_say
claim "progress is said where it is wanted" progress
claim "an interrupt keeps the incumbent" stops
claim "an interrupt ends the linear solver too" inside
claim "seconds end the search" seconds
claim "a second interrupt ends the program" aborts
claim "the program is written, and means the same to glpsol" dumps
claim "no program is written where there is none" dump_mistakes
claim "few large tensors have places in an arena in more memory too, and a gap of nothing is reached" rings
claim "prove computes the certificate again" proves
claim "one nanosecond above the proof is refused" one_more
claim "a step that is not simulated is refused" other_step
claim "changed duals prove the claim still, or are refused" changed_duals
claim "a plan without a proof is told so" no_proof
claim "explain's figures are simulate's" explains
claim "explain says it in words" explains_words
claim "moves that have no places on the circle are chosen again in less room" rounds_again
claim "explain says what granules take and what waiting for them costs" places
claim "more memory or a faster link never worsens the bound, nor betters it beyond its dual price" explain_prices
claim "explain refuses an illegal plan" explain_refuses
claim "a known plan is never given up for a slower one" known
claim "compare has our rows, nobody is below the bound nor better than ours" compares
claim "compare without our planner still has the bound" compare_some
finish
