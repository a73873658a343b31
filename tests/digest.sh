#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The texts of the kernels, run thread by thread, do what the same in C does.
. "$(dirname "$0")/rules/common.bash"
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
scratch
digest_of=$builddir/tests/test_shim_digest
"$digest_of" ptx >kernels.ptx

zeros() { head -c "$1" /dev/zero; }
word() { # FILE OFFSET: 8 bytes as a number's digits
  od -An -v -tx8 -j "$2" -N 8 "$1" | tr -d ' '
}
same() { # BLOCKS THREADS BYTES
  head -c "$3" "$srcdir/data/schema/trace.schema.json" >data || return 1
  { cat data; zeros $((8192 - $3)); zeros 8; } >memory
  python3 "$srcdir/tests/ptx.py" kernels.ptx ferry_digest "$1" "$2" memory @0 "$3" @8192 &&
    [ "$(wc -c <data)" = "$3" ] && [ "$(word memory 8192)" = "$("$digest_of" digest <data)" ] || { echo "$3 bytes by $1 blocks of $2 threads"; return 1; }
}
sizes() {
  local bytes
  for bytes in 8 64 7 1 15 511 512 513 2047 2048 2053 8191; do same 1 32 $bytes && same 3 64 $bytes || return 1; done
}
copied() { # A B BYTES: where the words differ, all bytes are copied, no more, and it is told
  head -c "$3" "$srcdir/data/schema/trace.schema.json" >data
  { cat data; zeros $((4096 - $3)); zeros 4096; printf "$1"; zeros 7; printf "$2"; zeros 15; } >memory
  python3 "$srcdir/tests/ptx.py" kernels.ptx ferry_copy_unless 2 64 memory @0 @4096 "$3" @8192 @8200 @8208 &&
    if [ "$1" = "$2" ]; then
      zeros 4096 | cmp - <(tail -c +4097 memory | head -c 4096) && [ "$(word memory 8208)" = 0000000000000000 ]
    else
      { cat data; zeros $((4096 - $3)); } | cmp - <(tail -c +4097 memory | head -c 4096) && [ "$(word memory 8208)" = 0000000000000001 ]
    fi || { echo "$*"; return 1; }
}
copies() {
  local bytes
  for bytes in 8 1024 4093 5; do copied a a $bytes && copied a b $bytes || return 1; done
}
compiles() { # where the toolkit is
  command -v ptxas >/dev/null || return 77
  ptxas -arch=sm_80 kernels.ptx -o kernels.cubin
}

claim "the kernel's text and C have one digest, whatever the size and the threads" sizes
claim "a copy is made where two digests differ, and only there" copies
claim "the toolkit compiles the text" compiles
finish
