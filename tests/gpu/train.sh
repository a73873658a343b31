#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Inside what pack.sh made: networks that train, unswapped and in less and less memory; what a step takes
# beside what was predicted, whether all bits are those of the unswapped step, and how fast PyTorch is
# where it is there.
#   train.sh RESULTS DRIVER [ROW...]      the rows of train.rows, or some of them
# A plan is made for the times that the unswapped step took on this GPU, and for the link that
# `ferry link` measured. Ends with 1 where bits differ, a run fails, or a step takes 5 % more or less
# than predicted. On the emulated device, whose time is the trace's, there is nothing to measure.
set -u
here=$(cd "$(dirname "$0")" && pwd)
results=$1 driver=$2
shift 2
wanted=" $* "
ferry=$here/bin/ferry
limit_ppm=50000 ticks=200000 steps=8 failed=0 rows=$results/training.rows
export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} FERRY_EMU=$here/bin/libferry-emu.so
# The zoo asks for a card's rates, which only the unswapped prediction rests on; the link is this GPU's.
# Little networks need little granules.
rates=h100-sxm card=$results/card.json
cp "$results/device.json" "$card"
[ "$driver" = cuda ] || ticks=2000 steps=3
[ "$driver" = cuda ] || sed -i 's/"granule_bytes": *[0-9]*/"granule_bytes": 4096/' "$card"
touch "$rows"

number() { sed -n "/\"$2\"/,\$s/.*\"$3\": *\([0-9]*\).*/\1/p" "$1" | head -n 1; }
text() { sed -n "s/.*\"$2\": *\"\([^\"]*\)\".*/\1/p" "$1" | head -n 1; }
solve() { # TRACE BUDGET OUT OPTIONS...
  local status=0
  "$ferry" solve "$1" -d "$card" --budget "$2" -q -o "$3" "${@:4}" >/dev/null 2>"$results/solve.err" || status=$?
  [ $status = 0 ] || [ $status = 4 ]
}
put() { # NAME WAY BUDGET FILE STATUS TORCH-NS: a row, and a line of the table
  awk -v name="$1" -v way="$2" -v budget="$3" -v status="$5" -v torch="${6:-0}" -v limit=$limit_ppm -v rows="$rows" \
    -v p="$(number "$4" predicted step_ns)" -v s="$(number "$4" seen step_ns)" -v moved="$(number "$4" seen d2h_bytes)" \
    -v device="$(number "$4" seen peak_bytes)" -v same="$(grep -q '"same": *true' "$4" && echo true || echo false)" \
    -v by="$(text "$4" calculated_by)" -v judged="$([ "$driver" = cuda ] && echo 1 || echo 0)" 'BEGIN {
      ppm = p ? 1000000 * (s - p) / p : 0
      far = judged && way != "unswapped" && (ppm > limit || ppm < -limit)
      printf "%-22s %-10s %9s  %14d  %14d  %+7.2f %%  %s%s\n", name, way, budget, p, s, ppm / 10000,
        status ? "FAILED" : same == "true" ? "same bits" : way == "unswapped" ? "" : "DIFFERENT BITS", far ? "  more than 5 %" : ""
      printf "{\"budget\": \"%s\", \"calculated_by\": \"%s\", \"d2h_bytes\": %.0f, \"device_bytes\": %.0f, \"difference_ppm\": %d, \"name\": \"%s\", \"predicted_ns\": %.0f, \"pytorch_step_ns\": %.0f, \"same\": %s, \"seen_ns\": %.0f, \"status\": %d, \"way\": \"%s\"}\n",
        budget, by, moved, device, ppm, name, p, torch, same, s, status, way >>rows
      exit far || status != 0 || (way != "unswapped" && same != "true")
    }' || failed=1
}
run() { # NAME WAY BUDGET TRACE PLAN OPTIONS...
  local out="$results/train,$1,$2,$3.json" status=0
  "$ferry" replay "$4" "$5" --compute real --steps $steps --driver "$driver" --json -q "${@:6}" >"$out" 2>"$out.err" || status=$?
  if [ -s "$out.err" ]; then head -n 1 "$out.err"; else rm -f "$out.err"; fi
  put "$1" "$2" "$3" "$out" $status "${torch_ns:-0}"
  return $status
}
torch_step() { # NETWORK BATCH TYPE OPTIONS: the optimizer is that of the zoo
  [ "$driver" = cuda ] && command -v python3 >/dev/null || return 0
  local optimizer=sgd
  [[ $4 != *--optimizer\ * ]] || { optimizer=${4#*--optimizer } && optimizer=${optimizer%% *}; }
  FERRY_OPTIMIZER=$optimizer python3 "$here/pytorch.py" step "$1" "$2" "$3" >"$results/pytorch,$1-b$2,$3.json" 2>/dev/null ||
    { rm -f "$results/pytorch,$1-b$2,$3.json"; return 0; }
  number "$results/pytorch,$1-b$2,$3.json" step_ns step_ns
}

# ROW: name network batch type ways budgets options
while read -r name network batch type ways budgets options; do
  case $name in '' | '#'*) continue ;; esac
  [ "$wanted" = "  " ] || [[ $wanted == *" $name "* ]] || continue
  # shellcheck disable=SC2086
  "$ferry" zoo "$network" --batch "$batch" --dtype "$type" $options -d $rates -q -o "$results/trace.json" || { failed=1; continue; }
  torch_ns=$(torch_step "$network" "$batch" "$type" "$options")
  memory=$("$ferry" info --json "$results/trace.json" | sed -n 's/^ *"peak_bytes": \([0-9]*\).*/\1/p')
  if ! solve "$results/trace.json" "$((memory + memory / 4 + 268435456))B" "$results/plan.json" ||
    ! run "$name" unswapped none "$results/trace.json" "$results/plan.json" --times "$results/measured.json"; then
    echo "failed: $name unswapped: $(head -n 1 "$results/solve.err")"
    failed=1
    continue
  fi
  for way in ${ways//,/ }; do
    how=()
    case $way in
      sections) how=(--sections auto) ;;
      recompute) how=(--recompute auto) ;;
    esac
    for budget in ${budgets//,/ }; do
      if solve "$results/measured.json" "$budget" "$results/plan.json" --limit $ticks --seconds 40 "${how[@]}"; then
        run "$name" "$way" "$budget" "$results/measured.json" "$results/plan.json" --compare
      else
        printf '%-22s %-10s %9s  no plan: %s\n' "$name" "$way" "$budget" "$(head -n 1 "$results/solve.err" | cut -c1-120)"
      fi
    done
  done
done <"$here/train.rows"
rm -f "$card" "$results/trace.json" "$results/measured.json" "$results/plan.json" "$results/solve.err"
exit $failed
