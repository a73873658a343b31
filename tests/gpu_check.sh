#!/bin/bash
# What `make gpu-check` does, packed small and run on the emulated device as far as it goes.
. "$(dirname "$0")/rules/common.bash"
scratch
bash "$srcdir/tests/gpu/pack.sh" "$builddir" "$work/pack" small >"$work/said" || { cat "$work/said"; exit 1; }
results=$work/results
whole() { (cd / && bash "$work/pack/check.sh" "$results" --driver emulated) >"$work/out" 2>&1 || { cat "$work/out"; return 1; }; }
rows() { [ "$(grep -cF '+0.00 %' "$results/table.txt")" -ge 9 ] || { cat "$results/table.txt"; return 1; }; }
moves() { grep -q '"d2h_bytes": *[1-9]' "$results"/*@112MiB.json; }
about() { grep -q '"failed": 0, "gpu": "emulated device"' "$results/about.json"; }
archive() { tar -tzf "$work/pack.tar.gz" | grep -q '/check.sh$'; }
no_gpu() {
  [ -e /dev/nvidiactl ] && return 0
  local status=0
  bash "$work/pack/check.sh" "$work/none" >"$work/out" 2>/dev/null || status=$?
  [ $status = 77 ] && [ "$(cat "$work/out")" = "no GPU: skipped" ] && [ ! -e "$work/none" ]
}
told() { # a plan that fails is a failed check
  cp "$work/pack/traces/vgg16-b8.json.zst" "$work/pack/plans/vgg16-b8@1GiB.json"
  ! bash "$work/pack/check.sh" "$work/bad" --driver emulated >"$work/out" 2>&1 && grep -q '1GiB.*status 3' "$work/out"
}
claim "everything runs from the pack alone" whole
claim "each plan is verified, timed, and made again for the measured link" rows
claim "the tightest plan moves something" moves
claim "the results say what they are of" about
claim "the archive holds it" archive
claim "without a GPU it is skipped in one line" no_gpu
claim "what fails is told" told
finish
