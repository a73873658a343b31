#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# ferry_torch on a GPU, all in one command: tests/gpu/torch.sh [RESULTS-FOLDER]. Runs the claims of
# tests/torch on the CPU's torch, then each network at 90, 80, 70 and 60 % of its own peak: followed, compiled and
# captured, a greedy plan, save_on_cpu, checkpointing, activation_memory_budget, half a batch. Every row has the
# memory that was enforced and what was seen. FERRY names the program, FERRY_PYTHON a Python with
# torch; TORCH_NETS, TORCH_SHARES and TORCH_WAYS ("ferry;fit") name fewer of them, TORCH_CLAIMS fewer claims or
# "none"; a plan may take TORCH_SECONDS, a network TORCH_MINUTES. Ends with 77 where there is no GPU.
set -u -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
results=${1:-data/gpu}
python=${FERRY_PYTHON:-python3}
"$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null || {
  echo "$python has no torch that sees a GPU"
  exit 77
}
export FERRY=${FERRY:-$(command -v ferry)} PYTHONDONTWRITEBYTECODE=1
[ -x "$FERRY" ] || { echo "FERRY does not name the program"; exit 77; }
mkdir -p "$results"
status=0
claims=${TORCH_CLAIMS:-follow_claims again_claims trap_claims guard_claims early_claims spill_claims fit_claims tool_claims updates_claims outside_claims}
# shellcheck disable=SC2086
[ "$claims" = none ] || "$python" "$here/../torch/run.py" $claims | tee "$results/torch-claims.txt" || status=1
for net in ${TORCH_NETS:-resnet50 gpt-350m gpt-4k gpt-32k unet}; do
  "$python" "$here/torch_rows.py" "$net" "$results/torch-$net.json" ${TORCH_SHARES:+--shares "$TORCH_SHARES"} \
    ${TORCH_WAYS:+--ways "$TORCH_WAYS"} ${TORCH_SECONDS:+--seconds "$TORCH_SECONDS"} ${TORCH_MINUTES:+--minutes "$TORCH_MINUTES"} || status=1
done
exit $status
