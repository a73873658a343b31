#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Hosts and ranks: host files are read and refused, a second simulator of ranks agrees to the nanosecond
# (FERRY_CASES says on how many), and plans for a host are no slower there than those for one card.
. "$(dirname "$0")/rules/common.bash"
scratch
command -v python3 >/dev/null || { echo "python3 is missing"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
"$ferry" zoo -q vgg16 --batch 64 --width-divisor 4 --image 64 --classes 10 -d v100 -o net.json || exit 1

# Four v100 behind one link that carries what one of them could.
host() { # EDIT: a line of Python that changes h
  python3 - "$1" <<'END'
import json, sys
rate = { "d2h_bytes_per_s": 13 * 10**9, "h2d_bytes_per_s": 13 * 10**9 }
h = { "format": "ferry-host/1", "name": "four", "device": "v100", "cards": 4, "host_bytes": 2**36, "pinned_bytes": 2**35,
      "groups": [ { "name": "switch", "kind": "switch", "cards": [0, 1, 2, 3], **rate, "both": { k: v // 2 for k, v in rate.items () } } ] }
exec (sys.argv[1])
json.dump (h, open ("h.json", "w"))
END
}

second() {
  "$builddir/tests/test_ranks" 1 "${FERRY_CASES:-300}" | python3 "$srcdir/tests/second/ranks.py" >said || { cat said; return 1; }
}
planted() { # a simulator that is wrong is found out
  "$builddir/tests/test_ranks" 1 40 | sed 's/"step_ns":\[/&1/' | python3 "$srcdir/tests/second/ranks.py" >/dev/null && return 1
  return 0
}
listed() {
  "$ferry" hosts >names && [ "$(wc -l <names)" = "$(ls "$srcdir"/data/hosts/*.json | wc -l)" ] && grep -qx hgx-h100 names &&
    "$ferry" hosts -v | grep -q 'cpu 0 .*180 GB/s.*136 GB/s; cards 0,1,2,3' && "$ferry" hosts --json | python3 -m json.tool >/dev/null
}
refused() {
  local line edit text
  while IFS='|' read -r edit text; do
    host "$edit"
    "$ferry" solve net.json --host ./h.json -q >out 2>said && { echo "taken: $edit"; continue; }
    [ "$(wc -l <said)" = 1 ] && grep -qF -- "$text" said || { echo "$edit"; cat said; }
  done <<'END'
h["format"] = "ferry-host/2"|/format: `ferry-host/2` is not a host that this version reads
del h["format"]|`format` is missing
del h["device"]|`device` is missing
h["device"] = "v1000"|there is no device `v1000`
h["cards"] = 0|/cards: 0 is not between 1 and 64
h["cards"] = 3|/groups/0/cards/3: 3 is not between 0 and 2
h["pinned_bytes"] = 2**37|/pinned_bytes:
h["groups"][0]["cards"] = []|/groups/0/cards: a group needs a card
h["groups"][0]["cards"] = [1, 1]|/groups/0/cards/1: card 1 is named twice
h["groups"][0]["kind"] = "bus"|/groups/0/kind: `bus` is not one of
h["groups"][0]["both"]["h2d_bytes_per_s"] = 14 * 10**9|/groups/0/both/h2d_bytes_per_s:
del h["groups"][0]["d2h_bytes_per_s"]|`d2h_bytes_per_s` is missing
h["groups"][0]["network"] = { "d2h_bytes_per_s": 7 * 10**9 }|/groups/0/network/d2h_bytes_per_s:
h["groups"][0]["network"] = 7|/groups/0/network
h["groups"] = h["groups"] * 65|65 groups are more than 64
h["link"] = { "d2h_bytes_per_s": 1 }|/link
END
}
says() { # TEXT COMMAND...: fails with one line that has it
  local text=$1
  shift
  "$@" >out 2>said && return 1
  [ "$(wc -l <said)" = 1 ] && grep -qF -- "$text" said || { cat said; return 1; }
}
options() {
  host ''
  says 'give --host NAME' "$ferry" solve net.json --ranks 2 -q && says 'four has 4 cards' "$ferry" solve net.json --host ./h.json --ranks 5 -q &&
    says 'did you mean `hgx-h100`?' "$ferry" solve net.json --host hgx-h10 -q && says '--server is not for ranks' "$ferry" solve net.json --host ./h.json --server x -q &&
    says '--turns and --noise are for one card' "$ferry" simulate net.json net.json --host ./h.json --turns
}
figure() { python3 -c 'import json, sys; d = json.load (open (sys.argv[1])); print (eval (sys.argv[2]))' "$1" "$2"; }

planned() {
  host ''
  "$ferry" solve -q net.json -b 60% --swap-only --effort quick -o one.json >/dev/null && "$ferry" simulate net.json one.json --host ./h.json --ranks 4 --json >one.ranks &&
    "$ferry" solve -q net.json -b 60% --swap-only --host ./h.json --ranks 4 -o all.json --json >all || return 1
  local alone taken bound again
  alone=$(figure one.ranks 'd["step_ns"]') taken=$(figure all 'd["step_ns"]') bound=$(figure all 'd["lower_bound_ns"]')
  [ "$alone" = "$(figure all 'd["ways"][0]["step_ns"]')" ] || { echo "the plan for one card: $alone by simulate"; return 1; }
  [ "$taken" -lt "$alone" ] && [ "$bound" -le "$taken" ] || { echo "bound $bound, taken $taken, alone $alone"; return 1; }
  if [ -e all.1.json ]; then "$ferry" simulate net.json all.json net.json all.1.json --host ./h.json --ranks 4 --json; else "$ferry" simulate net.json all.json --host ./h.json --ranks 4 --json; fi >again
  again=$(figure again 'd["step_ns"]')
  [ "$again" = "$taken" ] || { echo "solve says $taken, simulate of its plans $again"; return 1; }
  "$ferry" check net.json all.json >/dev/null
}
stages() { # different traces of one job: a plan each, which simulate times as solve did, and replay executes
  host ''
  "$ferry" zoo -q alexnet --batch 256 --width-divisor 2 --image 64 --classes 10 -d v100 -o alex.json &&
    "$ferry" solve -q net.json alex.json -b 60% --swap-only --effort quick --host ./h.json -o s.json --json >stages || return 1
  [ "$(figure stages '(d["ranks"], d["step_ns"] < d["ways"][0]["step_ns"], d["lower_bound_ns"] <= d["step_ns"])')" = "(2, True, True)" ] || { cat stages; return 1; }
  "$ferry" simulate net.json s.json alex.json s.1.json --host ./h.json --json >again && [ "$(figure again 'd["step_ns"]')" = "$(figure stages 'd["step_ns"]')" ] &&
    "$ferry" check net.json s.json >/dev/null && "$ferry" check alex.json s.1.json >/dev/null &&
    "$ferry" replay net.json s.json alex.json s.1.json --host ./h.json --verify | grep -q 'every byte was where it should be' &&
    "$ferry" solve net.json alex.json -b 60% --swap-only --effort quick --host ./h.json --ranks 4 | grep -q '; rank 1, alex.json' || return 1
  says 'give --host NAME' "$ferry" solve net.json alex.json -b 60% -q && says '2 traces need as many ranks, not 1' "$ferry" solve net.json alex.json -b 60% -q --host ./h.json --ranks 1 &&
    says 'decides for one TRACE' "$ferry" solve net.json alex.json -b 60% -q --policy lru &&
    says '(rank 0 of 2 may pin ' "$ferry" solve net.json alex.json -b 60MiB --swap-only --effort quick -q --host ./h.json
}
worth() { # what memory is worth to stages: each point is what solve says, more is never slower, and the least is between
  host ''
  "$ferry" curve -q net.json alex.json -b 60%,80%,100% --swap-only --host ./h.json --json >curve &&
    "$ferry" min-memory -q net.json alex.json --swap-only --host ./h.json --slowdown 20% --json >least && "$ferry" solve -q net.json alex.json -b 60% --swap-only --effort quick --host ./h.json -o s.json --json >stages &&
    python3 - <<'END' || return 1
import json
curve, least, one = (json.load (open (n)) for n in ("curve", "least", "stages"))
points = curve["points"]
assert points[0]["step_ns"] == one["step_ns"] and max (points[0]["budget_bytes"]) == one["budget_bytes"], (points[0], one["step_ns"])
assert all (a["step_ns"] >= b["step_ns"] >= b["lower_bound_ns"] for a, b in zip (points, points[1:])), points
assert points[2]["step_ns"] == curve["baseline_ns"] and points[2]["budget_bytes"] == curve["needs_bytes"]
plan, most = least["plan"], least["step_most_ns"]
assert plan["step_ns"] <= most == least["baseline_ns"] * 6 // 5 and 0 < least["share_ppm"] - least["share_none_ppm"] <= 10000
for need, bytes in zip (least["needs_bytes"], plan["budget_bytes"]):
  assert 0 <= bytes - need * least["share_ppm"] // 10**6 <= 2 << 20
assert points[0]["step_ns"] > most or least["share_ppm"] <= 600000
END
  says 'give --host NAME' "$ferry" curve -q net.json alex.json && says '--output is for one trace' "$ferry" min-memory -q net.json alex.json --host ./h.json -o x.json
}
drawn() { # what the load of the shared link adds up to is what crosses it; two plans in turn, so that ranks differ
  "$ferry" solve -q net.json -b 70% --swap-only --effort quick -o two.json >/dev/null && host '' &&
    "$ferry" simulate net.json one.json net.json two.json --host ./h.json --ranks 4 --json --svg r.svg --html r.html --tsv r.tsv >sums &&
    python3 -c 'import xml.dom.minidom as m; m.parse ("r.svg")' && python3 - <<'END'
import json
tables = {}
for line in open ("r.tsv").read ().splitlines ():
  if line.startswith ("# "):
    rows = tables[line[2:].split (":")[0]] = []
  elif line:
    rows.append (line.split ("\t"))
sums = json.load (open ("sums"))
period, ranks = sums["step_ns"], sums["ranks"]
load = [[int (x) for x in r] for r in tables["load0"][1:]]
ends = [r[0] for r in load[1:]] + [period]
assert max (r[1] for r in load) <= 13 * 10**9 >= max (r[2] for r in load)
for way, key in (1, "d2h_bytes"), (2, "h2d_bytes"):
  carried = sum (r[way] * (end - r[0]) for r, end in zip (load, ends)) / 1e9
  bytes_ = sum (r[key] for r in ranks)
  assert 0 < bytes_ <= carried <= bytes_ * 1.0001, (key, bytes_, carried)
lanes = {}
for r in tables["lanes"][1:]:
  lanes.setdefault (r[0], []).append ((int (r[3]), int (r[4])))
assert set (lanes) == {f"{r} {x}" for r in range (4) for x in ("compute", "copy out", "copy in")}, set (lanes)
for name, rows in lanes.items ():
  assert all (0 <= a < b <= period for a, b in rows) and all (x[1] <= y[0] for x, y in zip (rows, rows[1:])), name
END
}
networked() { # a network card on the link leaves the cards as much as a narrower link
  host 'g = h["groups"][0]; g["network"] = { "d2h_bytes_per_s": 10**9, "h2d_bytes_per_s": 2 * 10**9 }'
  "$ferry" solve -q net.json -b 60% --swap-only --effort quick --host ./h.json --json >taken && "$ferry" simulate net.json one.json --host ./h.json --json >taken.one || return 1
  host 'g = h["groups"][0]; less = { "d2h_bytes_per_s": 10**9, "h2d_bytes_per_s": 2 * 10**9 }
for r in (g, g["both"]): r.update ({ k: r[k] - less[k] for k in less })'
  "$ferry" solve -q net.json -b 60% --swap-only --effort quick --host ./h.json --json >narrow && cmp taken narrow &&
    "$ferry" simulate net.json one.json --host ./h.json --json >narrow.one && cmp taken.one narrow.one || return 1
  host ''
  "$ferry" simulate net.json one.json --host ./h.json --json >free.one && [ "$(figure free.one 'd["step_ns"]')" -lt "$(figure taken.one 'd["step_ns"]')" ]
}
one_rank() { # alone on its host, a rank is a job alone
  host 'h["groups"] = []'
  "$ferry" solve -q net.json -b 60% --effort quick -o one.json --json >one && "$ferry" solve -q net.json -b 60% --effort quick --host ./h.json --ranks 1 -o rank.json --json >rank &&
    [ "$(figure one 'd["predicted"]["step_ns"]')" = "$(figure rank 'd["step_ns"]')" ]
}
pinned() { # plans of other hosts are held to what this one lets be pinned
  host ''
  "$ferry" solve -q net.json -b 60% --swap-only --effort quick -o one.json >/dev/null && host 'h["pinned_bytes"] = 2**20' &&
    says '4 ranks pin ' "$ferry" simulate net.json one.json --host ./h.json &&
    says 'each of 4 ranks may pin 256 KiB, of 1.00 MiB on four' "$ferry" solve -q net.json -b 60% --swap-only --effort quick --host ./h.json
}
whole_host() { # what is planned for one rank has the rates that are left
  host ''
  "$ferry" curve -q net.json -b 60% --swap-only --host ./h.json --ranks 4 --json >shared && "$ferry" curve -q net.json -b 60% --swap-only --json >alone &&
    [ "$(figure shared 'd["points"][0]["predicted"]["step_ns"]')" -gt "$(figure alone 'd["points"][0]["predicted"]["step_ns"]')" ] &&
    "$ferry" min-memory -q net.json --swap-only --host ./h.json >/dev/null &&
    "$ferry" max-batch -q alexnet --image 64 --width-divisor 4 --classes 100 -b 64MiB --most 256 --limit 100 --host ./h.json --json >most && [ "$(figure most 'd["device"]')" = "$(figure net.json "d[\"source\"][\"made_for\"]")" ]
}

carried() { # a trace of another card has the times of the host's, and says so
  host 'h["groups"] = []; h["device"] = "h100-sxm"; h.pop("link", None)'
  "$ferry" zoo -q alexnet --batch 4 --image 64 --width-divisor 4 --classes 10 --device v100 -o old.json && "$ferry" zoo -q alexnet --batch 4 --image 64 --width-divisor 4 --classes 10 --device h100-sxm -o new.json &&
    "$ferry" whatif old.json -b 80% --host ./h.json --ranks 1,2 --limit 1 --json >old 2>notes && "$ferry" whatif -q new.json -b 80% --host ./h.json --ranks 1,2 --limit 1 --json >new || return 1
  grep -q 'h100-sxm: built again as alexnet' notes && [ "$(figure old '(d["baseline_ns"], d["rows"], d["device"])')" = "$(figure new '(d["baseline_ns"], d["rows"], d["device"])')" ] &&
    "$ferry" whatif -q new.json -b 80% --host ./h.json --ranks 1 --limit 1 --scale 200% --json >twice && [ "$(figure twice 'd["baseline_ns"]')" -gt "$(figure new 'd["baseline_ns"] * 3 // 2')" ] &&
    "$ferry" solve old.json -b 80% --host ./h.json --ranks 2 --limit 1 2>notes >/dev/null && grep -q 'the times are those of a v100, planned on h100-sxm' notes
}
replayed() { # plans of ranks, run at once on devices behind one link
  host ''
  "$ferry" solve -q net.json -b 60% --swap-only --host ./h.json --ranks 4 -o all.json >/dev/null && "$ferry" solve -q net.json -b 70% --swap-only --effort quick -o other.json >/dev/null &&
    "$ferry" replay net.json all.json net.json other.json --host ./h.json --ranks 4 --races --json >seen || return 1
  [ "$(figure seen '{ r["seen"]["step_ns"] - r["predicted"]["step_ns"] for r in d["ranks"] }')" = "{0}" ] && [ "$(figure seen 'len (d["ranks"])')" = 4 ] &&
    [ "$(figure seen 'd["ranks"][0]["seen"]["step_ns"]')" = "$("$ferry" simulate net.json all.json net.json other.json --host ./h.json --ranks 4 --json | python3 -c 'import json, sys; print (json.load (sys.stdin)["step_ns"])')" ] &&
    "$ferry" replay net.json all.json --host ./h.json --verify | grep -q 'every byte was where it should be' &&
    says 'give --host NAME' "$ferry" replay net.json all.json net.json all.json && says '--compute real is for one card' "$ferry" replay net.json all.json --host ./h.json --compute real
}

measured() { # the file of an emulated host's links plans as the host's own
  host ''
  "$ferry" link --all --host ./h.json -o seen.json >table && grep -q '^  host .*cards 0,1,2,3' table && "$ferry" solve -q net.json -b 60% --swap-only --effort quick --host ./seen.json -o all.json --json >all || return 1
  [ "$(figure seen.json '[g["cards"] for g in d["groups"]]')" = "[[0, 1, 2, 3]]" ] &&
    [ "$(figure seen.json 'all (abs (d["groups"][0]["both"][k] / 6.5e9 - 1) < 0.01 and abs (d["groups"][0][k] / 13e9 - 1) < 0.01 for k in d["groups"][0]["both"])')" = True ] &&
    says '--host goes with --all' "$ferry" link --host ./h.json
}

claim "a second simulator of ranks agrees to the nanosecond" second
claim "it sees a figure that is wrong" planted
claim "hosts are listed" listed
claim "wrong host files are refused with their place" refused
claim "options that do not fit are refused" options
claim "a host's plan is faster there than the plan for one card, and simulated alike" planned
claim "different traces of one job are planned together, a plan each" stages
claim "curve and min-memory answer for different traces of one job" worth
claim "a picture of ranks has the load of their link" drawn
claim "ranks are replayed as they were predicted" replayed
claim "links that cards share are measured, and planned with" measured
claim "what a network card takes of a link is not the cards'" networked
claim "one rank alone is a job alone" one_rank
claim "what ranks pin is held against the host" pinned
claim "what if ranks: a trace of another card is carried over to the host's" carried
claim "curves for ranks have the rates that are left" whole_host
finish
