#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The published ladder of a single GPU, rebuilt with plain torch, and ferry at the peak of each rung (torch_ladder.py), in
# one command: tests/gpu/ladder.sh [RESULT.json [FERRY]]. FERRY_PYTHON names a Python with torch; LADDER_MINUTES, 4 without
# it, end it, and LADDER_RUNGS take the first rungs alone. 77 where there is no GPU.
set -u
here=$(cd "$(dirname "$0")" && pwd)
python=${FERRY_PYTHON:-python3}
ferry=$(command -v "${2:-${FERRY:-ferry}}")
"$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null || {
  echo "$python has no torch that sees a GPU"
  exit 77
}
[ -x "$ferry" ] || { echo "FERRY does not name the program"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
exec "$python" "$here/torch_ladder.py" "${1:-data/gpu/torch-ladder.json}" "$ferry" --minutes "${LADDER_MINUTES:-4}" --rungs "${LADDER_RUNGS:-6}"
