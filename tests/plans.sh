#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Whether a change of the planner left its plans alone: asks the questions of tests/plans.txt and
# compares plans and answers byte for byte.
#
#   tests/plans.sh FERRY           one line a question: the hash of its answer
#   tests/plans.sh BEFORE AFTER    says which answers differ; BEFORE is a program, or such lines
#
# No test of `make check`: it needs two builds.
set -u
here=$(cd "$(dirname "$0")" && pwd)
[ $# = 1 ] || [ $# = 2 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
export FERRY_DATADIR=${FERRY_DATADIR:-$here/../data}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

answers() { # FERRY: a line a question
  local ferry network command trace status
  while IFS='|' read -r network command; do
    case $network in \#* | "") continue ;; esac
    trace=$work/$(cksum <<<"$network" | tr ' ' -).json
    case $network in
      *.json*) cp "$here/$(echo $network)" "$trace" ;;
      *) [ -s "$trace" ] || "$1" zoo -q $network -o "$trace" || exit 1 ;;
    esac
    command=${command//@/$trace}
    case $command in *" solve "*) command="$command -o $work/plan" ;; esac
    rm -f "$work/plan"
    "$1" $command -q --json >"$work/out" 2>"$work/err"
    status=$?
    cat "$work/plan" >>"$work/out" 2>/dev/null
    printf '%s %d %s\n' "$(cat "$work/out" "$work/err" | sed "s|$work|.|g" | sha256sum | cut -c1-16)" \
      $status "$network|${command//$trace/@}" | sed "s| -o $work/plan||"
  done <"$here/plans.txt"
}

if [ $# = 1 ]; then
  answers "$1"
  exit
fi
if [ -x "$1" ]; then answers "$1" >"$work/before"; else cp "$1" "$work/before" || exit 2; fi
answers "$2" >"$work/after"
if cmp -s "$work/before" "$work/after"; then
  echo "$(wc -l <"$work/after") answers, all the same"
else
  diff "$work/before" "$work/after"
  exit 1
fi
