#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Makes the two tables of the shim anew from a CUDA toolkit: exports.def, every symbol of the driver's stub, and abis.def,
# every version of every entry in cudaTypedefs.h.  tables.sh exports|abis CUDA_HOME
set -eu
echo '/* SPDX-License-Identifier: GPL-3.0-or-later */'
home=$2
case $1 in
exports)
  stub=$(ls "$home"/lib64/stubs/libcuda.so "$home"/lib/stubs/libcuda.so "$home"/targets/*/lib/stubs/libcuda.so 2>/dev/null | head -n 1)
  [ -n "$stub" ] || { echo "tables.sh: no stub of libcuda.so under $home" >&2; exit 1; }
  echo '/* EXPORTED (symbol): what the driver exports; made by tables.sh */'
  nm -D --defined-only "$stub" | sed 's/@.*//' | awk '$2 ~ /^[TWi]$/ && $3 ~ /^cu[A-Z]/ { print "EXPORTED (" $3 ")" }' | LC_ALL=C sort -u
  ;;
abis)
  echo '/* ABI (name, version, per thread): the types that cudaTypedefs.h has; made by tables.sh */'
  sed -n 's/.*CUDAAPI *\*PFN_\(cu[A-Za-z0-9_]*\)_v\([0-9]*\)\(_pt[sd][zs]\)\{0,1\}).*/\1 \2 \3/p' "$home/include/cudaTypedefs.h" |
    awk '{ print "ABI (" $1 ", " $2 ", " ($3 != "") ")" }' | LC_ALL=C sort -u
  ;;
*) echo "tables.sh exports|abis CUDA_HOME" >&2; exit 2 ;;
esac
