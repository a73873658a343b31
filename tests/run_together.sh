#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Tensors made again of launches with attributes, and where other programs share the card and take its room.
. "$(dirname "$0")/run.bash"
export TMPDIR=$work/folders
unset XDG_RUNTIME_DIR
mkdir "$TMPDIR"
device=granule=8192,link=300MB/s
player=("$programs/player" "$programs/player_kernels.so")

# made SEED STEPS: step SEED.json, what it says alone in made.plain, and the bytes that it holds
made() {
  awk -v seed="$1" -f "$srcdir/tests/made_step.awk" >"step$1.json"
  plain made "${player[@]}" "$2" "step$1.json" 2>/dev/null
  under whole --budget 1GiB --host 1GiB -- "${player[@]}" 4 "step$1.json" && holds=$(figure live_high_bytes whole)
}
again() { # NAME: some were
  [ "$(figure remakes "$1")" -gt 0 ] && [ "$(figure dropped_bytes "$1")" -gt 0 ] && [ "$(figure unfit_ops "$1")" = 0 ] || { cat "$1.err"; return 1; }
}
shared() { # with a group's room, which is all of it
  made 3 16 && same made --wait --share g --least 64KiB --host 1GiB --budget $((holds * 55 / 100))B --emulated $device -- "${player[@]}" 16 step3.json && again made
}
resized() { # another program comes and goes, so that plans are made for less and for more
  local first status=0 i more=300 device=granule=8192,link=100MB/s # so slow that ops which a busy machine delays are worth it
  made 3 $more || return 1
  "$ferry" run -q --driver emulated --wait --share r --least 64KiB --host 1GiB --budget $((holds * 85 / 100))B --emulated $device,clock=real --report first.json --keep-trace first.trace -- \
    "${player[@]}" $more step3.json >first.out 2>first.err &
  first=$!
  for ((i = 0; i < 3; i++)); do
    "$ferry" run -q --driver emulated --wait --share r --least 64KiB --host 1GiB --budget $((holds * 85 / 100))B --emulated $device,clock=real --report second.json -- \
      "${player[@]}" 12 step3.json >second.out 2>second.err || { cat second.err; return 1; }
  done
  wait $first || status=$?
  grep -q '"confidence": "learned"' first.trace || { grep -o '"confidence": "[a-z]*"' first.trace; return 1; }
  [ $status = 0 ] && cmp made.plain first.out && [ "$(figure resizes first)" -gt 0 ] && again first || { echo "status $status, $(figure resizes first) resizes, $(figure remakes first) remakes, $(figure unfit_ops first) unfit"; return 1; }
}
attributed() { # in clusters, and beside the launch before; one that records an event is not launched again
  local it
  made 3 16
  for it in 4 6 7; do
    same made --wait --host 1GiB --budget $((holds * 55 / 100))B --emulated $device -- "${player[@]}" 16 step3.json attribute=$it || return 1
    if [ $it = 7 ]; then [ "$(figure remakes made)" = 0 ] || return 1; else again made || return 1; fi
  done
}

claim "kernels with attributes are launched again, but for those that do something else besides" attributed
claim "a plan in a group's room makes tensors again" shared
claim "so do plans that are made for less and more room" resized
finish
