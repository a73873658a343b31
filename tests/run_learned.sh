#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What ops read and write, learned by digests of a program that knows nothing of it.
. "$(dirname "$0")/run.bash"
command -v python3 >/dev/null || { echo "no python3"; exit 77; }

learn() { # NAME PROGRAM ARGUMENTS...: NAME.json, and the program says what it says alone
  plain "$@" && "$ferry" profile -q --learn --driver emulated -o "$1.json" -- "${@:2}" >"$1.out" 2>"$1.err" &&
    cmp "$1.plain" "$1.out" || { cat "$1.err"; return 1; }
}
uses() { # NAME: a line an op: its name, how many tensors it reads, writes, and of how many nothing is known
  python3 - "$1.json" <<'END'
import json, sys
for o in json.load(open(sys.argv[1]))["ops"]:
    print(o["name"], *(len(o.get(k, [])) for k in ("reads", "writes", "unknown")))
END
}
remade() { # PLAN: so many rows of recompute
  python3 -c 'import json, sys; print(len(json.load(open(sys.argv[1])).get("recompute") or []))' "$1"
}
known() { # of a chain of dense layers: every kernel of it writes one tensor, and reads the others that it names
  learn mlp "$programs/mlp" "$kernels" 10 && uses mlp | sort -u >uses &&
    diff - uses <<'END'
copy to host 0 0 0
distance 2 1 0
matmul 1 1 0
matmul 2 0 0
relu 1 1 0
relu_back 2 1 0
sum_squares 1 0 0
update 0 0 0
END
}
in_place() { # relu_back of a chain writes what it reads, and the digests say so
  learn leaving "$programs/habits" "$kernels" 12 leaving && uses leaving >uses && grep -q '^relu_back 2 1 0$' uses && ! grep ' [1-9]$' uses || cat uses
}
same_times() { # ops take the time that they take without
  "$ferry" profile -q --driver emulated -o plain.json -- "$programs/mlp" "$kernels" 10 >/dev/null && learn mlp "$programs/mlp" "$kernels" 10 &&
    diff <(grep -o '"ns": [0-9]*' plain.json) <(grep -o '"ns": [0-9]*' mlp.json)
}
as_before() { # who does not ask for it is told what was told before
  "$ferry" profile -q --driver emulated -o plain.json -- "$programs/mlp" "$kernels" 10 >/dev/null && grep -q '"confidence": *"touched"' plain.json &&
    ! grep -q 'digested\|unknown' plain.json
}
planned() { # it plans like a recorded step: with tensors made again, which a profile without --learn has none of
  cat >card.json <<'END'
{ "format": "ferry-device/1", "name": "small", "memory_bytes": 2097152, "granule_bytes": 65536, "host_bytes": 8388608,
  "link": { "d2h_bytes_per_s": 200000000, "h2d_bytes_per_s": 200000000, "copy_ns": 10000 } }
END
  learn mlp "$programs/mlp" "$kernels" 10 && run 0 info mlp.json && grep -q 'confidence *learned: ' out && run 0 convert mlp.json --form packed -o packed.json &&
    run 0 convert packed.json --form plain -o again.json && [ "$(grep -c '"digested"' again.json)" = "$(grep -c '"digested"' mlp.json)" ] &&
    run 0 solve mlp.json -d card.json --budget 1100KiB --reserve 0 -q -o plan.json && run 0 check mlp.json plan.json &&
    [ "$(remade plan.json)" -gt 0 ] || { cat err; remade plan.json; return 1; }
  run 0 solve plain.json -d card.json --budget 1100KiB --reserve 0 -q -o plan.json && [ "$(remade plan.json)" = 0 ]
}
for_run() { # the trace says which ops `ferry run` can make again; without that it is no choice
  run 0 solve mlp.json -d card.json --budget 1100KiB --reserve 0 --for run -q -o plan.json && run 0 check mlp.json plan.json && [ "$(remade plan.json)" -gt 0 ] &&
    run 0 solve mlp.json -d card.json --budget 1100KiB --reserve 0 --for run --recompute off -q -o plan.json && [ "$(remade plan.json)" = 0 ] &&
    run 2 solve plain.json -d card.json --budget 1100KiB --reserve 0 --for run --recompute auto && grep -q 'cannot be followed' err
}

