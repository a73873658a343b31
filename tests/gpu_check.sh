#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What `make gpu-check` does, packed small and run on the emulated device as far as it goes.
. "$(dirname "$0")/rules/common.bash"
scratch
bash "$srcdir/tests/gpu/pack.sh" "$builddir" "$work/pack" small >"$work/said" || { cat "$work/said"; exit 1; }
results=$work/results
whole() { (cd / && bash "$work/pack/check.sh" "$results" --driver emulated) >"$work/out" 2>&1 || { cat "$work/out"; return 1; }; }
rows() { [ "$(grep -cF '+0.00 %' "$results/table.txt")" -ge 9 ] || { cat "$results/table.txt"; return 1; }; }
moves() { grep -q '"d2h_bytes": [1-9].*"name": "vgg16-b8@112MiB,verified"' "$results/results.json"; }
about() { grep -q '"driver": [1-9][0-9]*, "failed": 0, "gpu": "emulated device", "rows"' "$results/results.json"; }
trains() { grep -q '"d2h_bytes": *[1-9]' "$results/train,least.json" && grep -qE '"parameters": *"[0-9a-f]{64}"' "$results/train,least.json" && [ ! -e "$results/train,least.err" ]; }
large_ones() { # unswapped, swapped, in sections and in bf16
  [ "$(grep -c '"same": true' "$results/results.json")" -ge 3 ] && grep -q '"calculated_by": "kernels".*"name": "gpt2-b4-bf16".*"same": true' "$results/results.json" &&
    grep -q '"d2h_bytes": [1-9].*"name": "vgg16-b8".*"way": "sections"' "$results/results.json" && ! grep -q DIFFERENT "$results/training.txt" ||
    { cat "$results/training.txt"; return 1; }
}
some_rows() { # a part of it, in a file of its own
  (cd / && bash "$work/pack/check.sh" "$results" --driver emulated --only train --rows gpt2-b4-bf16) >"$work/out" 2>&1 &&
    grep -q '"name": "gpt2-b4-bf16"' "$results/results-train-gpt2-b4-bf16.json" && ! grep -q vgg16 "$results/results-train-gpt2-b4-bf16.json"
}
known() { # the experiments take seconds: from here on they answer what they have answered
  cp "$results/experiments.json" "$work/experiments.json" && printf '#!/bin/bash\ncat "%s"\n' "$work/experiments.json" >"$work/pack/bin/experiments"
}
# The program with something in front of it; ferry.true is always the program itself.
in_front() {
  [ -e "$work/pack/bin/ferry.true" ] || cp "$work/pack/bin/ferry" "$work/pack/bin/ferry.true" || return 1
  cat >"$work/stub" && chmod +x "$work/stub" && cp "$work/stub" "$work/pack/bin/ferry"
}
itself_again() { cp "$work/pack/bin/ferry.true" "$work/pack/bin/ferry"; }
linked() { # a folder of results in which the link was measured earlier
  mkdir -p "$1" && cp "$results/device.json" "$1"
}
untrue() { # what is learned differently is a failed check
  in_front <<'STUB' || return 1
#!/bin/bash
"$(dirname "$0")/ferry.true" "${@/#3/1}" | sed 's/"same": true/"same": false/' # one step of three
STUB
  local status=0
  linked "$work/untrue" && bash "$work/pack/check.sh" "$work/untrue" --driver emulated --only train --rows gpt2-b4-bf16 >"$work/out" 2>&1 || status=$?
  itself_again && [ $status = 1 ] && grep -q 'DIFFERENT BITS' "$work/out"
}
is_json() { ! command -v python3 >/dev/null || python3 -m json.tool "$results/results.json" >"$work/parsed"; }
copies() { [ "$(grep -c '"rate_ppm": \(1000000\|999999\),' "$results/results.json")" = 8 ]; }
archive() { tar -tzf "$work/pack.tar.gz" | grep -q '/check.sh$'; }
no_gpu() {
  [ -e /dev/nvidiactl ] && return 0
  local status=0
  bash "$work/pack/check.sh" "$work/none" >"$work/out" 2>/dev/null || status=$?
  [ $status = 77 ] && [ "$(cat "$work/out")" = "no GPU: skipped" ] && [ ! -e "$work/none" ]
}
told() { # a plan that fails is a failed check
  cp "$work/pack/traces/vgg16-b8.json.zst" "$work/pack/plans/vgg16-b8@1GiB.json"
  echo "-p capuchin --budget 160MiB" >"$work/pack/plans/vgg16-b8@1GiB.how"
  linked "$work/bad" && ! bash "$work/pack/check.sh" "$work/bad" --driver emulated --only replay >"$work/out" 2>&1 && grep -q '1GiB.*status 3' "$work/out"
}
late() { # what takes a tenth longer than predicted, or copies at half the rate, is a failed check
  rm -f "$work/pack/plans/vgg16-b8@1GiB".*
  in_front <<'STUB' || return 1
#!/bin/bash
true=$(dirname "$0")/ferry.true
[ "$1" = replay ] || exec "$true" "$@"
"$true" "$@" | awk '/"seen"/ { seen = 1 } seen && /"step_ns"/ { match ($0, /[0-9]+/); n = substr ($0, RSTART, RLENGTH); sub (/[0-9]+/, int (n * 1.1)) } { print }'
STUB
  local status=0
  linked "$work/late" && bash "$work/pack/check.sh" "$work/late" --driver emulated --only replay >"$work/out" 2>&1 || status=$?
  itself_again && [ $status = 1 ] && grep -q 'measured .*more than 5 %' "$work/out" &&
    grep -q '"failed": 1' "$work/late/results-replay.json"
}
slow() {
  printf '#!/bin/bash\necho "{\"copies\": [\n], \"enough\": false}"\nexit 1\n' >"$work/pack/bin/copies"
  ! bash "$work/pack/check.sh" "$work/slow" --driver emulated --only copies >"$work/out" 2>&1 && grep -q 'failed: copies at 95 %' "$work/out"
}
claim "everything runs from the pack alone" whole
claim "each plan is verified, timed, and made again for the measured link" rows
claim "the tightest plan moves something" moves
claim "the results say what they are of" about
claim "the archive holds it" archive
claim "without a GPU it is skipped in one line" no_gpu
claim "a network trains under two plans, one of which moves tensors" trains
claim "networks train in less and less memory, with the same bits" large_ones
known || exit 1
claim "a part of it can be asked for" some_rows
claim "what is not learned the same fails" untrue
claim "the results are JSON" is_json
claim "mapped copies are as fast as a bare loop of copies" copies
claim "what fails is told" told
claim "what is not within 5 % of its prediction fails" late
claim "copies that are too slow fail" slow
finish
