#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# ferry_torch: recording and following on the CPU, with a torch that has the modes it needs.
set -u
python=${FERRY_PYTHON:-/usr/bin/python3}
"$python" -c 'import torch.utils._python_dispatch' 2>/dev/null || {
  echo "$python has no torch (Debian: python3-torch); FERRY_PYTHON names one that has"
  exit 77
}
export PYTHONDONTWRITEBYTECODE=1 PYTHONFAULTHANDLER=1 PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1 FERRY=$PWD/ferry GLOG_minloglevel=3
[ -x "$FERRY" ] || FERRY=$builddir/ferry
"$python" "$srcdir/tests/torch/run.py" "$@" ${FERRY_TORCH_CLAIMS:-record_claims observed_claims later_claims lanes_claims outside_claims follow_claims trap_claims spill_claims fit_claims tool_claims guard_claims} 2>&1 |
  grep -v -e '^W[0-9]* .*CPUAllocator' -e '^WARNING: Logging before'
exit "${PIPESTATUS[0]}"
