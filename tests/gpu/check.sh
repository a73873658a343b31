#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Inside what pack.sh made, on a machine with a GPU: the experiments, the link, copies beside a bare
# loop of them, and every plan, first with each byte verified, then timed, then made again for the
# link that was found and timed; then a small network that trains, under two plans; large ones that do, in
# less and less memory (train.sh); PyTorch's steps and profiles; PyTorch under ferry run (torch_run.sh), and
# with ferry_torch (torch.sh, ladder.sh).
#   check.sh [RESULTS-FOLDER] [--driver emulated] [--only PART,...] [--rows NAME,...]
# PART: experiments link copies replay learn train profile run torch ladder; without --only all of them, which
# takes longer than an hour. What needs the link needs `link` in this call or an earlier one. --rows: of
# train.rows.
# Ends with 77 where there is no GPU; with 1 where a run failed, a byte was wrong, copies were slower
# than 95 % of the loop, what was learned under one plan differed from the other, or a step under a plan for the measured link took 5 % more or less than
# predicted.
set -u
here=$(cd "$(dirname "$0")" && pwd)
results=results driver=cuda library= limit_ppm=50000 only= train_rows=
while [ $# -gt 0 ]; do
  case $1 in
    --driver) driver=$2; shift ;;
    --only) only=,$2,; shift ;;
    --rows) train_rows=${2//,/ }; shift ;;
    *) results=$1 ;;
  esac
  shift
done
own_libraries=${LD_LIBRARY_PATH:-}
export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export FERRY_EMU=$here/bin/libferry-emu.so
ferry=$here/bin/ferry
[ "$driver" = cuda ] || library=$FERRY_EMU
mkdir -p "$results" && results=$(cd "$results" && pwd)
failed=0
fail() { echo "failed: $1"; failed=1; }
# Several calls with parts of it leave a file each.
suffix=${only//,/-} && suffix=${suffix%-}${train_rows:+-${train_rows// /-}}
part() { [ -z "$only" ] || [[ $only == *",$1,"* ]]; }

# The experiments also tell whether there is a GPU, and which.
"$here/bin/experiments" $library >"$results/experiments.json"
case $? in
  0) ;;
  77) rm -f "$results/experiments.json"; rmdir "$results" 2>/dev/null; echo "no GPU: skipped"; exit 77 ;;
  *) fail experiments ;;
esac
! part link || "$ferry" link --driver "$driver" -q -o "$results/device.json" >"$results/link.txt" || fail link
printf '{"copies": [\n], "enough": true}\n' >"$results/copies.json"
! part copies || "$here/bin/copies" $library >"$results/copies.json" || fail "copies at 95 % of a bare loop"

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
if part replay; then
  table >"$results/table.txt"
  cat "$results/table.txt"
fi

# A network that learns: the same bits whatever moves.
learned() { # PLAN
  "$ferry" replay "$here/train/trace.json.zst" "$here/train/$1.json" --compute real --steps 3 --driver "$driver" --json -q \
    2>"$results/train,$1.err" | tee "$results/train,$1.json" | sed -n 's/.*"parameters": *"\([^"]*\)".*/\1/p'
}
if part learn; then
  ample=$(learned ample) least=$(learned least)
  [ -n "$ample" ] && [ "$ample" = "$least" ] || fail "training: $ample with room to spare, $least in the least memory"
  [ -s "$results/train,ample.err" ] || rm -f "$results"/train,*.err
fi
training=$results/training.rows
if part train; then
  # shellcheck disable=SC2086
  bash "$here/train.sh" "$results" "$driver" $train_rows >"$results/training.txt" 2>&1 || fail training
  cat "$results/training.txt"
fi
python() { [ "$driver" = cuda ] && command -v python3 >/dev/null; }
if part profile && python; then
  for it in "vgg16 64" "resnet50 64" "gpt2 4" "charrnn 64"; do
    # shellcheck disable=SC2086
    python3 "$here/pytorch.py" profile $it "$results/profiles" >>"$results/profiles.txt" 2>&1
    case $? in 0) ;; 77) break ;; *) fail "profile of $it" ;; esac
  done
  for et in "$results"/profiles/*.et.json.gz; do
    [ -s "$et" ] || continue
    "$ferry" import "$et" "${et%.et.json.gz}.kineto.json.gz" -q -o "${et%.et.json.gz}.trace.json.zst" \
      >"${et%.et.json.gz}.import.txt" 2>&1 || fail "import of ${et##*/}"
  done
fi
if part run && python; then # needs a pack that was made where patchelf is
  LD_LIBRARY_PATH=$own_libraries bash "$here/torch_run.sh" "$results/torch-run.json" "$ferry" >"$results/torch-run.txt" 2>&1 ||
    [ $? = 77 ] || fail "PyTorch under ferry run"
  cat "$results/torch-run.txt"
fi
if part torch && python; then # such a pack too
  FERRY=$ferry LD_LIBRARY_PATH=$own_libraries bash "$here/torch/tests/gpu/torch.sh" "$results" >"$results/torch.txt" 2>&1 ||
    [ $? = 77 ] || fail "PyTorch by ferry_torch"
  cat "$results/torch.txt"
fi
if part ladder && python; then
  LD_LIBRARY_PATH=$own_libraries bash "$here/torch/tests/gpu/ladder.sh" "$results/torch-ladder.json" "$ferry" \
    >"$results/torch-ladder.txt" 2>&1 || [ $? = 77 ] || fail "the ladder"
  cat "$results/torch-ladder.txt"
fi

gpu=$(sed -n 's/^ *"device": "\(.*\)",*$/\1/p' "$results/experiments.json")
version=$(sed -n 's/^ *"driver": \([0-9]*\).*/\1/p' "$results/experiments.json")
{
  printf '{"command": "check.sh --driver %s", "copies":\n' "$driver"
  sed -n 's/^{"copies": //p; /^ {/p; /^]/s/,.*//p' "$results/copies.json"
  printf ', "date": "%s", "driver": %s, "failed": %s, "gpu": "%s", "rows": [\n' \
    "$(date -u +%Y-%m-%d)" "${version:-0}" "$failed" "$gpu"
  sed '$!s/$/,/' "$rows"
  printf '], "training": [\n'
  [ ! -e "$training" ] || sed '$!s/$/,/' "$training"
  printf ']}\n'
} >"$results/results$suffix.json"
rm -f "$rows" "$training" "$results/copies.json"
exit "$failed"
