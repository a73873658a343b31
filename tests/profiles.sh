#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Profiles as people have them: whose card they are of, planning them for another one, steps that
# nobody marked, two files of one run, and what commands say when they are given them raw.
. "$(dirname "$0")/rules/common.bash"
scratch
command -v python3 >/dev/null || { echo "python3 is not here"; exit 77; }

says() { grep -qE -- "$1" out || { echo "not said: $1"; cat out; return 1; }; }
complains() { grep -qE -- "$1" err || { echo "not said: $1"; cat err; return 1; }; }
silent() { ! grep -qE -- "$1" err || { echo "said: $1"; cat err; return 1; }; }

# Kineto files: STEPS steps of LAYERS equal layers, forward and backward, of 16 MiB each; a tail that
# is no step; marked or not.
cat >make.py <<'END'
import json, sys
path, steps, layers, marked, tail = sys.argv[1], int (sys.argv[2]), int (sys.argv[3]), sys.argv[4] == "marked", int (sys.argv[5])
events, now, number = [], 1000, 0
def run (name, kernel, thread, sequence, back, allocates=None, frees=None):
    global now, number
    number += 1
    args = {"External id": number, "Sequence number": sequence, "Fwd thread id": 1 if back else 0}
    events.append ({"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": thread, "ts": now, "dur": 8, "args": args})
    events.append ({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": thread, "ts": now + 2, "dur": 2, "args": {"correlation": number}})
    events.append ({"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": now + 4, "dur": 9, "args": {"correlation": number, "device": 0, "stream": 7}})
    for address, size in ([allocates] if allocates else []) + ([frees] if frees else []):
        events.append ({"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": thread, "ts": now + 1 if size > 0 else now + 7,
                        "args": {"Addr": address, "Bytes": size, "Device Type": 1, "Device Id": 0, "Total Allocated": 0, "Total Reserved": 0}})
    now += 10
for step in range (steps):
    start = now
    for i in range (layers):
        run ("aten::layer", "layer_kernel", 1, step * layers + i, False, (1 << 30 + i, 1 << 24))
    run ("aten::loss", "loss_kernel", 1, -1, False)
    for i in reversed (range (layers)):
        run ("autograd::engine::evaluate_function: LayerBackward", "layer_back_kernel", 2, step * layers + i, True, None, (1 << 30 + i, -(1 << 24)))
    if marked:
        events.append ({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": start, "dur": now - start - 1, "args": {}})
for i in range (tail):
    run (f"aten::other{i}", f"other_kernel{i}", 1, -1, False)
total = 0
for e in sorted ((e for e in events if e["name"] == "[memory]"), key=lambda e: e["ts"]):
    total += e["args"]["Bytes"]
    e["args"]["Total Allocated"] = total + (1 << 24)
json.dump ({"deviceProperties": [{"id": 0, "name": "Tesla V100-SXM2-32GB", "totalGlobalMem": 34089730048}], "traceEvents": events}, open (path, "w"))
END
python3 make.py marked.json 3 6 marked 0 && python3 make.py plain.json 4 6 plain 3 && python3 make.py once.json 1 6 plain 0 || exit 1

card() { # it is kept, its device file is used, and another one is told of
  run 0 import marked.json -o t.json && says '^card +Tesla V100-SXM2-32GB' && run 0 convert t.json -o plainer.json && grep -q '"device": "Tesla V100-SXM2-32GB"' plainer.json &&
    run 0 info t.json --json && says '"device": ?"v100-32"' && run 0 solve t.json -b 128MiB && silent 'the times are those' || return 1
  local how
  for how in "solve t.json -d a100-40 -b 128MiB" "solve t.json -d a100-40 -b 128MiB --policy lru" "curve t.json -d a100-40 --points 2 --limit 10" "min-memory t.json -d a100-40 --limit 10" \
    "compare t.json -d a100-40 -b 100% --policies lru" "pack t.json -d a100-40 --points 3 --limit 10"; do
    run 0 $how && complains 'the times are those of a Tesla V100-SXM2-32GB, planned on a100-40 as they are' || { echo "$how"; return 1; }
  done
  sed 's/Tesla V100-SXM2-32GB/Unheard Of/' plainer.json >unheard.json && run 2 solve unheard.json && complains 'of a Unheard Of, for which ferry has no device file' &&
    run 0 whatif t.json -d a100-40 -b 100% && complains 'times of v100-32 scaled by its roofline and that of a100-40; 13 ops do not say what they calculate'
}
scaled() { # all times by a share, and the trace says so
  run 0 convert t.json -d a100-40 --scale 50% -o half.json --json && says '"digest": ?"sha256:' && run 0 solve half.json -b 100% --json && silent 'the times are those' &&
    complains 'times of 13 ops scaled from Tesla V100-SXM2-32GB' || return 1
  sed 's/"confidence": "[^"]*"/"confidence": "exact"/; s/"doubt": "[^"]*"/"doubt": "gaps are unknown"/' plainer.json >gapless.json && run 0 convert gapless.json -d a100-40 --scale 50% -o x.json &&
    run 0 info x.json --json && says '"confidence": "approximate"' && says '"doubt": "gaps are unknown, times of 13 ops scaled' || return 1
  python3 - <<'END' || return 1
import json, subprocess, os
def total (path):
    o = json.load (open (path))["ops"]
    return sum (n or 0 for n in o["ns"]) if isinstance (o, dict) else sum (x["ns"] for x in o)
assert total ("half.json") * 2 == total ("plainer.json"), (total ("half.json"), total ("plainer.json"))
END
  run 0 whatif t.json -d a100-40 --scale 50% --budget 100% --json && says 'all times scaled to 50 %' && run 2 whatif t.json -d a100-40 --scale 50% --from v100 &&
    run 2 convert t.json --scale 50% -o x.json && complains 'to which card' && run 0 convert t.json -d a100-40 --scale roofline -o x.json && run 0 info x.json --json && says 'times of 13 ops scaled from Tesla V100-SXM2-32GB, 13 of them by a guess' &&
    run 2 convert t.json -d a100-40 --scale 2 -o x.json && complains 'is it' || return 1
  "$ferry" zoo -q alexnet --batch 4 -d v100 -o zoo.json && run 2 convert zoo.json -d a100-40 --scale 50% -o x.json && complains 'makes this trace again' &&
    sed 's/"kind": "zoo"/"kind": "profile"/' zoo.json >shown.json && run 0 convert shown.json -d a100-40 --scale roofline -o x.json && run 0 info x.json --json && says '"doubt": "times of [0-9]+ ops scaled from v100, 0 of them by a guess'
}
unmarked() { # offered by repetition or whole, and what was taken is said
  run 1 import plain.json && complains 'no complete iteration is marked .* the kernels repeat, repetition 4 of 13 kernels: `--marks repeat`' &&
    run 1 import once.json && complains 'its kernels do not repeat either. `--marks whole`' || return 1
  run 0 import plain.json --marks repeat -o r.json && says 'repetition 4 of 13 kernels of 4 steps' && says '^confidence +approximate: .*the step is a repetition of kernels' &&
    run 0 import marked.json -o m.json && "$ferry" info -q --json r.json >a && "$ferry" info -q --json m.json >b || return 1
  python3 - <<'END' || return 1
import json
a, b = json.load (open ("a")), json.load (open ("b"))
for k in ("ops", "peak_bytes", "compute_ns", "tensors"):
    assert a[k] == b[k], (k, a[k], b[k])
END
  run 0 import once.json --marks whole -o w.json && says 'the whole profile' && says 'the whole profile is taken for one step' && run 0 solve w.json -b 128MiB &&
    run 0 import marked.json --marks repeat && says 'ProfilerStep#2 of 3 steps'
}
raw() { # given to any command: read, or the line that makes a trace of it
  run 3 solve plain.json -b 128MiB && complains 'then: `ferry import --marks repeat plain.json -o TRACE`' && run 3 info once.json && complains 'then: `ferry import --marks whole once.json -o TRACE`' &&
    run 0 solve marked.json -b 128MiB && complains 'is a profile \(Kineto JSON\)' || return 1
  run 2 solve a.et.json b.kineto.json && complains 'two profiles of one run become a trace by `ferry import a.et.json b.kineto.json -o TRACE`' || return 1
  [ -n "${FERRY_REAL_TRACES:-}" ] || return 0
  run 3 solve "$(ls "$FERRY_REAL_TRACES"/et/*.gz)" -d v100 && complains 'Kineto file of the same run'
}
unseen() { # fits, without what the profile does not show
  python3 - <<'END'
import json
f = json.load (open ("marked.json"))
for e in f["traceEvents"]:
    for k in ("Total Allocated", "Total Reserved"): e["args"].pop (k, None)
json.dump (f, open ("above.json", "w"))
END
  run 0 import above.json -o above.t && run 0 info above.t -b 1GiB && says '^fits, without weights and optimizer state, which this profile does not show' &&
    run 0 info t.json -b 1GiB && says '^fits: it needs'
}

claim "a profile's card is kept, found among the device files, and told of where another is planned for" card
claim "times are scaled by a share or by rooflines, and the trace says so" scaled
claim "steps without marks are offered by repetition or whole" unmarked
claim "a raw profile is read by any command, or answered with the import that it needs" raw
claim "fits is qualified where what was held before is not known" unseen
finish
