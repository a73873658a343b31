#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The kernels of both types of numbers, as text for a driver, as C arrays on standard output.
#   make_ptx.sh NVCC SOURCE-FOLDER, in the build folder
set -eu
nvcc=$1 from=$2
for type in fp32 bf16; do
  flags=
  [ $type = fp32 ] || flags=-DKERNEL_BF16=1
  # shellcheck disable=SC2086
  "$nvcc" -ptx -arch=compute_75 -diag-suppress 177 $flags -I"$from" -o executor/$type.ptx "$from/executor/gpu/kernels.cu"
  printf '\0' >>executor/$type.ptx
done
bash "$from/plot/embed.sh" executor/fp32.ptx executor/bf16.ptx
