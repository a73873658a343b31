#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# curve, min-memory, max-batch, pack and whatif from the command line: their answers agree with each
# other and with what other commands say of the same plans, and their pictures with their JSON.
set -u
command -v python3 >/dev/null || { echo "python3 is not here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
passed=0 failed=0
claim() { # 77: it cannot be tried here, and said why
  local text=$1 status=0
  shift
  "$@" || status=$?
  case $status in
    0) passed=$((passed + 1)) ;;
    77) echo "skipped: $text" ;;
    *) failed=$((failed + 1)); echo "does not hold: $text" ;;
  esac
}
says() { # status text command...: fails so, with one line that has the text
  local status=$1 text=$2
  shift 2
  "$@" >/dev/null 2>said
  [ $? = "$status" ] && [ "$(wc -l <said)" = 1 ] && grep -q -- "$text" said || { cat said; return 1; }
}

ferry=$builddir/ferry
net="alexnet --batch 64 --image 64 --width-divisor 2 --classes 100"
"$ferry" zoo -q $net -d v100 -o a.json && "$ferry" zoo -q $net -d v100 --optimizer adam -o b.json || exit 1

python3 - "$FERRY_DATADIR/devices/v100.json" <<'END' || exit 1
import json, sys
d = json.load (open (sys.argv[1]))
d["name"] = "fast"
for k in d["link"]:
  if k != "copy_ns": d["link"][k] *= 8
json.dump (d, open ("fast.json", "w"))
END

