#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Data from a GPU (data/gpu): it is read and planned, and says what the documents say of it.
. "$(dirname "$0")/rules/common.bash"
scratch
ferry=$builddir/ferry gpu=$srcdir/data/gpu
export FERRY_DATADIR=$srcdir/data

# A step of PyTorch's deterministic mode: memory is filled as it is allocated, which is no use of what was there.
profile() {
  "$ferry" import "$gpu/h200-resnet50-b64.et.json.gz" "$gpu/h200-resnet50-b64.kineto.json.gz" -o "$work/profile.json" >"$work/said" &&
    grep -q 'parameter 97.5 MiB (215)  optimizer 97.5 MiB (161) .* gradient 97.5 MiB (161)' "$work/said" &&
    grep -q '^confidence  exact' "$work/said" || { cat "$work/said"; return 1; }
}
# The same files, as PyTorch writes them for a card of another maker.
bare() { # TRACE: all but the names of files
  sed '/^  "name"/d; /^  "source"/,/^  }/d' "$1"
}
renamed() { # DEVICE RUNTIME TYPE
  local it to=$work/$1
  mkdir -p "$to"
  for it in et kineto; do
    gunzip -c "$gpu/h200-resnet50-b64.$it.json.gz" |
      sed -E "s/cuda:0/$1:0/g; s/\"cat\":\"cuda_runtime\"/\"cat\":\"$2\"/g; s/\"Device Type\":1([,}])/\"Device Type\":$3\1/g" >"$to/$it.json"
  done
  ! grep -q 'cuda:0\|"cuda_runtime"' "$to"/*.json && grep -q "$1:0" "$to/et.json" && grep -q "$2" "$to/kineto.json" &&
    "$ferry" import "$to/et.json" "$to/kineto.json" -o "$to/step.json" >"$to/said" &&
    [ "$(bare "$work/profile.json" | wc -c)" -gt 80000 ] && cmp <(bare "$to/step.json") <(bare "$work/profile.json")
}
planned() { # FILE: for the link that was measured
  local peak
  peak=$("$ferry" info --json "$gpu/$1" 2>/dev/null | sed -n 's/^ *"peak_bytes": \([0-9]*\).*/\1/p')
  "$ferry" solve "$gpu/$1" -d "$gpu/h200-link.json" --budget "$((peak / 10 * 7))B" --same-places --effort quick -q -o "$work/plan.json" >"$work/said" 2>&1 || [ $? = 4 ] ||
    { cat "$work/said"; return 1; }
  "$ferry" check "$gpu/$1" "$work/plan.json" -q >"$work/said" 2>&1 || { cat "$work/said"; return 1; }
}
kept_places() { # a part whose granules another has waits until that has gone, in the effort of a first plan of `ferry run`
  "$ferry" solve "$gpu/h200-gpt2-b8.trace.json.zst" -d "$gpu/h200-link.json" --budget 5.25GiB --same-places --swap-only --limit 400000 -q --json >"$work/kept.json" 2>"$work/said" ||
    [ $? = 4 ] || { cat "$work/said"; return 1; }
  awk '{ gsub (/[{},]/, "\n") } { print }' "$work/kept.json" | awk -F ': *' '/"lower_bound_ns"/ { bound = $2 } /"step_ns"/ { step = $2 } END { if (!(step > 0 && step < 1.1 * bound)) print step, bound }'
}
rows() { # the same bits in each, in no more than the budget, and the step close to what was told
  python3 - "$gpu/h200-torch-run.json" <<'END'
import json, sys
under = [r for r in json.load(open(sys.argv[1]))["rows"] if "same" in r]
assert len(under) == 7, len(under)
for r in under:
    assert r["same"] and r["report"]["device_high_bytes"] <= r["report"]["budget_bytes"], r
    if r["part"] != "all":
        assert abs(r["off_prediction_ppm"]) < 170000 and r["report"]["planned_map_calls"] == 0, r
END
}
learned() { # in all the memory and in the least
  [ "$(grep -c '"parameters": "ec07f5a7' "$gpu/h200-learn.json")" = 2 ]
}
replayed() { # every byte was right, and no timed step further off than 5 %
  python3 - "$gpu/h200-replay.json" <<'END'
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
assert {r["kind"] for r in rows} == {"verified", "timed", "measured"}, rows
for r in rows:
    assert r["status"] == 0 and r["mismatched_words"] == 0, r
    assert r["kind"] != "timed" or abs(r["difference_ppm"]) < 50000, r
END
}
for_torch() {
  "$ferry" solve "$gpu/h200-torch-resnet50-b128.trace.json.zst" -d "$gpu/h200-link.json" --for torch --budget 9201407180B --effort quick -q \
    -o "$work/plan.json" >"$work/said" 2>&1 || [ $? = 4 ] || { cat "$work/said"; return 1; }
  "$ferry" check "$gpu/h200-torch-resnet50-b128.trace.json.zst" "$work/plan.json" -q >"$work/said" 2>&1 || { cat "$work/said"; return 1; }
}

claim "a profile of a real step has its parameters, gradients and state" profile
claim "its tensors keep their places at half of the memory too, near the bound" kept_places
for it in "xpu xpu_runtime 12" "privateuseone privateuse1_runtime 20" "hip hip_runtime 6"; do
  # shellcheck disable=SC2086
  claim "so has that of another maker's card: ${it%% *}" renamed $it
done
claim "the steps of ResNet-50 and GPT-2 are planned for the link that was measured" planned h200-resnet50-b96.trace.json.zst
claim "and GPT-2's" planned h200-gpt2-b8.trace.json.zst
claim "PyTorch under ferry run said the same in each row" rows
claim "cuBLAS and cuDNN trained the same bits under two plans" learned
claim "replays moved each byte right, in the time that was predicted" replayed
claim "a step that ferry_torch recorded on the GPU is planned" for_torch
finish
