#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Ops of all streams (`import --streams all`): steps whose true waits and uses are known, and recorded ones. FERRY_CASES:
# how many steps are made.
. "$(dirname "$0")/rules/common.bash"
here=$PWD/tests
traces=${FERRY_REAL_TRACES:-}
export PYTHONDONTWRITEBYTECODE=1
scratch
command -v python3 >/dev/null || { echo "python3 is missing"; exit 77; }

made() {
  local seed kind="${1:-}"
  for ((seed = 1; seed <= ${FERRY_CASES:-20}; seed++)); do
    python3 "$here/import_streams.py" make $seed seen.json truth.json $kind &&
      run 0 import -q seen.json --streams all -o packed.json && run 0 convert -q packed.json --form plain -o trace.json &&
      python3 "$here/import_streams.py" hold truth.json trace.json >held && python3 "$here/second/streams.py" seen.json trace.json >read || { echo "seed $seed"; return 1; }
  done
}
read_twice() { # collectives too, and a recorded step of them; a wait, a stream or bytes that are wrong are seen
  local value
  run 1 import -q "$here/cases/import-collectives/step.json" --streams all -o packed.json && run 0 convert -q packed.json --form plain -o trace.json &&
    python3 "$here/second/streams.py" "$here/cases/import-collectives/step.json" trace.json >read && grep -q ' 4 collectives' read || return 1
  for value in 'o["stream"] = 1 - o.get ("stream", 0)' 'o["group_bytes"] += 4' 'o["group"] = "x"' 'o["ns"] += 1' 'o["after"] = []'; do
    python3 -c '
import json, sys
t = json.load (open ("trace.json"))
o = [o for o in t["ops"] if o.get ("collective") and o.get ("after")][0]
exec (sys.argv[1])
json.dump (t, open ("wrong.json", "w"))' "$value" && ! python3 "$here/second/streams.py" "$here/cases/import-collectives/step.json" wrong.json >read 2>&1 || { echo "$value is not seen"; return 1; }
  done
  [ -z "$traces" ] || { run 0 import -q "$traces/kineto/hta_ddp2_v100_step3.kineto.json.gz" --streams all -o packed.json &&
    run 0 convert -q packed.json --form plain -o trace.json && python3 "$here/second/streams.py" "$traces/kineto/hta_ddp2_v100_step3.kineto.json.gz" trace.json >read; }
}
enough() { # a plan is found in all that the step needs, and legal; a refusal asks for more than was given
  local seed kind budget
  for seed in 7 11 16 34; do
    for kind in "" all; do
      python3 "$here/import_streams.py" make $seed seen.json truth.json $kind && run 0 import -q seen.json --streams all -o packed.json &&
        run 0 solve -q packed.json --budget 100% --limit 500 -o plan.json && run 0 check packed.json plan.json || { echo "seed $seed"; return 1; }
      for budget in 80% 95%; do
        "$ferry" solve -q packed.json --budget $budget --limit 500 -o plan.json >out 2>err || python3 -c '
import re, sys
given, *asks = [float (x) * { "K": 1, "M": 1024 }[u] for x, u in re.findall (r"([\d.]+) ([KM])iB", open ("err").readline ())]
assert asks and min (asks) > given' || { echo "seed $seed $kind, $budget:"; cat err; return 1; }
      done
    done
  done
}
recorded() { # all GPU time is in ops, which begin and end when they did; plans of them are legal and proved
  local name="$1"
  shift
  [ -n "$traces" ] || { echo "FERRY_REAL_TRACES is not set"; return 77; }
  run 0 import -q "$@" --streams all -o packed.json && run 0 convert -q packed.json --form plain -o trace.json &&
    python3 "$here/import_streams.py" span "$name" trace.json && grep -q '"stream": *1' trace.json &&
    run 0 solve -q packed.json --budget 100% --limit 500 --proof -o plan.json && run 0 check packed.json plan.json &&
    run 0 prove packed.json plan.json
}

claim "no wait and no use of a step on several streams is lost, and no time" made
claim "no wait is lost where events of synchronization tell them, on streams and on the host" made all
claim "from such events follow all waits that were made, and no others" made exact
claim "a reader of its own finds the same ops, streams, waits and collectives" read_twice
claim "a plan is found in all that such a step needs, and a refusal asks for more than was given" enough
claim "a recorded step of data parallel ranks is taken with its collectives" \
  recorded "$traces/kineto/hta_ddp2_v100_step3.kineto.json.gz" "$traces/kineto/hta_ddp2_v100_step3.kineto.json.gz"
claim "an execution trace gives tensors to ops of all streams" \
  recorded "$traces/et_kineto/dlrm_8gpu_rank0.kineto.json.gz" "$traces"/et_kineto/dlrm_8gpu_rank0.{et,kineto}.json.gz
finish