grid="a.json --device v100,a100-40 --batch x1,x2 --link 3GB/s,12GB/s --budget 75%,90% --swap-only --limit 1"
slices() {
  "$ferry" whatif -q $grid --json >whole && "$ferry" whatif -q $grid --json --jobs 2 >jobs || return 1
  for k in 1 2 3; do "$ferry" whatif -q $grid --array $k/3 -o dir || return 1; done
  [ "$(find dir -name '*.json' | wc -l)" = 3 ] && "$ferry" whatif -q --merge dir --json >merged &&
    cmp whole jobs && cmp whole merged
}
claim "two processes, and three slices merged, answer as one run does" slices
# 110 MiB have a plan of whole ops, so no command says that less than something above it has none.
floors() {
  local command how=(--swap-only --limit 1000 -d v100) key='s/.*"floor_bytes": \([0-9]*\).*/\1/p' least
  "$ferry" zoo -q alexnet --batch 32 --image 64 --width-divisor 2 -d v100 -o floor.json && "$ferry" solve -q floor.json "${how[@]}" -b 110MiB >x || return 1
  least=$("$ferry" solve floor.json "${how[@]}" -b 99MiB --json | sed -n "$key" | head -n 1)
  [ "$least" -le $((110 << 20)) ] || { echo "solve: $least"; return 1; }
  "$ferry" solve floor.json "${how[@]}" -b 99MiB 2>&1 | grep -q "in 99.0 MiB; ask for " || return 1
  for command in "curve -b 99MiB,110MiB" "whatif -q -b 99MiB" "min-memory -s 1000%"; do
    [ "$("$ferry" ${command%% *} floor.json "${how[@]}" ${command#* } --json | sed -n "$key" | sort -u)" = "$least" ] || { echo "$command names another floor than $least"; return 1; }
  done
  "$ferry" curve floor.json "${how[@]}" -b 99MiB,110MiB | grep -q "fits in 99.0 MiB; it takes at least " &&
    "$ferry" pack floor.json "${how[@]}" -b 110MiB | grep -q '^1 of 1 jobs have a place'
}
claim "nothing that fits lies below the floor that a command names" floors
# A file with a card's name and other rates is another card; one without rates leaves the times; a host that has too little is
# named, not the ops.
own_files() {
  local file whole=(whatif -q a.json --swap-only --limit 1000 -b 100% --json)
  python3 - "$FERRY_DATADIR/devices/v100.json" <<'END'
import json, sys
def card (to, **keys):
  json.dump ({**json.load (open (sys.argv[1])), **keys}, open (to, "w"))
rates = json.load (open (sys.argv[1]))["roofline"]
card ("twice.json", roofline={k: v * (1 if k in ("op_ns", "efficiency_ppm") else 2) for k, v in rates.items ()})
card ("unknown.json", name="unknown", roofline=None)
card ("host.json", host_bytes=1 << 20)
END
  for file in v100 ./twice.json unknown.json; do
    "$ferry" "${whole[@]}" -d $file | sed -n 's/.*"baseline_ns": \([0-9]*\).*/\1/p'
  done >steps
  mapfile -t steps <steps
  [ ${steps[0]} = ${steps[2]} ] && [ $((steps[1] * 3)) -lt $((steps[0] * 2)) ] || { cat steps; return 1; }
  says 3 "tells no roofline.* Give its file one" "$ferry" whatif -q a.json -d unknown.json --batch x2 || return 1
  "$ferry" whatif -q a.json -d host.json -b 60%,5% --swap-only --limit 1000 >x
  grep -q "no plan fits with the host's memory; whole ops need" x && grep -q "no plan fits; whole ops need" x || { cat x; return 1; }
}
claim "whatif carries a trace to files of one's own by what is in them" own_files
missing() { mkdir part && cp dir/slice-0001* dir/slice-0003* part && says 3 "slice 2 of 3 is missing" "$ferry" whatif --merge part; }
claim "a slice that is missing is named" missing
mixed() {
  mkdir mix && cp dir/slice-0001* dir/slice-0002* mix &&
    "$ferry" whatif -q a.json -d v100 --link 3GB/s --budget 75% --limit 1 --array 3/3 -o mix &&
    says 3 "another grid" "$ferry" whatif --merge mix
}
claim "slices of two questions are not mixed" mixed
cut_short() { # what a slice had when it was interrupted is not the answer of one run
  local slice=cut/slice-0001-of-0003.json
  cp -r dir cut && grep -q '"interrupted": false' $slice && sed -i 's/"interrupted": false/"interrupted": true/' $slice &&
    says 3 "slice-0001-of-0003.json: interrupted: ask for it again, with --array 1/3$" "$ferry" whatif --merge cut
}
claim "a slice that was interrupted is asked for again" cut_short
hosts() { # 0 bytes are none, and more than a host has is no host
  local command
  for command in "curve a.json -d v100 -b 75%" "min-memory a.json -d v100" "compare a.json -d v100 -b 75%" "max-batch alexnet -d v100" "solve a.json -d v100 -b 75%"; do
    says 2 "300 GiB of the host are asked for, but the host of v100 has" "$ferry" $command --limit 1 --host 300GiB || { echo "$command"; return 1; }
  done
  ! "$ferry" whatif -q a.json -d v100 -b 75% --swap-only --limit 1 --host 0B >x && grep -q "no plan fits with the host's memory" x || { cat x; return 1; }
}
claim "the host's memory is refused beyond what there is, and none is none" hosts
beyond() {
  "$ferry" whatif -q a.json -d v100 --budget 40GiB,75% --limit 1 >x && grep -q '^v100 has 15.3 GiB to give: larger budgets are of such a card with more memory$' x &&
    "$ferry" whatif -q a.json -d v100 --budget 75% --limit 1 >x && ! grep -q 'more memory' x || return 1
  sed 's/"memory_bytes": 16944988160/"memory_bytes": 673185792/' "$FERRY_DATADIR/devices/v100.json" >small.json
  "$ferry" curve -q a.json -d ./small.json --points 2 --limit 1 >x && grep -q '^v100 has 130 MiB to give: larger budgets' x &&
    "$ferry" min-memory -q a.json -d ./small.json --limit 1 -s 0% >x && grep -q '^v100 has 130 MiB to give: larger budgets' x || { cat x; return 1; }
}
claim "a budget that the card has not is told" beyond
claim "a link in bits is refused" says 2 "200Gb/s. may be bits; write bytes" "$ferry" whatif -q a.json -d v100 --link 200Gb/s
one_of_two() { # a budget beyond the card leaves the others; alone it is refused
  "$ferry" curve a.json -d v100 -b 900GiB,75% --limit 1000 --json >x 2>said && grep -q '^ferry: --budget: 900GiB is left out: ' said &&
    [ "$(grep -c '"budget_bytes"' x)" = 1 ] && ! "$ferry" curve -q a.json -d v100 -b 900GiB,800GiB >x 2>said && grep -q '^ferry: the budget is 800 GiB, but' said
}
claim "a budget of several that the card does not have is left out, and said" one_of_two
claim "a batch that is no number is named whole" says 2 '--batch: `x. is not' "$ferry" whatif -q a.json -d v100 --batch 1,2,x
claim "a bad link gives one message" says 2 "--link: " "$ferry" whatif -q a.json -d v100 --link fast
claim "a bad device gives one message" says 2 "there is no device" "$ferry" whatif a.json -d nosuch
claim "a bad slice gives one message" says 2 "--array: 4/3" "$ferry" whatif a.json -d v100 --array 4/3

