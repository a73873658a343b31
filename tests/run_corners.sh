#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Single things that programs do.
. "$(dirname "$0")/run.bash"

steps=1
corner() { # NAME OPTIONS...: it ends well
  local status=0
  timeout 60 "$ferry" run -q --driver emulated --report "$1.json" "${@:2}" -- "$programs/corners" "$kernels" "$steps" "$1" >"$1.out" 2>"$1.err" || status=$?
  [ "$status" = 0 ] || { echo "status $status"; cat "$1.out" "$1.err"; return 1; }
}
pending() { corner pending --budget 16MiB && [ "$(grep -c 'beside the copy$' pending.out)" = 6 ] || { cat pending.out; return 1; }; }
addresses() { # the space of a large tensor that is freed is good for small ones too
  corner addresses --emulated granule=4GiB,memory=2000GiB --budget 2000GiB --host 16MiB && diff addresses.out - <<'END'
all is taken
a small one: 2
a small one: 2
a small one: 2
a smaller one: 0
all were freed
END
}
beside() { # NAME LINES OPTIONS...: a device of real threads
  corner "$1" --emulated clock=real "${@:3}" && [ "$(grep -c '^both went on$' "$1.out")" = "$2" ]
}
epochs() { # each has a plan, the last of them a little later
  steps=36 corner epochs --wait --budget 640KiB && [ "$(figure plans epochs)" -gt 32 ] || { echo "$(figure plans epochs) plans"; return 1; }
}
ahead() { # the times are read at the end at the latest, as far as there are marks
  steps=$1 corner ahead --wait --budget 640KiB && [ "$(figure planned_steps ahead)" -ge $(($1 - 8)) ] && [ "$(figure predicted_step_ns ahead)" -gt 0 ] &&
    [ $(($(figure planned_step_ns ahead) * 100)) -le $(($(figure predicted_step_ns ahead) * 105)) ] && [ "$(figure stall_ns ahead)" -ge 0 ] ||
    { grep -E 'planned|predicted|stall' ahead.json; return 1; }
}
values() { # the emulated device has no such entry, so what is passed on is not found
  corner values --budget 16MiB && [ "$(sort -u values.out)" = "801 801 500" ] && [ "$(wc -l <values.out)" = 8 ] &&
    [ "$(grep -c '(cuStreamWriteValue32) is not supported under a budget; ' values.err)" = 1 ] || { cat values.out values.err; return 1; }
}

failed() { # the last line on a program that failed is that it did
  "$ferry" run --driver emulated --budget 300KiB -- "$programs/mlp" "$kernels" 6 >failed.out 2>failed.err
  [ $? = 3 ] && [ "$(tail -n 1 failed.err)" = "ferry: $programs/mlp failed with status 3" ] && ! grep -q 'nothing had to leave' failed.err || { cat failed.err; return 1; }
}

claim "a program that failed is said to have failed" failed
claim "a stream waits once for a small tensor's free on another" pending
claim "small tensors find the address space taken, and some of it free again" addresses
claim "a copy of memory that is not pinned keeps no other thread" beside pageable 2 --budget 16MiB
claim "nor does one whose room another thread needs" beside held 1 --budget 1MiB --host 16MiB
claim "plans are asked for as long as a program goes on" epochs
for it in 40 100; do claim "the times of $it steps are told where the host waits for none" ahead $it; done
claim "a number that a stream writes or waits for is refused in what ferry moves only" values
finish
