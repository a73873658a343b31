#!/bin/bash
# Runs the programs named, shows what they say, and leaves docs/results.json and docs/results.md behind.
set -euo pipefail
docs=${srcdir:?}/docs
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
for program in "$@"; do
  "./$program" | tee >(grep '^{' >>"$rows") | grep -v '^{'
done
wait
{ echo '['; sed '$!s/$/,/' "$rows"; echo ']'; } >"$docs/results.json"
bash "$srcdir/tests/bench/papers/results.sh" "$docs/results.json" >"$docs/results.md"
