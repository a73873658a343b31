#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Where a step's time goes under `ferry run`, and its table with tensors made again (where.py), in five minutes.
#   where.sh [FOLDER [FERRY]]    FERRY_PYTHON: a Python with torch; 77 where there is none, or no GPU
set -u
here=$(cd "$(dirname "$0")" && pwd)
export FERRY_DETERMINISTIC=1 CUBLAS_WORKSPACE_CONFIG=:4096:8 PYTHONDONTWRITEBYTECODE=1
export PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync
ferry=${2:-${FERRY:-ferry}}
[ -z "${2:-${FERRY:-}}" ] && [ -x "$here/bin/ferry" ] && ferry=$here/bin/ferry # in a pack
[ -x "$(command -v "$ferry")" ] || { echo "where.sh: $ferry is not there: skipped"; exit 77; }
exec "${FERRY_PYTHON:-python3}" "$here/where.py" "${1:-$here/../../data/gpu/where}" "$ferry"
