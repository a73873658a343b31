#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Pictures of a real plan, read back by programs that share nothing with what drew them.
. "$(dirname "$0")/rules/common.bash"
command -v python3 >/dev/null || { echo "python3 is not here"; exit 77; }
scratch
"$ferry" zoo -q vgg16 --batch 256 -d titanx-pascal -o t &&
  "$ferry" solve -q -p greedy-largest t -o p >/dev/null &&
  "$ferry" simulate --json t p >costs &&
  "$ferry" plot t p --svg p.svg --html p.html --tsv p.tsv &&
  "$ferry" export t p --chrome p.json --steps 3 || { echo "no pictures"; exit 1; }

drawn_again() { "$ferry" plot t p --svg again.svg --html again.html && cmp p.svg again.svg && cmp p.html again.html && "$ferry" export t p --chrome again.json --steps 3 && cmp p.json again.json; }
svg() { python3 -c 'import xml.dom.minidom as m, sys; m.parse (sys.argv[1])' p.svg; }

too_long() {
  echo '{"format":"ferry-trace/1","tensors":[],"ops":[{"ns":9007199254740992}]}' >long.json &&
    "$ferry" solve -q long.json -d v100 -o long-plan.json >/dev/null &&
    "$ferry" export long.json long-plan.json --chrome long-steps.json --steps 1 && run 2 export long.json long-plan.json --chrome no.json
}

slices_apart() {
  python3 - <<'END'
import json
from decimal import Decimal
events = json.load (open ("p.json"), parse_float=Decimal)["traceEvents"]
rows = {}
for e in events:
  if e["ph"] == "X":
    rows.setdefault (e["tid"], []).append ((e["ts"], e["ts"] + e["dur"]))
assert set (rows) == {1, 2, 3}, rows.keys ()
for spans in rows.values ():
  spans.sort ()
  for a, b in zip (spans, spans[1:]):
    assert a[1] <= b[0], (a, b)
starts = {t: {s[0] for s in spans} for t, spans in rows.items ()}
ends = {(e["id"], e["ph"]): e for e in events if e["ph"] in "sf"}
arrows = [k[0] for k in ends if k[1] == "s"]
assert arrows
for i in arrows:
  s, f = ends[i, "s"], ends[i, "f"]
  assert s["tid"] == 2 and s["ts"] in starts[2], s
  assert f["tid"] == 3 and f["ts"] in starts[3], f
  assert s["ts"] < f["ts"], (s, f)
END
}

counters() { # the most that the table's layers hold together is the most of the counter, and fits
  python3 - <<'END'
import json
costs = json.load (open ("costs"))
count = [e["args"]["bytes"] for e in json.load (open ("p.json"))["traceEvents"]
         if e["ph"] == "C" and e["name"] == "device memory"]
rows = open ("p.tsv").read ().split ("\n\n")[0].split ("\n")[2:]
sums = [sum (int (x) for x in row.split ("\t")[1:]) for row in rows]
assert max (count) == max (sums), (max (count), max (sums))
assert max (count) <= costs["peak_bytes"], (max (count), costs["peak_bytes"])
END
}

stalls() { # what the lanes call a stall adds up to the simulator's
  python3 - <<'END'
import json
costs = json.load (open ("costs"))
lanes = [r.split ("\t") for r in open ("p.tsv").read ().split ("\n\n")[1].split ("\n")[2:] if r]
def total (kind): return sum (int (r[4]) - int (r[3]) for r in lanes if r[1] == kind)
assert total ("stall") == costs["stall_ns"], (total ("stall"), costs["stall_ns"])
assert total ("compute") <= costs["compute_ns"]
END
}

page() { # script has run, and the numbers of the DOM are those of --json
  local browser
  browser=$(command -v chromium || command -v chromium-browser) || { echo "no chromium: the page was not opened"; return 77; }
  timeout 300 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" \
    --dump-dom "file://$work/p.html" >dom 2>/dev/null || { echo "chromium fails"; return 1; }
  grep -q 'data-done="yes"' dom || { echo "the script did not run"; return 1; }
  python3 - <<'END'
import json, re
costs = json.load (open ("costs"))
shown = dict (re.findall (r'<dd[^>]* id="(f-[^"]*)"[^>]* title="([^"]*)"', open ("dom").read ()))
for key, names in { "f-step": ["step_ns"], "f-step-sub": ["baseline_ns"], "f-memory": ["peak_bytes"], "f-memory-sub": ["host_peak_bytes"],
                    "f-bytes": ["d2h_bytes", "h2d_bytes"] }.items ():
  assert [int (x) for x in re.findall (r"\d+", shown[key])] == [costs[n] for n in names], (key, shown[key])
END
}

timeline() { # what the page draws is the simulator's: stalls, copies, and the most that is held
  "$ferry" plot t p --timeline p.timeline && python3 - <<'END'
import json
costs, t = json.load (open ("costs")), json.load (open ("p.timeline"))
after, period = t["after"], t["after"]["period_ns"]
assert t["format"] == "ferry-timeline/1" and t["predicted"] == costs
assert sum (after["ops"]["stall_ns"]) == costs["stall_ns"]
moves = after["moves"]
outs = sum (n for n, a, b in zip (moves["bytes"], moves["out_start_ns"], moves["out_end_ns"]) if b > a)
assert (outs, sum (moves["bytes"])) == (costs["d2h_bytes"], costs["h2d_bytes"]), (outs, costs)
def most (side):
  changes = {}
  for start, end, n in zip (*(side["held"][k] for k in ("start_ns", "end_ns", "bytes"))):
    at, until = start % side["period_ns"], start % side["period_ns"] + end - start
    for a, b in ((at, min (until, side["period_ns"])), (0, max (0, until - side["period_ns"]))):
      changes[a] = changes.get (a, 0) + n * (b > a)
      changes[b] = changes.get (b, 0) - n * (b > a)
  held = peak = 0
  for at in sorted (changes):
    if at < side["period_ns"]: held += changes[at]
    peak = max (peak, held)
  return peak
assert most (after) <= costs["peak_bytes"] < most (t["before"]), (most (after), costs["peak_bytes"], most (t["before"]))
assert t["before"]["period_ns"] == costs["baseline_ns"]
END
}
solved() { # solve writes the page of its own answer
  run 0 solve t -b 60% --swap-only --limit 100 --html s.html -o s.plan && "$ferry" plot t s.plan --html again.html && cmp s.html again.html &&
    run 2 solve t --html s.html --server http://127.0.0.1:1 && grep -q -- '--html is not for --server' err
}

claim "the same plan is the same picture, by --chrome and by -o" drawn_again
claim "the SVG is well-formed" svg
claim "steps that are too long are a fault of the command line" too_long
claim "slices of a row never overlap, and arrows go from a copy out to a later copy in" slices_apart
claim "the counter's most is the table's, within the simulator's peak" counters
claim "stalls in the picture add up to the simulator's" stalls
claim "the timeline's sums are the simulator's" timeline
claim "solve writes the page that plot writes of its plan" solved
claim "the page's numbers, read from the DOM, are those of --json" page
finish
