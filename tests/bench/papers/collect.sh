#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs the programs named, shows what they say, and leaves docs/results.json, docs/matrix.json and
# docs/results.md behind. What is there already of other programs stays, so it can be run in parts:
# a program may be given with arguments, as "tests/bench/papers/matrix vgg16 12".
# An argument that ends in .out is what a program has said before. All programs together get
# PAPERS_SECONDS of processor time (2400); who is cut off keeps the rows that it has, and those that
# do not come to their turn keep the ones of before.
set -euo pipefail
docs=${srcdir:?}/docs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

spent() { # seconds of the programs so far
  times >"$work/times"
  awk 'NR == 2 { split($1, t, /[ms]/); print int(t[1] * 60 + t[2]) }' "$work/times"
}
within() { # what is left for one program
  local left=$((${PAPERS_SECONDS:-2400} - $1))
  shift
  [ $left -gt 0 ] && (ulimit -t $left && exec "./$@") || echo "$1: no processor time was left for all of it" >&2
}
for program in "$@"; do
  spent >"$work/spent"
  case $program in
  *.out) cat "$program" ;;
  *) read -ra words <<<"$program" && within "$(<"$work/spent")" "${words[@]}" ;;
  esac | tee >(grep '^{' >>"$work/said") | { grep -v '^{' || true; }
done
wait
touch "$work/said"
commit=$(sed -n 's/.*"\(.*\)".*/\1/p' cli/commit.h)
sed -i "s/}\$/,\"commit\":\"$commit\"}/" "$work/said" # each row says on which it was run
for file in results matrix; do touch "$docs/$file.json"; done

# One row for each key, the newest; rows keep the places that they had.
merge() { # KEYS FILE
  { grep '^{' "$2" || true; echo =; cat "$work/rows"; } | sed 's/,$//' | awk -v keys="$1" '
    function key(   i, n, name, at, k) {
      n = split(keys, name, " ")
      for (i = 1; i <= n; i++) {
        at = index($0, "\"" name[i] "\":")
        k = k "\t" substr($0, at, index(substr($0, at), ",\"") - 1)
      }
      return k
    }
    $0 == "=" { next }
    { k = key(); if (!(k in row)) order[++n] = k; row[k] = $0 }
    END { for (i = 1; i <= n; i++) print row[order[i]] }' >"$work/merged"
  { echo '['; sed '$!s/$/,/' "$work/merged"; echo ']'; } >"$2"
}
{ grep '"paper":' "$work/said" || true; } >"$work/rows"
merge "claim paper" "$docs/results.json"
{ grep '"network":' "$work/said" || true; } >"$work/rows"
merge "network gb_per_s percent" "$docs/matrix.json"
bash "$srcdir/tests/bench/papers/results.sh" "$docs/results.json" "$docs/matrix.json" >"$docs/results.md"
