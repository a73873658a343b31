#!/bin/bash
# Inside what pack.sh made, on a machine with a GPU: the experiments, the link, copies beside a bare
# loop of them, and every plan, first with each byte verified, then timed, then made again for the
# link that was found and timed.
#   check.sh [RESULTS-FOLDER] [--driver emulated]
# Ends with 77 where there is no GPU; with 1 where a run failed, a byte was wrong, copies were slower
# than 95 % of the loop, or a step under a plan for the measured link took 5 % more or less than
# predicted.
set -u
here=$(cd "$(dirname "$0")" && pwd)
results=results driver=cuda library= limit_ppm=50000
while [ $# -gt 0 ]; do
  case $1 in
    --driver) driver=$2; shift ;;
    *) results=$1 ;;
  esac
  shift
done
export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export FERRY_EMU=$here/bin/libferry-emu.so
ferry=$here/bin/ferry
[ "$driver" = cuda ] || library=$FERRY_EMU
mkdir -p "$results" && results=$(cd "$results" && pwd)
failed=0
fail() { echo "failed: $1"; failed=1; }

"$here/bin/experiments" $library >"$results/experiments.json"
case $? in
  0) ;;
  77) rm -f "$results/experiments.json"; rmdir "$results" 2>/dev/null; echo "no GPU: skipped"; exit 77 ;;
  *) fail experiments ;;
esac
"$ferry" link --driver "$driver" -q -o "$results/device.json" >"$results/link.txt" || fail link
"$here/bin/copies" $library >"$results/copies.json" || fail "copies at 95 % of a bare loop"

number() { sed -n "/\"$2\"/,\$s/.*\"$3\": *\([0-9]*\).*/\1/p" "$1" | head -n 1; }
rows=$results/rows
: >"$rows"
replay() { # LABEL KIND TRACE PLAN OPTIONS...: one row of the table
  local label=$1 kind=$2 trace=$3 plan=$4 status=0 name said
  shift 4
  name=$label,$kind
  said=$results/$name.json
  "$ferry" replay "$trace" "$plan" --driver "$driver" --json -q "$@" >"$said" 2>"$results/$name.err" || status=$?
  [ -s "$results/$name.err" ] || rm -f "$results/$name.err"
  if [ $status != 0 ]; then
    printf '%-44s  status %d  %s\n' "$name" $status "$(head -n 1 "$results/$name.err" 2>/dev/null)"
    failed=1
  fi
  awk -v name="$name" -v kind="$kind" -v status=$status -v limit=$limit_ppm -v rows="$rows" \
    -v p="$(number "$said" predicted step_ns)" -v s="$(number "$said" seen step_ns)" \
    -v moved="$(number "$said" seen d2h_bytes)" -v wrong="$(number "$said" mismatched_words mismatched_words)" 'BEGIN {
      ppm = p ? 1000000 * (s - p) / p : 0
      far = kind == "measured" && (ppm > limit || ppm < -limit)
      if (status == 0)
        printf "%-44s  %14d  %14d  %+.2f %%%s\n", name, p, s, ppm / 10000, far ? "  more than 5 %" : ""
      printf "{\"d2h_bytes\": %.0f, \"difference_ppm\": %d, \"kind\": \"%s\", \"mismatched_words\": %d, \"name\": \"%s\", \"predicted_ns\": %.0f, \"seen_ns\": %.0f, \"status\": %d}\n",
        moved, ppm, kind, wrong, name, p, s, status >>rows
      exit far
    }' || failed=1
}
again() { # the plan once more, for the device that was measured
  local trace=$1 plan=$2 how
  how=$(cat "${plan%.json}.how")
  # shellcheck disable=SC2086
  "$ferry" solve "$trace" -d "$results/device.json" $how -q -o "$results/again.json" >/dev/null 2>&1
  [ $? = 0 ] || [ $? = 4 ]
}
table() {
  printf '%-44s  %14s  %14s\n' "" "predicted, ns" "seen, ns"
  for plan in "$here"/plans/*.json; do
    name=$(basename "$plan" .json) trace=$here/traces/$(basename "${plan%@*}").json.zst
    replay "$name" verified "$trace" "$plan" --verify
    replay "$name" timed "$trace" "$plan" -n 20
    rm -f "$results/again.json"
    if again "$trace" "$plan" && [ -s "$results/again.json" ]; then
      replay "$name" measured "$trace" "$results/again.json" -n 20
    fi
  done
  rm -f "$results/again.json"
  grep -q '"kind": "measured"' "$rows" || fail "no plan could be made for the measured link"
}
table >"$results/table.txt"
cat "$results/table.txt"

gpu=$(sed -n 's/^ *"device": "\(.*\)",*$/\1/p' "$results/experiments.json")
version=$(sed -n 's/^ *"driver": \([0-9]*\).*/\1/p' "$results/experiments.json")
{
  printf '{"command": "check.sh --driver %s", "copies":\n' "$driver"
  sed -n 's/^{"copies": //p; /^ {/p; /^]/s/,.*//p' "$results/copies.json"
  printf ', "date": "%s", "driver": %s, "failed": %s, "gpu": "%s", "rows": [\n' \
    "$(date -u +%Y-%m-%d)" "${version:-0}" "$failed" "$gpu"
  sed '$!s/$/,/' "$rows"
  printf ']}\n'
} >"$results/results.json"
rm -f "$rows" "$results/copies.json"
exit "$failed"
