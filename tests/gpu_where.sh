#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# tests/gpu/where.py on the emulated device: all its rows, the same bytes, tensors made again, a timeline of each.
. "$(dirname "$0")/run.bash"
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
for it in first second; do
  awk -v seed=$([ $it = first ] && echo 3 || echo 4) -f "$srcdir/tests/made_step.awk" >$it.json
done
rows() {
  WHERE_SECONDS=900 LD_LIBRARY_PATH=$work/driver PYTHONDONTWRITEBYTECODE=1 python3 "$srcdir/tests/gpu/where.py" . "$ferry" "$programs" >said 2>&1 || { cat said; return 1; }
  python3 - <<'END'
import json, os
told = json.load(open("where.json"))
rows = {r["name"]: r for r in told["rows"]}
assert told["gpu"] == "emulated device" and len(rows) == 10, list(rows)
assert all(r["same"] and not r["error"] and not r["over_budget"] for r in rows.values()), rows
asis, swaps = rows["first.json 70 as it is"], rows["first.json 70 swaps alone"]
assert asis["remakes"] > 0 and swaps["remakes"] == 0 and asis["step_ns"] < swaps["step_ns"], (asis, swaps)
assert rows["first.json 70 waits for the tail"]["planned_step_ns"] >= asis["planned_step_ns"] > 0, rows
assert all(r["over_alone_ppm"] >= 990000 for r in rows.values()), rows
assert os.path.getsize("first-json-70-as-it-is.html") > 10000 and os.path.getsize("second-json-50-as-it-is.chrome.json") > 1000
END
}
slower() { # waits for the tail are another way, which costs time
  local it took=()
  awk -v seed=4 -v moves=1 -f "$srcdir/tests/made_step.awk" >moves.json
  for it in none tail; do
    FERRY_SHIM_LIBRARY=$programs/libferry-shim.so FERRY_VARIANT=,$it, under $it --wait --remake off --host 1GiB --budget 2998272B --emulated granule=8192,link=300MB/s -- \
      "$programs/player" "$programs/player_kernels.so" 13 moves.json || { cat $it.err; return 1; }
    took+=("$(figure planned_step_ns $it)")
  done
  cmp none.out tail.out && [ "${took[1]}" -gt "${took[0]}" ] || echo "${took[*]}"
}
late() { # what there is no time for is said, row by row
  mkdir late && cp first.json second.json late
  WHERE_SECONDS=0 LD_LIBRARY_PATH=$work/driver PYTHONDONTWRITEBYTECODE=1 python3 "$srcdir/tests/gpu/where.py" late "$ferry" "$programs" >said 2>&1
  grep -q 'not done in 1 s\|no time was left' said || { cat said; return 1; }
}
claim "each row says the same, with times and a timeline" rows
claim "waits for the tail cost time" slower
claim "rows that there is no time for are named" late
finish
