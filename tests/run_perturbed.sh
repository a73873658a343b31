#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A plan is left and entered again at random, and no byte is ever wrong; FERRY_STEPS for more of it.
. "$(dirname "$0")/run.bash"
steps=${FERRY_STEPS:-300} least=$((${FERRY_STEPS:-300} / 4))

perturbed() { # HABIT LEAST SEED BUDGET
  plain "$1" "$programs/habits" "$kernels" "$steps" "$1" "$3" &&
    same "$1" --wait --budget "$4" --emulated fuzz=50us,seed=$3 -- "$programs/habits" "$kernels" "$steps" "$1" "$3" &&
    echo "$steps steps of \`$1\` in $4: entered $(figure entries "$1") times, left $(figure leaves "$1") times" >>told &&
    [ "$(figure entries "$1")" -ge "$2" ] && [ "$(figure leaves "$1")" -ge "$2" ] ||
    { echo "entered $(figure entries "$1"), left $(figure leaves "$1") times"; return 1; }
}

claim "a plan is left and entered at random, budget 1300 KiB" perturbed perturbed $least 3 1300KiB
claim "and in 900 KiB" perturbed perturbed $least 4 900KiB
claim "so is one whose results cross, and now and then do not" perturbed unsteady $((steps / 10)) 5 1000KiB
cat told
finish
