#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs the benches named (all without a name), keeps what they say in docs/measured.json, and makes
# docs/measured.md of it. Rows of other benches stay. In the build folder:
#   srcdir=.. bash ../tests/bench/measure.sh [solve|speed|growth|bound|mix]...
set -euo pipefail
docs=${srcdir:?}/docs devices=${srcdir}/data/devices
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mix() { # NETWORK BATCH PERCENT ROWS
  tests/bench/bench_mix mix "$1" "$2" 50 bf16 "$3" "$4" "$devices"
}
run() {
  case $1 in
    growth) SVG="$docs/growth.svg" tests/bench/bench_growth - 100000 ;;
    mix)
      for percent in 80 60 40; do mix resnet50 512 $percent srgkb; done
      for percent in 80 60; do mix gpt2-xl 8 $percent srgkb; done
      for percent in 80 60 40; do mix vgg16 512 $percent srgkc; done
      ;;
    *) tests/bench/bench_"$1" ;;
  esac
}
[ $# -gt 0 ] || set -- solve speed growth bound mix
touch "$docs/measured.json"
commit=$(sed -n 's/.*"\(.*\)".*/\1/p' cli/commit.h)
for bench in "$@"; do
  run "$bench" | tee "$work/said"
  sed -i "/^{/s/}\$/,\"commit\":\"$commit\"}/" "$work/said" # each row says on which it was run
  { grep '^{' "$docs/measured.json" | sed 's/,$//' | grep -v "\"bench\":\"$bench\"" || true
    grep '^{' "$work/said"; } | sort -s -t: -k2,2 >"$work/rows"
  { echo '['; sed '$!s/$/,/' "$work/rows"; echo ']'; } >"$docs/measured.json"
done
bash "$srcdir/tests/bench/measured.sh" "$docs/measured.json" >"$docs/measured.md"
