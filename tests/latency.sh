#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Where weights and optimizer state cross in many small copies, larger groups of them cost less: by a layout of its
# own, and by a second search where the first ends with small ones.
. "$(dirname "$0")/rules/common.bash"
scratch

"$ferry" zoo resnet50 --batch 2 --dtype tf32 --optimizer adam --device h100-sxm -q -o net.json || exit 1
how=(net.json --device h100-sxm --budget 380MiB --swap-only --limit 500000)
ask() { # STRATEGIES: `step` and `moves` of the plan with them
  run 0 solve "${how[@]}" -o plan.json ${1:+--tune "$1"} &&
    run 0 check net.json plan.json && python3 -c '
import json
p = json.load(open("plan.json"))
print(p["predicted"]["step_ns"], len(p["moves"]))' >answer && read -r step moves <answer
}

fewer_and_faster() {
  ask layout_state=0,latency_again_least=1 && local small=$step many=$moves || return
  ask latency_again_least=1 && [ $((step * 100)) -lt $((small * 97)) ] && [ "$moves" -lt "$many" ] || return
  ask layout_state=0 && [ $((step * 100)) -lt $((small * 97)) ] && [ "$moves" -lt "$many" ]
}
never_slower() { # than without the second search
  ask latency_again_least=1 && local once=$step && ask "" && [ "$step" -le "$once" ]
}
same_bytes() { # whatever the threads
  run 0 solve "${how[@]}" -j 1 -o one.json && run 0 solve "${how[@]}" -j 2 -o two.json && cmp one.json two.json
}
claim "larger groups of state make fewer copies and a shorter step, as a layout and as a second search" fewer_and_faster
claim "the second search makes no plan slower" never_slower
claim "its plan is the same bytes with any number of threads" same_bytes
finish
