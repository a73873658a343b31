#!/bin/bash
# Inside what pack.sh made, on a machine with a GPU: the experiments, the link, and every plan, first
# with each byte verified, then timed, then made again for the link that was found and timed.
#   check.sh [RESULTS-FOLDER] [--driver emulated]
# Ends with 77 where there is no GPU, with 1 where a run failed or a byte was wrong.
set -u
here=$(cd "$(dirname "$0")" && pwd)
results=results driver=cuda library=
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
"$here/bin/experiments" $library >"$results/experiments.json"
case $? in
  0) ;;
  77) rm -f "$results/experiments.json"; rmdir "$results" 2>/dev/null; echo "no GPU: skipped"; exit 77 ;;
  *) echo "failed: experiments"; failed=1 ;;
esac
"$ferry" link --driver "$driver" -q -o "$results/device.json" >"$results/link.txt" ||
  { echo "failed: link"; failed=1; }

number() { sed -n "/\"$2\"/,\$s/.*\"step_ns\": *\([0-9]*\).*/\1/p" "$1" | head -n 1; }
replay() { # LABEL TRACE PLAN OPTIONS...: one row of the table
  local label=$1 trace=$2 plan=$3 status=0
  shift 3
  "$ferry" replay "$trace" "$plan" --driver "$driver" --json -q "$@" \
    >"$results/$label.json" 2>"$results/$label.err" || status=$?
  [ -s "$results/$label.err" ] || rm -f "$results/$label.err"
  if [ $status != 0 ]; then
    failed=1
    printf '%-44s  status %d  %s\n' "$label" $status "$(head -n 1 "$results/$label.err" 2>/dev/null)"
    return
  fi
  awk -v name="$label" -v p="$(number "$results/$label.json" predicted)" \
    -v s="$(number "$results/$label.json" seen)" \
    'BEGIN { printf "%-44s  %14d  %14d  %+.2f %%\n", name, p, s, p ? 100 * (s - p) / p : 0 }'
}
{
  printf '%-44s  %14s  %14s\n' "" "predicted, ns" "seen, ns"
  for plan in "$here"/plans/*.json; do
    name=$(basename "$plan" .json) trace=$here/traces/$(basename "${plan%@*}").json.zst
    replay "$name,verified" "$trace" "$plan" --verify -n 3
    replay "$name" "$trace" "$plan" -n 20
    if "$ferry" solve "$trace" -d "$results/device.json" -p capuchin --budget "${name##*@}" -q \
      -o "$results/again.json" >/dev/null 2>&1; then
      replay "$name,measured link" "$trace" "$results/again.json" -n 20
    fi
  done
  rm -f "$results/again.json"
  echo "$failed" >"$results/failed"
} | tee "$results/table.txt"
failed=$(cat "$results/failed") && rm "$results/failed"
gpu=$(sed -n 's/^ *"device": "\(.*\)",*$/\1/p' "$results/experiments.json")
version=$(sed -n 's/^ *"driver": \([0-9]*\).*/\1/p' "$results/experiments.json")
printf '{"command": "check.sh --driver %s", "date": "%s", "driver": %s, "failed": %s, "gpu": "%s"}\n' \
  "$driver" "$(date -u +%Y-%m-%d)" "${version:-0}" "$failed" "$gpu" >"$results/about.json"
exit "$failed"