assumed() {
  python3 - <<'END'
import json
w = json.load (open ("whole"))
assert len (w["rows"]) == 16 and len (w["assumed"]) == 4
assert w["assumed"][0] == "the trace as it is"
assert "--batch 128" in w["assumed"][1] and "roofline of a100-40" in w["assumed"][2]
rows = {(r["device"], r["batch"], r["link_bytes_per_s"], r["budget_bytes"]): r for r in w["rows"]}
for (d, b, l, m), r in rows.items ():
  assert r["answer"] == "plan" and r["lower_bound_ns"] <= r["predicted"]["step_ns"], r
  if l == 3000000000: # the same on a link four times as fast is no slower
    assert rows[d, b, 12000000000, m]["predicted"]["step_ns"] <= r["predicted"]["step_ns"] * 1.005, r
base = {(r["device"], r["batch"]): r["baseline_ns"] for r in w["rows"]}
assert base[1, 1] < base[0, 1] and 1.5 < base[0, 2] / base[0, 1] < 2.1
END
}
claim "a grid has every row, says what was assumed, and a faster link is never slower" assumed

scaled() { # the same trace as if it were measured: its ops keep their ratio to the rooflines
  python3 - <<'END' &&
import json
t = json.load (open ("a.json"))
t["source"] = { "kind": "kineto", "detail": "measured", "confidence": "exact" }
for o in t["ops"]: o["ns"] *= 3
t["ops"][0]["compute"] = None
json.dump (t, open ("m.json", "w"))
END
    "$ferry" whatif -q m.json --from v100 --device v100,a100-40 --budget 95% --limit 1 --json >m || return 1
  "$ferry" zoo -q $net -d a100-40 -o there.json && python3 - <<'END'
import json
m, t, there = json.load (open ("m")), json.load (open ("m.json")), json.load (open ("there.json"))
rest = sum (3 * o["ns"] for o in there["ops"][1:])
got = m["rows"][1]["baseline_ns"]
assert rest < got < rest + t["ops"][0]["ns"] - 4 * len (t["ops"]), (got, rest)
assert "1 ops do not say" in m["assumed"][1], m["assumed"]
END
}
claim "measured ops are scaled by the rooflines, and what says nothing is guessed and counted" scaled

collectives() { # one rank of many: said once, and the answer is that of the same ops
  python3 - <<'END' &&
import json
t = json.load (open ("a.json"))
t["ops"][-1]["name"] = "ncclDevKernel_AllReduce_Sum_f32"
json.dump (t, open ("rank.json", "w"))
END
    "$ferry" whatif rank.json -d v100 --budget 90% --limit 1 --json 2>said >rank &&
    [ "$(grep -c "1 ops are collectives" said)" = 1 ] &&
    "$ferry" whatif a.json -d v100 --budget 90% --limit 1 --json 2>said >one && ! grep -q collectives said &&
    python3 -c 'import json; a, b = (json.load (open (f))["rows"] for f in ("rank", "one")); assert a == b, (a, b)'
}
claim "a rank's collectives are named, and planned where they are" collectives

