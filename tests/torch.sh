#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# ferry_torch: recording and following on the CPU.
set -u
. "$srcdir/tests/torch/python.bash"
export PYTHONDONTWRITEBYTECODE=1 PYTHONFAULTHANDLER=1 PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1 FERRY=$PWD/ferry GLOG_minloglevel=3
[ -x "$FERRY" ] || FERRY=$builddir/ferry
"$python" "$srcdir/tests/torch/run.py" "$@" ${FERRY_TORCH_CLAIMS:-record_claims observed_claims updates_claims lean_claims compile_claims lanes_claims outside_claims follow_claims trap_claims spill_claims fit_claims used_claims habit_claims capture_claims home_claims tool_claims guard_claims} 2>&1 |
  grep -v -e 'CPUAllocator' -e '^USDT:' -e 'execution_trace_observer'
exit "${PIPESTATUS[0]}"
