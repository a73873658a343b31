#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Orders of ops as people meet them: what another order is worth, that every command follows a plan
# that has one, that the bits stay the same, and that an order which breaks a dependence is refused.
. "$(dirname "$0")/rules/common.bash"
scratch

number() { grep -oE "\"$1\": ?-?[0-9]+" "$2" | head -n 1 | grep -oE -- '-?[0-9]+$'; }
says() { grep -qE -- "$1" out || { echo "not said: $1"; cat out; return 1; }; }
complains() { grep -qE -- "$1" err || { echo "not said: $1"; cat err; return 1; }; }
limit=(--limit 20000 -q)

sed 's/"granule_bytes": *[0-9]*/"granule_bytes": 4096/' "$FERRY_DATADIR/devices/v100.json" >fine.json
"$ferry" zoo gpt2 --batch 2 --seq 256 --optimizer adam --depth-divisor 3 --device h200 -q -o gpt.json || exit 1
"$ferry" zoo vgg16 --batch 2 --image 32 --width-divisor 16 --classes 10 --device fine.json -q -o tiny.json || exit 1
"$ferry" solve gpt.json -b 55% --recompute off --sections off --order updates "${limit[@]}" -o gpt.plan >/dev/null
"$ferry" solve tiny.json -d fine.json -b 75% --recompute off --sections off --order any "${limit[@]}" -o tiny.plan >/dev/null

words() {
  run 2 solve gpt.json -b 55% --order backwards && complains 'as-is\|updates\|any' || { cat err; return 1; }
}
worth() { # state that does not fit waits for nobody: early updates are faster, at the same bytes
  local own
  "$ferry" solve gpt.json -b 55% --swap-only "${limit[@]}" -o own.plan >/dev/null
  own=$(number step_ns own.plan)
  [ "$(number step_ns gpt.plan)" -lt $((own * 97 / 100)) ] || { echo "$(number step_ns gpt.plan) against $own"; return 1; }
  ! grep -q '"order": *\[' own.plan || echo "an order where none was allowed"
}
followed() { # by everything that takes a plan
  local plan
  for plan in gpt tiny; do
    grep -q '"order": *\[' $plan.plan || { echo "$plan.plan has no order"; return 1; }
    run 0 check $plan.json $plan.plan && run 0 simulate $plan.json $plan.plan --json &&
      [ "$(number step_ns out)" = "$(number step_ns $plan.plan)" ] && run 0 rewrite $plan.json $plan.plan -o made.json &&
      run 0 info made.json && run 0 replay $plan.json $plan.plan --verify && run 0 export $plan.json $plan.plan --chrome chrome.json || return 1
  done
  run 0 explain gpt.json gpt.plan && says 'in another order: [0-9]+ ops run before ops that the trace has first, [0-9]+ of them updates' &&
    run 0 explain gpt.json gpt.plan --json && [ "$(sed -n '/"order"/,/}/p' out | grep -oE '"updates": ?[0-9]+' | grep -oE '[0-9]+$')" -gt 10 ]
}
proved() { # the bound is of this order, and says so
  "$ferry" solve gpt.json -b 55% --recompute off --sections off --order updates --proof "${limit[@]}" -o proof.plan >/dev/null
  grep -q '"order": "given"' proof.plan && run 0 prove gpt.json proof.plan
}
same_bits() { run 0 replay tiny.json tiny.plan --compute real --compare && says 'bit for bit'; }
refused() { # the last op first: what it reads is not there
  local last=$(($(grep -oE '"compute"' tiny.json | wc -l) - 1))
  sed -E "s/\"order\": *\[[^]]*\]/\"order\": [$last, 1, 0, $last]/" <(tr -d '\n' <tiny.plan) >broken.plan
  run 1 check tiny.json broken.plan && complains 'rule order_(read|write|overwrite)' &&
    run 3 rewrite tiny.json broken.plan && complains 'would not find tensor' || { cat err; return 1; }
  sed -E 's/"order": *\[[^]]*\]/"order": [0, 2, 1, 2]/' <(tr -d '\n' <tiny.plan) >twice.plan
  run 1 check tiny.json twice.plan && complains 'rule order_each' || { cat err; return 1; }
}
repeats() {
  "$ferry" solve tiny.json -d fine.json -b 75% --recompute off --sections off --order any "${limit[@]}" -o again.plan >/dev/null
  cmp tiny.plan again.plan
}

claim "an order that is no word of the list is refused with the list" words
claim "early updates are faster where state does not fit" worth
claim "all commands follow a plan's order" followed
claim "the bound is of the plan's order, and proved" proved
claim "training in another order gives the same bits" same_bits
claim "an order that breaks a dependence is refused by check and by the rewriter" refused
claim "the same question has the same order" repeats
finish
