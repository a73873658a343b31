#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Unmodified PyTorch under `ferry run`, all in one command: losses and parameters must be those of the same script
# without it, at 100, 90, 70 and 50 % of what it holds; and beside save_on_cpu, checkpointing and half a batch in
# the same memory (torch_run.py).   torch_run.sh [OUT.json [FERRY]]
#   TORCH_ROWS="NETWORK BATCH;..."  other networks of pytorch.py than these
#   TORCH_STEPS                     16 without it
#   FERRY_PYTHON                    a Python with torch
# 77 where there is no PyTorch or no GPU. The first failure of a row is kept in its "error".
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/../../data/gpu/torch-run.json}
ferry=${2:-${FERRY:-ferry}}
export FERRY_DETERMINISTIC=1 CUBLAS_WORKSPACE_CONFIG=:4096:8 PYTHONDONTWRITEBYTECODE=1
export PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync
[ -x "$(command -v "$ferry")" ] || { echo "torch_run.sh: $ferry is not there: skipped"; exit 77; }
IFS=';' read -ra rows <<<"${TORCH_ROWS:-resnet50 32;vgg16 32;gpt2 2;charrnn 256}"
exec "${FERRY_PYTHON:-python3}" "$here/torch_run.py" "$out" "$ferry" "${TORCH_STEPS:-16}" "${rows[@]}"