curve_agrees() {
  "$ferry" curve -q a.json --points 5 --limit 1000 --sections off --order as-is --json --svg c.svg --html c.html >c &&
    "$ferry" min-memory -q a.json -s 20% --limit 1000 --sections off --order as-is --json -o least.json >l &&
    "$ferry" check a.json least.json >/dev/null && python3 - <<'END'
import json
c, l = json.load (open ("c")), json.load (open ("l"))
assert l["predicted"]["step_ns"] <= l["most_ns"] and l["none_below_bytes"] < l["plan_bytes"]
for p in c["points"]:
  if p["predicted"] and p["predicted"]["step_ns"] <= l["most_ns"]:
    assert p["budget_bytes"] > l["none_below_bytes"], p
steps = [p["predicted"]["step_ns"] for p in c["points"] if p["predicted"]]
assert steps == sorted (steps, reverse=True) and steps[-1] == c["baseline_ns"], steps
END
}
claim "min-memory's plan is legal and agrees with the curve" curve_agrees

# a plan near its bound ends no search while it is slower than was asked for
near_is_not_enough() {
  "$ferry" zoo -q gpt2 --batch 4 --seq 128 --width-divisor 4 --depth-divisor 4 --optimizer adam -d a100-40 -o g.json || return 1
  local how="min-memory g.json -s 0% --limit 5000 --fine 8MiB --json" key='s/.*"plan_bytes": \([0-9]*\).*/\1/p' least all
  least=$("$ferry" $how --swap-only | sed -n "$key") all=$("$ferry" $how --order as-is | sed -n "$key")
  [ "$all" -le $((least + (8 << 20))) ] || { echo "swaps: $least, all: $all"; return 1; }
}
claim "min-memory names no more where more is allowed, but for how fine it looks" near_is_not_enough
small_host() {
  "$ferry" curve -q a.json --points 5 --limit 1000 --swap-only --host 16MiB --json >h && python3 - <<'END'
import json
found = [p["predicted"] for p in json.load (open ("h"))["points"]]
assert found[0] is None and found[-1], found
assert all (p["host_peak_bytes"] <= 16 << 20 for p in found if p), found
END
}
claim "a host too small for the smallest budgets leaves the others" small_host

packs() {
  "$ferry" pack -q a.json b.json -d fast.json --budget 300MiB --points 3 --limit 1000 --compare --json \
    --svg p.svg --html p.html -o plans >p || return 1
  "$ferry" check a.json plans/a.json >/dev/null && "$ferry" check b.json plans/b.json >/dev/null &&
    "$ferry" simulate a.json plans/a.json --json >sa && python3 - <<'END'
import json
p, a = json.load (open ("p")), json.load (open ("sa"))
jobs = p["jobs"]
assert p["placed"] == 2 and sum (j["budget_bytes"] for j in jobs) <= 300 << 20
assert sum (j["needs_bytes"] for j in jobs) > 300 << 20, "they fit without any plan"
assert sum (j["share"] for j in jobs) <= 1
assert jobs[0]["predicted"]["step_ns"] == a["step_ns"]
for j in jobs: assert abs (j["predicted_ns"] - j["together_ns"]) <= 0.05 * j["together_ns"], j
r = {x["name"]: x for x in p["rivals"]}
assert r["nothing moves"]["msr"] == 0 and r["ferry"]["fits"]
assert not r["even split"]["fits"] or r["ferry"]["worst"] <= r["even split"]["worst"]
END
}
claim "two jobs share a card with legal plans, as predicted, no worse than an even split" packs
refuses() {
  "$ferry" pack -q a.json b.json -d fast.json --budget 200MiB --points 3 --swap-only --limit 1000 >out
  [ $? = 1 ] && grep -q "no place: .* needs at least" out
}
claim "a job without a place is told why" refuses
events() {
  "$ferry" pack -q a.json b.json -d fast.json --budget 300MiB --points 3 --swap-only --limit 1000 --arrive b@30s \
    --leave a@90s --json >e && python3 - <<'END'
import json
e = json.load (open ("e"))["events"]
assert [(x["at_ns"], x["arrives"], x["leaves"]) for x in e] == \
  [(0, ["a"], []), (30000000000, ["b"], []), (90000000000, [], ["a"])]
first, second, third = ({c["name"]: c for c in x["changes"]} for x in e)
assert first["a"]["in_bytes"] > 0 and first["a"]["out_bytes"] == 0
assert second["a"]["budget_after_bytes"] < second["a"]["budget_before_bytes"]
assert second["b"]["waits_ns"] > first["a"]["waits_ns"], "b waits until a has given way"
assert third["a"]["budget_after_bytes"] == 0
assert third["b"]["budget_after_bytes"] > third["b"]["budget_before_bytes"]
END
}
claim "jobs that come and go change the others' plans, and wait for each other" events
claim "an event of no job is refused" says 2 "there is no job c" "$ferry" pack a.json -d v100 --leave c@3s

