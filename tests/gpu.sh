#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The GPU's experiments run on the emulator, and say there what is known of it.
${MAKE:-make} -s -C "$builddir" tests/gpu/experiments || exit 1
out=$("$builddir/tests/gpu/experiments" "$FERRY_EMU") || exit 1
failed=0
want() { # TEXT
  grep -qF -- "$1" <<<"$out" && echo "ok: $1" || { echo "not there: $1"; failed=1; }
}
want '"mismatches": 0'
want '"unmap_of_two_mappings": "CUDA_SUCCESS"'
want '"map_with_an_offset": "CUDA_ERROR_INVALID_VALUE"'
want '"kernel_runs_after_unmap": true'
want '"function_past_the_end": "CUDA_ERROR_INVALID_VALUE"'
want '"tensor_map_word_of_the_address": 0'
want '"ops": 1000'
want '"pinning_by_registering": "CUDA_SUCCESS"'
want '"both_beside_a_kernel_ns": '

# The library in front of a driver passes every call on, counts it, and serves memory when it is told to.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
claim() { # TEXT COMMAND...
  if "${@:2}"; then echo "ok: $1"; else echo "does not hold: $1"; failed=1; fi
}
counted() { # NAME REPORT
  sed -n "s/.*\"$1\": \([0-9]*\)[,}].*/\1/p" "$2"
}
passes_on() {
  FORWARD_REAL=$FERRY_EMU FORWARD_REPORT=$work/report "$builddir/tests/gpu/experiments" "$work/forward.so" >"$work/out" &&
    grep -qF '"mismatches": 0' "$work/out" && [ "$(counted cuEventRecord "$work/report")" = 2001 ] && [ "$(counted cuInit "$work/report")" = 1 ]
}
serves() {
  FORWARD_SERVE=1 FORWARD_REAL=$FERRY_EMU FORWARD_REPORT=$work/served python3 "$srcdir/tests/gpu/forward_test.py" "$work/forward.so" &&
    [ "$(counted served "$work/served")" = 2 ] && [ "$(counted reused "$work/served")" = 1 ] && [ "$(counted cuMemAllocAsync "$work/served")" = 3 ]
}
if command -v nm >/dev/null && [ "$(uname -m)" = x86_64 ] && ! nm -D "$FERRY_EMU" | grep -q __asan; then
  claim "a library in front of a driver can be built" bash "$srcdir/tests/gpu/forward.sh" --build "$FERRY_EMU" "$work/forward.so"
  claim "it passes every call on and counts it" passes_on
  ! command -v python3 >/dev/null || claim "it serves memory, and sees who asks by which way" serves
fi
exit $failed
