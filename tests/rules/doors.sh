#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Each foreign library has one door: the files that may include its header. Tests may use a library
# as an oracle. A library of the executor (BLAS, CUPTI, cuDNN) has any one file there.
. "$(dirname "$0")/common.bash"

elsewhere() { # HEADER FILE-PATTERN
  grep -lE "^ *# *include *[<\"]$1[>\"]" $(sources) | grep -vxE "$2"
  return 0
}

more_than_one() { # HEADER: at most one file, in executor/
  local files
  files=$(grep -lE "^ *# *include *[<\"]$1[>\"]" $(sources))
  grep -vE '^executor/' <<<"$files" | grep .
  [ "$(grep -c . <<<"$files")" -le 1 ] || echo "$files"
  return 0
}

claim "Jansson has one door" elsewhere 'jansson\.h' 'base/json(_load)?\.[ch]'
claim "zlib has one door" elsewhere 'zlib\.h' 'base/coding_gzip\.c'
claim "zstd has one door" elsewhere 'zstd\.h' 'base/coding_zstd\.c'
claim "GLPK has one door" elsewhere 'glpk\.h' 'solver/flow/ilp\.c'
claim "libmicrohttpd has one door" elsewhere 'microhttpd\.h' 'server/http/(http\.c|door\.h|answers\.[ch])'
claim "libcurl has one door" elsewhere 'curl/.*' 'server/client/.*'
claim "SQLite has one door" elsewhere 'sqlite3\.h' 'server/store/[a-z]*\.c'
claim "libpq has one door" elsewhere 'libpq-fe\.h' 'server/store/[a-z]*\.c'
claim "the CUDA driver has one door" elsewhere 'cuda\.h' 'executor/driver/driver\.c'
claim "the CUDA run time is for kernels only" elsewhere 'cuda_runtime.*' 'executor/gpu/[a-z_]*\.cu'
for header in 'cblas\.h' 'openblas/cblas\.h' 'cublas.*' 'cudnn.*' 'cupti.*'; do
  claim "${header//\\/} has one door in executor/" more_than_one "$header"
done
finish