hosted() { # a card each behind one link: simulate agrees, nothing beats the bound, the objective's best is taken
  local goal
  python3 - <<'END' || return 1
import json
rate = {"d2h_bytes_per_s": 10**10, "h2d_bytes_per_s": 10**10}
group = {"name": "switch", "kind": "switch", "cards": [0, 1], **rate, "both": {k: v // 2 for k, v in rate.items ()}}
json.dump ({"format": "ferry-host/1", "name": "two", "device": "v100", "cards": 2, "host_bytes": 2**36, "pinned_bytes": 2**35, "groups": [group]}, open ("two.json", "w"))
END
  for goal in worst total; do
    "$ferry" pack -q a.json b.json --host ./two.json --budget 160MiB --swap-only --limit 400 --objective $goal --json -o hosted >host.$goal &&
      "$ferry" check a.json hosted/a.json >/dev/null && "$ferry" check b.json hosted/b.json >/dev/null &&
      "$ferry" simulate a.json hosted/a.json b.json hosted/b.json --host ./two.json --apart --json >apart && python3 - $goal <<'END' || return 1
import json, sys
goal = sys.argv[1]
p, s = json.load (open ("host." + goal)), json.load (open ("apart"))
steps = [j["together_ns"] for j in p["jobs"]]
assert steps == [r["step_ns"] for r in s["ranks"]] and s["step_ns"] == max (steps) > min (steps), (steps, s)
assert p["pinned_bytes"] == s["pinned_bytes"] <= p["pinnable_bytes"]
assert p[goal] == min (w[goal] for w in p["ways"]) <= p["ways"][0][goal], p["ways"]
assert p[goal + "_bound"] <= p[goal]
slow = [j["together_ns"] / j["baseline_ns"] for j in p["jobs"]]
assert abs (p["worst"] - max (slow)) < 1e-5 and abs (p["total"] - sum (slow)) < 1e-5
END
  done
}
claim "jobs with a card each on a host are planned for the links that they share, as simulate --apart says" hosted
claim "more jobs than a host's cards are refused" says 2 "3 jobs, but two has 2 cards" "$ferry" pack a.json b.json a.json --host ./two.json
claim "what is for shared cards is refused on a host" says 2 "points is for jobs that share cards" "$ferry" pack a.json --host ./two.json --points 4

batches() {
  "$ferry" max-batch -q alexnet --image 64 --width-divisor 4 --classes 100 -d v100 --budget 64MiB \
    -s 20% --limit 100 --fine 16 --json --svg m.svg --html m.html >x && python3 - <<'END'
import json
w = {x["way"]: x for x in json.load (open ("x"))["ways"]}
assert 0 < w["unswapped"]["batch"] <= w["swapped"]["batch"] <= w["sections"]["batch"], w
assert w["swapped"]["batch"] <= w["recompute"]["batch"]
for x in w.values ():
  assert x["step_ns"] <= 1.2 * x["baseline_ns"] + 1, x
  assert x["none_at"] > x["batch"] or x["batch"] == 8 * w["unswapped"]["batch"], x
assert w["unswapped"]["needs_bytes"] <= 64 << 20
END
}
most_there_is() { # a card that holds more than the largest batch that can be built
  "$ferry" max-batch -q alexnet --image 64 --width-divisor 4 -d v100 --swap-only --limit 100 --json >most && python3 - <<'END'
import json
for x in json.load (open ("most"))["ways"]: assert x["batch"] == 65536 and x["none_at"] == -1, x
END
}
grows() { # with the budget, and from there to the slowdown of the claim above
  local b
  for b in 56 64; do
    "$ferry" max-batch -q alexnet --image 64 --width-divisor 4 --classes 100 -d v100 -b ${b}MiB -s 10% --limit 100 --fine 16 \
      --json >x$b || return 1
  done
  python3 - <<'END'
import json
found = [[x["batch"] for x in json.load (open (f))["ways"]] for f in ("x56", "x64", "x")]
for less, more in zip (found, found[1:]):
  assert len (less) >= 4 and all (a <= b for a, b in zip (less, more)), found
END
}
rounded() { # batch 6 lacks 20 MiB by its granules, and yet a plan without a copy fits
  "$ferry" zoo resnet18 --batch 6 -d rtx4090 -q -o six.json && "$ferry" solve six.json -b 300MiB --swap-only --placement granules --limit 1000 -q -o six.plan >/dev/null &&
    "$ferry" check six.json six.plan | grep -q ': 0 moves' && "$ferry" max-batch resnet18 -b 300MiB -d rtx4090 -s 5% --swap-only --limit 100 -q --json >six &&
    python3 -c 'import json; w = json.load (open ("six"))["ways"][0]; assert w["batch"] == 5 and w["none_at"] == 6 and not w["none_proved"], w'
}
too_much() { # of weights and optimizer state alone
  "$ferry" max-batch alexnet -b 500MiB -d v100 --swap-only --limit 100 -q --json >much
  python3 -c 'import json; w = json.load (open ("much"))["ways"][0]; assert w["batch"] == 0 and w["none_at"] == 1 and w["none_proved"], w'
}
exact() { # what needs no plan is known to the item
  "$ferry" max-batch resnet18 -b 2GiB -d rtx4090 --swap-only --limit 100 --most 100 -q --json >exact
  python3 -c 'import json; w = json.load (open ("exact"))["ways"][0]; assert w["batch"] > 32 and w["none_at"] == w["batch"] + 1, w'
}
claim "the largest batch that needs no plan is known to the item" exact
claim "no batch is asked for that cannot be built" most_there_is
claim "the largest batch grows with what is allowed, and keeps the slowdown" batches
claim "no batch is said to be proved too large where only its granules are" rounded
claim "a batch is proved too large where its bytes are" too_much
claim "the largest batch is never less with more allowed" grows

"$ferry" compare -q a.json -b 75% --limit 1000 --policies ferry,vdnn-all,tensile,greedy-largest \
  --json --svg k.svg --html k.html >k
"$ferry" whatif -q --merge dir --svg w.svg --html w.html >/dev/null
svgs() {
  python3 - <<'END'
import json, re, xml.dom.minidom as m
def data (name): return open (name + ".svg").read ()
for name in "ckpwm": m.parse (name + ".svg")
assert 'data-kind="series"' in data ("c") and data ("c").count ("<circle class=\"f-compute\"") >= 5
assert data ("w").count ('data-kind="series"') == 4 and "3.00 GB/s" in data ("w")
assert 'class="band f-plain"' in data ("c") and ">lower bound<" in data ("c")
assert data ("k").count ("<rect class=\"f-compute\"") >= 2 and "lower bound" in data ("k")
assert data ("p").count ('data-kind="bars"') == 3 and data ("m").count ('data-kind="bars"') == 1
END
}
claim "curves, grids, comparisons and packings are drawn" svgs

pages() { # in a browser: the script has run, and the cells are the JSON's numbers
  local browser name
  browser=$(command -v chromium || command -v chromium-browser) || { echo "no chromium: the pages were not opened"; return 77; }
  for name in c k p w m; do
    timeout 300 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" \
      --dump-dom "file://$work/$name.html" >"$name.dom" 2>/dev/null || { echo "chromium fails"; return 1; }
  done
  python3 - <<'END'
import json, re
def tables (name):
  dom = open (name + ".dom").read ()
  assert dom.count ('data-ready="1"') == dom.count ("<section"), name
  return [[[int (x) if x else None for x in re.findall (r'<td[^>]*?(?:data-v="(-?\d+)")?>', row)]
           for row in re.findall (r"<tr>(.*?)</tr>", t, re.S)[1:]]
          for t in re.findall (r"<table>(.*?)</table>", dom, re.S)]
c = json.load (open ("c"))
rows = tables ("c")
for got, p in zip (rows[0], c["points"]):
  q = p["predicted"]
  assert got == [p["budget_bytes"], p["lower_bound_ns"], q["step_ns"], p["lower_bound_ns"],
                 q["step_ns"], q["step_ns"]], (got, p)
for got, p in zip (rows[1], c["points"]):
  q = p["predicted"]
  assert got == [p["budget_bytes"], q["d2h_bytes"], q["h2d_bytes"], q["host_peak_bytes"]], got
assert len (rows[0]) == len (c["points"])
w = json.load (open ("whole"))["rows"]
shown = {(t // 2, t % 2, r[0], 1 + l): r[1 + l] for t, rows in enumerate (tables ("w"))
         for r in rows for l in range (2)}
want = {(r["device"], r["batch"] - 1, r["budget_bytes"], 1 + (r["link_bytes_per_s"] > 5e9)): r["predicted"]["step_ns"]
        for r in w}
assert shown == want
p = json.load (open ("p"))
memory, slow = tables ("p")[:2]
for got, j in zip (memory, p["jobs"]):
  assert got[1:] == [j["budget_bytes"], j["needs_bytes"], j["floor_bytes"]], got
for got, j in zip (slow, p["jobs"]):
  assert got[1] == j["together_ns"] * 1000000 // j["baseline_ns"] - 1000000, got
k = json.load (open ("k"))
for got, r in zip (tables ("k")[0], k["rows"]):
  assert got[1] == (r["predicted"]["step_ns"] if r["fits"] else None), (got, r)
x = json.load (open ("x"))
assert [r[1] for r in tables ("m")[0]] == [y["batch"] for y in x["ways"]]
END
}
claim "the pages' numbers, read from the DOM, are those of --json" pages

nameless() {
  sed 's/"name": "fast", //' fast.json >quiet.json && ! grep -q '"name"' quiet.json &&
    "$ferry" whatif -q a.json -d quiet.json,./fast.json -b 80% --limit 1000 >out 2>said &&
    grep -q '^quiet  *x1 ' out && grep -q '^fast  *x1 ' out || { cat said out; return 1; }
}
claim "a device without a name is called as its file is" nameless


pins() { # as the ops stand x and y are there together; in another order, or in parts of ops, they are not
  local what=(-j 1 --limit 5000)
  python3 - <<'END' || return 1
import json
M = 1 << 20
def write (name, tensors, ops): json.dump ({"format": "ferry-trace/1", "name": name, "batch": 8, "tensors": tensors, "ops": ops}, open (name, "w"))
pinned = {"bytes": 64 * M, "pinned": True, "kind": "activation"}
write ("order.json", [pinned, pinned, {"bytes": 512}, {"bytes": 512}],
       [{"ns": 1000000, "writes": [0]}, {"ns": 1000000, "writes": [1]}, {"ns": 1000000, "reads": [0], "writes": [2]}, {"ns": 1000000, "reads": [1, 2], "writes": [3]}])
write ("parts.json", [{**pinned, "split": "batch"}, {"bytes": 4096, "kind": "activation", "split": "batch"}, {"bytes": 4096, "kind": "input", "split": "batch", "born_before": 0}],
       [{"ns": 8000000, "reads": [2], "writes": [0], "parts": 8}, {"ns": 8000000, "reads": [0], "writes": [1], "parts": 8}, {"ns": 1000000, "reads": [1]}])
END
  "$ferry" min-memory -q order.json -d v100 "${what[@]}" --order any --sections off -s 5% --json >a && "$ferry" min-memory -q parts.json -d v100 "${what[@]}" -s 5% --json >b || return 1
  python3 - <<'END'
import json
for name, most in ("a", 72 << 20), ("b", 40 << 20):
  m = json.load (open (name))
  assert m["floor_bytes"] <= most and m["none_below_bytes"] <= m["plan_bytes"] <= most, m
END
}
claim "pinned tensors rule nothing out that another order or parts of ops make fit" pins

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
