#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What tests/gpu/torch_run.sh does by itself, without a GPU: PyTorch on the processor, and in ferry's place a
# program that starts what it is told to and reports figures that are known.
. "$(dirname "$0")/torch/python.bash"
. "$(dirname "$0")/rules/common.bash"
scratch
export FERRY_TORCH_DEVICE=cpu OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
cat >ferry <<'FERRY'
#!/usr/bin/env python3
import json, os, subprocess, sys
a = sys.argv[1:]
if a[0] == "profile":
  assert a[1:3] == ["--audit", "-o"] and a[4] == "--" and a[6].endswith("pytorch.py"), a
  print("ferry: the audit counted 7 launches", file=sys.stderr)
  sys.exit(int(os.environ.get("ESCAPE", "0")))
assert a[:3] == ["run", "-q", "--wait"], a
budget, report, program = a[a.index("--budget") + 1], a[a.index("--report") + 1], a[a.index("--") + 1:]
budget = 1 << 50 if budget == "1024GiB" else int(budget[:-1])
held = {"half": 600, "checkpoint": 800}.get(program[-1], 1000)
if budget < int(os.environ.get("LEAST", "0")):
  sys.exit(f"ferry: op 3 needs 900 bytes resident at once, the budget is {budget}")
done = subprocess.run(program, capture_output=True, text=True)
said = json.loads(done.stdout)
if os.environ.get("SPOIL") and budget < 1000: said["losses"][-1] = "0x1p0"
print(json.dumps(said))
over = int(os.environ.get("OVER", "0")) if budget < 1000 else 0
json.dump({"budget_bytes": budget, "device_high_bytes": min(budget, held) + over, "live_high_bytes": held,
           "planned_step_ns": 103, "predicted_step_ns": 100}, open(report, "w"))
sys.exit(done.returncode)
FERRY
chmod +x ferry
bench() { # NAME: its status
  TORCH_ROWS="charrnn 2" TORCH_STEPS=1 bash "$srcdir/tests/gpu/torch_run.sh" "$1.json" ./ferry >"$1.out" 2>&1
}
whole() { # every part is there, what ferry ran is the same, and each way has its time and its memory beside ferry's
  TORCH_PERCENTS="90 50" bench whole || { cat whole.out; return 1; }
  "$FERRY_PYTHON" - whole.json <<'END'
import json, sys
rows = {r["part"]: r for r in json.load(open(sys.argv[1]))["rows"]}
assert list(rows) == ["plain", "all", "90", "50", "save_on_cpu", "checkpoint", "half", "audit"], list(rows)
assert [rows[p]["budget"] for p in ("all", "90", "50")] == ["1024GiB", "900B", "500B"]
for part in ("all", "90", "50", "checkpoint", "half"):
    assert rows[part]["same"] and not rows[part]["error"], rows[part]
    assert rows[part]["off_prediction_ppm"] == 30000, rows[part]
assert rows["checkpoint"]["budget"] == "800B" and rows["half"]["budget"] == "600B"
for part in ("checkpoint", "half"):
    row = rows[part]
    assert row["way_step_ns"] > 0 and row["ferry_over_way_ppm"] == row["step_ns"] * 1000000 // row["way_step_ns"], row
assert rows["audit"]["said"] == ["ferry: the audit counted 7 launches"], rows["audit"]
assert rows["checkpoint"]["way_same"] and not rows["half"]["way_same"] # its sums have another order
assert rows["save_on_cpu"]["error"] == "it needs no less memory" and "same" not in rows["save_on_cpu"]
END
}
spoiled() { # NAME WHAT: it fails, and says why
  local status=0
  TORCH_PERCENTS=50 TORCH_WAYS= bench "$1" || status=$?
  [ "$status" = 1 ] && grep -q "$2" "$1.out" || { echo "status $status"; cat "$1.out"; return 1; }
}
refused() { # a budget that is too small is told in its row, and fails nothing
  LEAST=600 TORCH_PERCENTS=50 TORCH_WAYS= bench refused && grep -q 'op 3 needs 900 bytes' refused.out || { cat refused.out; return 1; }
}
blocks() { # each network has some to be calculated again, and keeps its parameters
  "$FERRY_PYTHON" - <<'END'
import os, sys
sys.path.insert(0, os.path.join(os.environ["srcdir"], "tests/gpu"))
import pytorch, torch_ways
for name, n in (("charrnn", 1), ("gpt2", 12), ("resnet50", 16), ("unet3d", 7), ("vgg16", 0)):
    model = pytorch.NETWORKS[name][0]()
    assert len(torch_ways.blocks_of(model)) == n, (name, len(torch_ways.blocks_of(model)))
    again = torch_ways.checkpointed(model)
    assert [id(p) for p in again.parameters()] == [id(p) for p in model.parameters()], name
    assert n or len(again) == 6
END
}
claim "every part of the comparison is made" whole
SPOIL=1 claim "another bit under ferry is found" spoiled bits 'NOT THE SAME'
OVER=1 claim "so is a byte over the budget" spoiled over 'over its budget'
ESCAPE=1 claim "so is a call that ferry did not see" spoiled audit 'the audit counted'
claim "a budget that is too small fails nothing" refused
claim "each network has blocks for checkpointing" blocks
finish
