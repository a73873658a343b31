#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The program is light to start: OpenBLAS, whose threads and buffers take hundreds of MiB, is linked
# to nothing and opened by real arithmetic alone.
. "$(dirname "$0")/common.bash"
if grep -q -- '-fsanitize' <<<"$COMPILE_FLAGS"; then
  echo "a program with sanitizers needs more than it would"
  exit 77
fi
built=$builddir
scratch

linked() { # what the loader would bring in for the program and the library
  local file
  for file in "$built"/libferry.so "$built/ferry"; do
    ldd "$file" | grep -iE 'blas|lapack'
  done
  return 0
}

in_32_mib() {
  local text
  text=$(ulimit -v 32768 && timeout 20 "$ferry" --version 2>&1) || { echo "ferry --version: $text"; return 1; }
  [ "$text" != "" ] || echo "ferry --version says nothing"
}

opened() { # ARGUMENTS...: does the program open OpenBLAS?
  LD_DEBUG=files "$ferry" "$@" 2>&1 >/dev/null </dev/null | grep -q 'libopenblas'
}

opened_for_real_only() {
  "$ferry" zoo gpt2 --batch 1 --width-divisor 12 --depth-divisor 12 --seq 16 --classes 32 -d titanx-pascal -q -o step.json &&
    "$ferry" solve step.json -q -o plan.json >/dev/null || { echo "no plan to replay"; return 1; }
  ! opened solve step.json || echo "solve opens OpenBLAS"
  ! opened replay step.json plan.json || echo "a replay without arithmetic opens OpenBLAS"
  grep -q 'define USE_OPENBLAS' "$built/config.h" && ldconfig -p | grep -q 'libopenblas\.so\.0' || return 0
  opened replay step.json plan.json --compute real --steps 1 || echo "real arithmetic does not open OpenBLAS"
}

claim "the program and the library link no OpenBLAS" linked
claim "ferry --version runs in 32 MiB of address space" in_32_mib
claim "OpenBLAS is opened for real arithmetic only" opened_for_real_only
finish
