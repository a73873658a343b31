#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Ranks that train together, from the zoo: each trace has the collectives that its shards need, and its plans are legal,
# proved, and timed on a host with those of the other ranks.
. "$(dirname "$0")/rules/common.bash"
scratch
command -v python3 >/dev/null || { echo "python3 is missing"; exit 77; }

net="gpt2 --batch 2 --seq 128 --depth-divisor 4 --width-divisor 2 --classes 4000 --dtype bf16 --optimizer adam -d a100-40"
"$ferry" zoo -q $net -o one.json || exit 1
for shard in none state all; do
  "$ferry" zoo -q $net --data-parallel 8 --shard $shard --fabric 200GB/s -o $shard.json || exit 1
done

counts() { # bytes and collectives, counted from the traces alone
  python3 - <<'END'
import json
one = json.load (open ("one.json"))
def total (t, *kinds):
  return sum (x["bytes"] for x in t["tensors"] if x.get ("kind") in kinds)
weights = total (one, "parameter")
def sums (t, kind):
  return sum (o["group_bytes"] for o in t["ops"] if o.get ("collective") == kind)
none, state, all_ = (json.load (open (n + ".json")) for n in ("none", "state", "all"))
assert sums (none, "all_reduce") == weights and total (none, "optimizer") == total (one, "optimizer")
assert sums (state, "reduce_scatter") == weights == sums (state, "all_gather") and sums (state, "all_reduce") == 0
assert abs (8 * total (state, "optimizer") - total (one, "optimizer")) < 8 * len (one["tensors"])
assert sums (all_, "reduce_scatter") == weights and weights < sums (all_, "all_gather") <= 2.5 * weights
assert abs (8 * total (all_, "parameter") - weights) < 8 * len (one["tensors"])
for t in none, state, all_:
  rows = [o for o in t["ops"] if o.get ("collective")]
  assert rows and all (o["stream"] == 1 and o["group"] == "data" for o in rows)
  for o in rows: # a ring of eight at 200 GB/s; a sum that all get goes round twice
    moved = o["group_bytes"] * 7 // 8 * (2 if o["collective"] == "all_reduce" else 1)
    assert 0 <= o["ns"] - moved // 200 < 20000, o
END
}
planned() {
  local shard
  for shard in none state all; do
    "$ferry" solve -q $shard.json -d a100-40 --budget 55% --limit 3000 --proof -o $shard.plan.json >said &&
      "$ferry" check $shard.json $shard.plan.json >>said && "$ferry" prove $shard.json $shard.plan.json >>said || { cat said; return 1; }
  done
}
together() { # equal ranks meet at once: a host whose links are not shared changes nothing
  "$ferry" simulate none.json none.plan.json --json >alone.json &&
    python3 - <<'END' &&
import json
p = json.load (open ("none.plan.json"))
json.dump ({ "format": "ferry-host/1", "name": "wide", "device": "a100-40", "cards": 8, "host_bytes": 2**42, "pinned_bytes": 2**41,
             "link": p["device"]["link"], "groups": [] }, open ("wide.json", "w"))
END
    "$ferry" simulate none.json none.plan.json --host ./wide.json --ranks 8 --json >eight.json &&
    python3 -c 'import json; a, b = (json.load (open (n)) for n in ("alone.json", "eight.json")); b = b.get ("ranks", [b])[0]; assert a["step_ns"] == b["step_ns"], (a, b)'
}
replayed() { # ranks meet in their collectives, on devices of their own; every byte stays right, and nothing is in no order
  "$ferry" replay none.json none.plan.json --host ./wide.json --ranks 4 --json --chrome ranks.json >four.json &&
    python3 - <<'END' && "$ferry" replay none.json none.plan.json --host ./wide.json --ranks 2 --verify --races -q >out &&
import json
r = json.load (open ("four.json"))["ranks"]
assert len (r) == 4 and all (one["exact"] and one["predicted"]["step_ns"] == one["seen"]["step_ns"] and one["largest_start_difference_ns"] == 0 for one in r), r
lanes = [e["args"]["name"] for e in json.load (open ("ranks.json"))["traceEvents"] if e["name"] == "thread_name"]
assert len (lanes) == 16 and "rank 3: compute, stream 1" in lanes, lanes
END
    "$ferry" replay none.json none.plan.json --races -q >out
}
crossed() { # each of two ranks comes first to what the other comes to last: on two streams both may happen, in one list neither
  local one='{"ns": 1000, "collective": "all_reduce", "group": "one", "group_bytes": 8}' two='{"ns": 1000, "stream": 1, "collective": "all_reduce", "group": "two", "group_bytes": 8}'
  printf '{"format": "ferry-trace/1", "tensors": [], "ops": [%s, %s]}' "$one" "$two" >a.json
  printf '{"format": "ferry-trace/1", "tensors": [], "ops": [%s, %s]}' "$two" "$one" >b.json
  for t in a b; do "$ferry" solve -q $t.json -d a100-40 -o $t.plan.json >out || return 1; done
  "$ferry" simulate -q a.json a.plan.json b.json b.plan.json --host ./wide.json --ranks 2 >out || return 1
  "$ferry" replay a.json a.plan.json b.json b.plan.json --host ./wide.json --ranks 2 >out 2>said
  [ $? = 2 ] && [ "$(wc -l <said)" = 1 ] && grep -q 'comes to its collective at op 0 before others of its group do' said
}
drawn() { # a lane for each stream, between compute and the copies
  "$ferry" plot none.json none.plan.json --svg lanes.svg -q && grep -q 'stream 1' lanes.svg && grep -q 'copy out' lanes.svg &&
    "$ferry" plot none.json none.plan.json --html page.html -q && grep -q '"stall_ns"' page.html
}
asked() { # the questions of a budget's worth: a bound below each plan, and more memory never slower
  "$ferry" curve -q none.json -d a100-40 --points 3 --limit 500 --swap-only --json >curve.json &&
    "$ferry" min-memory -q none.json -d a100-40 --limit 500 --swap-only --slowdown 5% --json >least.json &&
    "$ferry" curve -q none.json -d a100-40 --points 3 --limit 500 --json >drops.json &&
    "$ferry" compare none.json -d a100-40 --budget 60% --limit 500 --json >rows.json 2>said && grep -q 'policies are left out' said &&
    python3 - <<'END'
import json
for name in "curve", "drops":
  points = [p for p in json.load (open (name + ".json"))["points"] if p["predicted"]]
  steps = [p["predicted"]["step_ns"] for p in points]
  assert len (steps) == 3 and steps == sorted (steps, reverse = True) and steps[0] > steps[2], steps
  assert all (0 < p["lower_bound_ns"] <= p["predicted"]["step_ns"] for p in points), points
least = json.load (open ("least.json"))
assert least["none_below_bytes"] < least["plan_bytes"] <= least["needs_bytes"], least
assert least["predicted"]["step_ns"] <= least["most_ns"], least
rows = json.load (open ("rows.json"))["rows"]
assert [r["label"] for r in rows] == ["ferry", "ferry-recompute"] and all (r["fits"] for r in rows), rows
END
}
refused() {
  says() { "$ferry" "$@" >out 2>said; [ $? = 2 ] && [ "$(wc -l <said)" = 1 ]; }
  says zoo $net --data-parallel 8 && grep -q 'give --fabric RATE' said && says zoo $net --shard all && grep -q 'give --data-parallel N' said &&
    says compare none.json -d a100-40 --policies lru && grep -q 'this one has 2: `ferry solve` plans it' said &&
    says solve none.json -d a100-40 --sections 2 && grep -q 'ops of 2 streams are not cut' said &&
    says curve none.json -d a100-40 --order any && grep -q 'ops of 2 streams keep their order' said &&
    says export none.json none.plan.json --chrome chrome.json && grep -q 'takes traces of one stream' said
}
raced() { # ops of two streams use one tensor in no order: more memory is of no use
  printf '%s' '{"format": "ferry-trace/1", "tensors": [{"bytes": 1048576}], "ops": [{"ns": 1000, "writes": [0]},' \
    '{"ns": 1000, "stream": 1, "reads": [0]}]}' >race.json
  "$ferry" solve race.json -d a100-40 >out 2>said
  [ $? = 3 ] && grep -q 'no plan of this trace can be legal, by rule race: ops 0 and 1, on streams 0 and 1' said
}

claim "a rank's step has the collectives and the shards of its kind" counts
claim "its plans are legal and proved" planned
claim "eight equal ranks take as long as one where nothing is shared" together
claim "ranks are replayed with their collectives as predicted, and every byte is right" replayed
claim "collectives that lists have in crossed orders are not replayed" crossed
claim "each stream has a lane" drawn
claim "curves, the least memory and comparisons are answered" asked
claim "what cannot be is refused" refused
claim "a trace with a race is refused, and no budget named" raced
finish
