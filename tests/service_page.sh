#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The page of `ferry serve` in a headless Chromium. FERRY_NODE_MODULES is a node_modules folder with
# playwright-core; without it, or without Chromium, this is skipped.
chromium=$(command -v chromium || command -v chromium-browser) || { echo "Chromium is not here"; exit 77; }
command -v python3 >/dev/null || { echo "python3 is not here"; exit 77; }
command -v node >/dev/null || { echo "node is not here"; exit 77; }
[ -d "${FERRY_NODE_MODULES:-}/playwright-core" ] || { echo "FERRY_NODE_MODULES has no playwright-core"; exit 77; }
work=$(mktemp -d)
trap 'kill $server 2>/dev/null; wait $server 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
"$builddir/ferry" zoo -q alexnet --batch 64 --image 64 --width-divisor 2 --classes 100 --device v100 -o a.json || exit 1
"$builddir/ferry" zoo -q alexnet --batch 6400 --device v100 -o large.json || exit 1
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$srcdir/tests/second python3 - <<'END' || exit 1
import made
net = made.Net (3)
et, ids = made.et (net)
open ("run.et.json", "w").write (et)
open ("run.kineto.json", "w").write (made.kineto (net, 3, record_ids=ids, memory=False))
END
python3 - <<'END' && "$builddir/ferry" solve -q many.json -d v100 --swap-only --limit 1 --html many.html >/dev/null || exit 1
import json
n = 50000
tensors = [{"name": f"a{i}", "bytes": (1 + i % 7) << 14, "kind": "activation"} for i in range (n)]
ops = [{"name": f"f{i}", "ns": 1000 + i % 13 * 100, "phase": "forward", "reads": [i - 1] if i else [], "writes": [i]} for i in range (n)]
ops += [{"name": f"b{i}", "ns": 1500 + i % 11 * 100, "phase": "backward", "reads": [i], "writes": []} for i in range (n - 1, -1, -1)]
json.dump ({"format": "ferry-trace/1", "name": "many", "tensors": tensors, "ops": ops}, open ("many.json", "w"))
END
"$builddir/ferry" serve --state state --listen 127.0.0.1:0 --workers 2 -q >address &
server=$!
for _ in $(seq 100); do [ -s address ] && break; sleep 0.1; done
CHROMIUM=$chromium node "$srcdir/tests/service/page.mjs" "$(awk '{ print $NF }' address)" "$work/a.json" "$(cd "$FERRY_NODE_MODULES" && pwd)" "$work/large.json" "$work/many.html" "$work/run.et.json" "$work/run.kineto.json"