clean() { # NAME HABIT: planned, the same bytes, with fewer copies out than without
  plain "$1" "$programs/habits" "$kernels" 24 "$2" && same "$1" --wait --budget 1500KiB --learn no -- "$programs/habits" "$kernels" 24 "$2" || return 1
  local copied
  copied=$(figure out_bytes "$1")
  same "$1" --wait --budget 1500KiB -- "$programs/habits" "$kernels" 24 "$2" && [ "$(figure planned_steps "$1")" -ge 10 ] &&
    [ "$(figure checks "$1")" -gt 20 ] && [ $(($(figure out_bytes "$1") * 10)) -lt $((copied * 8)) ] && [ "$(figure changed "$1")" = 0 ] ||
    { echo "$(figure checks "$1") checks, $(figure out_bytes "$1") of $copied bytes out"; return 1; }
  local seen predicted
  seen=$(figure planned_step_ns "$1") predicted=$(figure predicted_step_ns "$1")
  [ $((seen * 100)) -le $((predicted * 102)) ] && [ $((seen * 100)) -ge $((predicted * 98)) ] || { echo "step $seen, predicted $predicted"; return 1; }
}
cleaner() {
  clean leaving leaving && clean gradients gradients
}
found_out() { # one that writes all at once what it only read is copied, and named; then its tensors are as others
  local it options=("" "--strict always" "--strict-steps 0 --paranoid 4" "--emulated fuzz=200us,seed=1" "--emulated races=yes" "--emulated clock=real" "--emulated link=50MB/s")
  plain turns "$programs/habits" "$kernels" 24 turns || return 1
  for it in "${options[@]}"; do
    same turns --wait --budget 1500KiB $it -- "$programs/habits" "$kernels" 24 turns || { echo "$it"; return 1; }
    case $it in *clock=real*) continue ;; esac # what ops take on a busy machine decides what leaves
    [ "$(figure checks turns)" -gt 0 ] &&
      [ "$(figure changed turns)" -gt 0 ] && grep -q '"changed_op": "turn"' turns.json || { echo "$it"; cat turns.err; grep 'check\|change' turns.json; return 1; }
  done
}
cheap() { # of three steps at most, behind which the plan begins, however few of their digests were judged by then; and none where all fits
  for it in 8192 131072; do
    same leaving --wait --emulated "granule=$it" --budget 1500KiB -- "$programs/habits" "$kernels" 24 leaving && [ "$(figure learned_ops leaving)" -gt 0 ] &&
      [ $(($(figure learned_ops leaving) * 24)) -le $(($(figure ops leaving) * 3)) ] && [ "$(figure planned_steps leaving)" -ge 21 ] ||
      { echo "granules of $it bytes: learned $(figure learned_ops leaving) ops, $(figure planned_steps leaving) planned steps"; return 1; }
  done
  same leaving --wait --budget 64MiB -- "$programs/habits" "$kernels" 24 leaving && [ "$(figure learned_ops leaving)" = 0 ] &&
    same leaving --wait --budget 1500KiB --learn no -- "$programs/habits" "$kernels" 24 leaving && [ "$(figure learned_ops leaving)" = 0 ]
}
impure() { # kernels that are impure at random: as many bytes as alone, and what changes its habit is named
  local seed named=0
  learn steps "$programs/habits" "$kernels" 12 leaving || return 1
  for seed in 1 2 3 4 5 6; do
    plain played "$programs/player" "$programs/player_kernels.so" 16 steps.json "random=$seed" impure=4 habit_step=9 2>/dev/null &&
      same played --wait --budget 1500KiB -- "$programs/player" "$programs/player_kernels.so" 16 steps.json "random=$seed" impure=4 habit_step=9 || return 1
    named=$((named + $(figure changed played)))
  done
  [ "$named" -gt 0 ] || echo "nothing changed its habit"
}
many() { # where small tensors leave no room, one granule of many is taken
  plain lstm "$programs/lstm" "$kernels" 11 && same lstm --wait --budget 3000KiB --emulated granule=8192 -- "$programs/lstm" "$kernels" 11 &&
    [ "$(figure learned_ops lstm)" -gt 0 ] && [ "$(figure planned_map_calls lstm)" = 0 ] && [ "$(figure planned_steps lstm)" -ge 7 ] ||
    { echo "$(figure learned_ops lstm) ops, $(figure planned_map_calls lstm) mapping calls"; return 1; }
}
given() { # a plan for the step as a profile without --learn has it is followed
  "$ferry" run -q --driver emulated --wait --learn no --budget 1500KiB --keep-plan touched.plan -- "$programs/habits" "$kernels" 24 turns >/dev/null 2>&1 &&
    same turns --wait --budget 1500KiB --plan touched.plan -- "$programs/habits" "$kernels" 24 turns && [ "$(figure planned_steps turns)" -ge 10 ]
}

claim "each op of dense layers is known by what it reads and writes" known
claim "an op in place reads and writes" in_place
claim "ops take the time that they take without" same_times
claim "without --learn a profile says what it said" as_before
claim "a learned trace keeps its origins through both forms, and plans with tensors made again" planned
claim "so it does for \`ferry run\`" for_run
claim "what is only read leaves without a copy, and steps take what is foreseen" cleaner
claim "a kernel that changes its habit is found out by the digest, whatever the mode and the order" found_out
claim "learning is of three steps at most, and only where something has to leave" cheap
claim "impure kernels of every kind say what they say alone" impure
claim "a budget of many granules has one for digests" many
claim "a plan for what a program touches is followed all the same" given
finish
