#!/bin/bash
# docs/results.md is what results.sh makes of docs/results.json, and each of its programs has a row.
. "$(dirname "$0")/common.bash"

fresh() {
  diff -u docs/results.md <(bash tests/bench/papers/results.sh docs/results.json) ||
    echo "docs/results.md is made by: make papers"
}

complete() { # what a program calls its source stands in the file
  local program name
  for program in tests/bench/papers/*.c; do
    [ "$program" = tests/bench/papers/paper.c ] && continue
    name=$(grep -A1 'paper_row (' "$program" | grep -oE '"[^"]*"' | head -n 1 | tr -d '"')
    [ -n "$name" ] || echo "$program: no row"
    grep -qF "\"paper\":\"$name\"" docs/results.json || echo "docs/results.json has nothing of $program"
  done
}

claim "docs/results.md is up to date" fresh
claim "every program has its row" complete
finish
