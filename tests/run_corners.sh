#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Single things that programs do.
. "$(dirname "$0")/run.bash"

corner() { # NAME OPTIONS...: it ends well
  local status=0
  timeout 60 "$ferry" run -q --driver emulated --report "$1.json" "${@:2}" -- "$programs/corners" "$kernels" 1 "$1" >"$1.out" 2>"$1.err" || status=$?
  [ "$status" = 0 ] || { echo "status $status"; cat "$1.out" "$1.err"; return 1; }
}
pending() { corner pending --budget 16MiB && [ "$(grep -c 'beside the copy$' pending.out)" = 6 ] || { cat pending.out; return 1; }; }

claim "a stream waits once for a small tensor's free on another" pending
finish
