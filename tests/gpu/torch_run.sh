#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Unmodified PyTorch under `ferry run`: losses and parameters must be those of the same script without it, at
# 100, 90, 70 and 50 % of what it holds.   torch_run.sh OUT.json [FERRY]
#   TORCH_ROWS="NETWORK BATCH;..."  other networks of pytorch.py than these
# 77 where there is no PyTorch or no GPU. The first failure of a row is kept in its "error".
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=$1
ferry=${2:-ferry}
steps=16
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export FERRY_DETERMINISTIC=1 CUBLAS_WORKSPACE_CONFIG=:4096:8

under() { # NAME BUDGET ARGUMENTS...
  timeout 500 "$ferry" run -q --wait --budget "$2" --report "$work/$1.report" -- python3 "$here/pytorch.py" train "${@:3}" "$steps" \
    >"$work/$1.out" 2>"$work/$1.err"
}
IFS=';' read -ra rows <<<"${TORCH_ROWS:-resnet50 32;vgg16 32;gpt2 2;charrnn 256}"
for row in "${rows[@]}"; do
  read -r name batch <<<"$row"
  PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync timeout 500 python3 "$here/pytorch.py" train "$name" "$batch" "$steps" \
    >"$work/$name.out" 2>"$work/$name.err"
  status=$?
  [ $status != 77 ] || { cat "$work/$name.err"; exit 77; }
  [ -x "$(command -v "$ferry")" ] || { echo "torch_run.sh: $ferry is not there: skipped"; exit 77; }
  under "$name-all" 1024GiB "$name" "$batch"
  held=$(sed -n 's/^  "live_high_bytes": \([0-9]*\),*$/\1/p' "$work/$name-all.report" 2>/dev/null)
  for percent in 90 70 50; do
    [ -z "$held" ] || under "$name-$percent" $((held * percent / 100))B "$name" "$batch"
  done
done
python3 - "$work" "${rows[@]}" >"$out" <<'END'
import datetime, json, os, subprocess, sys
work, rows, good = sys.argv[1], [], True
def read(name):
    try:
        with open(os.path.join(work, name)) as f:
            return json.load(f)
    except (OSError, ValueError):
        return {}
def last_line(name):
    try:
        with open(os.path.join(work, name)) as f:
            return (f.read().strip().splitlines() or [""])[-1]
    except OSError:
        return "it was not run"
for row in sys.argv[2:]:
    name, batch = row.split()
    plain = read(name + ".out")
    for part in ("all", "90", "70", "50"):
        seen, report = read(f"{name}-{part}.out"), read(f"{name}-{part}.report")
        same = bool(plain) and all(plain.get(k) == seen.get(k) for k in ("losses", "parameters"))
        good = good and same and (part == "all" or report.get("device_high_bytes", 1) <= report.get("budget_bytes", 0))
        rows.append({"batch": int(batch), "error": "" if same else last_line(f"{name}-{part}.err"), "network": name,
                     "part": part, "report": report, "same": same, "step_ns": seen.get("step_ns"),
                     "step_ns_plain": plain.get("step_ns")})
def gpu(what):
    try:
        return subprocess.run(["nvidia-smi", "--query-gpu=" + what, "--format=csv,noheader"], capture_output=True,
                              text=True, timeout=60).stdout.strip().splitlines()[0]
    except (OSError, IndexError, subprocess.TimeoutExpired):
        return ""
print(json.dumps({"command": "torch_run.sh " + ";".join(sys.argv[2:]), "date": datetime.date.today().isoformat(),
                  "driver": gpu("driver_version"), "gpu": gpu("name"), "rows": rows}, indent=1, sort_keys=True))
sys.exit(0 if good else 1)
END
