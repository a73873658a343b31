#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Profiles that others recorded: what imports as plannable is solved, at 60 % of its peak or midway
# between its floor and its peak, whichever is larger, and the plan passes check and its proof holds.
# The folder is given by FERRY_REAL_TRACES.
set -u
real=${FERRY_REAL_TRACES:-}
if [ -z "$real" ] || [ ! -d "$real" ]; then
  echo "FERRY_REAL_TRACES does not name a folder of profiles"
  exit 77
fi
ferry=$builddir/ferry
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 refused=0
device=(--device "${FERRY_REAL_DEVICE:-h200}")

number() { sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" "$2" | head -n 1; }
fail() { failed=$((failed + 1)); echo "does not hold: $*"; }

solve_one() { # NAME FILES...
  local name=$1 status=0 peak floor op budget step bound
  shift
  rm -f "$work/trace"
  "$ferry" import "$@" -o "$work/trace" >"$work/report" 2>"$work/err" || status=$?
  if [ $status = 1 ]; then # not plannable, and says what to record instead
    refused=$((refused + 1))
    echo "$name: not plannable"
    if [ ! -e "$work/trace" ]; then # there is no step in it at all
      [ "$(wc -l <"$work/err")" = 1 ] && passed=$((passed + 1)) || fail "$name is refused in one line"
      return
    fi
    status=0
    "$ferry" solve "$work/trace" "${device[@]}" >"$work/out" 2>"$work/err" || status=$?
    if [ $status != 3 ] || ! grep -q 'not plannable' "$work/err"; then fail "$name is refused by solve"; return; fi
    passed=$((passed + 1))
    return
  fi
  if [ $status != 0 ]; then fail "$name is read: $(cat "$work/err")"; return; fi
  # Of no budget at all, the answer is the floor, in granules and by its op.
  "$ferry" solve "$work/trace" "${device[@]}" --budget 1B --reserve 0 --json >"$work/floor" 2>/dev/null
  [ $? = 1 ] || { fail "$name has no floor"; return; }
  floor=$(number floor_bytes "$work/floor")
  op=$(sed -n 's/.*"floor_op": {"name": "\(.*\)","op": \([0-9]*\)}.*/op \2 (\1)/p' "$work/floor")
  "$ferry" compare "$work/trace" "${device[@]}" --policies lru --json >"$work/peak" 2>/dev/null
  peak=$(number peak_bytes "$work/peak")
  budget=$((peak * 6 / 10))
  [ $(((floor + peak) / 2)) -gt $budget ] && budget=$(((floor + peak) / 2))
  status=0
  "$ferry" solve "$work/trace" "${device[@]}" --budget ${budget}B --reserve 0 --limit 300000 --proof --json \
    -o "$work/plan" >"$work/out" 2>"$work/err" || status=$?
  if [ $status != 0 ] && [ $status != 4 ]; then fail "$name is solved: $(cat "$work/err")"; return; fi
  "$ferry" check "$work/trace" "$work/plan" >/dev/null 2>"$work/err" || { fail "$name: $(cat "$work/err")"; return; }
  "$ferry" prove "$work/trace" "$work/plan" >/dev/null 2>"$work/err" || { fail "$name: $(cat "$work/err")"; return; }
  step=$(number step_ns "$work/out") bound=$(number lower_bound_ns "$work/out")
  passed=$((passed + 1))
  echo "$name: peak $peak, floor $floor by $op, budget $budget, step $step ns, bound $bound ns"
}

each() {
  local file
  for file in "$real"/kineto/*.json.gz "$real"/et/*.json.gz "$real"/chakra/*.et "$real"/snapshot/*.pickle \
    "$real"/g10/*.json; do
    [ -e "$file" ] && solve_one "${file##*/}" "$file"
  done
  for file in "$real"/et_kineto/*.et.json.gz; do
    [ -e "$file" ] && solve_one "${file##*/} with kineto" "$file" "${file%.et.json.gz}.kineto.json.gz"
  done
}
each
[ $((passed + failed)) -gt 0 ] || { echo "no profile in $real"; exit 77; }
[ "$passed" -gt "$refused" ] || { failed=$((failed + 1)); echo "does not hold: some are plannable"; }
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
