#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# docs/results.md is what results.sh makes of docs/results.json and docs/matrix.json, each program has
# a row, and what the summary promises holds in every case.
. "$(dirname "$0")/common.bash"

fresh() {
  diff -u docs/results.md <(bash tests/bench/papers/results.sh docs/results.json docs/matrix.json) ||
    echo "docs/results.md is made by: make papers"
}

complete() { # what a program calls its source stands in the file
  local program name
  for program in tests/bench/papers/*.c; do
    case $program in */paper.c | */matrix.c) continue ;; esac
    name=$(grep -A1 'paper_row (' "$program" | grep -oE '"[^"]*"' | head -n 1 | tr -d '"')
    [ -n "$name" ] || echo "$program: no row"
    grep -qF "\"paper\":\"$name\"" docs/results.json || echo "docs/results.json has nothing of $program"
  done
}

value() { sed -n "s/.*\"$2\":\([0-9]*\).*/\1/p" <<<"$1"; }
unbeaten() {
  local line kind ours best bound
  while read -r line; do
    bound=$(value "$line" bound_ns)
    [ "$(value "$line" ours_ns)" -eq 0 ] || [ "$(value "$line" ours_ns)" -ge "$bound" ] || echo "below its bound: $line"
    for kind in "" any_; do
      ours=$(value "$line" "ours_${kind}ns") best=$(value "$line" "best_${kind}ns")
      [ "$best" -eq 0 ] || { [ "$ours" -gt 0 ] && [ "$ours" -le "$best" ]; } || echo "a policy is faster: $line"
    done
  done < <(grep '^{' docs/matrix.json)
}

measured() {
  diff -u docs/measured.md <(bash tests/bench/measured.sh docs/measured.json) ||
    echo "docs/measured.md is made by: make measured"
}

claim "docs/measured.md is up to date" measured
claim "docs/results.md is up to date" fresh
claim "every program has its row" complete
claim "no policy is faster than ours in any case of docs/matrix.json" unbeaten
finish
