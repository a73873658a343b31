#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# `ferry run --ranks N`: each process of a program has a device, a budget, a plan and files of its own, and
# says what it says alone. The launcher between is a shell, which calls no driver.
. "$(dirname "$0")/run.bash"
command -v python3 >/dev/null || { echo "python3 is not here"; exit 77; }

# launch N HOW PROGRAM...: as torchrun does; HOW says a process its rank. Its status is that of a rank that failed.
cat >launch <<'END'
#!/bin/bash
n=$1 how=$2 status=0 pids=()
shift 2
for ((r = 0; r < n; r++)); do
  last=()
  [ "$r" = 1 ] && [ -n "$RANK_1" ] && last=("$RANK_1")
  env "$how=$r" "$@" "${last[@]}" >"out.$r" &
  pids+=($!)
done
for it in "${pids[@]}"; do wait "$it" || status=$?; done
exit $status
END
chmod +x launch
plain mlp "$programs/mlp" "$kernels" 16 || exit 1
under whole --budget 1GiB -- "$programs/mlp" "$kernels" 16 || exit 1

# ranks N HOW OPTIONS... -- PROGRAM...: its report in ranks.json; the status is that of ferry
ranks() {
  local n=$1 how=$2 options=()
  shift 2
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  rm -f out.* ranks.json
  "$ferry" run --driver emulated --wait --ranks "$n" --report ranks.json "${options[@]}" -- ./launch "$n" "$how" "$@" >said 2>err
}
# holds EXPRESSION: of the report r
holds() {
  python3 -c "import json, sys; r = json.load (open ('ranks.json')); sys.exit (not ($1))" && return
  echo "does not hold: $1"; cat err; return 1
}
planned() { # N HOW: followed plans within the budgets, with the bits of a run alone
  local r
  ranks "$1" "$2" --budget "$(kib 60 whole)" -- "$programs/mlp" "$kernels" 16 || { echo "status $?"; cat err; return 1; }
  for ((r = 0; r < $1; r++)); do cmp mlp.plain "out.$r" || return 1; done
  holds "len (r['ranks']) == $1 and all (q['planned_steps'] > 0 and q['evictions'] > 0 and 0 < q['driver_high_bytes'] <= q['budget_bytes'] for q in r['ranks'])" &&
    holds "r['exit_status'] == 0 and r['together']['out_bytes'] == sum (q['out_bytes'] for q in r['ranks']) and r['together']['planned_step_ns'] == max (q['planned_step_ns'] for q in r['ranks'])"
}
schema() { # of the last report
  python3 -c 'import jsonschema' 2>/dev/null || { echo "python3-jsonschema is not here"; return 77; }
  python3 -c 'import json, jsonschema, sys; jsonschema.validate (json.load (open ("ranks.json")), json.load (open (sys.argv[1])))' "$srcdir/data/schema/run-report.schema.json"
}
budgets() { # one each
  ranks 2 LOCAL_RANK --budget "$(kib 90 whole),$(kib 60 whole)" --keep-plan plan.json --keep-trace trace.json -- "$programs/mlp" "$kernels" 16 && cmp mlp.plain out.0 && cmp mlp.plain out.1 || { cat err; return 1; }
  holds "r['ranks'][0]['budget_bytes'] > r['ranks'][1]['budget_bytes'] >= r['ranks'][1]['driver_high_bytes'] and r['ranks'][0]['out_bytes'] < r['ranks'][1]['out_bytes']" &&
    "$ferry" check -q trace.json plan.json >/dev/null 2>&1 && "$ferry" check -q trace.1.json plan.1.json >/dev/null 2>&1 && ! cmp -s plan.json plan.1.json
}
dies() { # the other goes on, and the status is the program's
  local status=0
  RANK_1=die ranks 2 LOCAL_RANK --budget "$(kib 60 whole)" -- "$programs/mlp" "$kernels" 16 || status=$?
  [ "$status" = 137 ] && cmp mlp.plain out.0 && holds "r['exit_status'] == 137 and r['ranks'][0]['ended'] and not r['ranks'][1]['ended'] and r['ranks'][1]['ops'] > 0"
}
two_devices() {
  RANK_1=two ranks 2 LOCAL_RANK --budget "$(kib 60 whole)" -- "$programs/mlp" "$kernels" 16 || { cat err; return 1; }
  grep -q '^second: 801$' out.1 && grep -q 'a second gpu context allocated memory; one gpu and one context per process' err &&
    holds "r['ranks'][1]['refused'] and not r['ranks'][0]['refused']"
}
too_many() { # more processes than --ranks says
  local status=0
  "$ferry" run --driver emulated --ranks 2 --budget 1MiB -- ./launch 3 LOCAL_RANK "$programs/mlp" "$kernels" 2 >said 2>err || status=$?
  [ "$status" != 0 ] && grep -q 'is rank 2 .*--ranks has 2: give --ranks 3' err || { cat err; return 1; }
}
one_rank() { # without --ranks a second process is refused, and told of them
  local status=0
  "$ferry" run --driver emulated --budget 1MiB -- ./launch 2 LOCAL_RANK "$programs/mlp" "$kernels" 40 >said 2>err || status=$?
  [ "$status" = 0 ] || grep -q 'wants the gpu too; .*give --ranks N' err || { cat err; return 1; }
}
of_host() { # plans are for the rates that the host leaves a rank
  ranks 2 LOCAL_RANK --budget "$(kib 60 whole)" --host hgx-h100 --keep-plan plan.json -- "$programs/mlp" "$kernels" 16 && cmp mlp.plain out.0 && cmp mlp.plain out.1 || { cat err; return 1; }
  ! grep -q 'no other rank uses' err && "$ferry" run --driver emulated --wait --budget "$(kib 60 whole)" --host hgx-h100 --ranks 8 --keep-plan eight.json -- ./launch 8 LOCAL_RANK "$programs/mlp" "$kernels" 16 >said 2>err || { cat err; return 1; }
  python3 - <<'END'
import json
two, one, eight = (json.load (open (name)) for name in ("plan.json", "plan.1.json", "eight.7.json"))
rate = lambda p: p["device"]["link"]["d2h_bytes_per_s"]
assert rate (two) == rate (one) > rate (eight) == 22500000000, (rate (two), rate (one), rate (eight))
END
}
said_alone() { # without a host it is said what plans are for
  ranks 2 LOCAL_RANK --budget 2MiB -- "$programs/mlp" "$kernels" 4 && grep -q 'a link that no other rank uses; --host NAME' err
}
wrong() { # WORDS-OF-THE-ERROR OPTIONS...
  local status=0
  "$ferry" run --driver emulated "${@:2}" -- true >said 2>err || status=$?
  [ "$status" = 2 ] && [ "$(wc -l <err)" -le 2 ] && grep -q -e "$1" err || { echo "${*:2}: $status"; cat err; return 1; }
}

