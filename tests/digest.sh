#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The text of the digest kernel, run thread by thread, says what the same in C says.
. "$(dirname "$0")/rules/common.bash"
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
scratch
digest_of=$builddir/tests/test_shim_digest
"$digest_of" ptx >kernels.ptx

same() { # BLOCKS THREADS BYTES
  head -c "$3" "$srcdir/data/schema/trace.schema.json" >data || return 1
  [ "$(wc -c <data)" = "$3" ] && [ "$(python3 "$srcdir/tests/ptx.py" kernels.ptx ferry_digest "$1" "$2" data)" = "$("$digest_of" digest <data)" ] ||
    { echo "$3 bytes by $1 blocks of $2 threads"; return 1; }
}
sizes() {
  local bytes
  for bytes in 8 64 7 1 15 511 512 513 2047 2048 2053 8191; do same 1 32 $bytes && same 3 64 $bytes || return 1; done
}
compiles() { # where the toolkit is
  command -v ptxas >/dev/null || return 77
  ptxas -arch=sm_80 kernels.ptx -o kernels.cubin
}

claim "the kernel's text and C have one digest, whatever the size and the threads" sizes
claim "the toolkit compiles the text" compiles
finish
