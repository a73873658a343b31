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
exit $failed