claim "two processes have a device and a plan each" planned 2 LOCAL_RANK
claim "four do" planned 4 OMPI_COMM_WORLD_LOCAL_RANK
claim "the one card that a process may see is its rank" planned 2 CUDA_VISIBLE_DEVICES
claim "the device of its context is its rank" planned 2 GPU_DEVICE
claim "ranks have budgets of their own, and files by their numbers" budgets
claim "the report of ranks fits its schema" schema
claim "a rank that dies leaves the others alone" dies
claim "a process that opens two devices is refused by name" two_devices
claim "a process beyond the ranks is refused by name" too_many
claim "a second process without --ranks is told of them" one_rank
claim "plans are for what a host's links leave" of_host
claim "without a host it is said what plans are for" said_alone
claim "no ranks are refused" wrong '--ranks: ' --budget 1MiB --ranks 0
claim "ranks that are no number are refused" wrong '--ranks: ' --budget 1MiB --ranks two
claim "budgets that are not as many as ranks are refused" wrong '2 budgets for 3 ranks' --budget 1MiB,2MiB --ranks 3
claim "several budgets without ranks are refused" wrong 'more budgets than the 1 rank' --budget 1MiB,2MiB
claim "ranks beyond a host's cards are refused" wrong 'hgx-h100 has 8 cards' --budget 1MiB --host hgx-h100 --ranks 9
claim "a host that there is not is refused" wrong '--host: there is no host' --budget 1MiB --host nothing
claim "ranks do not share a card" wrong '--share is for one card' --budget 1MiB --ranks 2 --share x
finish
